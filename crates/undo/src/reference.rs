//! What a reference in a command about rollbacks names: a rollback by its id, or a run that has one.

use ic_base::{Code, Diagnosis, Result};
use ic_dispatch::dispatch;
use ic_ledger::Snapshot;
use ic_phase::run::{self, Run};

use ic_kernel::Kernel;
use ic_kernel::journal::steps::{self, RollbackStep};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};

use crate::points::id_of_work;

/// The rollback that is named by its own id or by that of work which it undid, or the newest one of a named run, with its steps.
///
/// Errors: `rollback_not_found`, `invalid_reference`, `ambiguous_id`, `ambiguous_run`.
pub fn named(kernel: &Kernel, reference: &str) -> Result<(RollbackRecord, Vec<RollbackStep>)> {
    kernel.read(|snapshot| {
        let remembered = rollback_named(snapshot, reference).or_else(|missing| {
            let (run, missing) = run_instead(kernel, snapshot, reference, missing)?;
            table::newest_of(snapshot, &run.id)?.ok_or(missing)
        })?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, steps))
    })
}

/// The rollback with this id, or the one that undid the work with it.
fn rollback_named(snapshot: &Snapshot<'_>, reference: &str) -> Result<RollbackRecord> {
    table::resolve(snapshot, reference).or_else(|missing| {
        let id = id_of_work(reference).unwrap_or(reference);
        let undone = dispatch::resolve(snapshot, id).ok().and_then(|work| work.rolled_back_by);
        undone.map_or(Err(missing), |by| table::get(snapshot, &by))
    })
}

/// The run whose rollback is named, also where it has none: the command decides what to say then. Errors: as [`named`].
pub fn run_of(kernel: &Kernel, reference: &str) -> Result<Run> {
    kernel.read(|snapshot| match rollback_named(snapshot, reference) {
        Ok(remembered) => run::get(snapshot, &remembered.run_id),
        Err(missing) => run_instead(kernel, snapshot, reference, missing).map(|(run, _)| run),
    })
}

/// The run that a reference names which names no rollback, and the error where it has none. Errors: `missing` where it names no run either.
/// Any other error of the lookup is returned unchanged, because "there is none" would be a guess.
fn run_instead(
    kernel: &Kernel,
    snapshot: &Snapshot<'_>,
    reference: &str,
    missing: Diagnosis,
) -> Result<(Run, Diagnosis)> {
    if !matches!(missing.code(), Code::RollbackNotFound | Code::InvalidReference) {
        return Err(missing);
    }
    match kernel.run(snapshot, reference) {
        Ok(run) => {
            let none = format!("The run {} has no rollback.", run.id.short());
            let none = Diagnosis::new(Code::RollbackNotFound, none)
                .hint(format!("see what it can go back to: ic log {}", run.id.short()))
                .detail("reference", reference);
            Ok((run, none))
        }
        // These forms can name only a run.
        Err(error) if error.code() == Code::RunNotFound && (reference == "@" || reference.starts_with("scope:")) => {
            Err(error.hint("name a rollback by its id: ic rollback list"))
        }
        Err(error) if matches!(error.code(), Code::RunNotFound | Code::InvalidReference) => Err(missing),
        Err(error) => Err(error),
    }
}

/// Errors: `nothing_to_resume` where the rollback or run that is named has nothing unfinished, and those of a reference that names neither.
pub fn require_unfinished(kernel: &Kernel, reference: &str) -> Result<()> {
    kernel.read(|snapshot| unfinished(kernel, snapshot, reference)).map(|_| ())
}

/// The unfinished rollback that is named, by its own id or by its run's. Errors: `nothing_to_resume` if nothing of it is left to do.
pub(super) fn unfinished(kernel: &Kernel, snapshot: &Snapshot<'_>, reference: &str) -> Result<RollbackRecord> {
    let is_open = |r: &RollbackRecord| matches!(r.status, RollbackStatus::InProgress | RollbackStatus::Stopped);
    let over = |over: String| {
        Diagnosis::new(Code::NothingToResume, format!("{over}: nothing is left to resume.")).hint(
            "see: ic rollback list; of a workflow: ic workflow resume RUN --yes; compensations: ic compensation run RUN --yes",
        )
    };
    match rollback_named(snapshot, reference) {
        Ok(remembered) if is_open(&remembered) => Ok(remembered),
        Ok(done) => Err(over(format!("The rollback {} is {}", done.id.short(), done.status.as_str()))),
        Err(missing) => {
            let (run, _) = run_instead(kernel, snapshot, reference, missing)?;
            let open = table::of_run(snapshot, &run.id)?.into_iter().rev().find(is_open);
            open.ok_or_else(|| over(format!("No rollback of the run {} is unfinished", run.id.short())))
        }
    }
}
