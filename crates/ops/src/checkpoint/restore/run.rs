//! One restore, from the plan to the checkpoint that it leaves.

use ic_base::{CheckpointId, Code, Diagnosis, RestoreId, Result};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::diff::{self, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{self, Checkpoint, Kind as CheckpointKind, Link};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::apply::{self, Progress as ApplyProgress};
use ic_checkpoint::restore::journal::{self, Kind, NewRestore, Restore};
use ic_checkpoint::restore::plan::{self, Limits, Node, Plan};
use ic_checkpoint::rootfs::RootDir;
use sha2::{Digest, Sha256};

use super::super::Workspace;
use super::super::shot::{Purpose, Shot};
use super::{Conflict, Report, Request, Status};

/// How far a restore is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Watch {
    /// Looking at the tree.
    pub capture: Progress,
    /// Changing it.
    pub apply: ApplyProgress,
}

/// What is restored and why.
pub(super) struct Task {
    pub(super) kind: Kind,
    pub(super) target: Checkpoint,
    pub(super) limits: Limits,
}

pub(super) struct Done {
    pub(super) steps: u64,
    pub(super) failed: Vec<(PathText, String)>,
    pub(super) restored_id: CheckpointId,
}

pub(super) fn run(
    workspace: &Workspace<'_>,
    task: Task,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
    let Task { kind, target, mut limits } = task;
    if !request.force {
        workspace.require_no_workers()?;
    }
    let _held = workspace.lock_for(request.dry_run)?;
    let mut warnings = Vec::new();
    if request.dry_run {
        warnings.extend(super::settle_note(workspace)?);
    } else {
        warnings.extend(workspace.settle(watch)?);
    }
    let strategy = request.strategy.unwrap_or(Strategy::FilesOnly);
    workspace.narrow(&mut limits, &target, strategy, request.mine)?;
    let (shot, differences) = workspace.compare(&target, &limits, watch)?;
    let conflicts = workspace.conflicts(&target, &differences, &shot.captured.root)?;
    if request.keep_theirs {
        limits.keep.extend(conflicts.iter().map(|conflict| conflict.path.0.clone()));
    }
    let mut plan = workspace.plan(&differences, &limits, &shot)?;
    if request.keep_theirs {
        plan.skipped.extend(conflicts.iter().map(|c| (c.path.clone(), format!("kept: {}", c.reason))));
    }
    let touched = |conflict: &Conflict| plan.steps.iter().any(|step| step.path == conflict.path);
    let conflicts: Vec<Conflict> = conflicts.into_iter().filter(touched).collect();
    let mut report = Report {
        safety_id: None,
        restored_id: None,
        dry_run: request.dry_run,
        strategy,
        status: Status::Planned,
        plan_hash: hash_of(&plan, &target.id),
        plan,
        conflicts,
        failed: Vec::new(),
        warnings,
        target,
    };
    if request.dry_run {
        return Ok(report);
    }
    if !report.conflicts.is_empty() && !request.force {
        return Err(refused(&report));
    }
    if request.expect_plan.is_some_and(|expected| expected != report.plan_hash) {
        return Err(plan_changed(&report));
    }
    if report.plan.steps.is_empty() {
        report.status = Status::UpToDate;
        return Ok(report);
    }
    let safety = workspace.prepare(kind, &report, &shot)?;
    let done = workspace.carry_out(&safety.restore_id, &report.target, &report.plan, watch)?;
    report.safety_id = Some(shot.id().clone());
    report.restored_id = Some(done.restored_id);
    report.status = if done.failed.is_empty() { Status::Restored } else { Status::Partial };
    report.failed = done.failed;
    Ok(report)
}

struct Prepared {
    restore_id: RestoreId,
}

