//! Artifacts and agents.

use ic_runtrack::{Agent, Artifact};
use serde::Serialize;

use super::PathJson;

/// An artifact.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ArtifactJson {
    id: String,
    short_id: String,
    run_id: String,
    phase: String,
    #[serde(flatten)]
    path: PathJson,
    kind: String,
    /// The SHA-256 of its content in hex, if it was a file when it was registered.
    content_hash: Option<String>,
    dispatch_id: Option<String>,
    /// active or `rolled_back`.
    #[cfg_attr(test, schemars(extend("enum" = ic_runtrack::artifact::ArtifactStatus::WORDS)))]
    status: &'static str,
    rolled_back_by: Option<String>,
    seq: i64,
    created_at: String,
}

impl From<&Artifact> for ArtifactJson {
    fn from(artifact: &Artifact) -> Self {
        Self {
            id: artifact.id.to_string(),
            short_id: artifact.id.short().to_owned(),
            run_id: artifact.run_id.to_string(),
            phase: artifact.phase.clone(),
            path: artifact.path.as_path().into(),
            kind: artifact.kind.clone(),
            content_hash: artifact.content_hash.clone(),
            dispatch_id: artifact.dispatch_id.as_ref().map(ToString::to_string),
            status: artifact.status.as_str(),
            rolled_back_by: artifact.rolled_back_by.as_ref().map(ToString::to_string),
            seq: artifact.seq,
            created_at: artifact.created_at.to_string(),
        }
    }
}

/// An agent.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AgentJson {
    id: String,
    short_id: String,
    run_id: String,
    phase: String,
    kind: String,
    name: Option<String>,
    dispatch_id: Option<String>,
    /// active, completed or failed.
    #[cfg_attr(test, schemars(extend("enum" = ic_runtrack::agent::AgentStatus::WORDS)))]
    status: &'static str,
    rolled_back_by: Option<String>,
    seq: i64,
    created_at: String,
    updated_at: String,
}

impl From<&Agent> for AgentJson {
    fn from(agent: &Agent) -> Self {
        Self {
            id: agent.id.to_string(),
            short_id: agent.id.short().to_owned(),
            run_id: agent.run_id.to_string(),
            phase: agent.phase.clone(),
            kind: agent.kind.clone(),
            name: agent.name.clone(),
            dispatch_id: agent.dispatch_id.as_ref().map(ToString::to_string),
            status: agent.status.as_str(),
            rolled_back_by: agent.rolled_back_by.as_ref().map(ToString::to_string),
            seq: agent.seq,
            created_at: agent.created_at.to_string(),
            updated_at: agent.updated_at.to_string(),
        }
    }
}
