//! Rollbacks as the ledger records them.

use ic_kernel::journal::planned_rollback::{PlannedBefore, PlannedRollback};
use ic_kernel::journal::steps::{self, RollbackStep, is_in_part};
use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use ic_undo::Resuming;
use ic_worktree::Warning;

use crate::text::{Cell, TextTable, plain, style, styled, when};
use crate::views::checkpoint::restore::RestoreJson;
use crate::views::common_shapes::WarningJson;
use crate::views::rollback::data::RestoredDataJson;
use crate::views::rollback::steps::{StepJson, not_put_back, purged, resume, steps, ways_on};
use crate::views::rollback::{DecidedJson, EffectsJson};

shape! {
    /// The row of a rollback (`rollback list`).
    pub(crate) struct RollbackRecordJson from rollback: &RollbackRecord {
        id: String = rollback.id.to_string(),
        short_id: String = rollback.id.short().to_owned(),
        run_id: String = rollback.run_id.to_string(),
        /// done, `in_progress`, stopped, aborted or undone.
        status: &'static str as ic_kernel::journal::table::RollbackStatus = rollback.status.as_str(),
        layers: Vec<&'static str> = rollback.layers.iter().map(|layer| layer.as_str()).collect(),
        from_phase: String = rollback.from_phase.clone(),
        to_phase: String = rollback.to_phase.clone(),
        include_target: bool = rollback.include_target,
        /// The point that the run went back to; null if it went back to a phase.
        point: Option<String> = rollback.point().map(str::to_owned),
        /// The dispatches that alone were undone, oldest first, while the run stayed in its phase; empty if the run went back.
        dispatch_ids: Vec<String> = rollback.chosen().iter().map(ToString::to_string).collect(),
        cut_seq: i64 = rollback.cut_seq,
        /// The run's epoch after it.
        epoch: i64 = rollback.epoch,
        reason: Option<String> = rollback.reason.clone(),
        plan_hash: String = rollback.plan_hash.clone(),
        seq: i64 = rollback.seq,
        created_at: String = rollback.created_at.to_string(),
        finished_at: Option<String> = rollback.finished_at.map(|at| at.to_string()),
    }

    /// The plan of a rollback: what it covers of its run, as it was before.
    struct PlanJson from plan: &PlannedRollback where
        all = |list: &[PlannedBefore]| -> Vec<BeforeJson> {
            let one = |before: &PlannedBefore| BeforeJson { id: before.id.clone(), status: before.status.clone() };
            list.iter().map(one).collect()
        };
    {
        /// The phases that the run left, in the order of its chain; the target is among them only with --include-target.
        rolled_back_phases: Vec<String> = plan.phases.clone(),
        /// Dispatches that had not ended, and were cancelled.
        cancelled_dispatches: Vec<BeforeJson> = all(&plan.cancelled_dispatches),
        /// Dispatches that had ended: they were marked, and keep their status.
        marked_dispatches: Vec<BeforeJson> = all(&plan.marked_dispatches),
        marked_artifact_ids: Vec<String> = plan.artifacts.clone(),
        /// Agents that were active, and failed.
        failed_agents: Vec<BeforeJson> = all(&plan.failed_agents),
        /// Agents that had ended: they were marked, and keep their status.
        marked_agents: Vec<BeforeJson> = all(&plan.marked_agents),
        /// The events of the skips that were cleared.
        cleared_skip_seqs: Vec<i64> = plan.skips.clone(),
    }

    /// A record of the run, and its status before the rollback.
    struct BeforeJson {
        id: String,
        status: String,
    }

    /// A rollback with its steps (`rollback show`, `resume`).
    pub(crate) struct RollbackShowJson from (rollback: &RollbackRecord, all: &[RollbackStep], is_at_work: bool) {
        #[serde(flatten)]
        rollback: RollbackRecordJson = rollback.into(),
        steps: Vec<StepJson> = StepJson::all(all, rollback.status.stands()),
        /// Its direction, now or at its end: forward, undo, abort, or reapply (its undo was aborted).
        course: &'static str as ic_kernel::journal::steps::Course = steps::course(all).as_str(),
        /// Its plan, with the states from before it.
        plan: PlanJson = (&PlannedRollback::of(rollback)).into(),
        /// For `rollback resume --dry-run`: nothing was changed, and `effects`, `files`, `data` and `refusals` are what is left to do.
        dry_run: bool = false,
        /// The effects that would be undone; left out if that step is finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        effects: Option<EffectsJson> = None,
        /// The restore of files and git's state that would be made; left out if there is none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<RestoreJson> = Vec::new(),
        /// The rows that would be deleted or restored; left out if that step is finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<RestoredDataJson> = None,
        /// The errors that would stop it again, in order, each with the flag that overrides it; left out if none is known.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        refusals: Vec<DecidedJson> = Vec::new(),
        /// The command that resumes; null if nothing is left to do, or another process works on it.
        resume: Option<String> = resume(rollback, all).filter(|_| !is_at_work),
        /// For `rollback resume`: what the work did to git, and stays; left out if there is nothing.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = Vec::new(),
    }
}

