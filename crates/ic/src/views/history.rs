//! The history of a run: JSON, and a timeline.

use ic_kernel::journal::table::named_works;
use ic_ops::history::{PhaseStay, Story, Turn};

use crate::text::{counted, plain, second, style, styled};

shape! {
    /// The history of a run (`run history`).
    pub(crate) struct HistoryJson from story: &Story {
        run_id: String = story.run.id.to_string(),
        goal: String = story.run.goal.clone(),
        status: &'static str = story.run.status.as_str(),
        phases: Vec<String> = story.run.chain.names().into_iter().map(str::to_owned).collect(),
        /// The run's stays in phases, in the order in which they began.
        stays: Vec<StayJson> = story.stays.iter().map(StayJson::from).collect(),
        /// Rollbacks and their undos, oldest first.
        turns: Vec<TurnJson> = story.turns.iter().map(TurnJson::from).collect(),
        /// The current stay: an index in `stays`.
        current_stay: usize = story.current,
    }

    /// A stay of the run in a phase.
    struct StayJson from stay: &PhaseStay {
        phase: String = stay.phase.clone(),
        /// The number of this attempt at the phase, from 1.
        attempt: usize = stay.attempt,
        seq: i64 = stay.seq,
        created_at: String = stay.at.to_string(),
        /// The stay it came from: an index in `stays`; null for the beginning.
        from_stay: Option<usize> = stay.from,
        /// The rollback in force that undid it. For a stay that a rollback began and whose rollback was undone, that rollback. Null: it
        /// counts.
        rolled_back_by: Option<String> = stay.rolled_back_by.as_ref().map(ToString::to_string),
        checkpoint_id: Option<String> = stay.checkpoint_id.as_ref().map(ToString::to_string),
        counts: StayCountsJson = stay.into(),
    }

    /// The numbers of what happened during a stay.
    struct StayCountsJson from stay: &PhaseStay {
        dispatches: usize = stay.dispatches,
        artifacts: usize = stay.artifacts,
        /// How many times a gate blocked the run.
        blocks: usize = stay.blocks,
    }

    /// A rollback, or the undo of one.
    struct TurnJson from turn: &Turn {
        rollback_id: String = turn.rollback_id.to_string(),
        /// `rolled_back` for a rollback, undone for the undo of one.
        #[cfg_attr(test, schemars(extend("enum" = ["rolled_back", "undone"])))]
        kind: &'static str = turn.kind,
        seq: i64 = turn.seq,
        created_at: String = turn.at.to_string(),
        /// The stay that it ended: an index in `stays`.
        from_stay: usize = turn.from,
        /// The stay that it began.
        to_stay: usize = turn.to,
        reason: Option<String> = turn.reason.clone(),
        layers: Vec<&'static str> = turn.layers.clone(),
        /// The dispatches that alone were undone, oldest first, while the run stayed in its phase; empty for any other rollback.
        dispatch_ids: Vec<String> = turn.alone.iter().map(ToString::to_string).collect(),
    }
}

/// The history as a timeline, from the beginning downwards; what was rolled back is on a branch of its own.
pub(crate) fn timeline(story: &Story) -> String {
    let run = &story.run;
    let mut out = format!("{}  {}\n\n", styled(style::STRONG, run.id.short()), plain(&run.goal));
    let mut turns = story.turns.iter().peekable();
    for (at, stay) in story.stays.iter().enumerate() {
        // A turn stands above the stay that it began.
        while let Some(turn) = turns.next_if(|turn| turn.seq <= stay.seq) {
            out += &turned(story, turn);
        }
        out += &stayed(stay, at == story.current);
    }
    turns.for_each(|turn| out.push_str(&turned(story, turn)));
    let phase = story.stays.get(story.current).map_or("", |stay| stay.phase.as_str());
    out += &format!("\nnow: {} at {}\n", run.status.as_str(), plain(phase));
    out
}

fn stayed(stay: &PhaseStay, is_current: bool) -> String {
    let (lane, dot, colour) = match (stay.rolled_back_by.is_some(), is_current) {
        // This is asked first: the stay where the run is now is shown as that in any case.
        (_, true) => ("", "▶", style::STRONG),
        (true, false) => ("│ ", "○", style::DIM),
        (false, false) => ("", "●", style::GOOD),
    };
    let mut about = Vec::new();
    if stay.attempt > 1 {
        about.push(format!("attempt {}", stay.attempt));
    }
    for (n, noun) in [(stay.dispatches, "dispatch"), (stay.artifacts, "artifact")] {
        if n > 0 {
            about.push(counted(n, noun));
        }
    }
    if stay.blocks > 0 {
        about.push(format!("blocked {}", counted(stay.blocks, "time")));
    }
    if stay.rolled_back_by.is_some() {
        about.push("rolled back".to_owned());
    }
    let about = if about.is_empty() { String::new() } else { format!("  {}", about.join(" · ")) };
    format!(
        "{lane}{} {:<width$} {}{about}\n",
        styled(colour, dot),
        plain(&stay.phase),
        styled(style::DIM, &second(stay.at)),
        // The lane takes its columns from the phase, so that the times line up.
        width = 24 - lane.chars().count(),
    )
}

fn turned(story: &Story, turn: &Turn) -> String {
    let phase = |at: usize| story.stays.get(at).map_or("", |stay| stay.phase.as_str());
    let (from, to) = (plain(phase(turn.from)), plain(phase(turn.to)));
    let why = turn.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
    let only = (!turn.alone.is_empty()).then(|| named_works(&turn.alone));
    let (mark, what) = match (turn.kind, only) {
        ("undone", Some(only)) => ("╭─", format!("rollback {} undone: {only} again", turn.rollback_id.short())),
        (_, Some(only)) => ("╰─", format!("undone alone: {only} ({}){why}", turn.layers.join(", "))),
        ("undone", None) => ("╭─", format!("rollback {} undone: {to} again", turn.rollback_id.short())),
        (_, None) => ("╰─", format!("rolled back {from} → {to} ({}){why}", turn.layers.join(", "))),
    };
    format!("{} {}  {}\n", styled(style::WARN, mark), what, styled(style::DIM, &second(turn.at)))
}
