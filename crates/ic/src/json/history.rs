//! A run as a story.

use ic_ops::history::{Stay, Story, Turn};
use serde::Serialize;

/// A run as a story (`run history`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryJson {
    run_id: String,
    goal: String,
    status: &'static str,
    phases: Vec<String>,
    /// In the order of coming there.
    stays: Vec<StayJson>,
    /// Rollbacks and their undoing, oldest first.
    turns: Vec<TurnJson>,
    /// Where the run is: a place in `stays`.
    current: usize,
}

/// A stay of the run in a phase.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StayJson {
    phase: String,
    /// How often the run had come there then, from 1.
    attempt: usize,
    seq: i64,
    at: String,
    /// The stay it came from: a place in `stays`; null for the beginning.
    from: Option<usize>,
    /// Whether a rollback that stands took it back.
    rolled_back: bool,
    checkpoint_id: Option<String>,
    dispatches: usize,
    artifacts: usize,
    blocks: usize,
}

/// A rollback, or its undoing.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TurnJson {
    rollback_id: String,
    /// `rolled_back` or undone.
    #[cfg_attr(test, schemars(extend("enum" = ["rolled_back", "undone"])))]
    kind: &'static str,
    seq: i64,
    at: String,
    /// The stay that it left.
    from: usize,
    /// The stay that it went back to.
    to: usize,
    reason: Option<String>,
    layers: Vec<&'static str>,
    /// The dispatch whose work alone was undone, while the run stayed where it was; null for any other rollback.
    only: Option<String>,
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
            current: story.current,
        }
    }
}

impl From<&Stay> for StayJson {
    fn from(stay: &Stay) -> Self {
        Self {
            phase: stay.phase.clone(),
            attempt: stay.attempt,
            seq: stay.seq,
            at: stay.at.to_string(),
            from: stay.from,
            rolled_back: stay.rolled_back,
            checkpoint_id: stay.checkpoint_id.as_ref().map(ToString::to_string),
            dispatches: stay.dispatches,
            artifacts: stay.artifacts,
            blocks: stay.blocks,
        }
    }
}

impl From<&Turn> for TurnJson {
    fn from(turn: &Turn) -> Self {
        Self {
            rollback_id: turn.rollback_id.to_string(),
            kind: turn.kind,
            seq: turn.seq,
            at: turn.at.to_string(),
            from: turn.from,
            to: turn.to,
            reason: turn.reason.clone(),
            layers: turn.layers.clone(),
            only: turn.only.as_ref().map(ToString::to_string),
        }
    }
}
