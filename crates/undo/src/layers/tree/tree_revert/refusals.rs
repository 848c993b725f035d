//! What refuses to undo the restores of a rollback, and the hints that lead on.

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId};
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_ledger::path_from_bytes;
use ic_worktree::{RestoreReport, RestoreWatch, TreeChanges, Workspace};

use super::super::manual_restore;
use super::TreeBack;

impl TreeBack<'_> {
    /// A refusal to undo a rollback, with a hint that leads to it in the end.
    pub(super) fn explained(&self, remembered: &RollbackRecord, has_undone: bool, error: Diagnosis) -> Diagnosis {
        match error.code() {
            Code::WorkRunning => {
                let calls =
                    error.details().get("calls").and_then(|calls| calls.as_array()).cloned().unwrap_or_default();
                let work = calls.iter().find_map(|call| call["dispatch_id"].as_str());
                let work = work.map(|id| DispatchId::from_ledger(id.to_owned()));
                match work {
                    Some(work) => error.hint(format!(
                        "wait for its end; if that agent was stopped or killed: ic dispatch cancel {}; then call again",
                        work.short()
                    )),
                    None => error.hint("end it first; then call again"),
                }
            }
            // A lock in the way of an interrupted restore comes with a hint of its own.
            Code::GitBusy if !error.details().contains_key("unfinished") => {
                error.hint("wait until git is done, or remove the lock that a dead git left; then call again")
            }
            // A plain redo would undo the restore by hand that the hint names, so the hint gives the id.
            Code::FileConflict | Code::ForeignCommits => {
                let again = match remembered.status {
                    RollbackStatus::Done => {
                        let flag = if has_undone { " --without-effects" } else { "" };
                        format!("ic redo {}{flag} --yes", remembered.id.short())
                    }
                    _ => "call again".to_owned(),
                };
                let beside =
                    manual_restore::beside_commits(&self.workspace, &self.restores, &error).unwrap_or_default();
                let hint = error
                    .get_hint()
                    .filter(|hint| !hint.is_empty())
                    .map(|hint| format!("{hint}; then: {again}{beside}"));
                let newer = undone_since(&self.workspace, remembered)
                    .unwrap_or_default()
                    .map(|newer| format!("redo first what was undone after it: ic redo {} --yes", newer.short()));
                match newer.into_iter().chain(hint).collect::<Vec<_>>() {
                    hints if hints.is_empty() => error,
                    hints => error.hint(hints.join("; or ")),
                }
            }
            _ => error,
        }
    }

    /// Adds git's state to a refusal of paths where it changed too: restoring the paths alone would then meet the next refusal.
    pub(super) fn with_moved_git(&self, report: &RestoreReport, watch: &RestoreWatch, error: Diagnosis) -> Diagnosis {
        // Only the hint depends on this look: if it fails, the refusal itself still reaches the caller.
        let Ok(changed) = ic_worktree::changed_since(&self.workspace, &self.restores, &self.effects) else {
            return error;
        };
        if changed.iter().all(|one| one.path.0 != manual_restore::GIT) {
            return error;
        }
        let paths = report.conflicts.iter().map(|conflict| conflict.path.0.as_slice());
        let paths: Vec<&[u8]> = paths.chain([manual_restore::GIT]).collect();
        match manual_restore::hint(&self.workspace, &report.target.id, &paths, watch) {
            Ok(hint) => error
                .hint(hint)
                .detail("paths", paths.iter().map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>()),
            Err(_) => error,
        }
    }
}

/// The newest undo of works in this tree that came after this one and stands.
fn undone_since(workspace: &Workspace<'_>, remembered: &RollbackRecord) -> Result<Option<RollbackId>> {
    if !remembered.is_of_works() {
        return Ok(None);
    }
    workspace.kernel.read(|snapshot| {
        for one in table::all(snapshot)?.into_iter().rev().take_while(|one| one.seq > remembered.seq) {
            if one.status == RollbackStatus::Done && one.is_of_works() {
                let run = ic_phase::run::get(snapshot, &one.run_id)?;
                if ic_ledger::project_root(&run.project_dir) == workspace.root {
                    return Ok(Some(one.id));
                }
            }
        }
        Ok(None)
    })
}

/// Errors: `file_conflict`, naming a path that another run recorded.
pub(super) fn refuse_conflict(report: &RestoreReport) -> Result<()> {
    let Some(conflict) = report.conflicts.first() else { return Ok(()) };
    let path = path_from_bytes(&conflict.path.0).display().to_string();
    let message = format!("{path} is not the rollback's any more: {}.", conflict.reason);
    let paths: Vec<&[u8]> = report.conflicts.iter().map(|conflict| conflict.path.0.as_slice()).collect();
    let command = manual_restore::of_paths(&report.target.id, &paths);
    Err(Diagnosis::new(Code::FileConflict, message).hint(format!("restore it by hand: {command}")))
}

/// Errors: `file_conflict`, naming what others changed since the rollback restored it. What its effects changed may be reverted in part: an
/// undo or abort whose process died is resumed.
pub(super) fn require_untouched(
    workspace: &Workspace<'_>,
    restores: &[RestoreRecord],
    effects: &[TreeChanges],
    watch: &RestoreWatch,
) -> Result<()> {
    let changed = ic_worktree::changed_since(workspace, restores, effects)?;
    let Some(first) = changed.first() else { return Ok(()) };
    let others = match changed.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let left = restores.iter().rev().find_map(|restore| restore.restored_id.as_ref());
    let paths: Vec<&[u8]> = changed.iter().map(|one| one.path.0.as_slice()).collect();
    let hint = left.map_or_else(|| Ok(String::new()), |left| manual_restore::hint(workspace, left, &paths, watch))?;
    Err(Diagnosis::new(
        Code::FileConflict,
        format!("What the rollback restored changed since: {}{others}. Nothing was changed.", first.shown),
    )
    .hint(hint)
    .detail("paths", changed.iter().map(|one| String::from_utf8_lossy(&one.path.0)).collect::<Vec<_>>()))
}
