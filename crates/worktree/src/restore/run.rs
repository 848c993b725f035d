//! One restore, from its plan to the checkpoint that it leaves.

use std::collections::BTreeSet;

use ic_base::{Code, Diagnosis, RestoreId, Result};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{self};
use ic_checkpoint::restore::journal::{self, NewRestore, RestoreKind};

use super::super::capture::{OpenCapture, Shot};
use super::super::workspace::{Workspace, require_kept};
use super::execution::Done;
use super::kept_plan::touched;
use super::planned_restore::{Planned, RestoreTask, plan_report};
use super::refusal::{plan_changed, refused};
use super::request::{RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch};
use super::selective_undo::{self};

/// Plans a restore and, unless it is a dry run, carries it out.
pub(super) fn run(
    workspace: &Workspace<'_>,
    task: RestoreTask,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    require_nobody_works(workspace, &task, request)?;
    let _held = workspace.lock_for(request.dry_run)?;
    let settled = if request.dry_run { None } else { workspace.settle(watch)? };
    let settled = settled.map(|settled| settled.warning());
    super::interruption::also_settled(settled, || run_held(workspace, task, request, watch))
}

/// As [`run`], where the caller holds the root, chose the task since, and has finished what was interrupted unless this is a dry run.
pub(super) fn run_held(
    workspace: &Workspace<'_>,
    mut task: RestoreTask,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    // Read again under the lock: a prune while this waited removes the content, and that is no damage.
    require_kept(&workspace.kernel.read(|snapshot| record::get(snapshot, &task.target.id))?)?;
    if !request.dry_run {
        return carry(workspace, task, request, watch);
    }
    // The real call finishes first what was interrupted: the plan is of the tree that it will find then.
    task.as_if = task.as_if.or_settled(workspace, &task.target)?;
    task.past = workspace.locks_gone_by_then()?;
    let note = super::interruption::settle_note(workspace)?;
    let mut report = carry(workspace, task, request, watch)?;
    report.warnings.extend(note);
    Ok(report)
}

/// Errors: `work_running` if a worker or an open tool call could overwrite what is restored, unless the request allows them.
pub(super) fn require_nobody_works(
    workspace: &Workspace<'_>,
    task: &RestoreTask,
    request: &RestoreRequest<'_>,
) -> Result<()> {
    // The undo of one piece of work may run beside others: it changes only that work's paths, and compares each again just before the
    // change.
    if request.force.workers || request.beside_others {
        return Ok(());
    }
    workspace.require_no_workers()?;
    workspace.require_no_calls(task.target.link.run_id.as_ref())
}

/// As [`run`], where no other restore is unfinished.
fn carry(
    workspace: &Workspace<'_>,
    task: RestoreTask,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let (kind, is_whole_target) = (workspace.kind_of(&task)?, task.work.is_none());
    let Planned { mut report, open, mut limits, sources } = plan_report(workspace, task, request, watch)?;
    if request.expect_plan.is_some_and(|expected| expected != report.plan_hash) {
        return Err(plan_changed(&report));
    }
    // Decided here for both: a preview must not end otherwise than the real call.
    let undecided = request.undecided(&report.conflicts);
    let refusal = (!undecided.is_empty()).then(|| refused(&undecided));
    if request.dry_run {
        // Closed and not dropped: its stat cache spares the real call from reading that again.
        workspace.close(open)?;
        report.refusal = refusal;
        return Ok(report);
    }
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let moves_git = report.git.as_ref().is_some_and(|git| !git.plan.is_empty());
    if report.plan.steps.is_empty() && !moves_git {
        workspace.close(open)?;
        report.status = if report.leaves_any() { RestoreStatus::Partial } else { RestoreStatus::UpToDate };
        return Ok(report);
    }
    // Before the journal names the plan: a call that finishes this restore later takes all content from the store.
    workspace.keep_from_git(&report.plan, &sources)?;
    let (restore_id, shot) = workspace.prepare(kind, &report, open, &report.texts)?;
    if let Some(git) = report.git.as_mut().filter(|git| git.keeps_branches() || git.keeps_stash()) {
        git.kept_below = Some(format!("refs/ic/rolled-back/{restore_id}/"));
    }
    // What never stood still is read again, or what the restore leaves would pass for settled.
    // To tie or cut a name changes the inode that its other names have too.
    let is_usual = shot.captured.unsettled.is_empty() && shot.captured.links.is_empty();
    let is_tied = report.plan.steps.iter().any(|step| step.link.is_some());
    // A rollback compares the whole tree with its target afterwards: what others wrote during the restore was not restored, and is
    // reported.
    let touched = touched(&report.plan).filter(|_| is_usual && !is_tied && !request.compares_all);
    let done = workspace.carry_out(&restore_id, &report.target, &report.plan, report.git.as_ref(), touched, watch)?;
    report.safety_id = Some(shot.id().clone());
    let left = report.carried_out(done);
    // Where it goes to what no checkpoint is, each step was compared with the plan.
    if is_whole_target {
        limits.keep.extend(report.beside.iter().map(|path| path.0.clone()));
        report.differs = workspace.differs(&report, &limits, &left)?;
        report.differs.retain(|(path, _)| !selective_undo::holds_any(&path.0, &report.beside));
    }
    Ok(report)
}

