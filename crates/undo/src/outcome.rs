//! What a rollback is, planned or done, as the caller receives it.

use std::path::PathBuf;

use ic_base::{Diagnosis, RollbackId, Seq};
use ic_effects::Compensation;
use ic_kernel::journal::table::{NewRollback, RollbackRecord, RollbackStatus};
use ic_kernel::journal::{Course, LayerName, RollbackStep};
use ic_rewind::RewindTarget;
use ic_worktree::{RestoreReport, Warning};
use serde_json::Value;

use super::dispatch_changes::OwnCommit;
use super::leaving_commits::LeavingCommit;
use super::outside_change::OutsideChange;
use super::plan::RollbackPlan;
use super::straddling_work::Lost;

/// A rollback, done or only planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackSummary {
    /// What it changes, with the states before.
    pub plan: RollbackPlan,
    /// The hash of the plan.
    pub plan_hash: String,
    /// The caller's reason, for the record.
    pub reason: Option<String>,
    /// Its id and its event; `None` for a dry run.
    pub done: Option<(RollbackId, Seq)>,
    /// Whether another call did it at the same time, which `done` names: nothing was left to change.
    pub is_at_once: bool,
}

impl RollbackSummary {
    /// A plan of which nothing is done yet.
    pub(super) fn planned(plan: RollbackPlan, reason: Option<&str>) -> Self {
        let reason = reason.map(str::to_owned);
        Self { plan_hash: plan.hash(), plan, reason, done: None, is_at_once: false }
    }

    /// The row of a rollback that begins.
    pub(super) fn row<'a>(
        &'a self,
        id: &'a RollbackId,
        seq: Seq,
        layers: &'a [LayerName],
        remembered: &'a Value,
    ) -> NewRollback<'a> {
        NewRollback {
            id,
            seq,
            status: RollbackStatus::InProgress,
            run_id: &self.plan.run.id,
            layers,
            from_phase: &self.plan.run.phase,
            to_phase: &self.plan.to_phase,
            include_target: self.plan.include_target,
            cut_seq: self.plan.cut.seq,
            epoch: self.plan.next_epoch(),
            reason: self.reason.as_deref(),
            plan_hash: &self.plan_hash,
            plan: remembered,
        }
    }
}

/// The effects that are undone, and those that are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// Those that are undone, in the order of undoing.
    pub compensations: Vec<Compensation>,
    /// Those that are not undone.
    pub left: Vec<Compensation>,
    /// The step that cannot be undone, and because of which some are left.
    pub pivot: Option<String>,
}

/// What the layers outside of the ledger do, or did.
#[derive(Debug, Default)]
pub struct Parts {
    /// Effects outside of the project; `None` where the layer is not covered.
    pub effects: Option<Effects>,
    /// Files and git's state; `None` where neither layer is covered.
    pub tree: Option<RestoreReport>,
    /// Files outside of the project that tool calls named.
    pub outside: Vec<OutsideChange>,
    /// Commits that leave their branches, newest first; `None` if git's state stays.
    pub commits: Option<Vec<LeavingCommit>>,
    /// The commits of the dispatch that alone is undone, which stay on their branch, newest first; `None` of any other rollback.
    pub own_commits: Option<Vec<OwnCommit>>,
    /// Rows of the application's tables; `None` where the layer is not covered.
    pub data: Option<Data>,
    /// What is removed of work that began before the cut; `None` where neither files nor git's state are restored.
    pub(super) lost: Option<Lost>,
}

impl Parts {
    /// Whether something was not restored because it cannot be: it is named.
    pub fn is_partial(&self) -> bool {
        self.tree.as_ref().is_some_and(RestoreReport::is_partial)
            || self.outside.iter().any(OutsideChange::is_incomplete)
    }

    /// Whether anything outside of the ledger would be changed, or blocks a change.
    pub(super) fn is_any(&self) -> bool {
        let effects = self.effects.as_ref();
        let is_tree = |tree: &RestoreReport| {
            let moves_git = tree.git.as_ref().is_some_and(|git| !git.plan.is_empty());
            moves_git || !tree.plan.steps.is_empty() || !tree.conflicts.is_empty()
        };
        self.outside.iter().any(|change| change.left.is_none())
            || effects.is_some_and(|effects| !effects.compensations.is_empty() || !effects.left.is_empty())
            || self.tree.as_ref().is_some_and(is_tree)
            || self.data.as_ref().is_some_and(|data| data.rows.iter().any(|(_, count)| *count > 0))
    }
}

ic_base::words! {
    /// How far it came.
    pub enum LayeredStatus {
        /// It was a dry run.
        Planned = "planned",
        /// Everything that was planned is undone.
        RolledBack = "rolled_back",
        /// It is done, and a part of the only work that was to be undone stays in the tree.
        RolledBackInPart = "rolled_back_in_part",
        /// A step failed; the rest waits.
        RollingBack = "rolling_back",
        /// Another rollback to the same phase did it at the same time.
        AlreadyThere = "already_there",
    }
}

