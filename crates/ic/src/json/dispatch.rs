//! Dispatches.

use ic_base::Code;
use ic_dispatch::Dispatch;
use ic_dispatch::code::{Recorded, RecordedCommit, RecordedFile};
use ic_dispatch::dispatch::Tokens;
use ic_kernel::worker::{Life, life};
use ic_worktree::Warning;
use serde::Serialize;

use super::{PathJson, WarningJson, exact};

/// A dispatch.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DispatchJson {
    id: String,
    short_id: String,
    run_id: String,
    phase: String,
    /// The work that began it, and takes it along when it is undone: a prompt, for what a subagent did; null: a person or a script began it.
    parent_id: Option<String>,
    /// The run's epoch when the dispatch was created.
    epoch: i64,
    /// pending, running, completed, failed, `timed_out` or cancelled.
    #[cfg_attr(test, schemars(extend("enum" = ic_dispatch::DispatchStatus::WORDS)))]
    status: &'static str,
    agent_kind: Option<String>,
    name: Option<String>,
    model: Option<String>,
    prompt_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_file_b64: Option<String>,
    pid: Option<i64>,
    /// Whether that very process lives: true or false, or `unknown` where only its number is on record; null without one.
    #[cfg_attr(test, schemars(extend("enum" = [true, false, "unknown", null])))]
    alive: Option<AliveJson>,
    summary: Option<String>,
    /// pass or fail.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&ic_dispatch::Verdict::WORDS))))]
    verdict: Option<&'static str>,
    error: Option<String>,
    tokens: TokensJson,
    /// The rollback that undid it: its reports do not count any more. Null: it counts.
    rolled_back_by: Option<String>,
    seq: i64,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    /// What went less well when it was started or ended: a capture that failed. Left out if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

impl DispatchJson {
    /// The same, with what went less well.
    pub(crate) fn warned(mut self, warnings: &[Warning]) -> Self {
        self.warnings.extend(warnings.iter().map(WarningJson::from));
        self
    }
}

/// Whether a process lives.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum AliveJson {
    Known(bool),
    Unknown(&'static str),
}

impl From<Life> for AliveJson {
    fn from(life: Life) -> Self {
        match life {
            Life::Alive => Self::Known(true),
            Life::Gone => Self::Known(false),
            Life::Unknown => Self::Unknown("unknown"),
        }
    }
}

/// Tokens used so far.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct TokensJson {
    #[serde(rename = "in")]
    input: i64,
    out: i64,
    cache: i64,
}

impl From<Tokens> for TokensJson {
    fn from(tokens: Tokens) -> Self {
        Self { input: tokens.input, out: tokens.output, cache: tokens.cache }
    }
}

impl From<&Dispatch> for DispatchJson {
    fn from(dispatch: &Dispatch) -> Self {
        let prompt = dispatch.work.prompt_file.as_deref();
        Self {
            id: dispatch.id.to_string(),
            short_id: dispatch.id.short().to_owned(),
            run_id: dispatch.run_id.to_string(),
            phase: dispatch.phase.clone(),
            parent_id: dispatch.work.parent_id.as_ref().map(ToString::to_string),
            epoch: dispatch.epoch,
            status: dispatch.status.as_str(),
            agent_kind: dispatch.work.agent_type.clone(),
            name: dispatch.work.name.clone(),
            model: dispatch.work.model.clone(),
            prompt_file: prompt.map(|p| p.to_string_lossy().into_owned()),
            prompt_file_b64: prompt.and_then(exact),
            pid: dispatch.pid(),
            alive: life(dispatch).map(AliveJson::from),
            summary: dispatch.summary.clone(),
            verdict: dispatch.verdict.map(ic_dispatch::Verdict::as_str),
            error: dispatch.error.clone(),
            tokens: dispatch.tokens.into(),
            rolled_back_by: dispatch.rolled_back_by.as_ref().map(ToString::to_string),
            seq: dispatch.seq,
            created_at: dispatch.created_at.to_string(),
            started_at: dispatch.started_at.map(|t| t.to_string()),
            finished_at: dispatch.finished_at.map(|t| t.to_string()),
            warnings: Vec::new(),
        }
    }
}

/// A dispatch with what it left in the repository (`dispatch show`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DispatchShowJson {
    #[serde(flatten)]
    dispatch: DispatchJson,
    /// Oldest first.
    commits: Vec<CommitJson>,
    files: Vec<FileJson>,
}

/// A recorded commit.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CommitJson {
    sha: String,
    /// Reported after the dispatch was rolled back.
    late: bool,
    seq: i64,
}

/// A recorded file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FileJson {
    #[serde(flatten)]
    path: PathJson,
    late: bool,
    seq: i64,
}

impl DispatchShowJson {
    pub(crate) fn new(dispatch: &Dispatch, commits: &[RecordedCommit], files: &[RecordedFile]) -> Self {
        Self {
            dispatch: dispatch.into(),
            commits: commits
                .iter()
                .map(|c| CommitJson { sha: c.sha.clone(), late: c.late, seq: c.seq })
                .collect(),
            files: files
                .iter()
                .map(|f| FileJson { path: f.path.as_path().into(), late: f.late, seq: f.seq })
                .collect(),
        }
    }
}

/// A dispatch as a wait for its end found it (`dispatch wait`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DispatchWaitJson {
    #[serde(flatten)]
    dispatch: DispatchShowJson,
    /// `process_gone` or `timed_out`, where the wait ended before the work did; else null.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&[ic_base::Code::ProcessGone, ic_base::Code::TimedOut].map(ic_base::Code::as_str)))))]
    code: Option<&'static str>,
}

impl DispatchWaitJson {
    pub(crate) fn new(dispatch: DispatchShowJson, code: Option<Code>) -> Self {
        Self { dispatch, code: code.map(Code::as_str) }
    }
}

/// What recording did (`dispatch record`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecordedJson {
    dispatch_id: String,
    run_id: String,
    /// How many commits were new.
    commit_count: usize,
    /// How many files were new.
    file_count: usize,
    /// The dispatch had been rolled back: the report counts for no gate, but the revert plan knows it.
    late: bool,
    /// The event; null if everything was known already.
    seq: Option<i64>,
}

impl RecordedJson {
    pub(crate) fn new(dispatch: &Dispatch, recorded: &Recorded) -> Self {
        Self {
            dispatch_id: dispatch.id.to_string(),
            run_id: dispatch.run_id.to_string(),
            commit_count: recorded.commits,
            file_count: recorded.files,
            late: recorded.late,
            seq: recorded.seq,
        }
    }
}
