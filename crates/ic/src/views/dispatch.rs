//! Dispatches.

use ic_base::Code;
use ic_dispatch::code::{Recorded, RecordedCommit, RecordedFile};
use ic_dispatch::dispatch::Tokens;
use ic_dispatch::{Dispatch, DispatchStatus, Verdict};
use ic_kernel::worker::{Life, life};
use ic_ops::dispatch::Waited;
use ic_worktree::Warning;
use serde::Serialize;

use crate::text::{Cell, Table, counted, path_text, plain, style, styled};
use crate::views::shared::WarningJson;
use crate::views::{PathJson, exact};

shape! {
    /// A dispatch.
    pub(crate) struct DispatchJson from dispatch: &Dispatch where
        prompt = dispatch.work.prompt_file.as_deref();
    {
        id: String = dispatch.id.to_string(),
        short_id: String = dispatch.id.short().to_owned(),
        run_id: String = dispatch.run_id.to_string(),
        phase: String = dispatch.phase.clone(),
        /// The work that began it, and takes it along when it is undone: a prompt, for what a subagent did; null: a person or a script began it.
        parent_id: Option<String> = dispatch.work.parent_id.as_ref().map(ToString::to_string),
        /// The run's epoch when the dispatch was created.
        epoch: i64 = dispatch.epoch,
        /// pending, running, completed, failed, `timed_out` or cancelled.
        status: &'static str as ic_dispatch::DispatchStatus = dispatch.status.as_str(),
        agent_kind: Option<String> = dispatch.work.agent_type.clone(),
        name: Option<String> = dispatch.work.name.clone(),
        model: Option<String> = dispatch.work.model.clone(),
        prompt_file: Option<String> = prompt.map(|p| p.to_string_lossy().into_owned()),
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_file_b64: Option<String> = prompt.and_then(exact),
        pid: Option<i64> = dispatch.pid(),
        /// Whether that very process lives: true or false, or `unknown` where only its number is on record; null without one.
        #[cfg_attr(test, schemars(extend("enum" = [true, false, "unknown", null])))]
        alive: Option<AliveJson> = life(dispatch).map(AliveJson::from),
        summary: Option<String> = dispatch.summary.clone(),
        /// pass or fail.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::words::or_null(&ic_dispatch::Verdict::WORDS))))]
        verdict: Option<&'static str> = dispatch.verdict.map(ic_dispatch::Verdict::as_str),
        error: Option<String> = dispatch.error.clone(),
        tokens: TokensJson = dispatch.tokens.into(),
        /// The rollback that undid it: its reports do not count any more. Null: it counts.
        rolled_back_by: Option<String> = dispatch.rolled_back_by.as_ref().map(ToString::to_string),
        /// It began before this event, and the rollback undid only what it did after it. Null: all of it, or nothing.
        undone_from: Option<i64> = dispatch.undone_in_part_from(),
        seq: i64 = dispatch.seq,
        created_at: String = dispatch.created_at.to_string(),
        started_at: Option<String> = dispatch.started_at.map(|t| t.to_string()),
        finished_at: Option<String> = dispatch.finished_at.map(|t| t.to_string()),
        /// What went less well when it was started or ended: a capture that failed. Left out if there is none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = Vec::new(),
    }

    /// Tokens used so far.
    pub(crate) struct TokensJson from tokens: Tokens {
        #[serde(rename = "in")]
        input: i64 = tokens.input,
        out: i64 = tokens.output,
        cache: i64 = tokens.cache,
    }

    /// A dispatch with what it left in the repository (`dispatch show`).
    pub(crate) struct DispatchShowJson from (
        dispatch: &Dispatch,
        commits: &[RecordedCommit],
        files: &[RecordedFile],
    ) {
        #[serde(flatten)]
        dispatch: DispatchJson = dispatch.into(),
        /// Oldest first.
        commits: Vec<CommitJson> = commits.iter().map(CommitJson::from).collect(),
        files: Vec<FileJson> = files.iter().map(FileJson::from).collect(),
    }

    /// A recorded commit.
    struct CommitJson from c: &RecordedCommit {
        sha: String = c.sha.clone(),
        /// Reported after the dispatch was rolled back.
        late: bool = c.late,
        seq: i64 = c.seq,
    }

    /// A recorded file.
    struct FileJson from f: &RecordedFile {
        #[serde(flatten)]
        path: PathJson = f.path.as_path().into(),
        late: bool = f.late,
        seq: i64 = f.seq,
    }

    /// A dispatch as a wait for its end found it (`dispatch wait`).
    pub(crate) struct DispatchWaitJson from (dispatch: DispatchShowJson, code: Option<Code>) {
        #[serde(flatten)]
        dispatch: DispatchShowJson = dispatch,
        /// `process_gone` or `timed_out`, where the wait ended before the work did; else null.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::words::or_null(&[ic_base::Code::ProcessGone, ic_base::Code::TimedOut].map(ic_base::Code::as_str)))))]
        code: Option<&'static str> = code.map(Code::as_str),
    }

    /// What recording did (`dispatch record`).
    pub(crate) struct RecordedJson from (dispatch: &Dispatch, recorded: &Recorded) {
        dispatch_id: String = dispatch.id.to_string(),
        run_id: String = dispatch.run_id.to_string(),
        /// How many commits were new.
        commit_count: usize = recorded.commits,
        /// How many files were new.
        file_count: usize = recorded.files,
        /// The dispatch had been rolled back: the report counts for no gate, but the revert plan knows it.
        late: bool = recorded.late,
        /// The event; null if everything was known already.
        seq: Option<i64> = recorded.seq,
    }
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
pub(crate) enum AliveJson {
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

/// Dispatches, one a line.
pub(crate) fn table(dispatches: &[Dispatch]) -> String {
    let mut table = Table::new(&["DISPATCH", "STATUS", "VERDICT", "PHASE", "AGENT", "NAME", "RUN"]);
    for d in dispatches {
        table.row(vec![
            Cell::new(style::STRONG, d.id.short()),
            Cell::new(status_style(d.status), &status(d)),
            d.verdict.map_or("".into(), |one| Cell::new(verdict_style(one), one.as_str())),
            d.phase.as_str().into(),
            d.work.agent_type.as_deref().unwrap_or("").into(),
            d.work.name.as_deref().unwrap_or("").into(),
            Cell::new(style::DIM, d.run_id.short()),
        ]);
    }
    table.render("No dispatches.")
}

/// One dispatch on one line.
pub(crate) fn one_line(dispatch: &Dispatch) -> String {
    let name = dispatch.work.name.as_deref().map(|n| format!(" {}", plain(n))).unwrap_or_default();
    let status = styled(status_style(dispatch.status), &status(dispatch));
    format!(
        "{}{name} is {status} in {}\n",
        styled(style::STRONG, dispatch.id.short()),
        plain(&dispatch.phase)
    )
}

/// One dispatch with what it left in the repository.
pub(crate) fn card(dispatch: &Dispatch, commits: &[RecordedCommit], files: &[RecordedFile]) -> String {
    let mut out = one_line(dispatch);
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            out += &format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<8}")));
        }
    };
    line("agent", dispatch.work.agent_type.as_deref().map(plain));
    line("model", dispatch.work.model.as_deref().map(plain));
    line("verdict", dispatch.verdict.map(|v| v.as_str().to_owned()));
    line("summary", dispatch.summary.as_deref().map(plain));
    line("error", dispatch.error.as_deref().map(plain));
    line("process", dispatch.pid().map(|pid| format!("{pid}{}", life(dispatch).map_or("", alive))));
    let tokens = dispatch.tokens;
    if tokens.input + tokens.output + tokens.cache > 0 {
        line("tokens", Some(format!("{} in, {} out, {} cached", tokens.input, tokens.output, tokens.cache)));
    }
    line("undone", dispatch.undone_in_part_from().map(|cut| format!("what it did after event {cut}")));
    line("run", Some(dispatch.run_id.to_string()));
    line("id", Some(dispatch.id.to_string()));
    for commit in commits {
        line("commit", Some(format!("{}{}", commit.sha, late(commit.late))));
    }
    for file in files {
        line("file", Some(format!("{}{}", path_text(&file.path), late(file.late))));
    }
    out
}

