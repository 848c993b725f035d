//! The state to which a rollback restores the tree, and the restore of all that is not of others.

use std::collections::BTreeSet;

use ic_base::{Code, Result, Timestamp};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::plan::RestoreStep as PlanStep;
use ic_checkpoint::restore::reverse::{LineDecision, Own};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::journal::{Force, LayerName as Name, StepDetail};
use ic_session::call;
use ic_worktree::capture::Shot;
use ic_worktree::{
    Conflict, EarlierDeeds, OthersPaths, RestoreDeed, RestoreReport, RestoreRequest, Warning, Which, Workspace,
    files_of_database, left_of_interrupted, restore_into, restore_without, restores_since, steps_of,
};

use super::effects_bracket;
use super::target::{self, require_content, require_whole_project, target};
use crate::coverage::Covered;
use crate::dispatch_changes;
use crate::layers::layer::Site;
use crate::others_paths::{self, Back};
use crate::plan_approval;
use crate::refusals::command_alone;
use crate::rollback_marks::cancelled_dispatches;
use crate::unsure_changes;

/// The reason of a path that others changed after the plan was made, and before it was carried out.
const CHANGED_MEANWHILE: &str = "others changed it while this was being undone";

/// What a restore of the whole tree leaves to others.
#[derive(Default)]
struct Beside {
    others: OthersPaths,
    /// The paths of which it is not known whose a change is.
    unknown: Vec<Conflict>,
}

/// The state to which a rollback restores the tree.
pub(super) struct Goal<'a> {
    pub(super) workspace: Workspace<'a>,
    target: CheckpointRecord,
    pub(super) covered: &'a Covered,
    pub(super) strategy: Strategy,
    /// Files that stay whatever the checkpoint has: those of a database whose rows are a layer of their own.
    keep: BTreeSet<Vec<u8>>,
    /// What some dispatches did, where only that is undone.
    pub(super) work: Option<Own>,
    /// The commits of these dispatches; `None` where the run goes back.
    pub(super) own_commits: Option<Vec<dispatch_changes::OwnCommit>>,
}

impl<'a> Goal<'a> {
    pub(super) fn of(site: &Site<'a, '_>) -> Result<Self> {
        let (kernel, settings, covered) = (site.kernel, site.settings, site.covered);
        let run = &covered.run;
        if covered.is_merged() {
            let workspace = Workspace::of_run(kernel, run, settings)?;
            // The effects of this undo may have changed the tree by now. Others did not make that change.
            let mut met = effects_bracket::met(&workspace, covered.remembered())?;
            met.decided = dispatch_changes::owners(&covered.choices()?);
            met.decided.take_all = covered.force(site.force)?.files;
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
            let mut report = restore_without(workspace, target, work.clone(), &request, site.watch)?;
            report.warnings.extend(self.running_call(site.kernel)?);
            return Ok(report);
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
                let force = Force { files: false, ..request.force };
                let undecided = RestoreRequest { force, keep_theirs: false, decisions: None, ..request };
                let mut report = self.restore_beside(site, &undecided, Beside::default(), None)?;
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
                let works = &self.covered.cut.works;
                let is_its = works.is_empty() || works.contains(&work.id);
                if is_running && is_its && work.run_id == self.covered.run.id {
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
    fn unknown_again(&self, site: &Site<'_, '_>, asked: &RestoreRequest<'_>, back: Back<'_>) -> Result<Vec<Conflict>> {
        if !asked.keep_theirs && asked.decisions.is_none_or(|paths| paths.leave.is_empty()) {
            return Ok(Vec::new());
        }
        let look = RestoreRequest { dry_run: true, expect_plan: None, ..*asked };
        let deed = RestoreDeed { keep: self.keep.clone(), ..RestoreDeed::default() };
        let report = restore_into(&self.workspace, self.target.clone(), deed, &look, site.watch)?;
        Ok(others_paths::among(&self.workspace, back, &report)?.1)
    }

    /// Restores the tree as the caller approved it in a plan: less may be done by now, but nothing else. `taken`: the capture of the tree
    /// with which the layer before ended.
    pub(super) fn restore_as_seen(&mut self, site: &Site<'_, '_>, taken: Option<Shot>) -> Result<RestoreReport> {
        let dry_run = site.is_dry();
        let Some(seen) = site.seen.and_then(|seen| seen.tree.as_ref()) else {
            return self.restore(site, dry_run, None, taken);
        };
        // This makes up to three plans: the approved one; if it differs, what would be done now, to compare the two;
        // then exactly that one.
        match self.restore(site, dry_run, Some(&seen.plan_hash), taken) {
            Err(error) if error.code() == Code::PlanChanged => {
                let mut now = self.restore(site, true, None, None)?;
                let mut theirs = BTreeSet::new();
                if self.covered.cut.is_of_works() && self.work.is_none() {
                    // The tree goes back exactly but for what others did since the plan was made.
                    theirs = plan_approval::changed_since(seen, &now);
                    self.keep.extend(theirs.iter().cloned());
                    now = self.restore(site, true, None, None)?;
                }
                plan_approval::require_tree(seen, &now)?;
                let mut done = self.restore(site, dry_run, Some(&now.plan_hash), None)?;
                let meant = seen.plan.steps.iter().filter(|step| theirs.contains(&step.path.0));
                done.parts_left.extend(meant.clone().map(|step| step.path.clone()));
                done.plan.skipped.extend(meant.map(|step| (step.path.clone(), CHANGED_MEANWHILE.to_owned())));
                Ok(done)
            }
            done => done,
        }
    }

    /// What this rollback set out to restore before it stopped or its process died; in a preview, the part of that which is still to be
    /// done.
    pub(super) fn restored_before(&self, is_dry: bool) -> Result<Vec<PlanStep>> {
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
    pub(super) fn detail(&self, all: &[PlanStep], parts_left: usize, outside_left: Vec<String>) -> Result<StepDetail> {
        let Some(remembered) = self.covered.remembered() else { return Ok(StepDetail::default()) };
        let restores = restores_since(&self.workspace, &self.target.id, remembered.seq, false)?;
        // Of a run that goes back, the record says that its work is undone, whatever stays.
        let parts_left = parts_left + if remembered.is_of_works() { outside_left.len() } else { 0 };
        Ok(StepDetail {
            safety: restores.into_iter().map(|restore| restore.safety_id).collect(),
            changes: all.len(),
            directories: all.iter().filter(|step| step.is_of_directory()).count(),
            parts_left,
            outside_left,
            ..StepDetail::default()
        })
    }
}

/// Whether anything is decided about what others did.
fn decides(request: &RestoreRequest<'_>) -> bool {
    request.force.files || request.keep_theirs || request.decisions.is_some_and(|paths| !paths.is_empty())
}
