//! The JSON shapes of the contract. They live only here and convert explicitly from domain types.
//!
//! Each has a schema in `docs/schemas/`. Fields are added, never renamed or removed.

mod blame;
mod cancel;
mod checkpoint;
mod code;
mod compensation;
mod config;
mod dispatch;
mod event;
mod history;
mod hooks;
mod ledger;
mod log;
mod man;
mod refusal;
mod restore;
mod retention;
mod rewind;
mod rollback;
mod run;
mod run_status;
mod runtrack;
mod session;
mod status;
#[cfg(test)]
mod words;
mod workflow;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

pub(crate) use blame::{BlameJson, CallJson};
pub(crate) use cancel::{CancelJson, ReopenJson};
pub(crate) use checkpoint::{ChangeJson, CheckpointJson, DiffJson, FileJson, SkippedJson};
pub(crate) use code::CodeJson;
pub(crate) use compensation::{CompensationJson, CoverageJson, UndoneJson};
pub(crate) use config::ConfigJson;
pub(crate) use dispatch::{DispatchJson, DispatchShowJson, DispatchWaitJson, RecordedJson};
pub(crate) use event::{CursorJson, EventJson, RedactedJson, VerifyJson};
pub(crate) use history::HistoryJson;
pub(crate) use hooks::{HooksDoctorJson, HooksJson};
pub(crate) use ledger::{CheckJson, HealthJson, InitJson, VersionJson, WhereJson};
pub(crate) use log::LogEntryJson;
pub(crate) use man::ManJson;
use refusal::RefusalJson;
pub(crate) use restore::RestoreJson;
pub(crate) use retention::{PruneJson, PurgeJson, VerifyObjectsJson};
pub(crate) use rewind::{RewindInitJson, RewindInspectJson, RewindJson, RewindPreviewJson, RewindTargetJson};
pub(crate) use rollback::{RollbackJson, RollbackRecordJson, RollbackShowJson, RollbackUndoneJson};
use run::WarningJson;
pub(crate) use run::{AdvanceJson, GateCheckJson, GateRuleJson, PhaseJson, RunJson, SkipJson, soft_warning};
pub(crate) use run_status::RunStatusJson;
pub(crate) use runtrack::{AgentJson, ArtifactJson};
pub(crate) use session::{SessionJson, SessionShowJson, is_subagent};
pub(crate) use status::StatusJson;
pub(crate) use workflow::{WorkflowJson, WorkflowPlanJson, WorkflowRollbackPlanJson};

/// A path: lossy text, with the exact bytes beside it when they are not UTF-8.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PathJson {
    /// The path, lossy if it is not UTF-8.
    pub(crate) path: String,
    /// The path's exact bytes in base64, when it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_b64: Option<String>,
}

impl From<&Path> for PathJson {
    fn from(path: &Path) -> Self {
        Self { path: path.to_string_lossy().into_owned(), path_b64: exact(path) }
    }
}

/// A value as a database stores it.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ScalarJson {
    Number(f64),
    Text(String),
    /// The bytes of a BLOB.
    Bytes(Vec<u8>),
    Null(()),
}

/// A value as a configuration sets it.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ValueJson {
    Number(u64),
    Text(String),
    Truth(bool),
    Texts(Vec<String>),
    Null(()),
}

/// The bytes of a path in base64, when it is not UTF-8.
pub(crate) fn exact(path: &Path) -> Option<String> {
    path.to_str().is_none().then(|| STANDARD.encode(ic_store::path_bytes(path)))
}
