//! Rollbacks as they are remembered, and those that were taken back.

use ic_journal::planned::{Before, Planned};
use ic_journal::steps::{self, Step};
use ic_journal::table::RollbackRecord;
use ic_rollback::Undone;
use serde::Serialize;

use super::super::compensation::UndoneStepJson;
use super::super::restore::RestoreJson;
use super::{RestoredDataJson, StepJson};

/// A rollback, as its row has it (`rollback list`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RollbackRecordJson {
    id: String,
    short_id: String,
    run_id: String,
    /// done, `in_progress`, stopped, aborted or undone.
    #[cfg_attr(test, schemars(extend("enum" = ic_journal::table::RollbackStatus::WORDS)))]
    status: &'static str,
    layers: Vec<&'static str>,
    from_phase: String,
    to_phase: String,
    include_target: bool,
    /// The point that the run went back to; null where it went back to a phase.
    point: Option<String>,
    /// The dispatch that alone was undone, while the run stayed where it was; null where the run went back.
    dispatch_id: Option<String>,
    cut_seq: i64,
    /// The run's epoch since.
    epoch: i64,
    reason: Option<String>,
    plan_hash: String,
    seq: i64,
    created_at: String,
    finished_at: Option<String>,
}

impl From<&RollbackRecord> for RollbackRecordJson {
    fn from(rollback: &RollbackRecord) -> Self {
        Self {
            id: rollback.id.to_string(),
            short_id: rollback.id.short().to_owned(),
            run_id: rollback.run_id.to_string(),
            status: rollback.status.as_str(),
            layers: rollback.layers.iter().map(|layer| layer.as_str()).collect(),
            from_phase: rollback.from_phase.clone(),
            to_phase: rollback.to_phase.clone(),
            include_target: rollback.include_target,
            point: rollback.point().map(str::to_owned),
            dispatch_id: rollback.only().map(|only| only.to_string()),
            cut_seq: rollback.cut_seq,
            epoch: rollback.epoch,
            reason: rollback.reason.clone(),
            plan_hash: rollback.plan_hash.clone(),
            seq: rollback.seq,
            created_at: rollback.created_at.to_string(),
            finished_at: rollback.finished_at.map(|at| at.to_string()),
        }
    }
}

/// What a rollback covers of its run, as it was before.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlanJson {
    /// In chain order; the target only with --include-target.
    rolled_back_phases: Vec<String>,
    /// They had not ended.
    cancelled_dispatches: Vec<BeforeJson>,
    /// They had ended and keep their status.
    marked_dispatches: Vec<BeforeJson>,
    marked_artifact_ids: Vec<String>,
    /// They were active.
    failed_agents: Vec<BeforeJson>,
    /// They had ended and keep their status.
    marked_agents: Vec<BeforeJson>,
    /// The events of the skips that are cleared.
    cleared_skip_seqs: Vec<i64>,
}

/// A thing of the run, and its status before the rollback.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BeforeJson {
    id: String,
    status: String,
}

impl From<&Planned> for PlanJson {
    fn from(plan: &Planned) -> Self {
        let all = |list: &[Before]| -> Vec<BeforeJson> {
            let one = |before: &Before| BeforeJson { id: before.id.clone(), status: before.status.clone() };
            list.iter().map(one).collect()
        };
        Self {
            rolled_back_phases: plan.phases.clone(),
            cancelled_dispatches: all(&plan.cancelled_dispatches),
            marked_dispatches: all(&plan.marked_dispatches),
            marked_artifact_ids: plan.artifacts.clone(),
            failed_agents: all(&plan.failed_agents),
            marked_agents: all(&plan.marked_agents),
            cleared_skip_seqs: plan.skips.clone(),
        }
    }
}

/// A rollback with its steps (`rollback show`, `resume`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RollbackShowJson {
    #[serde(flatten)]
    rollback: RollbackRecordJson,
    steps: Vec<StepJson>,
    /// Which way it goes, or went last: forward, undo, abort, or reapply (its undo was aborted).
    #[cfg_attr(test, schemars(extend("enum" = ic_journal::steps::Course::WORDS)))]
    course: &'static str,
    /// What it rolls back of the run, as it was before.
    plan: PlanJson,
    /// The command that resumes; null when nothing is left to do, or while another process does it.
    resume: Option<String>,
}

impl RollbackShowJson {
    pub(crate) fn new(rollback: &RollbackRecord, all: &[Step], is_at_work: bool) -> Self {
        Self {
            rollback: rollback.into(),
            steps: StepJson::all(all, rollback.status.stands()),
            course: steps::course(all).as_str(),
            plan: (&Planned::of(rollback)).into(),
            resume: crate::render::rollback::resume(rollback, all).filter(|_| !is_at_work),
        }
    }
}

/// A rollback that was undone or aborted (`rollback undo`, `rollback abort`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RollbackUndoneJson {
    #[serde(flatten)]
    rollback: RollbackRecordJson,
    /// By `--dry-run`: nothing was changed, and what follows is what would be.
    dry_run: bool,
    /// Which way it went, or would go: undo, abort, or reapply (a rollback whose undo is aborted is made again, so that
    /// `files` and `data` are what it rolls back).
    #[cfg_attr(test, schemars(extend("enum" = ic_journal::steps::Course::WORDS[1..])))]
    course: &'static str,
    /// What was restored of files and git's state: a record for each restore that was undone, newest first.
    files: Vec<RestoreJson>,
    /// The rows that are back; null when none had been taken away.
    data: Option<RestoredDataJson>,
    /// Its steps: what is `as_before` is as it was before the rollback. Empty for the workflow layer alone.
    steps: Vec<StepJson>,
    /// Effects that stay undone.
    effects_left: Vec<UndoneStepJson>,
    /// Dispatches that the rollback cancelled: they stay cancelled.
    dispatches_left: Vec<String>,
    /// Agents that the rollback failed: they stay failed.
    agents_left: Vec<String>,
    /// The command that resumes, if something could not be restored; null when nothing is left to do.
    resume: Option<String>,
}

impl From<&Undone> for RollbackUndoneJson {
    fn from(undone: &Undone) -> Self {
        Self {
            rollback: (&undone.remembered).into(),
            dry_run: undone.is_dry_run,
            course: undone.course.as_str(),
            files: undone.tree.iter().map(RestoreJson::from).collect(),
            data: undone.data.as_ref().map(RestoredDataJson::from),
            steps: StepJson::all(&undone.steps, undone.remembered.status.stands()),
            effects_left: undone.effects.iter().map(UndoneStepJson::from).collect(),
            dispatches_left: undone.remembered.cancelled("cancelled_dispatches"),
            agents_left: undone.remembered.cancelled("failed_agents"),
            resume: crate::render::rollback::again(undone),
        }
    }
}
