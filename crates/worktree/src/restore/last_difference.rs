//! The newest checkpoint that the tree differs from: what a person means who undoes without a run.

use std::ops::ControlFlow;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::record::{self, CheckpointFilter, CheckpointKind};
use ic_checkpoint::restore::journal;
use ic_kernel::Kernel;

use super::super::workspace::{CaptureSettings, Which, Workspace, no_checkpoint};
use super::interruption::unless_interrupted;
use super::request::{RestoreRequest, RestoreWatch};
use super::restore;

/// The most checkpoints that are compared with the tree: each comparison reads the tree again.
const COMPARED: usize = 20;

/// The newest checkpoint of the caller's working tree that the tree, or git's state, differs from. Where the tree is as the last restore
/// left it, and nothing was captured since, one from before what that restored: each call goes further back.
///
/// Errors: `no_checkpoint` if there is none, `nothing_to_undo` if the newest ones all are as the tree is.
pub fn newest_other(kernel: &Kernel, settings: &CaptureSettings, watch: &RestoreWatch) -> Result<CheckpointId> {
    // Not opened: each comparison opens the content, which on a full disk one alone can.
    let root = &kernel.project.root;
    let mut ids = Vec::new();
    let last = kernel.read(|snapshot| {
        let filter = CheckpointFilter { root: Some(root), ..CheckpointFilter::default() };
        record::list(snapshot, filter, |checkpoint| {
            if matches!(checkpoint.kind, CheckpointKind::Manual | CheckpointKind::Auto) {
                ids.push((checkpoint.id, checkpoint.seq));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let restores = journal::finished(snapshot, root)?;
        Ok(journal::stacks(&restores).0.last().map(|last| (last.target_id.clone(), last.seq)))
    })?;
    if ids.is_empty() {
        return Err(no_checkpoint(root));
    }
    let differs = |id: &CheckpointId| -> Result<bool> {
        let request = RestoreRequest { which: Which::Id(id.as_str()), dry_run: true, ..RestoreRequest::default() };
        let report = restore(kernel, settings, &request, watch)?;
        let moves_git = report.git.as_ref().is_some_and(|git| !git.plan.is_empty());
        Ok(moves_git || !report.plan.steps.is_empty())
    };
    if let Some((target, restored)) = last
        && let Some(at) = ids.iter().position(|(id, _)| *id == target)
        && ids.iter().all(|(_, seq)| *seq < restored)
        && !differs(&target)?
    {
        ids.truncate(at);
    }
    for (id, _) in ids.into_iter().rev().take(COMPARED) {
        if differs(&id)? {
            return Ok(id);
        }
    }
    // Each was compared with the tree as it will be once a restore is finished that was interrupted.
    let none = Diagnosis::new(Code::NothingToUndo, "The tree is the same as in its newest checkpoints.")
        .hint("choose an older one: ic checkpoint list; ic checkpoint restore ID --yes");
    Err(unless_interrupted(&Workspace::here(kernel, settings)?, none))
}
