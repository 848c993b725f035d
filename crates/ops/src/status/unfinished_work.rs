//! What killed or failed calls left of a run and of its working tree, each with the command that resumes it.

use std::path::Path;
use std::time::Duration;

use ic_base::{Result, shell_word};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::{self as restores, RestoreRecord};
use ic_checkpoint::restore::plan::RestorePlan;
use ic_effects::compensation::{self, CompensationState};
use ic_kernel::journal::{steps, table};
use ic_kernel::{Kernel, closed_run};
use ic_ledger::{OpenOptions, Snapshot};
use ic_phase::{Run, RunStatus};
use ic_rewind::journal as rewinds;
use ic_undo::app_rewind::lock::require_free;
use ic_undo::app_rewind::resume_command;
use ic_worktree::{look_into_store, objects_path, root_of};

use super::UnfinishedWork;

/// What closed a run; of an open one, effects whose undo was cut off.
pub(super) fn of_run(snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<UnfinishedWork>> {
    if let Some(way_out) = closed_run::way_out(snapshot, &run.id)? {
        let message = match table::unfinished_of(snapshot, &run.id)? {
            Some(rollback) => {
                let all = steps::of_rollback(snapshot, &rollback.id)?;
                let what = if steps::course(&all).is_back() {
                    format!("the undo of the rollback {} is not finished", rollback.id.short())
                } else {
                    let whither = match rollback.alone() {
                        Some(alone) => format!("of {alone} alone"),
                        None => format!("to {}", rollback.to_phase),
                    };
                    format!("the rollback {} {whither} is not finished", rollback.id.short())
                };
                let error = all.iter().find_map(|step| step.error.as_deref());
                what + &error.map(|error| format!(": {error}")).unwrap_or_default()
            }
            None => "its effects are not all undone".to_owned(),
        };
        let closed_run::WayOut { kind, id, command, abort, .. } = way_out;
        return Ok(Some(UnfinishedWork { kind, id, message, command, abort }));
    }
    let all = compensation::list(snapshot, &run.id)?;
    // The caller asks only where no process executes the run. So `Running` on record means that the attempt was cut off.
    let mut left = all.iter().filter(|one| matches!(one.state, CompensationState::Failed | CompensationState::Running));
    let Some(first) = left.next() else { return Ok(None) };
    let (step, id) = (&first.step, run.id.short());
    let is_cut_off = first.is_cut_off() || first.state == CompensationState::Running;
    let what = if is_cut_off { "was interrupted, and its outcome is unknown" } else { "failed" };
    let more = match left.count() {
        0 => String::new(),
        more => format!("; so it is with {more} more"),
    };
    Ok(Some(UnfinishedWork {
        kind: "compensation",
        id: run.id.to_string(),
        message: format!("the undo of the effect of {step} {what}{more}"),
        // What was done since the undo stays: only this effect is meant.
        command: format!("ic compensation run {id} --step {} --yes", shell_word(&first.step)),
        abort: None,
    }))
}

/// The rewinds of the run's working tree that were interrupted, and whose process is gone.
pub(super) fn rewinds(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run) -> Result<Vec<UnfinishedWork>> {
    let mut found = Vec::new();
    for entry in rewinds::unfinished_in(snapshot, &root_of(&run.project_dir))? {
        // Not waited for: a rewind that holds the lock is at work, and not left unfinished.
        let is_free = require_free(kernel.store(), &entry.database, Duration::ZERO).is_ok();
        let Some(command) = resume_command(&entry).filter(|_| is_free) else { continue };
        let why = entry.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
        let (id, task) = (entry.id.short(), &entry.task_id);
        found.push(UnfinishedWork {
            kind: "rewind",
            id: entry.id.to_string(),
            message: format!("the rewind {id} to the task {task} is not finished{why}"),
            command,
            abort: None,
        });
    }
    Ok(found)
}

/// The restore of the run's working tree that was begun and has not ended. One that a rollback of the run made is finished by that
/// rollback.
pub(super) fn restore(snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<RestoreRecord>> {
    match run.status {
        RunStatus::RollingBack => Ok(None),
        _ => restores::unfinished(snapshot, &root_of(&run.project_dir)),
    }
}

/// What is said of such a restore, unless a process is at work on it. It opens the object store, which no open snapshot allows.
pub(super) fn interrupted(kernel: &Kernel, options: OpenOptions, restore: &RestoreRecord) -> Option<UnfinishedWork> {
    (!is_under_way(kernel, &restore.root)).then(|| UnfinishedWork {
        kind: "restore",
        id: restore.id.to_string(),
        message: format!("the restore of checkpoint {} was interrupted", restore.target_id.short()),
        command: restore_again(kernel, options, restore),
        abort: None,
    })
}

/// Whether a process restores the tree right now, or records a capture: it has the lock of the root alone.
fn is_under_way(kernel: &Kernel, root: &Path) -> bool {
    let objects = objects_path(kernel.ledger.path());
    // The lock is shared with all that only look, and released at once.
    lock::root(&objects, root, LockMode::Shared, Duration::ZERO).is_err()
}

/// The call that finishes an interrupted restore and then has nothing left to do. Every restore finishes what was interrupted first, with
/// the strategy and the paths that it began with. This one names a single path of it: without one it would go on to restore what
/// the first was not asked for.
fn restore_again(kernel: &Kernel, options: OpenOptions, restore: &RestoreRecord) -> String {
    let root = restore.root.as_path();
    let elsewhere = kernel.project.root != root;
    let place = if elsewhere { format!(" -C {}", shell_word(&root.to_string_lossy())) } else { String::new() };
    // If the plan cannot be read, the command names no path: it is still one that finishes the restore.
    let objects = look_into_store(kernel, options).ok().flatten();
    let plan = objects.and_then(|objects| objects.read(&restore.plan).ok());
    let plan: Option<RestorePlan> = plan.and_then(|plan| serde_json::from_slice(&plan).ok());
    let paths = plan.iter().flat_map(|plan| &plan.steps);
    let path = paths.filter_map(|step| std::str::from_utf8(&step.path.0).ok()).find(|path| !path.is_empty());
    let (strategy, path) = match path {
        Some(path) => {
            let path = root.join(path);
            (Strategy::FilesOnly, format!(" --path {}", shell_word(&path.to_string_lossy())))
        }
        None => (restore.strategy, String::new()),
    };
    let target = restore.target_id.short();
    format!("ic{place} checkpoint restore {target} --strategy {}{path} --yes", strategy.as_str())
}