/// Why a wait ended before the work did.
pub(crate) fn waited(waited: Waited) -> String {
    let why = match waited {
        Waited::ProcessGone => "its process is gone, and nothing recorded its end",
        Waited::TimedOut => "the timeout passed",
        Waited::Ended | Waited::Interrupted => return String::new(),
    };
    format!("{}: {why}\n", styled(style::BAD, "the wait ended early"))
}

/// What recording did.
pub(crate) fn recorded(dispatch: &Dispatch, recorded: &Recorded) -> String {
    format!(
        "recorded {} and {} for {}{}\n",
        counted(recorded.commits, "commit"),
        counted(recorded.files, "file"),
        dispatch.id.short(),
        late(recorded.late),
    )
}

pub(crate) fn alive(life: Life) -> &'static str {
    match life {
        Life::Alive => ", alive",
        Life::Gone => ", gone",
        Life::Unknown => ", it is unknown whether it lives",
    }
}

fn late(late: bool) -> String {
    if late { styled(style::WARN, " (late: it was rolled back)") } else { String::new() }
}

fn status_style(status: DispatchStatus) -> anstyle::Style {
    match status {
        DispatchStatus::Pending => style::DIM,
        DispatchStatus::Running => style::WARN,
        DispatchStatus::Completed => style::GOOD,
        DispatchStatus::Failed | DispatchStatus::TimedOut | DispatchStatus::Cancelled => style::BAD,
    }
}

fn verdict_style(verdict: Verdict) -> anstyle::Style {
    match verdict {
        Verdict::Pass => style::GOOD,
        Verdict::Fail => style::BAD,
    }
}

fn status(dispatch: &Dispatch) -> String {
    match dispatch.rolled_back_by {
        Some(_) => format!("{}, rolled back", dispatch.status.as_str()),
        None => dispatch.status.as_str().to_owned(),
    }
}
