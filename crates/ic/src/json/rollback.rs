//! Rollbacks.

mod commits;
mod record;

use ic_dispatch::Dispatch;
use ic_journal::made::Made;
use ic_journal::steps::{self, Step};
use ic_rollback::{Data, LayeredRollback, LayeredStatus, Refusal, Rollback};
use ic_runtrack::{Agent, Artifact};
use serde::Serialize;

use super::compensation::UndoneStepJson;
use super::restore::RestoreJson;
use super::{PathJson, RefusalJson, WarningJson, exact};

use commits::{CommitJson, OwnCommitJson};
pub(crate) use record::{RollbackRecordJson, RollbackShowJson, RollbackUndoneJson};

/// A rollback, planned or done (`run rollback`). Statuses inside the lists are those before it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RollbackJson {
    run_id: String,
    /// Null for a dry run.
    rollback_id: Option<String>,
    dry_run: bool,
    layers: Vec<&'static str>,
    from_phase: String,
    to_phase: String,
    include_target: bool,
    /// The point that the run goes back to; null where it goes back to a phase.
    point: Option<String>,
    /// The dispatch that alone is undone, while the run stays where it is; null where the run goes back.
    dispatch_id: Option<String>,
    /// Undos of one dispatch each, by their rollbacks, which this one lifts: it goes back to where that work stood.
    reinstated: Vec<String>,
    /// The run is completed, and the rollback makes it active again.
    reopens: bool,
    /// The event that the run goes back to; what was recorded after it is rolled back.
    cut_seq: i64,
    /// The run's epoch after the rollback.
    epoch: i64,
    reason: Option<String>,
    /// Names the plan; null for one that would be refused, which no caller can insist on.
    plan_hash: Option<String>,
    /// In chain order; the target only with --include-target.
    rolled_back_phases: Vec<String>,
    /// They had not ended.
    cancelled_dispatches: Vec<DispatchRef>,
    /// They had ended and keep their status.
    marked_dispatches: Vec<DispatchRef>,
    marked_artifacts: Vec<ArtifactRef>,
    /// They were active.
    failed_agents: Vec<AgentRef>,
    /// They had ended and keep their status.
    marked_agents: Vec<AgentRef>,
    cleared_skips: Vec<String>,
    counts: CountsJson,
    /// The effects that are undone, in order; null if that layer is not taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<EffectsJson>,
    /// Files and git's state; null if they are not taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<RestoreJson>,
    /// The commits that leave their branches, newest first; null if git's state is not taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<Vec<CommitJson>>,
    /// The commits of the dispatch that alone is undone, newest first: they stay on their branches. Null for any other rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_commits: Option<Vec<OwnCommitJson>>,
    /// Rows of the application's tables; null if they are not taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataJson>,
    /// How far each layer is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepJson>,
    /// Of a dry run: why the real call would be refused; left out if it would not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalJson>,
    /// Of a dry run: all that the real call would meet, one after another, each with the flag that decides it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<DecidedJson>,
    /// The command that goes on, when a step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
    /// planned, `rolled_back` or `rolling_back`.
    #[cfg_attr(test, schemars(extend("enum" = ic_rollback::LayeredStatus::WORDS)))]
    status: &'static str,
    /// The event; null for a dry run.
    seq: Option<i64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountsJson {
    phases: usize,
    dispatches: usize,
    artifacts: usize,
    agents: usize,
    skips: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DispatchRef {
    id: String,
    name: Option<String>,
    phase: String,
    #[cfg_attr(test, schemars(extend("enum" = ic_dispatch::DispatchStatus::WORDS)))]
    status: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ArtifactRef {
    id: String,
    phase: String,
    #[serde(flatten)]
    path: PathJson,
    kind: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AgentRef {
    id: String,
    name: Option<String>,
    phase: String,
    #[cfg_attr(test, schemars(extend("enum" = ic_runtrack::agent::AgentStatus::WORDS)))]
    status: &'static str,
}

impl From<&Dispatch> for DispatchRef {
    fn from(dispatch: &Dispatch) -> Self {
        Self {
            id: dispatch.id.to_string(),
            name: dispatch.work.name.clone(),
            phase: dispatch.phase.clone(),
            status: dispatch.status.as_str(),
        }
    }
}

impl From<&Artifact> for ArtifactRef {
    fn from(artifact: &Artifact) -> Self {
        Self {
            id: artifact.id.to_string(),
            phase: artifact.phase.clone(),
            path: artifact.path.as_path().into(),
            kind: artifact.kind.clone(),
        }
    }
}

impl From<&Agent> for AgentRef {
    fn from(agent: &Agent) -> Self {
        Self {
            id: agent.id.to_string(),
            name: agent.name.clone(),
            phase: agent.phase.clone(),
            status: agent.status.as_str(),
        }
    }
}

impl From<&Rollback> for RollbackJson {
    fn from(rollback: &Rollback) -> Self {
        let plan = &rollback.plan;
        let counts = plan.counts();
        Self {
            run_id: plan.run.id.to_string(),
            rollback_id: rollback.done.as_ref().map(|(id, _)| id.to_string()),
            dry_run: rollback.done.is_none(),
            layers: vec!["workflow"],
            from_phase: plan.run.phase.clone(),
            to_phase: plan.to_phase.clone(),
            include_target: plan.include_target,
            point: plan.point.clone(),
            dispatch_id: plan.cut.only.as_ref().map(ToString::to_string),
            reinstated: plan.reinstated.iter().map(ToString::to_string).collect(),
            reopens: plan.reopens(),
            cut_seq: plan.cut.seq,
            epoch: plan.next_epoch(),
            reason: rollback.reason.clone(),
            plan_hash: Some(rollback.plan_hash.clone()),
            rolled_back_phases: plan.cut.phases.clone(),
            cancelled_dispatches: plan.cancelled_dispatches.iter().map(Into::into).collect(),
            marked_dispatches: plan.marked_dispatches.iter().map(Into::into).collect(),
            marked_artifacts: plan.artifacts.iter().map(Into::into).collect(),
            failed_agents: plan.failed_agents.iter().map(Into::into).collect(),
            marked_agents: plan.marked_agents.iter().map(Into::into).collect(),
            cleared_skips: plan.skips.iter().map(|s| s.phase.clone()).collect(),
            counts: CountsJson {
                phases: counts.phases,
                dispatches: counts.dispatches,
                artifacts: counts.artifacts,
                agents: counts.agents,
                skips: counts.skips,
            },
            effects: None,
            files: None,
            commits: None,
            own_commits: None,
            data: None,
            steps: Vec::new(),
            refusal: None,
            refusals: Vec::new(),
            resume: None,
            warnings: Vec::new(),
            status: if rollback.done.is_some() { "rolled_back" } else { "planned" },
            seq: rollback.done.as_ref().map(|(_, seq)| *seq),
        }
    }
}

/// The effects that a rollback undoes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EffectsJson {
    /// In the order of undoing.
    results: Vec<UndoneStepJson>,
    /// Compensations that are not undone.
    compensations_left: Vec<String>,
}

/// A refusal, and what decides it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DecidedJson {
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// The flag with which the real call passes it; null: nobody can decide it.
    flag: Option<&'static str>,
}

impl From<&Refusal> for DecidedJson {
    fn from(refusal: &Refusal) -> Self {
        Self {
            code: refusal.error.code().as_str(),
            message: refusal.error.message().to_owned(),
            hint: refusal.error.get_hint().map(ToString::to_string),
            flag: refusal.flag,
        }
    }
}

/// The rows that a rollback takes away.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DataJson {
    /// The application's database.
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_b64: Option<String>,
    /// The rows that go, or went, by table.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
    affected_row_counts: serde_json::Map<String, serde_json::Value>,
}

