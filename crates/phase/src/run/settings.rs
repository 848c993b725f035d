//! What can be changed of a run beside where it is.

use ic_base::{Code, Diagnosis, Result, RunId, Timestamp};
use ic_ledger::Transaction;
use ic_ledger::events::{EventType, NewEvent};
use serde_json::json;

use super::row::{Run, get};

/// The most bytes of JSON that a run's metadata may have, however many merges made them.
pub const MAX_METADATA: usize = 1024 * 1024;

/// What `run set` changes; `None` leaves a setting unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSettings {
    /// How complex the work is, 1 to 5.
    pub complexity: Option<i64>,
    /// Whether it advances by itself.
    pub auto_advance: Option<bool>,
    /// Merged into the metadata, key by key; a null removes its key.
    pub metadata_merge: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Changes settings of a run and returns the run as it then is. Errors: `rolling_back`.
pub fn set(tx: &Transaction<'_>, now: Timestamp, run: &Run, settings: &RunSettings) -> Result<Run> {
    run.require_settled()?;
    let mut metadata = run.metadata()?;
    let before = run.metadata.len();
    for (key, value) in settings.metadata_merge.iter().flatten() {
        match value {
            serde_json::Value::Null => metadata.remove(key),
            value => metadata.insert(key.clone(), value.clone()),
        };
    }
    let merged = serde_json::Value::Object(metadata).to_string();
    // A run that has more already, from before there was a bound, may still shrink.
    if merged.len() > MAX_METADATA.max(before) {
        return Err(Diagnosis::new(
            Code::InvalidValue,
            format!("The metadata would be {} bytes long; at most {MAX_METADATA} are allowed.", merged.len()),
        )
        .hint("remove keys first: --metadata-merge '{\"key\": null}'; keep what is long in a file, as an artifact"));
    }
    let changed = Run {
        complexity: settings.complexity.or(run.complexity),
        auto_advance: settings.auto_advance.unwrap_or(run.auto_advance),
        metadata: merged,
        updated_at: now,
        ..run.clone()
    };
    // The payload has what was merged and not the result: a redaction of this event takes out exactly that, and only
    // where it still stands.
    let event = NewEvent {
        payload: Some(json!({
            "complexity": settings.complexity,
            "auto_advance": settings.auto_advance,
            "metadata_merge": settings.metadata_merge,
        })),
        ..NewEvent::of(&run.id, run.epoch, EventType::RunSet)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "UPDATE runs SET complexity = $1, auto_advance = $2, metadata = $3, updated_at = $4 WHERE id = $5",
        &[&changed.complexity, &changed.auto_advance, &changed.metadata, &now.millis(), &run.id.as_str()],
    )?;
    Ok(changed)
}

/// Takes settings out of a run's metadata again, where they still are what was merged.
pub fn redact_settings(
    tx: &Transaction<'_>,
    id: &RunId,
    merged: &serde_json::Map<String, serde_json::Value>,
) -> Result<()> {
    let mut metadata = get(tx, id)?.metadata()?;
    // A key that was set to something else since has another event, which is redacted by itself.
    metadata.retain(|key, value| merged.get(key) != Some(value));
    tx.execute_one(
        "UPDATE runs SET metadata = $1 WHERE id = $2",
        &[&serde_json::Value::Object(metadata).to_string(), &id.as_str()],
    )
}
