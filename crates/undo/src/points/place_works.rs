//! The work of a place, over all its runs: what `@` and `@~2` mean.

use std::path::Path;

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_ledger::Snapshot;
use ic_phase::{Run, run};

use super::list::{ListedPoint, list};

/// The kinds of points before which work begins.
pub(super) const WORK: [&str; 3] = ["prompt", "dispatch", "step"];

/// The runs of a place, each with its newest event, the one with the newest first.
pub(super) fn runs(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<(RunId, Seq)>> {
    Ok(run::of_place(snapshot, root, "TRUE")?.into_iter().map(|run| (run.id, run.newest)).collect())
}

/// How many works before the newest one `@` or `@~2` means; `None` for any other text.
pub fn steps_back(text: &str) -> Option<usize> {
    match text.strip_prefix('@')? {
        "" => Some(0),
        "~" => Some(1),
        more => more.strip_prefix('~')?.parse().ok(),
    }
}

/// The work of a place that lies a number of works before its newest one, with the point before it. Work that was undone does not count.
///
/// Errors: `point_not_found` if there are not as many.
pub fn work_back(snapshot: &Snapshot<'_>, root: &Path, back: usize) -> Result<(Run, ListedPoint)> {
    let found = newest_works(snapshot, root, back.saturating_add(1))?;
    let count = found.len();
    found.into_iter().nth(back).ok_or_else(|| {
        let message = match count {
            0 => "No prompt, dispatch or step is recorded here that is not undone.".to_owned(),
            1 => format!("@~{back} is before the first work here: one is recorded that is not undone."),
            _ => format!("@~{back} is before the first work here: {count} are recorded that are not undone."),
        };
        Diagnosis::new(Code::PointNotFound, message).hint("what is recorded here: ic log")
    })
}

/// The newest works of a place that are not undone, newest first, each with its run: at most as many as are wanted.
pub fn newest_works(snapshot: &Snapshot<'_>, root: &Path, wanted: usize) -> Result<Vec<(Run, ListedPoint)>> {
    let mut found: Vec<(Run, ListedPoint)> = Vec::new();
    for (id, newest) in runs(snapshot, root)? {
        // The runs come by their newest event: all that is left is older than the works that were found.
        if found.len() >= wanted && found.last().is_some_and(|(_, point)| point.seq > newest) {
            break;
        }
        let run = run::get(snapshot, &id)?;
        found.extend(works(snapshot, &run, wanted)?.into_iter().map(|point| (run.clone(), point)));
        // As in a log: of several points of one event the order is that of their references.
        found.sort_by(|(_, one), (_, other)| (other.seq, &other.reference).cmp(&(one.seq, &one.reference)));
        found.truncate(wanted);
    }
    Ok(found)
}

/// The newest works of a run that are not undone, newest first.
fn works(snapshot: &Snapshot<'_>, run: &Run, wanted: usize) -> Result<Vec<ListedPoint>> {
    // Half of the points of a run are usually work; phases and checkpoints are the others.
    let mut most = wanted.saturating_mul(2).max(16);
    loop {
        let listed = list(snapshot, run, false, most)?;
        let is_all = listed.len() < most;
        let is_work = |point: &ListedPoint| WORK.contains(&point.kind) && !point.is_undone;
        let mut works: Vec<ListedPoint> = listed.into_iter().filter(is_work).collect();
        if is_all || works.len() >= wanted {
            works.truncate(wanted);
            return Ok(works);
        }
        // Each round reads the newer points again, so the number grows fast.
        most = most.saturating_mul(4);
    }
}
