//! Work that is newer than the run that is shown and belongs elsewhere: a run that has ended since, or a checkpoint without a run.

use ic_base::{Code, Result, Seq};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::run::{self, RunFilter};
use ic_phase::{Run, RunStatus};

use super::list::ListedPoint;
use super::undo_target::last;

/// The newest work in a project beside one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewerWork {
    /// The run that has ended and has the newest work, and the point before that work.
    pub ended: Option<(Run, ListedPoint)>,
    /// The newest checkpoint that was made by hand and belongs to no run.
    pub checkpoint: Option<CheckpointRecord>,
}

impl NewerWork {
    /// One line with the commands that show it; `None`: there is nothing newer.
    pub fn said(&self) -> Option<String> {
        let ended = self.ended.as_ref().map(|(run, point)| {
            let (id, reference) = (run.id.short(), &point.reference);
            format!(
                "newer work of the run {id}, which has ended: ic log {id}; ic undo {reference} --run {id} --dry-run"
            )
        });
        let checkpoint = self.checkpoint.as_ref().map(|checkpoint| {
            let id = checkpoint.id.short();
            format!("a checkpoint that was made by hand, without a run: ic undo checkpoint:{id} --dry-run")
        });
        let all: Vec<String> = ended.into_iter().chain(checkpoint).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The work in this project that is newer than the event `since` and beside a run that the caller did not name. Empty in an agent's own
/// shell, because the work of others is not its own.
pub fn beside(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, since: Seq) -> Result<NewerWork> {
    /// The number of newest runs that are searched.
    const MOST: i64 = 20;
    let root = &kernel.project.root;
    if kernel.own_run.is_some() || ic_session::is_own_run(snapshot, &run.id)? {
        return Ok(NewerWork::default());
    }
    let mut found = NewerWork { ended: None, checkpoint: record::newest_by_hand(snapshot, root, since)? };
    let filter = RunFilter { open: false, project: Some(root), limit: MOST, before: None };
    for other in run::list(snapshot, &filter)? {
        let has_ended = matches!(other.status, RunStatus::Completed | RunStatus::Failed);
        if other.id == run.id || !has_ended || ic_session::is_own_run(snapshot, &other.id)? {
            continue;
        }
        let newest = found.ended.as_ref().map_or(since, |(_, point)| point.seq);
        match last(snapshot, &other) {
            Ok(point) if point.seq > newest => found.ended = Some((other, point)),
            Ok(_) => {}
            // Without work to undo, or in the middle of a rollback, it is none that a person could mean.
            Err(error) if matches!(error.code(), Code::NothingToUndo | Code::RollingBack) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
