//! One restore, from the plan to the checkpoint that it leaves.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ic_base::{CheckpointId, Code, Diagnosis, RestoreId, Result, Seq};
use ic_checkpoint::diff::Difference;
use ic_checkpoint::manifest::{CheckpointManifest, PathText};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::{self, NewRestore, RestoreKind};
use ic_checkpoint::restore::plan::{Limits, PlannedDatabase, RestorePlan};
use ic_checkpoint::restore::reverse::Own;

use super::super::capture::{GitPart, OpenCapture, Shot};
use super::super::git::Brought;
use super::super::named_paths;
use super::super::skipped_files::ContentSources;
use super::super::workspace::{Workspace, require_kept};
use super::assumed_tree::AsIf;
use super::client_settings;
use super::execution::Done;
use super::kept_plan::{hash_of, touched};
use super::limits::LimitOwner;
use super::moved_files;
use super::refusal::{plan_changed, refused};
use super::request::{Conflict, RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch};
use super::selective_undo::{self, OthersPaths};
use super::ties::Attained;
use super::tree_survey::{MeantChanges, SurveyedTree};

/// What is restored and why.
pub(super) struct RestoreTask {
    pub(super) kind: RestoreKind,
    /// It undoes the restore of this safety checkpoint, if that is the one to undo next.
    pub(super) undoes: Option<CheckpointId>,
    pub(super) target: CheckpointRecord,
    pub(super) limits: Limits,
    /// Whose files `--mine` means.
    pub(super) whose: LimitOwner,
    /// Checkpoints since this event belong to the same deed: what they hold is not what was there before it.
    pub(super) until: Seq,
    /// What that deed did to the tree already, as [`super::RestoreDeed`] has it: others did not do it.
    pub(super) did: Vec<(CheckpointId, Option<CheckpointId>)>,
    /// The tree as it will be by then: a preview of what comes after other restores.
    pub(super) as_if: AsIf,
    /// Paths that the restore which is undone wrote, as its journal has them: they go again though a rule hides them.
    pub(super) own: BTreeSet<Vec<u8>>,
    /// What the restore that is undone left: commits that it brought are no work of others that came since.
    pub(super) brought: Option<Brought>,
    /// Locks of git that will be gone by then.
    pub(super) past: Vec<PathBuf>,
    /// The tree as it was a moment ago, recorded.
    pub(super) taken: Option<Shot>,
    /// Only what this work did is undone: the target is the tree before it, and whatever others did since stays.
    pub(super) work: Option<Own>,
    /// What others did that stays where the rest becomes as the target has it.
    pub(super) others: OthersPaths,
}

impl RestoreTask {
    /// The restore of a rollback, or of its undo.
    pub(super) fn of(kind: RestoreKind, target: CheckpointRecord, limits: Limits) -> Self {
        Self {
            kind,
            undoes: None,
            target,
            limits,
            whose: LimitOwner::Run,
            until: Seq::MAX,
            did: Vec::new(),
            as_if: AsIf::default(),
            own: BTreeSet::new(),
            brought: None,
            past: Vec::new(),
            taken: None,
            work: None,
            others: OthersPaths::default(),
        }
    }
}

/// What a restore would do, and what it is made of.
struct Planned<'w> {
    report: RestoreReport,
    open: OpenCapture<'w>,
    limits: Limits,
    /// Contents that git has and the store may not have yet.
    sources: ContentSources,
}

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

