//! The arguments of the tools: their schema is what a model reads, their words are what is run.

mod undo_inputs;

use ic_base::{Code, Diagnosis, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::command_words::Words;
use crate::step::ConsentStep;

pub(crate) use undo_inputs::{RedoInput, UndoInput};

/// The arguments of a tool.
pub(crate) trait Input: DeserializeOwned + JsonSchema {
    /// The command that they mean. `own`: the dispatch on whose behalf the client works.
    fn words(&self, own: Option<&str>) -> Result<Words>;

    /// The step that is asked for, of a tool that first plans and then acts; `None` for every other tool.
    fn step(&self) -> Option<ConsentStep> {
        None
    }

    /// The most entries of a page, for a list that is read by pages.
    fn page(&self) -> Option<u32> {
        None
    }
}

/// The verdict of a review.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerdictInput {
    /// The reviewed work is accepted.
    Pass,
    /// The reviewed work has to be done again.
    Fail,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusInput {
    /// The run: an id, the end of one, or @ for the open run here. Default: @, else the newest here.
    run: Option<String>,
}

impl Input for StatusInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        Words::of(&["status"]).value_if("run", self.run.as_deref())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogInput {
    /// The run: an id, the end of one, or @ for the open run here. Default: @, or all sessions of agents.
    run: Option<String>,
    /// Include what was rolled back, and rollbacks that were undone.
    #[serde(default)]
    all: bool,
    /// The most entries of a page, newest first; but all that have the event of the last one.
    #[serde(default = "LogInput::usual_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
    /// Only entries before this one: the `next_before` of the page before.
    before: Option<u32>,
}

impl LogInput {
    fn usual_limit() -> u32 {
        20
    }
}

impl Input for LogInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        if !(1..=1000).contains(&self.limit) {
            return Err(Diagnosis::new(Code::InvalidValue, "limit must be from 1 to 1000.").detail("value", "limit"));
        }
        let words = Words::of(&["log"]).value_if("run", self.run.as_deref())?.switch("--all", self.all);
        let before = self.before.map(|seq| seq.to_string());
        // The range in the schema binds no client, so it is checked above.
        // One more than a page holds says that there is another one.
        words.flag("--number", &(self.limit + 1).to_string())?.flag_if("--before", before.as_deref())
    }

    fn page(&self) -> Option<u32> {
        Some(self.limit)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffInput {
    /// The older side: a point as log names it (`dispatch:ID`, `prompt:ID`, `step:NAME`, `phase:P`, `checkpoint:ID` or `checkpoint:NAME`,
    /// `created`).
    from: String,
    /// The newer side, named the same way. Default: the working tree.
    to: Option<String>,
    /// The run of the points, where a point alone does not say it.
    run: Option<String>,
    /// Only these paths and what is below them.
    #[serde(default)]
    paths: Vec<String>,
    /// The most bytes of patch text. What is over that is left out, and the answer says where the patch was cut.
    #[serde(default = "DiffInput::usual_bytes")]
    #[schemars(range(min = 0, max = MOST_BYTES))]
    max_bytes: u32,
}

/// The most that may be asked for: the whole answer is one line of the protocol.
const MOST_BYTES: u32 = 1024 * 1024;

impl DiffInput {
    pub(crate) fn usual_bytes() -> u32 {
        32 * 1024
    }

    /// The whole of what changed since a point.
    pub(crate) fn since(from: &str) -> Self {
        Self { from: from.to_owned(), to: None, run: None, paths: Vec::new(), max_bytes: Self::usual_bytes() }
    }
}

impl Input for DiffInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        if self.max_bytes > MOST_BYTES {
            let message = format!("max_bytes is {}; it is at most {MOST_BYTES}.", self.max_bytes);
            return Err(Diagnosis::new(Code::InvalidValue, message).hint("name paths, and ask for them in parts"));
        }
        Words::of(&["checkpoint", "diff"])
            .value("from", &self.from)?
            .value_if("to", self.to.as_deref())?
            .flag_if("--run", self.run.as_deref())?
            .flag("--patch-bytes", &self.max_bytes.to_string())?
            .rest("paths", &self.paths)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointInput {
    /// Why it is taken.
    message: Option<String>,
    /// A name to find it by.
    name: Option<String>,
    /// The run that it belongs to. Default: none, or the run of the calling dispatch.
    run: Option<String>,
}

impl Input for CheckpointInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        Words::of(&["checkpoint", "create"])
            .flag_if("--message", self.message.as_deref())?
            .flag_if("--name", self.name.as_deref())?
            .flag_if("--run", self.run.as_deref())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdvanceInput {
    /// The run. Default: the open run here.
    run: Option<String>,
    /// Only from this phase; else `stale_phase`, and nothing is changed.
    expect_phase: Option<String>,
}

impl Input for AdvanceInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        // The command line wants the run to be named.
        Words::of(&["run", "advance"])
            .value("run", self.run.as_deref().unwrap_or("@"))?
            .flag_if("--expect-phase", self.expect_phase.as_deref())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegisterArtifact {
    /// The file that was produced.
    path: String,
    /// The run. Default: the open run here.
    run: Option<String>,
    /// Its phase. Default: the run's current one.
    phase: Option<String>,
    /// What it is. Default: file.
    kind: Option<String>,
}

impl Input for RegisterArtifact {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        Words::of(&["run", "artifact", "add"])
            .value("run", self.run.as_deref().unwrap_or("@"))?
            .flag("--path", &self.path)?
            .flag_if("--phase", self.phase.as_deref())?
            .flag_if("--type", self.kind.as_deref())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordWork {
    /// The dispatch: an id, or the end of one. Default: the one that this client works for (IC_DISPATCH).
    dispatch: Option<String>,
    /// Commits, 7 to 64 hex digits each, oldest first.
    #[serde(default)]
    commits: Vec<String>,
    /// Changed files, relative to the project's directory in which the client was started.
    #[serde(default)]
    files: Vec<String>,
}

impl Input for RecordWork {
    fn words(&self, own: Option<&str>) -> Result<Words> {
        if self.commits.is_empty() && self.files.is_empty() {
            return Err(Diagnosis::new(Code::InvalidValue, "There is nothing to record.")
                .hint("give commits, files or both")
                .detail("value", "commits"));
        }
        Words::of(&["dispatch", "record"])
            .value("dispatch", dispatch(self.dispatch.as_deref(), own)?)?
            .flags("--commit", &self.commits)?
            .flags("--file", &self.files)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteInput {
    /// The dispatch: an id, or the end of one. Default: the one that this client works for (IC_DISPATCH).
    dispatch: Option<String>,
    /// A summary of what was done, for people and later agents.
    summary: Option<String>,
    /// The verdict of a review.
    verdict: Option<VerdictInput>,
}

impl Input for CompleteInput {
    fn words(&self, own: Option<&str>) -> Result<Words> {
        let verdict = self.verdict.map(|verdict| match verdict {
            VerdictInput::Pass => "pass",
            VerdictInput::Fail => "fail",
        });
        Words::of(&["dispatch", "complete"])
            .value("dispatch", dispatch(self.dispatch.as_deref(), own)?)?
            .flag_if("--summary", self.summary.as_deref())?
            .flag_if("--verdict", verdict)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitInput {
    /// Dispatches and runs: ids, or the ends of them. Default: all work of commands and scripts that is under way.
    #[serde(default)]
    references: Vec<String>,
    /// Whether the first end is enough.
    #[serde(default)]
    any: bool,
    /// How long to wait at most, in seconds. Wait again for longer work.
    #[serde(default = "WaitInput::usual_seconds")]
    #[schemars(range(min = 0, max = 600))]
    timeout_seconds: u32,
}

impl WaitInput {
    fn usual_seconds() -> u32 {
        60
    }
}

impl Input for WaitInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        let words = Words::of(&["wait"]).switch("--any", self.any);
        // A client cancels a tool that takes much longer.
        let words = words.flag("--timeout", &format!("{}s", self.timeout_seconds.min(600)))?;
        words.rest("references", &self.references)
    }

    fn page(&self) -> Option<u32> {
        // Its list has no pages. But the protocol wants an object, and the list of a tool with pages becomes one.
        Some(1_000)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkInput {
    /// The work before which, or the checkpoint at which, the files were as in the fork. Default: as they are now.
    reference: Option<String>,
    /// The name of the fork, and of its directory. Default: the next free number.
    name: Option<String>,
}

impl Input for ForkInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        Words::of(&["fork"]).flag_if("--name", self.name.as_deref())?.value_if("reference", self.reference.as_deref())
    }
}

/// The dispatch that the call names, else `own`, the one of the environment. Errors: `invalid_reference` if there is neither.
fn dispatch<'d>(named: Option<&'d str>, own: Option<&'d str>) -> Result<&'d str> {
    named.or(own).ok_or_else(|| {
        Diagnosis::new(Code::InvalidReference, "No dispatch was named, and this client works for none.")
            .hint("give dispatch; the dispatches at work are in the answer of the tool status")
            .detail("value", "dispatch")
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclareCompensation {
    /// The step that is about to make the effect.
    step: String,
    /// The run. Default: the open run here.
    run: Option<String>,
    /// Undo it with this program and its arguments, without a shell.
    #[serde(default)]
    exec: Vec<String>,
    /// Undo it with this line for sh.
    shell: Option<String>,
    /// Undo it by restoring these files as they are now.
    #[serde(default)]
    restore_files: Vec<String>,
    /// Undo it by ending this process, which runs now.
    kill_pid: Option<u32>,
    /// Nothing needs to be undone.
    #[serde(default)]
    skip: bool,
    /// It cannot be undone: a rollback stops at it.
    #[serde(default)]
    pivot: bool,
    /// Why nothing is undone; with `skip` or `pivot`.
    reason: Option<String>,
    /// The directory of `exec` and `shell`, relative to the project's.
    cwd: Option<String>,
    /// The timeout of `exec` and `shell`, as in 90s. Default: 10m.
    timeout: Option<String>,
    /// Retries of `exec` and `shell`.
    retries: Option<u32>,
    /// A description for people.
    description: Option<String>,
}

impl Input for DeclareCompensation {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        let ways = [
            !self.exec.is_empty(),
            self.shell.is_some(),
            !self.restore_files.is_empty(),
            self.kill_pid.is_some(),
            self.skip,
            self.pivot,
        ];
        // Checked here, because a schema that says "one of these" is refused or ignored by clients.
        if ways.iter().filter(|is_given| **is_given).count() != 1 {
            return Err(Diagnosis::new(Code::InvalidValue, "How the effect is undone is to be said in one way.")
                .hint("give one of exec, shell, restore_files, kill_pid, skip and pivot")
                .detail("value", "exec"));
        }
        let (pid, retries) = (self.kill_pid.map(|n| n.to_string()), self.retries.map(|n| n.to_string()));
        Words::of(&["compensation", "add"])
            .value("run", self.run.as_deref().unwrap_or("@"))?
            .flag("--step", &self.step)?
            .switch("--exec", !self.exec.is_empty())
            .flag_if("--shell", self.shell.as_deref())?
            .flags("--restore-file", &self.restore_files)?
            .flag_if("--kill-pid", pid.as_deref())?
            .switch("--skip", self.skip)
            .switch("--pivot", self.pivot)
            .flag_if("--reason", self.reason.as_deref())?
            .flag_if("--cwd", self.cwd.as_deref())?
            .flag_if("--timeout", self.timeout.as_deref())?
            .flag_if("--retries", retries.as_deref())?
            .flag_if("--description", self.description.as_deref())?
            // Last of all: after `--` the command line takes no more flags.
            .rest("exec", &self.exec)
    }
}
