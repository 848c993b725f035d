//! What a workflow's file says: its steps, their phases, and what undoes them.
//!
//! A file is checked whole before any of it is used: a [`Definition`] can be run as it is.

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

/// More bytes than any workflow has.
const LONGEST: usize = 1_000_000;

/// The phase that ends every chain; no step stands in it.
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
    pub steps: Vec<Step>,
    /// What a failed step leads to, if the file says so.
    pub on_failure: Option<OnFailure>,
    /// What a rollback restores, if the file says so.
    pub strategy: Option<Strategy>,
    /// The file as it was written: [`Definition::parse`] makes the same definition of it again.
    pub text: String,
}

/// One step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name, which no other step has.
    pub id: String,
    /// The phase in which it runs.
    pub phase: String,
    /// What it runs.
    pub run: Run,
    /// The steps that must be finished before it starts: places in [`Definition::steps`], ascending, each once, of
    /// this phase or an earlier one.
    pub needs: Vec<usize>,
    /// How long one attempt may take: more than nothing, at most a year.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retries: Retries,
    /// Where it runs, from the project's root and inside of it; `None`: in the root.
    pub directory: Option<PathBuf>,
    /// What is added to its environment.
    pub environment: BTreeMap<String, String>,
    /// What undoes it; `None` if the file does not say.
    pub compensate: Option<Compensate>,
    /// The line on which it begins, from 1.
    pub line: u64,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// Text for a shell.
    Script {
        /// It is not blank.
        text: String,
        /// Which one.
        shell: Shell,
    },
    /// A program and its arguments; the program is not empty.
    Argv(Vec<String>),
}

/// What runs the text of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Shell {
    /// `sh`, which ends at the first line that fails and at a variable that is not set.
    #[default]
    Sh,
    /// `bash`, likewise; a pipe fails where any part of it does.
    Bash,
    /// A program and its arguments, before the text; the program is not empty.
    Own(Vec<String>),
}

impl Shell {
    /// The program and its arguments that run `text`.
    pub fn argv(&self, text: &str) -> Vec<String> {
        let before: &[&str] = match self {
            Self::Sh => &["sh", "-eu", "-c"],
            Self::Bash => &["bash", "-euo", "pipefail", "-c"],
            Self::Own(argv) => return argv.iter().cloned().chain([text.to_owned()]).collect(),
        };
        before.iter().copied().chain([text]).map(str::to_owned).collect()
    }
}

/// How often, and after what pause, something that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first one, at most 1000.
    pub max: u32,
    /// The pause before each of them, at most a year.
    pub backoff: Duration,
}

impl Default for Retries {
    /// None; a second's pause for those who ask for some and name no pause.
    fn default() -> Self {
        Self { max: 0, backoff: Duration::from_secs(1) }
    }
}

/// What undoes a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensate {
    /// What is done.
    pub action: Action,
    /// Where a command runs, from the project's root and inside of it; `None`: in the root.
    pub directory: Option<PathBuf>,
    /// What is added to a command's environment.
    pub environment: BTreeMap<String, String>,
    /// How long one attempt may take: more than nothing, at most a year.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retries: Retries,
    /// Whether it runs when its own step is the one that failed.
    pub on_failure: bool,
}

/// The kinds of compensation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run a program with its arguments; the program is not empty.
    Exec {
        /// The program, then its arguments.
        argv: Vec<String>,
    },
    /// Run text with `sh -c`; it is not blank.
    Shell(String),
    /// Give files back what they were: at least one path from the project's root, inside of it.
    RestoreFile(Vec<PathBuf>),
    /// End the process whose id stands in this file: a path from the project's root, inside of it.
    KillProcess(PathBuf),
    /// None is needed; with the reason, if it was given.
    Skip(Option<String>),
    /// It cannot be undone, and nothing before it is; with the reason, if it was given.
    Pivot(Option<String>),
    /// It is not undone but tried again; with the reason, if it was given.
    Retry(Option<String>),
}

ic_base::words! {
    /// What a failed step leads to.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum OnFailure {
        /// The workflow is rolled back.
        Rollback = "rollback",
        /// The workflow stops where it is.
        Stop = "stop",
        /// The steps that do not need the failed one go on.
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
                if matches!(
                    e.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
                ) =>
            {
                return Err(invalid(path, None, "it does not exist").hint("name the file of a workflow"));
            }
            Err(e) => return Err(e).while_doing(|| format!("reading {}", path.display())),
        };
        let mut bytes = Vec::new();
        if meta.is_file() {
            fs::File::open(path)
                .and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut bytes))
                .while_doing(|| format!("reading {}", path.display()))?;
        } else {
            return Err(invalid(path, None, "it is not a file").hint("name the file of a workflow"));
        }
        Self::parse(&bytes, path)
    }

    /// The workflow that `bytes` are; `path` is where they are from, for errors.
    ///
    /// Errors: `invalid_workflow`, with file, line and column in the message and the details, for the first thing
    /// that is wrong; a cycle's steps also in `details.cycle`.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        if bytes.len() > LONGEST {
            return Err(invalid(path, None, "it is longer than 1 MB"));
        }
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let before = String::from_utf8_lossy(&bytes[..e.valid_up_to()]);
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() as u64 + 1;
            invalid(path, Some((line, column)), "it is not UTF-8")
        })?;
        let file: Option<file::File> =
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