impl RollbackShowJson {
    /// The same with warnings about what the rollback left.
    pub(crate) fn with_warnings(self, stays: &[Warning]) -> Self {
        Self { warnings: stays.iter().map(WarningJson::from).collect(), ..self }
    }

    /// A rollback, with the plan of its resumption.
    pub(crate) fn resuming(resuming: &Resuming) -> Self {
        Self {
            dry_run: true,
            effects: resuming.effects.as_ref().map(EffectsJson::from),
            files: resuming.tree.iter().map(RestoreJson::from).collect(),
            data: resuming.data.as_ref().map(RestoredDataJson::from),
            refusals: resuming.refusals.iter().map(DecidedJson::from).collect(),
            ..Self::new(&resuming.remembered, &resuming.steps, false)
        }
    }
}

/// Rollbacks, one a line.
pub(crate) fn list(all: &[RollbackRecord], now: ic_base::Timestamp) -> String {
    let mut table = TextTable::new(&["ROLLBACK", "RUN", "STATUS", "FROM", "TO", "LAYERS", "CREATED", "REASON"]);
    for rollback in all {
        let layers: Vec<&str> = rollback.layers.iter().map(|layer| layer.as_str()).collect();
        table.row(vec![
            Cell::new(style::STRONG, rollback.id.short()),
            rollback.run_id.short().into(),
            Cell::new(status_of(rollback.status), rollback.status.as_str()),
            rollback.from_phase.as_str().into(),
            where_to(rollback).as_str().into(),
            layers.join(" ").into(),
            Cell::new(style::DIM, &when(now, rollback.created_at)),
            Cell::new(style::DIM, rollback.reason.as_deref().unwrap_or_default()),
        ]);
    }
    table.render("No rollbacks.")
}

/// The target of a rollback: a phase, or the work that alone was undone.
fn where_to(rollback: &RollbackRecord) -> String {
    match rollback.alone() {
        Some(alone) => format!("only {alone}"),
        None => rollback.to_phase.clone(),
    }
}

fn status_of(status: RollbackStatus) -> anstyle::Style {
    match status {
        RollbackStatus::Done => style::GOOD,
        RollbackStatus::InProgress => style::WARN,
        RollbackStatus::Stopped => style::BAD,
        RollbackStatus::Aborted | RollbackStatus::Undone => style::DIM,
    }
}

/// One rollback and its steps. `files_alone`: the former files, if git's former state cannot be restored. `way_back`: as
/// [`ic_undo::way_back`].
pub(crate) fn show(
    rollback: &RollbackRecord,
    all: &[RollbackStep],
    is_at_work: bool,
    files_alone: Option<&ic_undo::FilesAlone>,
    way_back: Option<bool>,
) -> String {
    let layers: Vec<&str> = rollback.layers.iter().map(|layer| layer.as_str()).collect();
    let route = if rollback.is_of_works() {
        where_to(rollback)
    } else {
        format!("{} → {}", plain(&rollback.from_phase), plain(&rollback.to_phase))
    };
    let mut out = format!(
        "{} {}  {route} of run {}  ({})\n",
        styled(style::STRONG, rollback.id.short()),
        styled(status_of(rollback.status), rollback.status.as_str()),
        rollback.run_id.short(),
        layers.join(", ")
    );
    if let Some(reason) = &rollback.reason {
        out += &format!("because {}\n", plain(reason));
    }
    let (stands, ended) = match rollback.status {
        RollbackStatus::Aborted => ("was to be", "It was aborted: the run is where it was.\n"),
        RollbackStatus::Undone => ("was", "It was undone itself: what it had marked counts again.\n"),
        RollbackStatus::Done if is_in_part(rollback, all) => ("is not all", ""),
        RollbackStatus::InProgress | RollbackStatus::Stopped | RollbackStatus::Done => ("is", ""),
    };
    let what = if rollback.is_of_works() {
        "what this work alone did".to_owned()
    } else {
        format!("what was recorded after event {}", rollback.cut_seq)
    };
    out += &format!("begun {}; {what} {stands} rolled back\n\n", rollback.created_at);
    // Once a rollback does not stand any more, its steps say nothing about the present, but what an undo could not restore does.
    if rollback.status.stands() {
        out += &steps(all);
        out += &files_alone.map(|safety| format!("\n{}\n", purged(safety))).unwrap_or_default();
    } else {
        out += ended;
        out += &not_put_back(rollback, all, files_alone);
    }
    if is_at_work {
        out += "\nanother process is executing it; if that process dies, this shows the commands that resume it\n";
    } else if resume(rollback, all).is_some() {
        out += &format!("\n{}", ways_on(&rollback.id, all, files_alone));
    } else if let (Some(without_effects), None) = (way_back, files_alone) {
        // With `files_alone` a redo is refused, and the note above has the command instead.
        let flag = if without_effects { " --without-effects" } else { "" };
        let way = format!("to bring it back: ic redo {}{flag} --yes", rollback.id.short());
        out += &format!("\n{}\n", styled(style::DIM, &way));
    }
    out
}
