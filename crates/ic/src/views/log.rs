//! What was done in a place or a run, newest first.

pub(crate) mod entry_lines;
mod entry_text;

use std::collections::BTreeSet;

use entry_text::{facts, title};
use ic_base::Timestamp;
use ic_ledger::Actor;
use ic_phase::Run;
use ic_session::AgentSession;
use ic_undo::points::log::{Files, LogEntry, PointLog, What};
use ic_undo::points::{ListedPoint, OtherRuns};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::text::{age, counted, cut_to, plain, second, shell_word, style, styled};
use crate::views::event::ActorJson;
use crate::views::rollback::record::RollbackRecordJson;

shape! {
    pub(crate) struct PointEntryJson {
        /// The run that it is of; null for a checkpoint without a run, a restore, and what a person changed.
        run_id: Option<String>,
        #[serde(flatten)]
        point: PointJson,
        /// The changes from here to the next point, or to the newest checkpoint of the run; null if they are not known.
        file_counts: Option<FileCountsJson>,
        /// How many commits its dispatch recorded; null for a point that is not before a dispatch.
        commit_count: Option<usize>,
        /// The newest rollback in force that went back to before it, so that it is no target; null if there is none.
        rolled_back_by: Option<String>,
        /// Whether the work after it was undone. The point that a rollback went back to has the same tree, and is still a target. While
        /// that rollback is not finished, a part of the work may still be in the tree.
        undone: bool,
        /// The session of the coding agent that did the work after it, or made the restore; null if none did.
        session_id: Option<String>,
        /// The client of that session.
        client: Option<String>,
        /// Who recorded it; null: it is not known.
        actor: Option<ActorJson>,
        /// Files outside of the project that its tool calls changed, absolute; left out if there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        outside: Vec<String>,
    }

    /// A place to which a run can go back.
    pub(crate) struct PointJson from point: &ListedPoint {
        /// Its reference, as `run rollback --to` takes it; for a restore, and for what a person changed, as `ic show` and
        /// `ic restore --before` take it.
        reference: String = point.reference.clone(),
        #[cfg_attr(test, schemars(extend("enum" = [
            "created", "phase", "step", "dispatch", "prompt", "guard", "checkpoint", "restore", "own"
        ])))]
        kind: &'static str = point.kind,
        /// The work that began the work after it, as a prompt begins its subagents'; null: a person or a script began it.
        parent_id: Option<String> = point.parent_id.as_ref().map(ToString::to_string),
        /// The event that it follows: everything with a greater number is after the point.
        seq: i64 = point.seq,
        /// The phase of the run at this point; null without a run.
        phase: Option<String> = Some(point.phase.clone()).filter(|phase| !phase.is_empty()),
        /// A title for people, on one line; may be empty.
        title: String = point.title.clone(),
        /// The checkpoint of the tree at this point; null if it was not captured.
        checkpoint_id: Option<String> = point.checkpoint_id.as_ref().map(ToString::to_string),
        /// Whether that checkpoint was pruned, so that its content is gone.
        pruned: bool = point.is_pruned,
        /// Whether the run can go back to it: no rollback went back to before it, its content is kept, and the run had not ended there.
        reachable: bool = point.is_target(),
        /// Whether an undo of the work after it left a part of that work in the tree, so that it still counts. Left out if not.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        undone_in_part: bool = point.is_in_part,
        /// The command that then shows the undo of the rest; left out if nothing is left.
        #[serde(skip_serializing_if = "Option::is_none")]
        rest: Option<String> = point.rest(),
        created_at: String = point.created_at.to_string(),
    }

    struct FileCountsJson from files: Files {
        created: usize = files.created,
        modified: usize = files.modified,
        deleted: usize = files.deleted,
        /// Files that other work, at the same time, may have changed: they are in no other number.
        shared: usize = files.shared,
        /// Empty directories that were made or removed, and directories whose permissions or attributes changed: they are in no other
        /// number.
        directories: usize = files.directories,
    }

    pub(crate) struct RollbackEntryJson {
        #[cfg_attr(test, schemars(extend("enum" = ["rollback"])))]
        kind: &'static str,
        #[serde(flatten)]
        rollback: RollbackRecordJson,
        /// The newest rollback in force that went back to before this one; null if there is none.
        rolled_back_by: Option<String>,
        /// Who began it; null: it is not known.
        actor: Option<ActorJson>,
    }
}

/// An entry, with what the list does not say of it.
pub(crate) struct LoggedEntry {
    /// The run that it is of; `None` for a checkpoint without one.
    pub(crate) run: Option<Run>,
    pub(crate) entry: LogEntry,
    /// The session in which its work is a prompt, or was begun by one.
    pub(crate) session: Option<AgentSession>,
    /// For a restore, whether it is not known who made it: others were in a call.
    pub(crate) is_unknown: bool,
    /// The name of the work that an undo took out, of several that of the first; `None` if it took out no work alone.
    pub(crate) taken_out: Option<String>,
    /// Files outside of the project that its work changed.
    pub(crate) outside: BTreeSet<String>,
    /// Who wrote the event with which it was recorded.
    pub(crate) actor: Option<Actor>,
    /// Who did it, where it was another user or was done in another clone.
    pub(crate) other: Option<String>,
}

/// A point or a rollback of a run (`log`).
#[derive(Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum LogEntryJson {
    /// A point that the run can go back to.
    Point(Box<PointEntryJson>),
    /// A rollback of the run.
    Rollback(Box<RollbackEntryJson>),
}

