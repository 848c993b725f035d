//! Who works on a run, and what it produced. Owns `run_artifacts` and `run_agents`.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod agent;
pub mod artifact;

pub use agent::{Agent, AgentStatus, cancel_agents_by_phases};
pub use artifact::{Artifact, ArtifactStatus, mark_artifacts_rolled_back};
