//! What an older version answered, in the names that the contract has since its last cleaning (ADR 0029).

use serde_json::{Map, Value, json};

/// Keys that are called otherwise wherever they stand.
const RENAMED: &[(&str, &str)] = &[
    ("state", "status"),
    ("type", "kind"),
    ("event_type", "event_kind"),
    ("agent_type", "agent_kind"),
    ("completed_at", "finished_at"),
    ("at", "created_at"),
    ("rewind_id", "id"),
    ("safety_id", "safety_checkpoint_id"),
    ("restored_id", "restored_checkpoint_id"),
    ("last_error", "error"),
    ("root", "project_dir"),
    ("root_sha256", "tree_sha256"),
    ("only", "dispatch_id"),
];

/// Keys of one verb.
const OF_A_VERB: &[(&str, &str, &str)] = &[
    ("run history", "from", "from_stay"),
    ("run history", "to", "to_stay"),
    ("run history", "current", "current_stay"),
    ("checkpoint diff", "from", "from_checkpoint_id"),
    ("checkpoint diff", "to", "to_checkpoint_id"),
    ("compensation run", "left", "compensations_left"),
    ("rewind", "left", "stages_left"),
    ("rewind", "error", "failure"),
    ("where", "config", "config_file"),
    ("run rollback", "left", "compensations_left"),
    ("workflow", "left", "compensations_left"),
    ("workflow validate", "run", "argv"),
    ("events verify", "events", "event_count"),
    ("events verify", "head", "chain_head"),
    ("checkpoint verify", "checkpoints", "checkpoint_count"),
    ("checkpoint verify", "objects", "object_count"),
    ("checkpoint prune", "pruned", "checkpoint_ids"),
    ("checkpoint prune", "kept", "kept_count"),
    ("rewind inspect", "config", "proposal"),
];

/// Keys whose value has another form now, which the tests of their verbs look at.
const REPLACED: &[&str] = &["rolled_back", "detail", "plan"];

/// An answer in the names of now. What was recorded with an event, and what callers put in, keeps its names.
pub(crate) fn as_now(verb: &str, then: &Value) -> Value {
    match then {
        Value::Array(all) => all.iter().map(|one| as_now(verb, one)).collect(),
        Value::Object(fields) => Value::Object(object(verb, fields)),
        other => other.clone(),
    }
}

fn object(verb: &str, fields: &Map<String, Value>) -> Map<String, Value> {
    let mut now = Map::new();
    for (key, value) in fields {
        if matches!(key.as_str(), "payload" | "metadata" | "details" | "argv") {
            now.insert(key.clone(), value.clone());
            continue;
        }
        // In the tokens of a run it is how many; elsewhere it was true or false.
        if REPLACED.contains(&key.as_str()) && !value.is_object() || is_untyped(verb, key) {
            continue;
        }
        let (name, value) = named(verb, fields, key, value);
        now.insert(name, value);
    }
    if verb == "run history" && fields.contains_key("blocks") {
        let counts = ["dispatches", "artifacts", "blocks"].map(|key| (key.to_owned(), fields[key].clone()));
        for (key, _) in &counts {
            now.remove(key);
        }
        now.insert("counts".to_owned(), counts.into_iter().collect());
    }
    now
}

fn is_untyped(verb: &str, key: &str) -> bool {
    verb.starts_with("rollback") && matches!(key, "detail" | "plan")
}

fn named(verb: &str, fields: &Map<String, Value>, key: &str, value: &Value) -> (String, Value) {
    let of_a_verb = OF_A_VERB.iter().find(|(of, old, _)| verb.starts_with(of) && *old == key);
    // A checkpoint had a number and a name of its step.
    let is_of_checkpoint = fields.contains_key("root_sha256");
    let name = match (key, of_a_verb) {
        ("step", _) if is_of_checkpoint => "step_number",
        ("step_name", _) => "step",
        ("phases", _) if fields.contains_key("cache") => "by_phase",
        (_, Some((_, _, now))) => now,
        _ => RENAMED.iter().find(|(old, _)| *old == key).map_or(key, |(_, now)| now),
    };
    let value = match (name, value) {
        ("database" | "archive" | "cwd" | "pid_file", Value::Object(path)) => path["path"].clone(),
        ("status", Value::String(word)) if word == "abandoned" => json!("aborted"),
        ("course", Value::String(word)) if word == "abandon" => json!("abort"),
        ("course", Value::String(word)) if word == "stand" => json!("reapply"),
        _ => as_now(verb, value),
    };
    (name.to_owned(), value)
}

/// Lists that were newest first.
pub(crate) fn is_turned(verb: &str) -> bool {
    ["run list", "dispatch list", "rewind list"].iter().any(|list| verb.starts_with(list))
}
