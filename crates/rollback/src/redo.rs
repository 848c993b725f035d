//! What a person means who says "redo": the newest rollback or restore that stands.

use ic_base::{Code, Diagnosis, Result, RollbackId};
use ic_checkpoint::restore::journal;
use ic_phase::Run;

use ic_journal::kept::that_restored;
use ic_journal::table::{self, RollbackStatus};
use ic_kernel::Kernel;

/// What is undone to bring back what was undone last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Newest {
    /// A rollback of the run.
    Rollback(RollbackId),
    /// A restore of this working tree, which no rollback made.
    Restore,
}

/// The newest rollback of the run, or restore of this working tree, that stands.
///
/// Errors: `rolling_back` while a rollback of the run is not finished; `nothing_to_undo` if none stands.
pub fn newest(kernel: &Kernel, run: Option<&Run>) -> Result<Newest> {
    kernel.read(|snapshot| {
        let rollback = match run {
            Some(run) => {
                table::require_finished(snapshot, &run.id)?;
                let all = table::of_run(snapshot, &run.id)?;
                all.into_iter().rev().find(|one| one.status == RollbackStatus::Done)
            }
            None => None,
        };
        let restores = journal::finished(snapshot, &kernel.project.root)?;
        let restore = journal::stacks(&restores).0.pop();
        let by = match restore {
            Some(restore) => that_restored(snapshot, &restore.safety_id, true)?,
            None => None,
        };
        match (rollback, restore, by) {
            // The newest restore is part of a rollback: that is undone as a whole, whatever its run.
            (Some(rollback), Some(_), Some(by)) if by.seq > rollback.seq => Ok(Newest::Rollback(by.id)),
            (None, Some(_), Some(by)) => Ok(Newest::Rollback(by.id)),
            (Some(rollback), Some(restore), None) if restore.seq < rollback.seq => {
                Ok(Newest::Rollback(rollback.id))
            }
            (_, Some(_), None) => Ok(Newest::Restore),
            (Some(rollback), ..) => Ok(Newest::Rollback(rollback.id)),
            (None, None, _) => {
                Err(Diagnosis::new(Code::NothingToUndo, "There is no rollback or restore to undo here.")
                    .hint("see what there was: ic rollback list; ic checkpoint list"))
            }
        }
    })
}
