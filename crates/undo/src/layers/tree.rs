//! The working tree and git's state: restored on the way forward; an undo or abort reverts those restores.

pub(super) mod effects_bracket;
mod index_entries;
mod manual_restore;
mod outside_files;
mod refusal_hints;
mod target;
mod tree_revert;

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{Code, Diagnosis, Result, Timestamp};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::plan::RestoreStep as PlanStep;
use ic_checkpoint::restore::reverse::{LineDecision, Own};
use ic_checkpoint::tree::Reason;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::steps::{self, StepEvent};
use ic_kernel::journal::{Course, Force, LayerName as Name, RollbackStep};
use ic_session::call;
use ic_worktree::capture::Shot;
use ic_worktree::{
    Conflict, EarlierDeeds, OthersPaths, RestoreDeed, RestoreReport, RestoreRequest, RestoreStatus, Warning, Which,
    Workspace, files_of_database, left_of_interrupted, restore_into, restore_without, restores_since, steps_of,
};

use super::layer::{LayerDriver, LayerWork, Site};
use crate::coverage::Covered;
use crate::dispatch_changes;
use crate::leaving_commits;
use crate::others_paths::{self, Back};
use crate::plan_approval;
use crate::refusals::command_alone;
use crate::rollback_marks::cancelled_dispatches;
use crate::unsure_changes;

pub(crate) use target::detail_of_skipped;
use target::{require_content, require_whole_project, target};
pub(crate) use tree_revert::require_own;

/// Git's state and files: one restore forward, after a safety checkpoint; the undo of that restore in the other direction.
pub(super) struct TreeLayer;

impl LayerDriver for TreeLayer {
    fn go(
        &self,
        site: &mut Site<'_, '_>,
        step: &RollbackStep,
        course: Course,
        work: &mut LayerWork,
    ) -> Result<StepDetail> {
        if course.is_back() {
            tree_revert::go(site, course, work)?;
            index_entries::make_again(site, step)?;
            return outside_files::go(site, course, step, work).map(|_| StepDetail::default());
        }
        let goal = Goal::of(site)?;
        // This is asked before the restore, whose report leaves out what an earlier attempt did.
        let earlier = goal.restored_before(site.is_dry())?;
        let mut report = match goal.restore_as_seen(site, work.seen.take()) {
            Ok(report) => report,
            Err(error) => return Err(goal.explained(error)),
        };
        // Files that effects restored are not in the safety checkpoint, which the journal keeps with the step.
        let own = both(earlier, &report.plan.steps);
        let done = site.covered.remembered().filter(|_| !site.is_dry());
        let by_effects = if let Some(remembered) = done {
            let choices = site.covered.choices()?;
            effects_bracket::tell_of_restored(&goal.workspace, remembered, &mut report, &choices)?
        } else {
            effects_bracket::foretell_restored(&mut report, work);
            Vec::new()
        };
        // Files that effects restored by themselves do not count as left.
        let RestoreReport { plan, parts_left, .. } = &mut report;
        if goal.work.is_some() {
            // An ignored file that came or went stays, and no undo lists it: there may be hundreds of thousands.
            plan.skipped.retain(|(_, why)| why != Reason::Ignored.as_str());
        }
        parts_left.retain(|path| plan.skipped.iter().any(|(skipped, _)| skipped == path));
        let parts_left = parts_left.len();
        let whole = both(by_effects, &own);
        // A rollback that is made again after its undo was aborted reports only what that undo had restored.
        if (course == Course::Forward || site.is_dry()) && whole.len() > report.plan.steps.len() {
            report.plan.steps = whole;
            if report.status == RestoreStatus::UpToDate {
                report.status = RestoreStatus::Restored;
            }
        }
        let forced = outside_files::go(site, course, step, work)?;
        let mut detail = goal.detail(&own, parts_left, outside_files::left(work))?;
        if !forced.is_empty() {
            detail.outside_forced = forced;
        }
        if let Some(own) = &goal.work {
            let paths = own.paths();
            index_entries::take_back(site, step, (&goal.workspace, &paths), &mut report, &mut detail)?;
        }
        work.own_commits.clone_from(&goal.own_commits);
        work.commits = match &report.git {
            Some(git) => {
                let ground = (goal.workspace.root.as_path(), &git.plan);
                Some(site.kernel.read(|snapshot| leaving_commits::commits(snapshot, &site.covered.run, ground))?)
            }
            None => None,
        };
        let failed = failed(&report);
        work.has_changed |= !site.is_dry();
        work.tree.push(report);
        if let (Some(_), Some(saga), Some(remembered)) = (&failed, site.saga, site.covered.remembered()) {
            // The step may be skipped, and then its journal must name what it did restore.
            saga.write(|tx, now| steps::set(tx, now, &remembered.id, step.ord, StepEvent::Learns, Some(&detail)))?;
        }
        failed.map_or(Ok(detail), Err)
    }
}