impl Workspace<'_> {
    /// Captures the tree as it is, and what the target holds of it though a rule hides it now; how it differs.
    fn compare(
        &self,
        target: &Checkpoint,
        limits: &Limits,
        watch: &Watch,
    ) -> Result<(Shot, Vec<Difference>)> {
        let link = Link {
            name: None,
            message: Some(format!("before the restore of {}", target.id.short())),
            ..target.link.clone()
        };
        let purpose = Purpose::new(CheckpointKind::Safety, link);
        let mut shot = self.shoot(purpose.clone(), &watch.capture)?;
        let mut differences = self.differences(&shot, target)?;
        let hidden = plan::must_be_saved(&differences, limits);
        if !hidden.is_empty() {
            shot = self.shoot(Purpose { force: hidden, ..purpose }, &watch.capture)?;
            differences = self.differences(&shot, target)?;
        }
        Ok((shot, differences))
    }

    fn differences(&self, shot: &Shot, target: &Checkpoint) -> Result<Vec<Difference>> {
        let mut differences = Vec::new();
        diff::diff(&self.objects, Some(&shot.captured.root), Some(&target.tree), &mut |difference| {
            differences.push(difference);
            Ok(())
        })?;
        Ok(differences)
    }

    fn plan(&self, differences: &[Difference], limits: &Limits, shot: &Shot) -> Result<Plan> {
        let mut uncaptured = std::collections::BTreeSet::new();
        let newest = self.kernel.read(|snapshot| record::newest_of_root(snapshot, &self.root))?;
        let newest = newest.map(|checkpoint| checkpoint.tree);
        diff::diff(&self.objects, newest.as_ref(), Some(&shot.captured.root), &mut |difference| {
            uncaptured.insert(difference.path);
            Ok(())
        })?;
        Ok(plan::plan(differences, limits, &|path| uncaptured.contains(path)))
    }

    /// Makes the safety checkpoint and the plan durable, and says so in the ledger.
    fn prepare(&self, kind: Kind, report: &Report, shot: &Shot) -> Result<Prepared> {
        let writer = self.objects.writer(self.kernel.context.now())?;
        let bytes = serde_json::to_vec(&report.plan)
            .map_err(|e| Diagnosis::new(Code::Internal, format!("The plan cannot be written: {e}.")))?;
        let (plan, _) = writer.put_reader(&mut bytes.as_slice())?;
        writer.finish()?;
        let restore_id: RestoreId = self.kernel.context.new_id();
        self.kernel.write(|tx, now| {
            let safety = shot.record(tx, now, None)?;
            let new = NewRestore {
                id: &restore_id,
                root: &self.root,
                kind,
                strategy: report.strategy,
                target_id: &report.target.id,
                safety_id: &safety.id,
                run_id: report.target.link.run_id.as_ref(),
                plan,
            };
            journal::prepare(tx, now, &new)
        })?;
        Ok(Prepared { restore_id })
    }

    /// Applies a plan that is in the journal, verifies the result, and records what it left.
    pub(super) fn carry_out(
        &self,
        id: &RestoreId,
        target: &Checkpoint,
        plan: &Plan,
        watch: &Watch,
    ) -> Result<Done> {
        self.kernel.write_late_too(|tx, now| journal::begin(tx, now, id))?;
        let root = RootDir::open(&self.root)?;
        apply::sweep(&root, plan, id);
        let mut outcome = apply::apply(&self.objects, &root, plan, id, &watch.apply);
        let link = Link {
            name: None,
            message: Some(format!("after the restore of {}", target.id.short())),
            ..target.link.clone()
        };
        let purpose =
            Purpose { parent: Some(target.id.clone()), ..Purpose::new(CheckpointKind::Restored, link) };
        let shot = self.shoot(purpose, &Progress::default())?;
        self.verify(plan, &shot, &mut outcome)?;
        let failed = outcome.failed.len();
        let restored_id = self.kernel.write_late_too(|tx, now| {
            let restored = shot.record(tx, now, None)?;
            let run_id = target.link.run_id.as_ref();
            journal::finish(tx, now, id, run_id, &target.id, &restored.id, failed)?;
            Ok(restored.id)
        })?;
        Ok(Done { steps: outcome.done, failed: outcome.failed, restored_id })
    }

    /// Adds to the failures what does not stand in the tree as the plan has it.
    fn verify(&self, plan: &Plan, shot: &Shot, outcome: &mut apply::Outcome) -> Result<()> {
        for step in &plan.steps {
            if outcome.failed.iter().any(|(path, _)| *path == step.path) || step.path.0.is_empty() {
                continue;
            }
            let found = diff::find(&self.objects, &shot.captured.root, &step.path.0)?;
            let is_hidden = found.as_ref().is_some_and(|state| !state.is_content());
            if !is_hidden && found.as_ref().and_then(Node::of) != step.after {
                outcome.done = outcome.done.saturating_sub(1);
                outcome
                    .failed
                    .push((step.path.clone(), "it is not as it should be after the restore".to_owned()));
            }
        }
        Ok(())
    }
}

/// The plan of a restore. Errors: `corrupt`.
pub(super) fn read_plan(workspace: &Workspace<'_>, restore: &Restore) -> Result<Plan> {
    serde_json::from_slice(&workspace.objects.read(&restore.plan)?)
        .map_err(|e| Diagnosis::new(Code::Corrupt, format!("The plan of a restore cannot be read: {e}.")))
}

fn hash_of(plan: &Plan, target: &CheckpointId) -> String {
    let mut digest = Sha256::new();
    digest.update(target.as_str());
    // A plan is plain data: it can always be written.
    digest.update(serde_json::to_vec(plan).unwrap_or_default());
    ic_events::hex(&digest.finalize().into())
}

fn refused(report: &Report) -> Diagnosis {
    let listed: Vec<serde_json::Value> = report
        .conflicts
        .iter()
        .map(|c| serde_json::json!({ "path": String::from_utf8_lossy(&c.path.0), "reason": c.reason }))
        .collect();
    let first = &report.conflicts[0];
    let path = String::from_utf8_lossy(&first.path.0).into_owned();
    let others = match report.conflicts.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Diagnosis::new(
        Code::Conflict,
        format!("Somebody else changed what would be restored: {path} ({}){others}. Nothing was written.", first.reason),
    )
    .hint("--force takes the checkpoint's state, --keep-theirs leaves these paths as they are; --dry-run lists them")
    .detail("conflicts", listed)
}

fn plan_changed(report: &Report) -> Diagnosis {
    Diagnosis::new(Code::PlanChanged, "The tree changed since the plan was made. Nothing was written.")
        .hint("look again: --dry-run")
        .detail("plan_hash", report.plan_hash.clone())
}
