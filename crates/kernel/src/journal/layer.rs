//! The layers that a rollback covers.

use ic_base::{Code, Diagnosis, Result};

ic_base::words! {
    /// A layer of a run (product.md, "The cut").
    #[derive(PartialOrd, Ord)]
    pub enum LayerName {
        /// Phase pointer, skips, artifacts, dispatches, agents.
        Workflow = "workflow",
        /// Effects outside of the project: messages, servers, deployments.
        Effects = "effects",
        /// Files of the working tree.
        Files = "files",
        /// HEAD, the branch that it names, the index and the stash.
        Git = "git",
        /// Rows of the application's own tables.
        Data = "data",
    }
}

/// The layers without one of them, as `--layer` takes them.
pub fn all_but(layers: &[LayerName], one: LayerName) -> String {
    listed(layers.iter().filter(|layer| **layer != one))
}

fn listed<'l>(layers: impl Iterator<Item = &'l LayerName>) -> String {
    layers.map(|layer| layer.as_str()).collect::<Vec<_>>().join(",")
}

/// How to leave rows out of the rollback, for a hint. `layers`: the layers that were asked for, where they can still be chosen anew.
pub fn without_data(layers: Option<&[LayerName]>) -> String {
    let flag = layers.map(|layers| format!(" (--layer={})", all_but(layers, LayerName::Data)));
    format!("leave the layer data out{}", flag.unwrap_or_default())
}

/// Layers as the ledger keeps them: a JSON array.
pub fn to_json(layers: &[LayerName]) -> String {
    serde_json::json!(layers.iter().map(|layer| layer.as_str()).collect::<Vec<_>>()).to_string()
}

/// Layers as [`to_json`] keeps them; `None` for a word that is not known.
pub fn from_json(text: &str) -> Option<Vec<LayerName>> {
    let names: Vec<String> = serde_json::from_str(text).ok()?;
    names.iter().map(|name| LayerName::parse(name)).collect()
}

/// The layers, sorted, each once. Errors: `usage` if the workflow layer is missing: the others follow its cut.
pub fn checked(layers: &[LayerName]) -> Result<Vec<LayerName>> {
    let mut sorted = layers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.contains(&LayerName::Workflow) {
        return Ok(sorted);
    }
    Err(Diagnosis::new(Code::Usage, "The layer workflow is missing: other layers are rolled back only with it.").hint(
        format!(
            "give it too: --layer={}; or restore a checkpoint alone: ic checkpoint restore ID --yes",
            listed([LayerName::Workflow].iter().chain(&sorted))
        ),
    ))
}
