//! Dispatches of a run.

use std::path::Path;

use ic_dispatch::code::{RecordedCode, RecordedCommit, RecordedFile};
use ic_dispatch::dispatch::TokenCounts;
use ic_dispatch::worker::{Life, life};
use ic_dispatch::{Dispatch, DispatchStatus, WorkVerdict};
use ic_ops::exec::ExecutedCommand;
use ic_worktree::Warning;
use serde::Serialize;

use crate::text::{Cell, TextTable, counted, path_text, plain, style, styled};
use crate::views::common_shapes::WarningJson;
use crate::views::{PathJson, exact};

shape! {
    /// A dispatch: a piece of work for an agent.
    pub(crate) struct DispatchJson from dispatch: &Dispatch where
        prompt = dispatch.work.prompt_file.as_deref();
    {
        id: String = dispatch.id.to_string(),
        short_id: String = dispatch.id.short().to_owned(),
        run_id: String = dispatch.run_id.to_string(),
        phase: String = dispatch.phase.clone(),
        /// The work that began it, and takes it along when it is undone: a prompt, for what a subagent did; null: a person or a script
        /// began it.
        parent_id: Option<String> = dispatch.work.parent_id.as_ref().map(ToString::to_string),
        /// The run's epoch when the dispatch was created.
        epoch: i64 = dispatch.epoch,
        /// pending, running, completed, failed, `timed_out`, interrupted or cancelled.
        status: &'static str as ic_dispatch::DispatchStatus = dispatch.status.as_str(),
        agent_kind: Option<String> = dispatch.work.agent_type.clone(),
        name: Option<String> = dispatch.work.name.clone(),
        model: Option<String> = dispatch.work.model.clone(),
        prompt_file: Option<String> = prompt.map(|p| p.to_string_lossy().into_owned()),
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_file_b64: Option<String> = prompt.and_then(exact),
        pid: Option<i64> = dispatch.pid(),
        /// Whether that very process lives: true or false, or `unknown` if only its number was recorded. Of work that beats: true, or
        /// `lost` if it has been silent for too long. Null: neither a process nor a beat was recorded.
        #[cfg_attr(test, schemars(extend("enum" = [true, false, "unknown", "lost", null])))]
        alive: Option<AliveJson> = life(dispatch).map(AliveJson::from),
        /// When it is lost, unless it beats before; null: it does not beat.
        due_at: Option<String> = dispatch.heartbeat.map(|beats| beats.due.to_string()),
        summary: Option<String> = dispatch.summary.clone(),
        /// The verdict of a review: pass or fail.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&ic_dispatch::WorkVerdict::WORDS))))]
        verdict: Option<&'static str> = dispatch.verdict.map(ic_dispatch::WorkVerdict::as_str),
        error: Option<String> = dispatch.error.clone(),
        tokens: TokensJson = dispatch.tokens.into(),
        /// The rollback that undid it: its reports no longer satisfy a gate. Null: it counts.
        rolled_back_by: Option<String> = dispatch.rolled_back_by.as_ref().map(ToString::to_string),
        /// Null, or the event before which it began and after which the rollback undid its work. Then only that part is undone.
        undone_from: Option<i64> = dispatch.undone_in_part_from(),
        seq: i64 = dispatch.seq,
        created_at: String = dispatch.created_at.to_string(),
        started_at: Option<String> = dispatch.started_at.map(|t| t.to_string()),
        finished_at: Option<String> = dispatch.finished_at.map(|t| t.to_string()),
        /// Warnings of its start or end, such as a capture that failed. Left out if there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = Vec::new(),
    }

    /// Tokens used so far.
    pub(crate) struct TokensJson from tokens: TokenCounts {
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
        log: Option<&Path>,
    ) {
        #[serde(flatten)]
        dispatch: DispatchJson = dispatch.into(),
        /// Its commits, oldest first.
        commits: Vec<CommitJson> = commits.iter().map(CommitJson::from).collect(),
        files: Vec<FileJson> = files.iter().map(FileJson::from).collect(),
        /// The file with the output of its command, masked; null: `ic exec` did not run it, or it had a terminal.
        log: Option<String> = log.map(|log| log.to_string_lossy().into_owned()),
    }

    /// A commit that the dispatch recorded.
    struct CommitJson from c: &RecordedCommit {
        sha: String = c.sha.clone(),
        /// Whether it was reported after the dispatch was rolled back.
        late: bool = c.late,
        seq: i64 = c.seq,
    }

    /// A file that the dispatch recorded.
    struct FileJson from f: &RecordedFile {
        #[serde(flatten)]
        path: PathJson = f.path.as_path().into(),
        late: bool = f.late,
        seq: i64 = f.seq,
    }

    /// How a command ended that was run as a piece of work (`exec`).
    pub(crate) struct ExecJson from (executed: &ExecutedCommand, exit: i64) {
        #[serde(flatten)]
        dispatch: DispatchJson = DispatchJson {
            // The process on record is this very call, which is about to end.
            pid: None,
            alive: None,
            ..DispatchJson::from(&executed.dispatch).warned(&executed.warnings)
        },
        /// The exit status that this call passes on.
        exit_code: i64 = exit,
        /// How often the command was started.
        attempts: i64 = executed.attempts.into(),
        /// The file that has its output, masked.
        log: String = executed.log.to_string_lossy().into_owned(),
    }

    /// The outcome of recording commits and files (`dispatch record`).
    pub(crate) struct RecordedJson from (dispatch: &Dispatch, recorded: &RecordedCode) {
        dispatch_id: String = dispatch.id.to_string(),
        run_id: String = dispatch.run_id.to_string(),
        /// The number of commits that were not recorded before.
        commit_count: usize = recorded.commits,
        /// The number of files that were not recorded before.
        file_count: usize = recorded.files,
        /// Whether the dispatch had been rolled back: its report satisfies no gate, and is used by the revert plan.
        late: bool = recorded.late,
        /// The event of this call; null if everything was recorded already.
        seq: Option<i64> = recorded.seq,
    }
}