impl From<&Data> for DataJson {
    fn from(data: &Data) -> Self {
        Self {
            database: data.database.to_string_lossy().into_owned(),
            database_b64: exact(&data.database),
            affected_row_counts: data
                .rows
                .iter()
                .map(|(table, rows)| (table.clone(), (*rows).into()))
                .collect(),
        }
    }
}

/// The rows that are back.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RestoredDataJson {
    /// The application's database.
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_b64: Option<String>,
    /// The rows that are back, by table.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
    restored_row_counts: serde_json::Map<String, serde_json::Value>,
}

impl From<&Data> for RestoredDataJson {
    fn from(data: &Data) -> Self {
        let DataJson { database, database_b64, affected_row_counts } = data.into();
        Self { database, database_b64, restored_row_counts: affected_row_counts }
    }
}

/// What a step did. What an older version did not record counts as nothing.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MadeJson {
    /// Of `effects`: how many were undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_count: Option<usize>,
    /// Of `effects`: the names of those that were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_steps: Option<Vec<String>>,
    /// Of `effects`: the tree around each go at them, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    goes: Option<Vec<GoJson>>,
    /// Of `tree`: how many paths were restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_count: Option<usize>,
    /// Of `tree`: the checkpoint of what stood there before, by its last restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_checkpoint_id: Option<String>,
    /// Of `data`: how many rows were deleted, by table.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_row_counts: Option<std::collections::BTreeMap<String, u64>>,
}

