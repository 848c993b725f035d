//! A run at a glance.

use ic_kernel::worker::Life;
use ic_ops::status::{Status, Unfinished, Working};
use serde::Serialize;

use super::dispatch::AliveJson;
use super::log::PointJson;
use super::{GateCheckJson, RunJson};

/// A run at a glance (`status`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StatusJson {
    run: RunJson,
    /// What an advance would do now; null for a run that has ended, is in the middle of a rollback, or is a session's own.
    gate: Option<GateCheckJson>,
    /// Who works for the run: its executor, then dispatches that were begun and have not ended, newest first.
    working: Vec<WorkingJson>,
    /// The newest point to which the run can go back.
    last_point: Option<PointJson>,
    /// Unfinished operations that no live process executes.
    unfinished: Vec<UnfinishedJson>,
    /// The command to type next; words in capitals are for the caller to fill in.
    next: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WorkingJson {
    #[cfg_attr(test, schemars(extend("enum" = ["executor", "dispatch"])))]
    kind: &'static str,
    /// Null for the executor.
    dispatch_id: Option<String>,
    name: Option<String>,
    agent_kind: Option<String>,
    pid: Option<i64>,
    /// Whether that very process lives: true or false, or `unknown` where only its number is on record; null without one.
    #[cfg_attr(test, schemars(extend("enum" = [true, false, "unknown", null])))]
    alive: Option<AliveJson>,
    started_at: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnfinishedJson {
    #[cfg_attr(test, schemars(extend("enum" = ["rollback", "restore", "rewind", "compensation", "workflow"])))]
    kind: &'static str,
    /// Its id; of a workflow and of compensations, the run's.
    id: String,
    message: String,
    /// The command that resumes it.
    command: String,
}

impl From<&Status> for StatusJson {
    fn from(status: &Status) -> Self {
        Self {
            run: (&status.run).into(),
            gate: status.gate.as_ref().map(GateCheckJson::from),
            working: status.working.iter().map(WorkingJson::from).collect(),
            last_point: status.last_point.as_ref().map(PointJson::from),
            unfinished: status.unfinished.iter().map(UnfinishedJson::from).collect(),
            next: status.next_command(),
        }
    }
}

impl From<&Working> for WorkingJson {
    fn from(working: &Working) -> Self {
        match working {
            Working::Executor { pid } => Self {
                kind: "executor",
                dispatch_id: None,
                name: None,
                agent_kind: None,
                pid: pid.map(i64::from),
                alive: Some(Life::Alive.into()),
                started_at: None,
            },
            Working::Dispatch(dispatch, life) => Self {
                kind: "dispatch",
                dispatch_id: Some(dispatch.id.to_string()),
                name: dispatch.work.name.clone(),
                agent_kind: dispatch.work.agent_type.clone(),
                pid: dispatch.pid(),
                alive: life.map(AliveJson::from),
                started_at: dispatch.started_at.map(|at| at.to_string()),
            },
        }
    }
}

impl From<&Unfinished> for UnfinishedJson {
    fn from(unfinished: &Unfinished) -> Self {
        Self {
            kind: unfinished.kind,
            id: unfinished.id.clone(),
            message: unfinished.message.clone(),
            command: unfinished.command.clone(),
        }
    }
}