impl DispatchJson {
    /// Adds warnings to the dispatch.
    pub(crate) fn warned(mut self, warnings: &[Warning]) -> Self {
        self.warnings.extend(warnings.iter().map(WarningJson::from));
        self
    }
}

/// Whether the process of a dispatch lives.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum AliveJson {
    Known(bool),
    Unclear(&'static str),
}

impl From<Life> for AliveJson {
    fn from(life: Life) -> Self {
        match life {
            Life::Alive => Self::Known(true),
            Life::Gone => Self::Known(false),
            Life::Unknown => Self::Unclear("unknown"),
            Life::Lost => Self::Unclear("lost"),
        }
    }
}

/// Dispatches, one a line.
pub(crate) fn table(dispatches: &[Dispatch]) -> String {
    let mut table = TextTable::new(&["DISPATCH", "STATUS", "VERDICT", "PHASE", "AGENT", "NAME", "RUN"]);
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
    format!("{}{name} is {status} in {}\n", styled(style::STRONG, dispatch.id.short()), plain(&dispatch.phase))
}

/// What to do about a command that was run, on one line.
pub(crate) fn executed(executed: &ExecutedCommand) -> String {
    let dispatch = &executed.dispatch;
    let id = dispatch.id.short();
    let error = dispatch.error.as_deref().map(|error| format!(" ({})", plain(error))).unwrap_or_default();
    format!(
        "{} is {}{error}; see: ic show {id}; undo it: ic undo {id} --only",
        styled(style::STRONG, id),
        status(dispatch)
    )
}

/// One dispatch with its commits and files.
pub(crate) fn card(
    dispatch: &Dispatch,
    commits: &[RecordedCommit],
    files: &[RecordedFile],
    log: Option<&Path>,
) -> String {
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
    let alive = life(dispatch).map_or("", alive);
    line("process", dispatch.pid().map(|pid| format!("{pid}{alive}")));
    line("beats", dispatch.heartbeat.map(|beats| format!("due at {}{alive}", beats.due)));
    let tokens = dispatch.tokens;
    if tokens.input + tokens.output + tokens.cache > 0 {
        line("tokens", Some(format!("{} in, {} out, {} cached", tokens.input, tokens.output, tokens.cache)));
    }
    line("undone", dispatch.undone_in_part_from().map(|cut| format!("what it did after event {cut}")));
    line("log", log.map(path_text));
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

/// The number of new commits and files, in a sentence.
pub(crate) fn recorded(dispatch: &Dispatch, recorded: &RecordedCode) -> String {
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
        Life::Lost => ", lost (no beat)",
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
        DispatchStatus::Failed | DispatchStatus::TimedOut | DispatchStatus::Interrupted | DispatchStatus::Cancelled => {
            style::BAD
        }
    }
}

fn verdict_style(verdict: WorkVerdict) -> anstyle::Style {
    match verdict {
        WorkVerdict::Pass => style::GOOD,
        WorkVerdict::Fail => style::BAD,
    }
}

fn status(dispatch: &Dispatch) -> String {
    match dispatch.rolled_back_by {
        Some(_) => format!("{}, rolled back", dispatch.status.as_str()),
        None => dispatch.status.as_str().to_owned(),
    }
}
