//! The names of the contract: one thing has one name in all of `docs/schemas/`, and one name means one thing (ADR 0029).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::schemas::shapes;

/// Names that the contract had before its last cleaning, and what they are called now.
const OLD: &[(&str, &str)] = &[
    ("state", "status"),
    ("type", "kind"),
    ("event_type", "event_kind"),
    ("agent_type", "agent_kind"),
    ("at", "created_at"),
    ("completed_at", "finished_at"),
    ("rewind_id", "id"),
    ("safety_id", "safety_checkpoint_id"),
    ("restored_id", "restored_checkpoint_id"),
    ("only", "dispatch_id"),
    ("step_name", "step"),
    ("last_error", "error"),
    ("root", "project_dir"),
    ("root_sha256", "tree_sha256"),
    ("pages", "page_count"),
];

/// Names that may stand where the rules say otherwise, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("error", "of a failed call the whole error; of a record the words of what failed"),
    ("files", "of a rollback the report of that layer; elsewhere a list of files"),
    ("from", "of an event what its source says: a phase, a status or an id"),
    ("to", "of an event what its source says: a phase, a status or an id"),
    ("payload", "of an event whatever was recorded with it"),
    ("metadata", "the caller's own facts"),
    ("details", "of an error what its page says"),
    ("proposal", "the part of a configuration that a person may take over"),
    ("scope", "columns that the application names"),
];

/// The seeds' own names, which stand whatever the rules say.
const PROTECTED: &[(&str, &str)] = &[
    ("rollback", "rolled_back_phases"),
    ("rollback", "cancelled_dispatches"),
    ("rollback", "marked_artifacts"),
    ("code", "dispatch_id"),
    ("code", "phase"),
    ("code", "commit_shas"),
    ("code", "file_paths"),
    ("rewind", "snapshot_created_at"),
];

/// A field, wherever it stands.
struct Field {
    place: String,
    name: String,
    schema: Value,
}

fn fields() -> Vec<Field> {
    let mut all = Vec::new();
    for (shape, schema) in shapes() {
        // What a person sets is named by the configuration.
        if shape != "config" {
            collect(shape, "", &schema, &mut all);
        }
    }
    assert!(all.len() > 500, "only {} fields", all.len());
    all
}

fn collect(shape: &str, part: &str, schema: &Value, all: &mut Vec<Field>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        all.push(Field { place: format!("{shape} {part}"), name: name.clone(), schema: field.clone() });
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        schema[key].as_array().into_iter().flatten().for_each(|one| collect(shape, part, one, all));
    }
    for (part, definition) in schema["$defs"].as_object().into_iter().flatten() {
        collect(shape, part, definition, all);
    }
    if part.is_empty() {
        collect(shape, "[]", &schema["items"], all);
    }
}

/// Which JSON a field may be, but null.
fn kinds(schema: &Value) -> BTreeSet<&str> {
    let mut kinds = BTreeSet::new();
    match &schema["type"] {
        Value::String(one) => kinds.extend([one.as_str()]),
        Value::Array(several) => kinds.extend(several.iter().filter_map(Value::as_str)),
        _ if schema["$ref"].as_str().is_some_and(|at| at.ends_with("/Source")) => kinds.extend(["string"]),
        _ if schema["$ref"].is_string() => kinds.extend(["object"]),
        _ => {}
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        schema[key].as_array().into_iter().flatten().for_each(|one| kinds.extend(self::kinds(one)));
    }
    kinds.remove("null");
    kinds
}

fn is_exception(name: &str) -> bool {
    EXCEPTIONS.iter().any(|(exception, _)| *exception == name)
}

/// In an object of counts, `files` is how many there are.
fn counts(field: &Field) -> bool {
    field.place.ends_with("CountsJson")
}

#[test]
fn old_names_are_gone() {
    for field in fields() {
        let now = OLD.iter().find(|(old, _)| *old == field.name);
        assert!(now.is_none(), "{}: {} is called {:?} now", field.place, field.name, now.map(|(_, now)| now));
        let is_range = matches!(field.name.as_str(), "from" | "to");
        let is_of_event = field.place.starts_with("event");
        assert!(!is_range || is_of_event, "{}: {} says neither of what", field.place, field.name);
    }
}

#[test]
fn one_name_means_one_thing() {
    let mut seen: BTreeMap<String, (BTreeSet<String>, String)> = BTreeMap::new();
    for field in fields().into_iter().filter(|field| !counts(field) && !is_exception(&field.name)) {
        let kinds: BTreeSet<String> = kinds(&field.schema).into_iter().map(str::to_owned).collect();
        let first = seen.entry(field.name.clone()).or_insert_with(|| (kinds.clone(), field.place.clone()));
        assert_eq!(first.0, kinds, "{} in {} and in {}", field.name, first.1, field.place);
    }
}

#[test]
fn a_name_tells_what_its_value_is() {
    let endings = [
        ("_id", "string"),
        ("_ids", "array"),
        ("_count", "integer"),
        ("_counts", "object"),
        ("_at", "string"),
        ("_ms", "integer"),
        ("_bytes", "integer"),
    ];
    for field in fields().into_iter().filter(|field| !is_exception(&field.name)) {
        let kinds = kinds(&field.schema);
        // The seed's own name: a number or a text, as the application stores it.
        let is_scalar = field.name == "snapshot_created_at";
        if let Some((_, kind)) = endings.iter().find(|(ending, _)| field.name.ends_with(ending)).filter(|_| !is_scalar)
        {
            assert_eq!(kinds, BTreeSet::from([*kind]), "{}: {}", field.place, field.name);
        }
        assert!(
            !kinds.is_empty() || is_scalar || field.schema["enum"].is_array(),
            "{}: {} is untyped",
            field.place,
            field.name
        );
    }
}

#[test]
fn a_record_has_an_id_with_its_short_form() {
    let is_record =
        |properties: &Map<String, Value>| properties.contains_key("id") && properties.contains_key("created_at");
    let mut records = 0;
    for (shape, schema) in shapes() {
        let defined = schema["$defs"].as_object().into_iter().flatten();
        let parts = defined.filter(|(name, _)| *name != "OfRestoreJson").map(|(_, part)| part);
        for part in parts.chain([&schema]) {
            let Some(properties) = part["properties"].as_object() else { continue };
            if is_record(properties) {
                assert!(properties.contains_key("short_id"), "{shape}: {:?}", properties.keys());
                records += 1;
            }
        }
    }
    assert!(records > 20, "{records}");
}

#[test]
fn the_seeds_names_stand() {
    let all = fields();
    for (shape, name) in PROTECTED {
        let is_there = all.iter().any(|field| field.name == *name && field.place.starts_with(shape));
        assert!(is_there, "{shape}: {name}");
    }
    for (exception, _) in EXCEPTIONS {
        assert!(all.iter().any(|field| field.name == *exception), "{exception} is no exception any more");
    }
}