/// What a restore of the whole tree leaves to others.
#[derive(Default)]
struct Beside {
    others: OthersPaths,
    /// The paths of which it is not known whose a change is.
    unknown: Vec<Conflict>,
}

/// The state to which a rollback restores the tree.
struct Goal<'a> {
    workspace: Workspace<'a>,
    target: CheckpointRecord,
    covered: &'a Covered,
    strategy: Strategy,
    /// Files that stay whatever the checkpoint has: those of a database whose rows are a layer of their own.
    keep: BTreeSet<Vec<u8>>,
    /// What some dispatches did, where only that is undone.
    work: Option<Own>,
    /// The commits of these dispatches; `None` where the run goes back.
    own_commits: Option<Vec<dispatch_changes::OwnCommit>>,
}

impl<'a> Goal<'a> {
    fn of(site: &Site<'a, '_>) -> Result<Self> {
        let (kernel, settings, covered) = (site.kernel, site.settings, site.covered);
        let run = &covered.run;
        if covered.is_merged() {
            let workspace = Workspace::of_run(kernel, run, settings)?;
            // The effects of this undo may have changed the tree by now. Others did not make that change.
            let mut met = effects_bracket::met(&workspace, covered.remembered())?;
            met.takes_unsure = covered.force(site.force)?.files;
            met.taken = covered.choices()?.paths.take.into_iter().map(|path| path.0).collect();
            met.called_off = covered.remembered().map(cancelled_dispatches).unwrap_or_default();
            let dispatch_changes::OwnWork { before: target, changes, commits } =
                dispatch_changes::of_works(&workspace, &covered.cut.works, &met)?;
            require_whole_project(covered, &target, "undo the record alone: --layer=workflow")?;
            let (strategy, keep) = (Strategy::FilesOnly, BTreeSet::new());
            let (work, own_commits) = (Some(changes), Some(commits));
            return Ok(Self { workspace, target, covered, strategy, keep, work, own_commits });
        }
        let target = target(kernel, covered)?;
        if let Some(planned) = covered.as_planned() {
            require_content(&target, planned)?;
        }
        require_whole_project(covered, &target, "roll the run back alone: --layer=workflow")?;
        let workspace = Workspace::of_run(kernel, run, settings)?;
        let strategy = match covered.strategy(&workspace)? {
            // A repository that was made after the target stays, and is named: the checkpoint has no state of it.
            Strategy::Full if target.pruned_at.is_none() && workspace.had_no_repository(&target)? => {
                Strategy::FilesOnly
            }
            strategy => strategy,
        };
        // If no configuration names the plan's database, the layer of the rows refuses it and says what to do.
        let is_configured = covered.remembered().is_some() || settings.state.is_some();
        let keep = if covered.layers.contains(&Name::Data) && is_configured {
            files_of_database(&workspace.root, &covered.database(settings)?.database)
        } else {
            BTreeSet::new()
        };
        Ok(Self { workspace, target, covered, strategy, keep, work: None, own_commits: None })
    }

    /// Restores the tree, or says what that would do. `expect_plan`: nothing but this plan may be done.
    fn restore(
        &self,
        site: &Site<'_, '_>,
        dry_run: bool,
        expect_plan: Option<&str>,
        taken: Option<Shot>,
    ) -> Result<RestoreReport> {
        let said = self.covered.choices()?;
        let is_of_works = self.work.is_some();
        let request = RestoreRequest {
            which: Which::Id(self.target.id.as_str()),
            strategy: Some(self.strategy),
            mine: said.mine,
            dry_run,
            force: site.force.or(said.force),
            keep_theirs: said.keep_theirs,
            decisions: Some(&said.paths),
            compares_all: !is_of_works,
            beside_others: is_of_works,
            expect_plan,
            ..RestoreRequest::default()
        };
        let (workspace, target) = (&self.workspace, self.target.clone());
        if let Some(work) = &self.work {
            return restore_without(workspace, target, work.clone(), &request, site.watch);
        }
        // These ran until the fence ended them. Without them the attribution would see work that had ended, unlike
        // the preview.
        let cancelled = self.covered.remembered().map(cancelled_dispatches).unwrap_or_default();
        // What tells whose the changes since the target are.
        let back = Back { run: &self.covered.run, target: &self.target, called_off: &cancelled };
        let (others, unknown) = match self.covered.remembered() {
            Some(remembered) => {
                let others = others_paths::decided(workspace, back, remembered.seq, &said.beside)?;
                (others, self.unknown_again(site, &request, back)?)
            }
            None if request.mine => (OthersPaths::default(), Vec::new()),
            None => {
                // Whether others are in the way is asked without the decisions about that.
                let mut report = self.restore_beside(site, &undecided(&request), Beside::default(), None)?;
                let (others, unknown) = others_paths::among(workspace, back, &report)?;
                // An exact undo of works is planned only to learn whether others are in its way.
                let is_told = self.covered.cut.is_of_works() && !others.paths().is_empty();
                if is_told || others.paths().is_empty() && !decides(&request) {
                    report.beside = others.paths().into_iter().map(PathText).collect();
                    report.add_conflicts(unknown);
                    return Ok(report);
                }
                (others, unknown)
            }
        };
        self.restore_beside(site, &request, Beside { others, unknown }, taken)
    }