/// A rollback over several layers.
#[derive(Debug)]
pub struct LayeredRollback {
    /// The workflow layer's plan, the hash of the whole, and its id once it is begun.
    pub rollback: RollbackSummary,
    /// The layers that it covers, sorted.
    pub layers: Vec<LayerName>,
    /// What is planned outside of the ledger.
    pub parts: Parts,
    /// How far it came.
    pub status: LayeredStatus,
    /// Its steps; empty for a dry run.
    pub steps: Vec<RollbackStep>,
    /// What the real call would answer instead of rolling back, with the same flags, and then, one after another, with each flag that decides
    /// the one before; only of a dry run.
    pub refusals: Vec<Refusal>,
    /// A warning about rows that stay, though everything was to go back.
    pub rows_stay: Option<Warning>,
    /// A warning about git's state that stays, though everything was to go back.
    pub git_stays: Option<Warning>,
    /// Warnings about work that stays: of the same prompts in other places, and of later prompts that were undone in part before.
    pub work_stays: Vec<Warning>,
    /// Warnings about what the work did to tags, branches and the stash, where it stays.
    pub git_remains: Vec<Warning>,
}

impl LayeredRollback {
    /// The warnings about what stays, in addition to what the layers report.
    pub fn stays(&self) -> impl Iterator<Item = &Warning> {
        self.rows_stay.iter().chain(&self.git_stays).chain(&self.work_stays).chain(&self.git_remains)
    }
}

/// A refusal that the real call would meet.
#[derive(Debug)]
pub struct Refusal {
    /// The error that the real call would answer.
    pub error: Diagnosis,
    /// The flag that passes it; `None`: no flag does.
    pub flag: Option<&'static str>,
}

/// How far a rollback that was begun came.
#[derive(Debug)]
pub struct RollbackOutput {
    /// Its row, read again at the end.
    pub remembered: RollbackRecord,
    /// Its steps, in the order of going forward.
    pub steps: Vec<RollbackStep>,
    /// What this call undid. Empty for an undo or abort, which the steps describe.
    pub parts: Parts,
}

/// A rollback that was undone or aborted, as far as it could be.
#[derive(Debug)]
pub struct UndoneRollback {
    /// Its row, read again at the end.
    pub remembered: RollbackRecord,
    /// Its steps; none of a rollback of the workflow layer alone.
    pub steps: Vec<RollbackStep>,
    /// What was done about files and git's state: a report for each restore that was undone, newest first.
    pub tree: Vec<RestoreReport>,
    /// Files outside of the project that tool calls named.
    pub outside: Vec<OutsideChange>,
    /// The rows that are restored; `None` where none had been removed.
    pub data: Option<Data>,
    /// Effects that the rollback undid: they are not made again.
    pub effects: Vec<Compensation>,
    /// The event that ended it; `None` where something could not be restored: a step says why.
    pub seq: Option<Seq>,
    /// The direction in which it went, or would go: an undo, a rollback that is aborted, or one that stands because its undo is aborted.
    pub course: Course,
    /// Whether it had been undone before, and this is what was skipped then. The run stays where it is.
    pub is_rest: bool,
    /// Whether this is only a preview: nothing was changed.
    pub is_dry_run: bool,
    /// The hash of the plan of an undo that was only previewed, and that nothing refuses.
    pub plan_hash: Option<String>,
    /// What the real call would answer instead; only in a preview.
    pub refusals: Vec<Refusal>,
}

impl UndoneRollback {
    /// Whether something was not restored, as [`Parts::is_partial`].
    pub fn is_partial(&self) -> bool {
        self.tree.iter().any(RestoreReport::is_partial) || self.outside.iter().any(OutsideChange::is_incomplete)
    }

    /// The same, with the warning about a restore that was finished first.
    pub(super) fn after(mut self, settled: Option<Warning>) -> Self {
        if let Some(report) = self.tree.first_mut() {
            report.warnings.extend(settled);
        }
        self
    }
}

/// What resuming a rollback would do.
#[derive(Debug)]
pub struct Resuming {
    /// Its row, which is not changed.
    pub remembered: RollbackRecord,
    /// Its steps, in the order of going forward.
    pub steps: Vec<RollbackStep>,
    /// The effects that would be undone; `None`: that step is behind, or the direction is an undo or abort.
    pub effects: Option<Effects>,
    /// What would be done about files and git's state.
    pub tree: Vec<RestoreReport>,
    /// Commits that would leave their branches, newest first.
    pub commits: Vec<LeavingCommit>,
    /// The rows that would be removed or restored.
    pub data: Option<Data>,
    /// What would stop it again.
    pub refusals: Vec<Refusal>,
}

/// The rows that a rollback removes, or that its undo restores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The file of the application's database.
    pub database: PathBuf,
    /// The rows that go, or went, by table.
    pub rows: Vec<(String, u64)>,
}

impl Data {
    pub(super) fn of(target: &RewindTarget) -> Self {
        Self { database: target.database.clone(), rows: Vec::new() }
    }

    pub(super) fn add<'t>(&mut self, counts: impl IntoIterator<Item = (&'t str, u64)>) {
        for (table, count) in counts {
            match self.rows.iter_mut().find(|(known, _)| known == table) {
                Some((_, sum)) => *sum += count,
                None => self.rows.push((table.to_owned(), count)),
            }
        }
    }
}