/// One go at the effects.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GoJson {
    /// The tree before it.
    before_checkpoint_id: String,
    /// The tree after it; null: its process died.
    after_checkpoint_id: Option<String>,
}

impl From<(String, Option<String>)> for GoJson {
    fn from((before_checkpoint_id, after_checkpoint_id): (String, Option<String>)) -> Self {
        Self { before_checkpoint_id, after_checkpoint_id }
    }
}

impl From<Made> for MadeJson {
    fn from(made: Made) -> Self {
        let nothing = Self::default();
        match made {
            Made::Effects { undone, skipped, goes } => Self {
                undone_count: Some(undone),
                skipped_steps: Some(skipped),
                goes: Some(goes.into_iter().map(GoJson::from).collect()),
                ..nothing
            },
            Made::Tree { paths, safety } => Self {
                path_count: Some(paths),
                safety_checkpoint_id: safety.map(|id| id.to_string()),
                ..nothing
            },
            Made::Data { rows } => Self { deleted_row_counts: Some(rows), ..nothing },
            Made::Settle => nothing,
        }
    }
}

/// A step of a rollback over several layers.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StepJson {
    /// effects, tree (files and git), data or settle.
    #[cfg_attr(test, schemars(extend("enum" = ic_journal::steps::StepKind::WORDS)))]
    layer: &'static str,
    /// pending, running, done, failed, skipped; or `as_before`: the rollback is undone or aborted, and this is as it was before it.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::and(&ic_journal::steps::StepState::WORDS, "as_before"))))]
    status: &'static str,
    /// What it did, so far as that is on record.
    made: MadeJson,
    error: Option<String>,
}

impl StepJson {
    /// The steps of one rollback, which `stands` or not.
    fn all(all: &[Step], stands: bool) -> Vec<Self> {
        let course = steps::course(all);
        let one = |step: &Step| Self {
            layer: step.kind.as_str(),
            status: step.shown(course, stands),
            made: Made::by(step).into(),
            error: step.error.clone(),
        };
        all.iter().map(one).collect()
    }
}

impl From<&LayeredRollback> for RollbackJson {
    fn from(whole: &LayeredRollback) -> Self {
        let id = whole.rollback.done.as_ref().map(|(id, _)| id);
        let is_stopped = whole.status == LayeredStatus::RollingBack;
        Self {
            layers: whole.layers.iter().map(|layer| layer.as_str()).collect(),
            effects: whole.parts.effects.as_ref().map(|effects| EffectsJson {
                results: effects.compensations.iter().map(UndoneStepJson::from).collect(),
                compensations_left: effects.left.iter().map(|left| left.id.to_string()).collect(),
            }),
            files: whole.parts.tree.as_ref().map(RestoreJson::from),
            commits: whole.parts.commits.as_ref().map(|all| all.iter().map(CommitJson::from).collect()),
            own_commits: whole
                .parts
                .own_commits
                .as_ref()
                .map(|all| all.iter().map(OwnCommitJson::from).collect()),
            data: whole.parts.data.as_ref().map(DataJson::from),
            steps: StepJson::all(&whole.steps, true),
            plan_hash: whole.refusals.is_empty().then(|| whole.rollback.plan_hash.clone()),
            refusal: whole.refusals.first().map(|refusal| RefusalJson::from(&refusal.error)),
            refusals: whole.refusals.iter().map(DecidedJson::from).collect(),
            resume: id.filter(|_| is_stopped).map(|id| steps::next_command(id, &whole.steps)),
            warnings: whole.rows_stay.iter().map(WarningJson::from).collect(),
            status: whole.status.as_str(),
            ..Self::from(&whole.rollback)
        }
    }
}