    /// Restores the tree but for what others did, or says what that would do.
    fn restore_beside(
        &self,
        site: &Site<'_, '_>,
        request: &RestoreRequest<'_>,
        Beside { others, unknown }: Beside,
        taken: Option<Shot>,
    ) -> Result<RestoreReport> {
        let (workspace, target) = (&self.workspace, self.target.clone());
        let decided = |one: &Conflict| request.decision(&one.path.0);
        let (theirs, unknown): (Vec<Conflict>, Vec<Conflict>) =
            unknown.into_iter().partition(|one| decided(one) == Some(LineDecision::Leave));
        let remembered = self.covered.remembered();
        let deed = RestoreDeed {
            keep: self.keep.iter().cloned().chain(theirs.iter().map(|one| one.path.0.clone())).collect(),
            others,
            until: remembered.map(|remembered| remembered.seq),
            did: EarlierDeeds {
                spans: remembered
                    .map_or_else(|| Ok(Vec::new()), |one| effects_bracket::done_by_effects(site.kernel, one))?,
                stopped_at: target::stopped_at(workspace, self.covered, &target.id)?,
            },
            taken,
        };
        let mut report = restore_into(workspace, target, deed, request, site.watch)?;
        // It may be of the run, so something of the run may stay.
        report.parts_left.extend(theirs.iter().map(|one| one.path.clone()));
        report.plan.skipped.extend(theirs.into_iter().map(|one| (one.path, format!("kept: {}", one.reason))));
        report.warnings.extend(effects_bracket::ended(&report));
        report.warnings.extend(self.running_call(site.kernel)?);
        let alone = match (self.covered.as_planned(), remembered) {
            (Some(planned), _) => command_alone(planned.point_of_one.as_deref()),
            // This hint is read after the rollback, so it first brings back what was undone.
            (None, Some(remembered)) => {
                command_alone(remembered.point()).map(|command| format!("ic redo --yes; then: {command}"))
            }
            (None, None) => None,
        };
        let between = unsure_changes::between_calls(workspace, &self.target, &report.plan.steps, alone.as_deref())?;
        report.warnings.extend(between);
        report.add_conflicts(unknown.into_iter().filter(|one| decided(one).is_none()).collect());
        Ok(report)
    }

    /// A warning about a tool call of the run that still runs: this program cannot stop it.
    fn running_call(&self, kernel: &Kernel) -> Result<Option<Warning>> {
        // The calls of cancelled work are recorded as ended by the undo, and run on.
        let called_off = self.covered.remembered().map(cancelled_dispatches).unwrap_or_default();
        kernel.read(|snapshot| {
            // A call without an end that began earlier was cut off with its client.
            const LONGEST: i64 = 10 * 60 * 1000;
            let since = Timestamp(kernel.context.now().millis() - LONGEST);
            for call in call::not_told_of_end(snapshot, since)? {
                let work = dispatch::get(snapshot, &call.dispatch_id)?;
                let is_running = call.ended_seq.is_none() || called_off.contains(&work.id);
                if is_running && work.run_id == self.covered.run.id {
                    let after = work.work.parent_id.as_ref().unwrap_or(&work.id).short().to_owned();
                    let tool = ic_base::title(&call.tool);
                    return Ok(Some(Warning {
                        code: "call_running",
                        message: format!(
                            "a tool call of this work may still run ({tool}): what it writes from now on is not undone; \
                             afterwards: ic undo prompt:{after} --dry-run"
                        ),
                    }));
                }
            }
            Ok(None)
        })
    }

