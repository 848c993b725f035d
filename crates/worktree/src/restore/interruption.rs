//! What is said of a restore that was interrupted, and of one that was finished before another call's own.

use ic_base::{Diagnosis, Result};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::journal::{self, RestoreKind, RestoreRecord};
use ic_checkpoint::restore::plan::RestorePlan;

use super::super::git::GitRestore;
use super::super::workspace::{Warning, Workspace};
use super::execution::Done;
use super::kept_plan;
use super::planned_restore::planned_report;
use super::request::RestoreReport;

/// A restore that was interrupted, and is finished by now.
pub(super) struct Settled {
    pub(super) restore: RestoreRecord,
    pub(super) target: CheckpointRecord,
    pub(super) plan: RestorePlan,
    pub(super) git: Option<GitRestore>,
    pub(super) done: Done,
}

impl Settled {
    pub(super) fn warning(&self) -> Warning {
        Warning {
            code: "restore_settled",
            message: format!(
                "an interrupted restore of checkpoint {} was finished first ({} changes, {} not possible)",
                self.target.id.short(),
                self.done.steps,
                self.done.failed.len()
            ),
        }
    }

    /// What there is to say of it where to finish it was all that was asked for.
    pub(super) fn into_report(self) -> Result<RestoreReport> {
        let Self { restore, target, plan, git, done } = self;
        let mut report = resumed(&restore, target, plan, git)?;
        report.safety_id = Some(restore.safety_id);
        report.carried_out(done);
        Ok(report)
    }
}

/// What is said of an interrupted restore that is finished, or would be, and nothing else.
pub(super) fn resumed(
    restore: &RestoreRecord,
    target: CheckpointRecord,
    plan: RestorePlan,
    git: Option<GitRestore>,
) -> Result<RestoreReport> {
    let hash = kept_plan::hash_of(&plan, git.as_ref().map(|git| &git.plan), &target.id)?;
    Ok(RestoreReport { git, ..planned_report(target, restore.strategy, plan, hash) })
}

/// The command that undoes an interrupted restore.
pub fn way_back(restore: &RestoreRecord) -> String {
    let verb = match restore.kind {
        RestoreKind::Undo => "undo",
        RestoreKind::Restore | RestoreKind::Redo => "redo",
    };
    format!("ic {verb} {} --yes", restore.safety_id.short())
}

/// Runs `then` after a restore that was `settled` first, and reports that one in any case: even if `then` is refused and writes nothing,
/// the tree has changed.
pub(super) fn also_settled(
    settled: Option<Warning>,
    then: impl FnOnce() -> Result<RestoreReport>,
) -> Result<RestoreReport> {
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
    Diagnosis::new(error.code(), format!("A restore of checkpoint {id} was interrupted, and is not finished."))
        .hint(format!("the command that finishes it: ic status; to undo it: {}", way_back(&restore)))
        .detail("unfinished", restore.target_id.as_str())
}

/// A warning for reads, when a restore of this root was interrupted.
pub fn settle_note(workspace: &Workspace<'_>) -> Result<Option<Warning>> {
    let unfinished = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?;
    Ok(unfinished.map(|restore| Warning {
        code: "restore_interrupted",
        message: format!(
            "a restore of checkpoint {} was begun on {} and is not finished; the command that finishes it: ic status; to undo it: {}",
            restore.target_id.short(),
            restore.created_at,
            way_back(&restore)
        ),
    }))
}
