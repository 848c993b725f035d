//! Rollbacks.

use ic_dispatch::Dispatch;
use ic_ops::rollback::Rollback;
use ic_runtrack::{Agent, Artifact};
use serde::Serialize;

use super::PathJson;

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
    /// The event that the run is taken back to; what was recorded after it is rolled back.
    cut_seq: i64,
    /// The run's epoch after the rollback.
    epoch: i64,
    reason: Option<String>,
    plan_hash: String,
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
    /// planned or `rolled_back`.
    #[cfg_attr(test, schemars(extend("enum" = ["planned", "rolled_back"])))]
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
    #[cfg_attr(test, schemars(extend("enum" = ["pending", "running", "completed", "failed", "timed_out", "cancelled"])))]
    status: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ArtifactRef {
    id: String,
    phase: String,
    #[serde(flatten)]
    path: PathJson,
    r#type: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AgentRef {
    id: String,
    name: Option<String>,
    phase: String,
    #[cfg_attr(test, schemars(extend("enum" = ["active", "completed", "failed"])))]
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
            r#type: artifact.kind.clone(),
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
            cut_seq: plan.cut.seq,
            epoch: plan.next_epoch(),
            reason: rollback.reason.clone(),
            plan_hash: rollback.plan_hash.clone(),
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
            status: if rollback.done.is_some() { "rolled_back" } else { "planned" },
            seq: rollback.done.as_ref().map(|(_, seq)| *seq),
        }
    }
}