    /// The paths of which it is not known whose a change is, where a decision lets some of them stay. The plan itself is not at hand when it is
    /// carried out, so it is asked again.
    fn unknown_again(
        &self,
        site: &Site<'_, '_>,
        request: &RestoreRequest<'_>,
        back: Back<'_>,
    ) -> Result<Vec<Conflict>> {
        if !request.keep_theirs && request.decisions.is_none_or(|paths| paths.leave.is_empty()) {
            return Ok(Vec::new());
        }
        let look = RestoreRequest { dry_run: true, expect_plan: None, ..*request };
        let deed = RestoreDeed { keep: self.keep.clone(), ..RestoreDeed::default() };
        let report = restore_into(&self.workspace, self.target.clone(), deed, &look, site.watch)?;
        Ok(others_paths::among(&self.workspace, back, &report)?.1)
    }

    /// Restores the tree as the caller approved it in a plan: less may be done by now, but nothing else. `taken`: the capture of the tree
    /// with which the layer before ended.
    fn restore_as_seen(&self, site: &Site<'_, '_>, taken: Option<Shot>) -> Result<RestoreReport> {
        let dry_run = site.is_dry();
        let Some(seen) = site.seen.and_then(|seen| seen.tree.as_ref()) else {
            return self.restore(site, dry_run, None, taken);
        };
        // This makes up to three plans: the approved one; if it differs, what would be done now, to compare the two;
        // then exactly that one.
        match self.restore(site, dry_run, Some(&seen.plan_hash), taken) {
            Err(error) if error.code() == Code::PlanChanged => {
                let now = self.restore(site, true, None, None)?;
                plan_approval::require_tree(seen, &now)?;
                self.restore(site, dry_run, Some(&now.plan_hash), None)
            }
            done => done,
        }
    }

    /// What this rollback set out to restore before it stopped or its process died; in a preview, the part of that which is still to be
    /// done.
    fn restored_before(&self, is_dry: bool) -> Result<Vec<PlanStep>> {
        let Some(remembered) = self.covered.remembered() else { return Ok(Vec::new()) };
        if is_dry {
            return left_of_interrupted(&self.workspace, |restore| {
                restore.target_id == self.target.id && restore.seq > remembered.seq
            });
        }
        let mut steps = Vec::new();
        // This includes one that was interrupted: the restore that follows finishes it first, and does not report it as
        // its own.
        for restore in restores_since(&self.workspace, &self.target.id, remembered.seq, true)? {
            steps.extend(steps_of(&self.workspace, &restore)?);
        }
        Ok(steps)
    }

    /// The detail that the journal keeps of the step.
    fn detail(&self, whole: &[PlanStep], parts_left: usize, outside_left: Vec<String>) -> Result<StepDetail> {
        let Some(remembered) = self.covered.remembered() else { return Ok(StepDetail::default()) };
        let restores = restores_since(&self.workspace, &self.target.id, remembered.seq, false)?;
        // Of a run that goes back, the record says that its work is undone, whatever stays.
        let parts_left = parts_left + if self.work.is_some() { outside_left.len() } else { 0 };
        Ok(StepDetail {
            safety: restores.into_iter().map(|restore| restore.safety_id).collect(),
            changes: whole.len(),
            directories: whole.iter().filter(|step| step.is_of_directory()).count(),
            parts_left,
            outside_left,
            ..StepDetail::default()
        })
    }
}

/// The same request, as a preview in which nothing is decided about what others did.
fn undecided<'r>(request: &RestoreRequest<'r>) -> RestoreRequest<'r> {
    let force = Force { files: false, ..request.force };
    RestoreRequest { force, keep_theirs: false, decisions: None, ..*request }
}

/// Whether anything is decided about what others did.
fn decides(request: &RestoreRequest<'_>) -> bool {
    request.force.files || request.keep_theirs || request.decisions.is_some_and(|paths| !paths.is_empty())
}

/// The error of the first path that could not be restored.
fn failed(report: &RestoreReport) -> Option<Diagnosis> {
    let (path, why) = report.failed.first()?;
    let path = String::from_utf8_lossy(&path.0);
    Some(Diagnosis::new(Code::Io, format!("{path} could not be restored: {}.", why.trim_end_matches('.'))))
}

/// The steps of an earlier attempt, which a later one found done, together with those of the later one.
fn both(earlier: Vec<PlanStep>, now: &[PlanStep]) -> Vec<PlanStep> {
    let mut all: BTreeMap<Vec<u8>, PlanStep> = earlier.into_iter().map(|step| (step.path.0.clone(), step)).collect();
    all.extend(now.iter().map(|step| (step.path.0.clone(), step.clone())));
    all.into_values().collect()
}
