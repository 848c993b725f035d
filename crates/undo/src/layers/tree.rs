//! The working tree and git's state: restored on the way forward; an undo or abort reverts those restores.

pub(super) mod effects_bracket;
mod goal;
mod index_entries;
mod manual_restore;
mod outside_files;
mod refusal_hints;
mod target;
mod tree_revert;

use std::collections::BTreeMap;

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::restore::plan::RestoreStep as PlanStep;
use ic_checkpoint::tree::Reason;
use ic_kernel::journal::steps::{self, StepEvent};
use ic_kernel::journal::{Course, RollbackStep, StepDetail};
use ic_worktree::{GitRestore, RestoreReport, RestoreStatus};

use super::layer::{LayerDriver, LayerWork, Site};
use crate::leaving_commits;
use goal::Goal;

pub(crate) use target::detail_of_skipped;
pub(crate) use tree_revert::require_own;

/// Git's state and files: one restore forward, after a safety checkpoint; the undo of that restore in the other direction.
pub(super) struct TreeLayer;

impl LayerDriver for TreeLayer {
    fn go(&self, site: &mut Site<'_, '_>, step: &RollbackStep, work: &mut LayerWork) -> Result<StepDetail> {
        if site.course.is_back() {
            tree_revert::go(site, work)?;
            index_entries::make_again(site, step)?;
            return outside_files::go(site, step, work).map(|_| StepDetail::default());
        }
        let mut goal = Goal::of(site)?;
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
        if (site.course == Course::Forward || site.is_dry()) && whole.len() > report.plan.steps.len() {
            report.plan.steps = whole;
            if report.status == RestoreStatus::UpToDate {
                report.status = RestoreStatus::Restored;
            }
        }
        let forced = outside_files::go(site, step, work)?;
        let mut detail = goal.detail(&own, parts_left, outside_files::left(work))?;
        if !forced.is_empty() {
            detail.outside_forced = forced;
        }
        let moves = report.git.iter().flat_map(GitRestore::moves).map(|(what, how)| format!("{what} {how}"));
        detail.git_moves = step.detail.git_moves.iter().cloned().chain(moves).collect();
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
