//! The plan of one restore: how the tree differs from what it is to become, what stays, and what is in the way.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ic_base::{CheckpointId, Result, Seq};
use ic_checkpoint::diff::Difference;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::RestoreKind;
use ic_checkpoint::restore::plan::{Limits, PlannedDatabase, RestorePlan};
use ic_checkpoint::restore::reverse::Own;
use ic_session::clients;

use super::super::capture::{GitPart, OpenCapture, Shot};
use super::super::git::Brought;
use super::super::named_paths;
use super::super::skipped_files::ContentSources;
use super::super::workspace::Workspace;
use super::assumed_tree::AsIf;
use super::kept_plan::hash_of;
use super::limits::LimitOwner;
use super::moved_files;
use super::request::{Conflict, EarlierDeeds, RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch};
use super::safety::THEIRS_SINCE;
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
    pub(super) did: EarlierDeeds,
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
            did: EarlierDeeds::default(),
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
pub(super) struct Planned<'w> {
    pub(super) report: RestoreReport,
    pub(super) open: OpenCapture<'w>,
    pub(super) limits: Limits,
    /// Contents that git has and the store may not have yet.
    pub(super) sources: ContentSources,
}

/// What the restore would do to the current tree, with the capture that this is based on.
pub(super) fn plan_report<'w>(
    workspace: &'w Workspace<'_>,
    task: RestoreTask,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<Planned<'w>> {
    //   limits ─▶ target, with content of git's ─▶ picture of the tree ─▶ differences ─▶ conflicts ─▶ what stays ─▶ plan
    //
    // What stays is put into the limits before the plan is made, so the plan never has a step for it.
    let RestoreTask { target, mut limits, whose, until, did, as_if, own, brought, past, taken, work, others, .. } =
        task;
    // What the caller left out decides, and not what is added to the limits below.
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
        .then(|| workspace.plan_git(&target, shot, request.force.commits, (brought.as_ref(), &did.stops()), &past))
        .transpose()?;
    databases.retain(|_| strategy.has_files());
    // The undo of one piece of work merges, so only what cannot be merged is in its way. A restore of a tree replaces whole paths.
    let mut conflicts = match &reversed {
        Some(reversed) => reversed.conflicts.clone(),
        None => workspace.conflicts(&target, &differences, &usual, until, &did)?,
    };
    let (differences, mut mixed) =
        workspace.beside((differences, &mut conflicts), &others, (shot, &usual, &databases), request)?;
    let theirs = keep(&mut limits, &mut databases, (&mut conflicts, &differences), reversed.is_none(), request);
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
    plan.skipped.extend(theirs.into_iter().map(|one| (one.path, one.reason)));
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

/// The reason that the report names for a settings file that stays.
const SETTINGS_STAY: &str = "settings of a client, which others changed: they stay";

/// Keeps the settings of clients in a restore of the `whole` tree, what others changed while it was stopped, and the paths in conflict that
/// stay by decision. Returns those for which no decision is asked.
///
/// Settings say how this machine is set up. In git, installed hooks have their file excluded; in a folder without git nothing hides it, so what
/// a person or the client writes there after the work would refuse every undo. What the work itself changed there is no conflict.
fn keep(
    limits: &mut Limits,
    databases: &mut Vec<PlannedDatabase>,
    (conflicts, differences): (&mut Vec<Conflict>, &[Difference]),
    whole: bool,
    request: &RestoreRequest<'_>,
) -> Vec<Conflict> {
    let is_settings = |conflict: &Conflict| clients::is_settings(&conflict.path.0);
    let stays =
        |conflict: &Conflict| conflict.reason == THEIRS_SINCE || (!request.force.files && is_settings(conflict));
    let (mut theirs, rest): (Vec<_>, _) = std::mem::take(conflicts).into_iter().partition(|one| whole && stays(one));
    *conflicts = rest;
    for one in theirs.iter_mut().filter(|one| is_settings(one)) {
        SETTINGS_STAY.clone_into(&mut one.reason);
    }
    limits.keep.extend(selective_undo::kept(&theirs, differences));
    selective_undo::keep_left(limits, databases, (conflicts, differences), request);
    theirs
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

/// How much of git's state the picture before a restore has: a safety checkpoint holds all of it.
fn git_part(dry_run: bool, strategy: Strategy) -> GitPart {
    match (dry_run, strategy.has_git()) {
        (false, _) => GitPart::Kept,
        (true, true) => GitPart::Look,
        (true, false) => GitPart::Nothing,
    }
}

impl Workspace<'_> {
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
}