/// What the restore would do to the current tree, with the capture that this is based on.
fn plan_report<'w>(
    workspace: &'w Workspace<'_>,
    task: RestoreTask,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<Planned<'w>> {
    let RestoreTask { target, mut limits, whose, until, did, as_if, own, brought, past, taken, work, others, .. } =
        task;
    let is_whole = limits.is_everything() && !request.mine;
    let strategy = request.strategy.map_or_else(|| workspace.usual_strategy(&target, request), Ok)?;
    workspace.narrow(&mut limits, &target, strategy, request.mine.then_some(whose))?;
    let git = git_part(request.dry_run, strategy);
    let (target, sources) = workspace.with_content_of_git(target, work.as_ref(), &limits, strategy)?;
    let SurveyedTree { open, usual, differences, mut databases } =
        workspace.compare(&target, (git, taken), &mut limits, &own, watch)?;
    let shot = &open.shot;
    let passed = named_paths::passed_over(workspace, &limits.paths, &target.tree, &shot.captured.root)?;
    let (differences, mut reversed) =
        workspace.aimed(work, (as_if, differences), shot, &usual, (&databases, &mut limits), request)?;
    let Attained { differences, lost, ties } = Workspace::attain(differences, &limits, shot, &target, strategy);
    let git = strategy
        .has_git()
        .then(|| workspace.plan_git(&target, shot, request.force.commits, brought.as_ref(), &past))
        .transpose()?;
    databases.retain(|_| strategy.has_files());
    let mut conflicts = match &reversed {
        Some(reversed) => reversed.conflicts.clone(),
        None => workspace.conflicts(&target, &differences, &usual, until, &did)?,
    };
    let (differences, mut mixed) =
        workspace.beside((differences, &mut conflicts), &others, (shot, &usual, &databases), request)?;
    let settings = keep(&mut limits, &mut databases, (&mut conflicts, &differences), reversed.is_none(), request);
    let moved = workspace.keep_moved(&mut limits, &target, &differences, request)?;
    let mut plan = workspace.plan(&differences, &limits, databases, shot, until, ties)?;
    plan.not_kept.extend(lost);
    match &mut reversed {
        Some(back) => back.name_what_stays(&mut plan),
        None if strategy.has_files() => workspace.name_changed_gaps(&target, shot, &limits, &mut plan)?,
        None => {}
    }
    let beside = selective_undo::name_beside(&mut plan, mixed.as_mut(), &others);
    let meant = MeantChanges { target: &target, strategy, mine: request.mine, is_without: reversed.is_some() };
    let not_compared = workspace.not_compared(&meant, shot, &limits, &plan, passed)?;
    // Beside the work of others it is not meant to be as the target has it.
    let lacks_any = reversed.is_none() && workspace.lacks_any(&target, &plan)?;
    plan.skipped.extend(settings.into_iter().map(|one| (one.path, client_settings::STAYS.to_owned())));
    let mut rest = selective_undo::open_conflicts(&mut plan, conflicts, (reversed, mixed), request);
    moved_files::name_moved(moved, &mut plan, &mut rest);
    let own_warnings = workspace.warnings_of(&target, &plan, request.dry_run)?;
    let plan_hash = hash_of(&plan, git.as_ref().map(|git| &git.plan), &target.id)?;
    let mut report = RestoreReport {
        dry_run: request.dry_run,
        differs: git.as_ref().map_or_else(Vec::new, super::concurrent_changes::left_to_others),
        git,
        conflicts: rest.conflicts,
        not_compared,
        lacks_any,
        is_whole: is_whole && strategy != Strategy::Partial,
        is_without: rest.is_without,
        beside,
        parts_left: rest.parts,
        texts: rest.texts,
        warnings: shot.warnings.iter().cloned().chain(own_warnings).collect(),
        ..planned_report(target, strategy, plan, plan_hash)
    };
    workspace.name_what_is_outside(&mut report, &open.shot, &limits)?;
    Ok(Planned { report, open, limits, sources })
}

/// Keeps the settings of clients in a restore of the `whole` tree, and the paths in conflict that stay by decision. Returns the settings.
fn keep(
    limits: &mut Limits,
    databases: &mut Vec<PlannedDatabase>,
    (conflicts, differences): (&mut Vec<Conflict>, &[Difference]),
    whole: bool,
    request: &RestoreRequest<'_>,
) -> Vec<Conflict> {
    let settings = client_settings::take_from(conflicts, whole && !request.force.files);
    limits.keep.extend(selective_undo::kept(&settings, differences));
    selective_undo::keep_left(limits, databases, (conflicts, differences), request);
    settings
}

/// The report of a plan of which nothing more is known.
pub(super) fn planned_report(
    target: CheckpointRecord,
    strategy: Strategy,
    plan: RestorePlan,
    plan_hash: String,
) -> RestoreReport {
    RestoreReport {
        target,
        of_restore: None,
        safety_id: None,
        restored_id: None,
        dry_run: false,
        strategy,
        status: RestoreStatus::Planned,
        git: None,
        index: Vec::new(),
        plan_hash,
        conflicts: Vec::new(),
        refusal: None,
        failed: Vec::new(),
        not_compared: Vec::new(),
        differs: Vec::new(),
        work_trees: Vec::new(),
        repositories: Vec::new(),
        lacks_any: false,
        is_whole: false,
        is_without: false,
        beside: BTreeSet::new(),
        parts_left: Vec::new(),
        texts: Vec::new(),
        warnings: Vec::new(),
        plan,
    }
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

/// How much of git's state the picture before a restore has: a safety checkpoint holds all of it.
fn git_part(dry_run: bool, strategy: Strategy) -> GitPart {
    match (dry_run, strategy.has_git()) {
        (false, _) => GitPart::Kept,
        (true, true) => GitPart::Look,
        (true, false) => GitPart::Nothing,
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

    /// Names what no restore changes, and what differs there: other work trees, and repositories inside of the tree.
    fn name_what_is_outside(&self, report: &mut RestoreReport, shot: &Shot, limits: &Limits) -> Result<()> {
        let scope = (limits, report.is_without);
        report.lacks_any |= report.git.as_ref().is_some_and(|git| !git.lost_tags.is_empty());
        report.work_trees = self.left_work_trees(&report.target, &shot.captured, scope)?;
        if report.strategy.has_files() {
            let lost = self.lost_history(&report.target)?.filter(|_| limits.is_everything());
            report.plan.not_kept.extend(lost);
            report.repositories = self.left_repositories(&report.target, &shot.captured, scope, &report.plan)?;
            // Their history stays, so it is not as the checkpoint has it.
            report.lacks_any |= !report.repositories.is_empty();
        }
        Ok(())
    }

    /// Files and git where git was recorded and is here, else files; of some paths, files alone.
    fn usual_strategy(&self, target: &CheckpointRecord, request: &RestoreRequest<'_>) -> Result<Strategy> {
        let is_narrow = !request.paths.is_empty() || request.mine;
        let has_git = !is_narrow
            && self.settings.checkpointing.include_git
            && ic_ledger::git_dirs(&self.root).is_some()
            && CheckpointManifest::read(&self.objects, &target.manifest)?.git.is_some();
        Ok(if has_git { Strategy::Full } else { Strategy::FilesOnly })
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
