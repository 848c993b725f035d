//! Why a run is closed, and the command that opens it: a rollback over several layers, or the undoing of its effects.

use crate::owner::OwnerLock;
use ic_base::{Code, Diagnosis, RunId};
use ic_ledger::Snapshot;
use ic_phase::{RunStatus, run};

use crate::journal::steps::{self, Course};
use crate::journal::table;

use crate::kernel::Kernel;

/// A refusal because of a closed run, with the command that finishes what closed it. If a living process is finishing it, the hint is to
/// wait. Any other error is returned unchanged.
pub fn explained(kernel: &Kernel, snapshot: &Snapshot<'_>, error: Diagnosis) -> Diagnosis {
    let run = error.details().get("run_id").and_then(|id| id.as_str()).map(str::to_owned);
    match (error.code(), run) {
        (Code::RollingBack, Some(run)) => {
            let run = RunId::from_ledger(run);
            // No other process resumes what a living one does.
            if OwnerLock::require_free(kernel.store(), &run).is_err() {
                return error.hint(format!(
                    "another process is executing it right now; wait for it: ic run status {}",
                    run.short()
                ));
            }
            // What cannot be looked up leaves the refusal as it was.
            match way_out(snapshot, &run) {
                Ok(Some(WayOut { what, command, .. })) => {
                    error.hint(format!("{what}: {command}")).detail("resume", command)
                }
                _ => error,
            }
        }
        _ => error,
    }
}

/// What closed a run.
pub struct WayOut {
    /// What closed it: `rollback` or `compensation`.
    pub kind: &'static str,
    /// The rollback's id, else the run's.
    pub id: String,
    /// What is to be finished, in a few words.
    pub what: &'static str,
    /// The command that resumes it.
    pub command: String,
    /// The command that aborts it instead; `None`: it cannot be aborted, or is being aborted.
    pub abort: Option<String>,
}

/// What closed a run, and the command that resumes it. `None`: it is not closed.
pub fn way_out(snapshot: &Snapshot<'_>, run_id: &RunId) -> ic_base::Result<Option<WayOut>> {
    if run::get(snapshot, run_id)?.status != RunStatus::RollingBack {
        return Ok(None);
    }
    // A rollback undoes effects itself, so its own command comes first and settles them, too.
    if let Some(rollback) = table::unfinished_of(snapshot, run_id)? {
        let all = steps::of_rollback(snapshot, &rollback.id)?;
        let what = match steps::course(&all) {
            Course::Forward | Course::Reapply => "finish it",
            Course::Undo => "it is being undone; finish that",
            Course::Abort => "it is being aborted; finish that",
        };
        let command = steps::next_command(&rollback.id, &all);
        // `Reapply` is the abort of an undo already.
        let is_abortable = matches!(steps::course(&all), Course::Forward | Course::Undo);
        let abort = is_abortable.then(|| format!("ic rollback abort {} --yes", rollback.id.short()));
        return Ok(Some(WayOut { kind: "rollback", id: rollback.id.to_string(), what, command, abort }));
    }
    Ok(Some(WayOut {
        kind: "compensation",
        id: run_id.to_string(),
        what: "its effects are being undone; finish that",
        command: format!("ic compensation run {} --yes", run_id.short()),
        abort: None,
    }))
}
