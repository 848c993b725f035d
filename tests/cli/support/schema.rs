//! Output against the schemas in `docs/schemas/`.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A path under `docs/`.
pub(crate) fn docs(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(path)
}

/// Every verb with the shape that it prints, by the table in `docs/schemas/README.md`.
pub(crate) fn verbs() -> Vec<(String, String)> {
    let table = std::fs::read_to_string(docs("schemas/README.md")).expect("the table of shapes");
    let verbs: Vec<(String, String)> = table
        .lines()
        .filter_map(|line| {
            let (verb, rest) = line.strip_prefix("| `")?.split_once("` | [")?;
            Some((verb.to_owned(), rest.split_once(']')?.0.to_owned()))
        })
        .collect();
    assert!(verbs.len() > 30, "the table of shapes cannot be read");
    verbs
}

/// The shape that a verb prints.
pub(crate) fn shape_of(verb: &str) -> String {
    let found = verbs().into_iter().find(|(name, _)| name == verb);
    found.unwrap_or_else(|| panic!("{verb} is not in the table of shapes")).1
}

/// Fails if `value` is not of this shape.
pub(crate) fn assert_shape(shape: &str, value: &Value) {
    let text = std::fs::read_to_string(docs(&format!("schemas/{shape}.json"))).expect("a schema");
    let schema: Value = serde_json::from_str(&text).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "not a {shape}: {errors:?}\n{value:#}");
}