impl RestoreReport {
    /// Says what came of the plan; returns what that left.
    pub(super) fn carried_out(&mut self, done: Done) -> Shot {
        let Done { failed, not_kept, restored_id, left, .. } = done;
        self.restored_id = Some(restored_id);
        let is_exact = failed.is_empty() && !self.leaves_any();
        self.status = if is_exact { RestoreStatus::Restored } else { RestoreStatus::Partial };
        // What failed is as it was: it is no change that was made.
        let paths: BTreeSet<&PathText> = failed.iter().map(|(path, _)| path).collect();
        self.plan.steps.retain(|step| !paths.contains(&step.path));
        self.failed = failed;
        self.plan.not_kept.extend(not_kept);
        left
    }
}

impl Workspace<'_> {
    /// What a task is to the restores before it; the root is held.
    fn kind_of(&self, task: &RestoreTask) -> Result<RestoreKind> {
        let Some(safety) = &task.undoes else { return Ok(task.kind) };
        let finished = self.kernel.read(|snapshot| journal::finished(snapshot, &self.root))?;
        let is_next = journal::stacks(&finished).0.last().is_some_and(|last| last.safety_id == *safety);
        Ok(if is_next { RestoreKind::Undo } else { task.kind })
    }

    /// Makes the safety checkpoint, the plan and what only it holds durable, and says in the ledger that the restore begins.
    fn prepare(
        &self,
        kind: RestoreKind,
        report: &RestoreReport,
        open: OpenCapture<'_>,
        texts: &[Vec<u8>],
    ) -> Result<(RestoreId, Shot)> {
        let plan = serde_json::to_vec(&report.plan)
            .map_err(|e| Diagnosis::new(Code::Internal, format!("The plan cannot be written: {e}.")))?;
        let contents: Vec<&[u8]> = [plan.as_slice()].into_iter().chain(texts.iter().map(Vec::as_slice)).collect();
        // Content before the row that names it: a crash in between leaves content that the next sweep
        // removes.
        let (shot, hashes) = self.close_with(open, &contents)?;
        let plan = hashes[0];
        let restore_id: RestoreId = self.kernel.context.new_id();
        self.kernel.write(|tx, now| {
            if !shot.is_recorded {
                shot.record(tx, now, None)?;
            }
            let new = NewRestore {
                id: &restore_id,
                root: &self.root,
                kind,
                strategy: report.strategy,
                target_id: &report.target.id,
                safety_id: shot.id(),
                run_id: report.target.link.run_id.as_ref(),
                plan,
            };
            journal::prepare(tx, now, &new)?;
            // Recorded before the first write: if this process dies, the next call applies the same plan again.
            journal::begin(tx, now, &restore_id)
        })?;
        Ok((restore_id, shot))
    }
}
