//! The content of a workflow's file: its steps, their phases, and what undoes them.
//!
//! A file is checked as a whole before any of it is used: a [`Definition`] can be run without further checks.

mod check;
mod compensate;
mod explain;
mod file;
mod value;

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Diagnose, Result};
pub use ic_checkpoint::restore::Strategy;
use serde::{Deserialize, Serialize};

use explain::{explain, invalid};

/// A longer file is refused, in bytes.
const LONGEST: usize = 1_000_000;

/// The phase that ends every chain; no step runs in it.
pub const LAST_PHASE: &str = "done";

/// A workflow that can be run: its names are known, its steps have an order, its values are in range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name: one line.
    pub name: String,
    /// What a run of it is for; the name, if the file does not say.
    pub goal: String,
    /// The chain of a run: the steps' phases in the file's order, then [`LAST_PHASE`].
    pub phases: Vec<String>,
    /// The steps in the file's order, at least one; their phases never go back in the chain.
    pub steps: Vec<WorkflowStep>,
    /// What a failed step leads to, if the file says so.
    pub on_failure: Option<StepFailurePolicy>,
    /// What a rollback restores, if the file says so.
    pub strategy: Option<Strategy>,
    /// The file as it was written: [`Definition::parse`] makes the same definition of it again.
    pub text: String,
}

/// One step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowStep {
    /// Its name, which no other step has.
    pub id: String,
    /// The phase in which it runs.
    pub phase: String,
    /// The command of the step.
    pub run: StepCommand,
    /// The steps that must be finished before it starts: places in [`Definition::steps`], ascending, each once, of
    /// this phase or an earlier one.
    pub needs: Vec<usize>,
    /// How long one attempt may take: more than nothing, at most a year.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retries: StepRetries,
    /// The directory in which it runs, from the project's root and inside of it; `None`: the root.
    pub directory: Option<PathBuf>,
    /// Variables that are added to its environment.
    pub environment: BTreeMap<String, String>,
    /// The declared undo; `None` if the file declares none.
    pub compensate: Option<StepCompensation>,
    /// The line on which it begins, from 1.
    pub line: u64,
}

/// A command of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepCommand {
    /// A text that a shell runs.
    Script {
        /// The text, which is not blank.
        text: String,
        /// The shell that runs it.
        shell: StepShell,
    },
    /// A program and its arguments; the program is not empty.
    Argv(Vec<String>),
}

/// The program that runs the text of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StepShell {
    /// `sh`, which ends at the first line that fails and at a variable that is not set.
    #[default]
    Sh,
    /// `bash`, likewise; a pipe fails where any part of it does.
    Bash,
    /// A program and its arguments, before the text; the program is not empty.
    Own(Vec<String>),
}

impl StepShell {
    /// The program and its arguments that run `text`.
    pub fn argv(&self, text: &str) -> Vec<String> {
        let before: &[&str] = match self {
            // POSIX sh has no `pipefail`, so a failure within a pipe goes unseen there.
            Self::Sh => &["sh", "-eu", "-c"],
            Self::Bash => &["bash", "-euo", "pipefail", "-c"],
            Self::Own(argv) => return argv.iter().cloned().chain([text.to_owned()]).collect(),
        };
        before.iter().copied().chain([text]).map(str::to_owned).collect()
    }
}

/// The number of attempts after a failure, and the pause between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRetries {
    /// Attempts after the first one, at most 1000.
    pub max: u32,
    /// The pause before each of them, at most a year.
    pub backoff: Duration,
}

impl Default for StepRetries {
    /// No retries; a pause of one second for files that ask for retries and name no pause.
    fn default() -> Self {
        Self { max: 0, backoff: Duration::from_secs(1) }
    }
}

/// The declared undo of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepCompensation {
    /// The action that undoes it.
    pub action: StepAction,
    /// The directory in which a command runs, from the project's root and inside of it; `None`: the root.
    pub directory: Option<PathBuf>,
    /// Variables that are added to a command's environment.
    pub environment: BTreeMap<String, String>,
    /// How long one attempt may take: more than nothing, at most a year.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retries: StepRetries,
    /// Whether it runs when its own step is the one that failed.
    pub on_failure: bool,
}

/// The kinds of compensation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAction {
    /// Run a program with its arguments; the program is not empty.
    Exec {
        /// The program, then its arguments.
        argv: Vec<String>,
    },
    /// Run text with `sh -c`; it is not blank.
    Shell(String),
    /// Restore files to what they were: at least one path from the project's root, inside of it.
    RestoreFile(Vec<PathBuf>),
    /// End the process whose id is in this file: a path from the project's root, inside of it.
    KillProcess(PathBuf),
    /// No undo is needed; with the reason, if one was given.
    Skip(Option<String>),
    /// It cannot be undone, and nothing before it is; with the reason, if one was given.
    Pivot(Option<String>),
    /// It is not undone but tried again; with the reason, if one was given.
    Retry(Option<String>),
}

ic_base::words! {
    /// What happens after a step failed.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum StepFailurePolicy {
        /// The workflow is rolled back.
        Rollback = "rollback",
        /// The workflow stops where it is.
        Stop = "stop",
        /// Steps that do not need the failed one continue.
        Continue = "continue",
    }
}

impl Definition {
    /// The workflow in the file at `path`.
    ///
    /// Errors: as of [`Definition::parse`]; also `invalid_workflow` if nothing, or no file, is there.
    pub fn load(path: &Path) -> Result<Self> {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(e)
                if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename) =>
            {
                return Err(invalid(path, None, "it does not exist").hint("name the file of a workflow"));
            }
            Err(e) => return Err(e).while_doing(|| format!("reading {}", path.display())),
        };
        let mut bytes = Vec::new();
        // A pipe or a device would block, or never end.
        if meta.is_file() {
            // One byte more is read than is accepted, so that `parse` sees that the file is too long.
            fs::File::open(path)
                .and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut bytes))
                .while_doing(|| format!("reading {}", path.display()))?;
        } else {
            return Err(invalid(path, None, "it is not a file").hint("name the file of a workflow"));
        }
        Self::parse(&bytes, path)
    }

    /// Parses a workflow; `path` is its origin, for errors.
    ///
    /// Errors: `invalid_workflow`, with file, line and column in the message and the details, for the first thing
    /// that is wrong; a cycle's steps also in `details.cycle`.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        if bytes.len() > LONGEST {
            return Err(invalid(path, None, "it is longer than 1 MB"));
        }
        let text = std::str::from_utf8(bytes).map_err(|e| {
            // All before that byte is UTF-8, so its lines and characters can be counted.
            let before = String::from_utf8_lossy(&bytes[..e.valid_up_to()]);
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() as u64 + 1;
            invalid(path, Some((line, column)), "it is not UTF-8")
        })?;
        let file: Option<file::DefinitionFile> =
            serde_saphyr::from_str_with_options(text, options()).map_err(|e| explain(path, &e))?;
        check::definition(path, file.unwrap_or_default(), text)
    }
}

/// Limits that no workflow reaches, so that a small file of aliases does not become a large one in memory.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_events: 1_500_000,
            max_nodes: 1_000_000,
            max_anchors: 10_000,
            max_aliases: 50_000,
            max_merge_keys: 10_000,
            max_documents: 2,
            max_recorded_anchor_events: 200_000,
            max_recorded_anchor_bytes: 4 << 20,
            max_total_scalar_bytes: 4 << 20,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000 },
    }
}

#[cfg(test)]
mod tests;