impl From<&LoggedEntry> for LogEntryJson {
    fn from(LoggedEntry { run, entry, session, outside, actor, .. }: &LoggedEntry) -> Self {
        let rolled_back_by = entry.taken_back_by.first().map(ToString::to_string);
        match &entry.what {
            What::Point { point, files, commits, .. } => Self::Point(Box::new(PointEntryJson {
                run_id: run.as_ref().map(|run| run.id.to_string()),
                point: (&**point).into(),
                file_counts: files.map(FileCountsJson::from),
                commit_count: *commits,
                rolled_back_by,
                undone: point.is_undone,
                session_id: session.as_ref().map(|session| session.id.to_string()),
                client: session.as_ref().map(|session| session.client.clone()),
                actor: actor.as_ref().map(ActorJson::from),
                outside: outside.iter().cloned().collect(),
            })),
            What::Rollback(rollback) => Self::Rollback(Box::new(RollbackEntryJson {
                kind: "rollback",
                rollback: (&**rollback).into(),
                rolled_back_by,
                actor: actor.as_ref().map(ActorJson::from),
            })),
        }
    }
}

/// The widest line, and the widest reference that others are aligned with. A longer reference stays whole, because a person types it.
const WIDTH: usize = 80;

const ALIGNED: usize = 24;

/// The columns of a name that are always shown, even if the line becomes too long.
const LEAST: usize = 12;

/// How the shown run was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The caller named it.
    Named,
    /// The caller named none, and other runs are open.
    Unnamed,
    /// The caller named none, and no other run is open.
    Newest,
}

impl Chosen {
    /// `is_alone`: whether no other run is open.
    pub(crate) fn of(is_named: bool, is_alone: bool) -> Self {
        match (is_named, is_alone) {
            (true, _) => Self::Named,
            (false, false) => Self::Unnamed,
            (false, true) => Self::Newest,
        }
    }
}

/// `2 newer prompts outside this run; the last: ic undo prompt:3f9a12c4 --dry-run; all: ic session list`
pub(crate) fn prompts_outside(outside: &OtherRuns, noun: &str) -> String {
    let count = counted(outside.count, noun);
    let (last, all) = if outside.count == 1 { ("", "") } else { ("; the last", "; all: ic session list") };
    format!("{count} outside this run{last}: {}{all}", outside.command())
}

/// What an undo of recorded work covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogUndoJson {
    /// The record, and everything else that the work did.
    Undo,
    /// The record alone, because the ledger is on a server.
    Record,
}

impl LogUndoJson {
    /// The kind of undo that a ledger allows.
    pub(crate) fn of(ledger: &ic_ledger::Ledger) -> Self {
        if ledger.is_of_one_host() { Self::Undo } else { Self::Record }
    }
}

/// The text for an empty log, while hooks wait for the first prompt.
pub(crate) fn waiting(clients: &[&str]) -> String {
    if clients.is_empty() {
        return "Nothing is recorded yet: it waits for the first prompt, dispatch or checkpoint.\n".to_owned();
    }
    format!(
        "Nothing is recorded yet: it waits for the first prompt in a new session of {}.\n{}\n",
        clients.join(", "),
        styled(style::DIM, "whether its hooks work: ic hooks doctor")
    )
}

/// The line about other places of the project; empty if nothing is recorded there.
pub(crate) fn elsewhere(said: Option<&str>) -> String {
    said.map_or_else(String::new, |said| styled(style::DIM, &plain(said)) + "\n")
}

/// The points that the run can go back to: their references, and a line of each to pick from.
pub(crate) fn offered(log: &PointLog, now: Timestamp) -> (Vec<String>, Vec<String>) {
    // Rollbacks are no points, and points that cannot be reached would only be refused.
    let points = log.entries.iter().filter_map(|entry| match &entry.what {
        What::Point { point, files, commits, .. } if point.is_target() => {
            Some((&**point, facts(point, *files, *commits)))
        }
        _ => None,
    });
    let points: Vec<_> = points.map(|(point, facts)| (point, shell_word(&point.reference), facts)).collect();
    let names = points.iter().map(|(_, name, _)| name.width());
    let widest = names.filter(|width| *width <= ALIGNED).max().unwrap_or(0);
    let line = |(point, name, facts): &(&ListedPoint, String, String)| {
        let pad = " ".repeat(widest.saturating_sub(name.width()));
        let start = format!("{:<10}  {}  {name}{pad}", age(now, point.created_at), second(point.created_at));
        // The picker marks the chosen line with two columns.
        start.clone() + &entry_lines::cut_rest(&title(point), facts, WIDTH.saturating_sub(2 + start.width()))
    };
    (points.iter().map(|(point, ..)| point.reference.clone()).collect(), points.iter().map(line).collect())
}

/// The run, with a note if it was chosen because no other is open.
pub(crate) fn head(run: &Run, chosen: Chosen) -> String {
    let status = run.status.as_str();
    let is_newest = chosen == Chosen::Newest && !is_open(run);
    let chosen = if is_newest { "; no run is open here, this is the newest" } else { "" };
    let about = format!("{status} at {}{chosen}", plain(&run.phase));
    let id = run.id.short();
    // Two gaps of two columns, and the parentheses around the rest.
    let room = WIDTH.saturating_sub(id.width() + about.width() + 6).max(LEAST);
    let goal = cut_to(&plain(&ic_base::title(&run.goal)), room);
    format!("{}  {goal}  {}\n", styled(style::STRONG, id), styled(style::DIM, &format!("({about})")))
}

fn is_open(run: &Run) -> bool {
    use ic_phase::RunStatus as S;
    match run.status {
        S::Active | S::RollingBack => true,
        S::Completed | S::Cancelled | S::Failed => false,
    }
}

/// Whether an entry counts no longer: it was rolled back, or is a rollback that was undone or aborted.
fn is_over(entry: &LogEntry) -> bool {
    let is_undone = matches!(&entry.what, What::Rollback(rollback) if !rollback.status.stands());
    !entry.taken_back_by.is_empty() || is_undone
}
