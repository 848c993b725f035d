//! Why a run is closed, and the command that opens it: a rollback over several layers, its workflow, or the undoing of its effects.

use std::path::Path;

use ic_base::{Code, Diagnosis, RunId};
use ic_phase::{RunStatus, run};
use ic_saga::owner::OwnerLock;
use ic_store::Snapshot;

use crate::rollback::steps::{self, Course};
use crate::rollback::table;

/// A refusal because of a closed run, with the command that finishes what closed it, unless a living process does; any other
/// error as it is. `store`: the directory of the ledger.
pub(crate) fn explained(store: &Path, snapshot: &Snapshot<'_>, error: Diagnosis) -> Diagnosis {
    let run = error.details().get("run_id").and_then(|id| id.as_str()).map(str::to_owned);
    match (error.code(), run) {
        (Code::RollingBack, Some(run)) => {
            let run = RunId::from_ledger(run);
            // No other process resumes what a living one does.
            if OwnerLock::require_free(store, &run).is_err() {
                return error.hint(format!(
                    "another process is at work on that right now; wait for it: ic run status {}",
                    run.short()
                ));
            }
            // What cannot be looked up leaves the refusal as it was.
            match way_out(snapshot, &run) {
                Ok(Some((what, command))) => {
                    error.hint(format!("{what}: {command}")).detail("resume", command)
                }
                _ => error,
            }
        }
        _ => error,
    }
}

/// What closed a run, in a few words, and the command that resumes it. `None`: it is not closed.
pub(crate) fn way_out(
    snapshot: &Snapshot<'_>,
    run_id: &RunId,
) -> ic_base::Result<Option<(&'static str, String)>> {
    if run::get(snapshot, run_id)?.status != RunStatus::RollingBack {
        return Ok(None);
    }
    if let Some(rollback) = table::unfinished_of(snapshot, run_id)? {
        let all = steps::of_rollback(snapshot, &rollback.id)?;
        let what = match steps::course(&all) {
            Course::Forward | Course::Stand => "finish it",
            Course::Undo => "it is being undone; finish that",
            Course::Abandon => "it is being given up; finish that",
        };
        return Ok(Some((what, steps::next_command(&rollback.id, &all))));
    }
    let run = run_id.short();
    let sql = "SELECT state FROM workflows WHERE run_id = $1 AND state = 'rolling_back'";
    let is_of_workflow = snapshot.query_opt(sql, &[&run_id.as_str()], |row| row.get::<String>(0))?.is_some();
    Ok(Some(if is_of_workflow {
        ("its workflow is taken back; finish that", format!("ic workflow resume {run} --yes"))
    } else {
        ("its effects are undone; finish that", format!("ic compensation run {run} --yes"))
    }))
}
