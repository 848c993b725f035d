//! Artifacts of a run.

use ic_ops::artifact::Added;
use ic_runtrack::{Artifact, ArtifactStatus};

use crate::text::{Cell, TextTable, path_text, style};
use crate::views::PathJson;
use crate::views::common_shapes::WarningJson;

shape! {
    /// A file that a run recorded as its result.
    pub(crate) struct ArtifactJson from artifact: &Artifact {
        id: String = artifact.id.to_string(),
        short_id: String = artifact.id.short().to_owned(),
        run_id: String = artifact.run_id.to_string(),
        phase: String = artifact.phase.clone(),
        #[serde(flatten)]
        path: PathJson = artifact.path.as_path().into(),
        kind: String = artifact.kind.clone(),
        /// The SHA-256 of its content in hex, if it was a file when it was registered.
        content_hash: Option<String> = artifact.content_hash.clone(),
        dispatch_id: Option<String> = artifact.dispatch_id.as_ref().map(ToString::to_string),
        /// active, or `rolled_back`: it satisfies no gate.
        status: &'static str as ic_runtrack::artifact::ArtifactStatus = artifact.status.as_str(),
        rolled_back_by: Option<String> = artifact.rolled_back_by.as_ref().map(ToString::to_string),
        seq: i64 = artifact.seq,
        created_at: String = artifact.created_at.to_string(),
    }

    /// An artifact that was registered by this call (`run artifact add`).
    pub(crate) struct ArtifactAddedJson from added: &Added {
        #[serde(flatten)]
        artifact: ArtifactJson = (&added.artifact).into(),
        /// Whether its content is kept: `run artifact cat` prints it. Not kept: no file, larger than `max-file-size`, or checkpoints are
        /// off.
        content_kept: bool = added.is_kept,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = added.warnings.iter().map(WarningJson::from).collect(),
    }
}

/// Artifacts, one a line.
pub(crate) fn artifacts(artifacts: &[Artifact]) -> String {
    let mut table = TextTable::new(&["ARTIFACT", "STATUS", "PHASE", "TYPE", "SHA-256", "PATH"]);
    for a in artifacts {
        let colour = match a.status {
            ArtifactStatus::Active => style::NONE,
            ArtifactStatus::RolledBack => style::DIM,
        };
        table.row(vec![
            Cell::new(style::STRONG, a.id.short()),
            Cell::new(colour, a.status.as_str()),
            a.phase.as_str().into(),
            a.kind.as_str().into(),
            Cell::new(style::DIM, a.content_hash.as_deref().map_or("", |h| &h[..12])),
            path_text(&a.path).as_str().into(),
        ]);
    }
    table.render("No artifacts.")
}
