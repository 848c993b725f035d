//! The history of a run.

use ic_ops::history::{Stay, Story, Turn};
use serde::Serialize;

/// The history of a run (`run history`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryJson {
    run_id: String,
    goal: String,
    status: &'static str,
    phases: Vec<String>,
    /// In the order of arrival.
    stays: Vec<StayJson>,
    /// Rollbacks and their undos, oldest first.
    turns: Vec<TurnJson>,
    /// Where the run is: an index in `stays`.
    current_stay: usize,
}

/// A stay of the run in a phase.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StayJson {
    phase: String,
    /// The number of this attempt at the phase, from 1.
    attempt: usize,
    seq: i64,
    created_at: String,
    /// The stay it came from: an index in `stays`; null for the beginning.
    from_stay: Option<usize>,
    /// The rollback that stands and undid it; of a stay that a rollback began, that rollback, once it is undone itself. Null: it counts.
    rolled_back_by: Option<String>,
    checkpoint_id: Option<String>,
    counts: StayCountsJson,
}

/// What happened during a stay in a phase.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StayCountsJson {
    dispatches: usize,
    artifacts: usize,
    /// How often a gate blocked the run.
    blocks: usize,
}

/// A rollback, or its undo.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TurnJson {
    rollback_id: String,
    /// `rolled_back` or undone.
    #[cfg_attr(test, schemars(extend("enum" = ["rolled_back", "undone"])))]
    kind: &'static str,
    seq: i64,
    created_at: String,
    /// The stay that it left.
    from_stay: usize,
    /// The stay that it went back to.
    to_stay: usize,
    reason: Option<String>,
    layers: Vec<&'static str>,
    /// The dispatch whose work alone was undone, while the run stayed where it was; null for any other rollback.
    dispatch_id: Option<String>,
}

impl From<&Story> for HistoryJson {
    fn from(story: &Story) -> Self {
        Self {
            run_id: story.run.id.to_string(),
            goal: story.run.goal.clone(),
            status: story.run.status.as_str(),
            phases: story.run.chain.names().into_iter().map(str::to_owned).collect(),
            stays: story.stays.iter().map(StayJson::from).collect(),
            turns: story.turns.iter().map(TurnJson::from).collect(),
            current_stay: story.current,
        }
    }
}

impl From<&Stay> for StayJson {
    fn from(stay: &Stay) -> Self {
        Self {
            phase: stay.phase.clone(),
            attempt: stay.attempt,
            seq: stay.seq,
            created_at: stay.at.to_string(),
            from_stay: stay.from,
            rolled_back_by: stay.rolled_back_by.as_ref().map(ToString::to_string),
            checkpoint_id: stay.checkpoint_id.as_ref().map(ToString::to_string),
            counts: StayCountsJson {
                dispatches: stay.dispatches,
                artifacts: stay.artifacts,
                blocks: stay.blocks,
            },
        }
    }
}

impl From<&Turn> for TurnJson {
    fn from(turn: &Turn) -> Self {
        Self {
            rollback_id: turn.rollback_id.to_string(),
            kind: turn.kind,
            seq: turn.seq,
            created_at: turn.at.to_string(),
            from_stay: turn.from,
            to_stay: turn.to,
            reason: turn.reason.clone(),
            layers: turn.layers.clone(),
            dispatch_id: turn.only.as_ref().map(ToString::to_string),
        }
    }
}
