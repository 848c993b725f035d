//! What is said of a restore that was interrupted, and of one that was finished before another call's own.

use ic_base::{Diagnosis, Result};
use ic_checkpoint::restore::journal;

use super::super::workspace::{Warning, Workspace};
use super::request::Report;

/// Does what follows after a restore that was `settled` first, and says so: a refusal that wrote nothing leaves another tree all the same.
pub(super) fn also_settled(
    settled: Option<Warning>,
    then: impl FnOnce() -> Result<Report>,
) -> Result<Report> {
    let done = then();
    let Some(settled) = settled else { return done };
    match done {
        Ok(mut report) => {
            report.warnings.push(settled);
            Ok(report)
        }
        Err(error) => Err(error.but(&settled.message).detail("settled", settled.message)),
    }
}

/// Errors: `error`, with what an interrupted restore of this root has left to do, where there is one.
pub(super) fn unless_interrupted(workspace: &Workspace<'_>, error: Diagnosis) -> Diagnosis {
    let unfinished = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root));
    let Some(restore) = unfinished.ok().flatten() else { return error };
    let id = restore.target_id.short();
    Diagnosis::new(
        error.code(),
        format!("A restore of checkpoint {id} was interrupted, and is not finished."),
    )
    .hint("the command that finishes it: ic status; to take it back: ic checkpoint undo --yes")
    .detail("unfinished", restore.target_id.as_str())
}

/// A warning for reads, when a restore of this root was interrupted.
pub fn settle_note(workspace: &Workspace<'_>) -> Result<Option<Warning>> {
    let unfinished = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?;
    Ok(unfinished.map(|restore| Warning {
        code: "restore_interrupted",
        message: format!(
            "a restore of checkpoint {} was begun on {} and is not finished; the command that finishes it: ic status; to take it back: \
             ic checkpoint undo --yes",
            restore.target_id.short(),
            restore.created_at
        ),
    }))
}
