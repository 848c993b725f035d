//! The code layer's report.

use ic_phase::Run;
use ic_rollback::code::{Entry, Report};
use ic_runtrack::Artifact;
use serde::Serialize;

use super::{PathJson, exact};

/// Which commits and files came from where (`run rollback --layer=code`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CodeJson {
    run_id: String,
    /// Always code.
    #[cfg_attr(test, schemars(extend("enum" = ["code"])))]
    layer: &'static str,
    /// The phases that were asked for, in chain order.
    phases: Vec<String>,
    /// Newest first.
    entries: Vec<EntryJson>,
    /// The commits to revert, newest first, each once.
    revert_order: Vec<String>,
    artifacts: Vec<CodeArtifact>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EntryJson {
    dispatch_id: String,
    dispatch_name: Option<String>,
    agent_kind: Option<String>,
    phase: String,
    #[cfg_attr(test, schemars(extend("enum" = ic_dispatch::DispatchStatus::WORDS)))]
    status: &'static str,
    /// Some of it was reported after the dispatch was rolled back.
    late: bool,
    rolled_back_by: Option<String>,
    /// Oldest first.
    commit_shas: Vec<String>,
    /// Lossy where a path is not UTF-8.
    file_paths: Vec<String>,
    /// For each path its exact bytes in base64, or null if it is UTF-8; only when one is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_paths_b64: Option<Vec<Option<String>>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CodeArtifact {
    id: String,
    phase: String,
    #[serde(flatten)]
    path: PathJson,
    content_hash: Option<String>,
    kind: String,
    #[cfg_attr(test, schemars(extend("enum" = ic_runtrack::artifact::ArtifactStatus::WORDS)))]
    status: &'static str,
}

impl From<&Entry> for EntryJson {
    fn from(entry: &Entry) -> Self {
        let exact: Vec<Option<String>> = entry.files.iter().map(|f| exact(f)).collect();
        Self {
            dispatch_id: entry.dispatch.id.to_string(),
            dispatch_name: entry.dispatch.work.name.clone(),
            agent_kind: entry.dispatch.work.agent_type.clone(),
            phase: entry.dispatch.phase.clone(),
            status: entry.dispatch.status.as_str(),
            late: entry.late,
            rolled_back_by: entry.dispatch.rolled_back_by.as_ref().map(ToString::to_string),
            commit_shas: entry.commits.clone(),
            file_paths: entry.files.iter().map(|f| f.to_string_lossy().into_owned()).collect(),
            file_paths_b64: exact.iter().any(Option::is_some).then_some(exact),
        }
    }
}

impl From<&Artifact> for CodeArtifact {
    fn from(artifact: &Artifact) -> Self {
        Self {
            id: artifact.id.to_string(),
            phase: artifact.phase.clone(),
            path: artifact.path.as_path().into(),
            content_hash: artifact.content_hash.clone(),
            kind: artifact.kind.clone(),
            status: artifact.status.as_str(),
        }
    }
}

impl CodeJson {
    pub(crate) fn new(run: &Run, report: &Report) -> Self {
        Self {
            run_id: run.id.to_string(),
            layer: "code",
            phases: report.phases.clone(),
            entries: report.entries.iter().map(Into::into).collect(),
            revert_order: report.revert_order.clone(),
            artifacts: report.artifacts.iter().map(Into::into).collect(),
        }
    }
}
