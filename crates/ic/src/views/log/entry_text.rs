//! The text of a log entry after its reference.

use ic_kernel::journal::table::{RollbackRecord, RollbackStatus, later_works};
use ic_undo::points::ListedPoint;
use ic_undo::points::log::Files;

use crate::text::{counted, plain};

/// The title of a point. A subagent's work is marked, because it is a part of the prompt below it.
pub(super) fn title(point: &ListedPoint) -> String {
    let mark = if point.is_of_subagent() { "↳ " } else { "" };
    format!("{mark}{}", plain(&point.title))
}

/// The facts about a point: `+2 ~1, 1 commit, pruned`.
pub(super) fn facts(point: &ListedPoint, files: Option<Files>, commits: Option<usize>) -> String {
    let files = files.unwrap_or_default();
    let signs = [("+", files.created), ("~", files.modified), ("-", files.deleted)];
    let signs = signs.iter().filter(|(_, n)| *n > 0).map(|(sign, n)| format!("{sign}{n}"));
    let mut facts = vec![signs.collect::<Vec<_>>().join(" ")];
    facts.extend((files.directories > 0).then(|| counted(files.directories, "directory")));
    facts.extend((files.shared > 0).then(|| format!("{} shared", files.shared)));
    facts.extend(commits.filter(|n| *n > 0).map(|n| counted(n, "commit")));
    // For a rolled-back move the branch says where it belongs; work gets the note, because people look for it alone.
    let is_work = matches!(point.kind, "prompt" | "dispatch" | "step");
    let is_told = point.taken_back_by.is_none() || is_work;
    facts.extend(point.undone().filter(|_| is_told).map(str::to_owned));
    facts.extend(point.is_pruned.then(|| "pruned".to_owned()));
    facts.extend(point.is_at_end.then(|| "files alone".to_owned()));
    // A line without numbers means that nothing changed, so unknown changes are said to be unknown.
    facts.extend((point.kind == "prompt" && point.checkpoint_id.is_none()).then(|| "not captured".to_owned()));
    facts.retain(|fact| !fact.is_empty());
    facts.join(", ")
}

/// The rollback, as in `rollback ← dispatch:3f9a12c4: the wrong way`, or `of 3f9a12c4 tidy up` if it took out work alone, which has this
/// `title`.
pub(super) fn went_back(rollback: &RollbackRecord, title: Option<&str>) -> String {
    let state = match rollback.status {
        RollbackStatus::Done => None,
        RollbackStatus::InProgress | RollbackStatus::Stopped => Some("unfinished"),
        RollbackStatus::Aborted => Some("aborted"),
        RollbackStatus::Undone => Some("undone"),
    };
    let why = rollback.reason.as_deref().map_or_else(String::new, |why| format!(": {}", plain(&ic_base::title(why))));
    if let [first, ..] = rollback.chosen().as_slice() {
        let title = title.map(|title| format!(" {}", plain(&ic_base::title(title)))).unwrap_or_default();
        let state = state.map(|state| format!(", {state}")).unwrap_or_default();
        return format!("of {}{title}{}{state}{why}", first.short(), later_works(&rollback.chosen()));
    }
    let to = match rollback.point() {
        Some(point) => format!("← {}", plain(point)),
        None if rollback.include_target => format!("← start of {}", plain(&rollback.to_phase)),
        None => format!("← {}", plain(&rollback.to_phase)),
    };
    format!("rollback {}{to}{why}", state.map(|state| format!("{state}, ")).unwrap_or_default())
}
