//! Compensations, what became of them, and how much of a run they cover.

use std::collections::BTreeMap;

use ic_base::RunId;
use ic_base::mask::mask;
use ic_checkpoint::manifest::PathText;
use ic_events::hex;
use ic_rollback::compensation::Report;
use ic_saga::action::{Before, FileBefore, How};
use ic_saga::coverage::{CompensationReport, Coverage};
use ic_saga::{Action, Compensation, State};
use serde::Serialize;

use super::{PathJson, RefusalJson, WarningJson};
use crate::render::counted;

/// How the effect of a step is undone, and how far that is.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CompensationJson {
    /// What its command gets as `IC_IDEMPOTENCY_KEY`.
    id: String,
    short_id: String,
    run_id: String,
    step: String,
    phase: String,
    epoch: i64,
    /// When its effect was begun, among those of the run: 1, 2, ...
    ord: i64,
    /// exec, file, process, skip, retry or pivot.
    #[cfg_attr(test, schemars(extend("enum" = ic_saga::Action::KINDS)))]
    kind: &'static str,
    action: ActionJson,
    /// registered, armed, running, done, failed or skipped.
    #[cfg_attr(test, schemars(extend("enum" = ic_saga::State::WORDS)))]
    status: &'static str,
    /// How often its undo was begun.
    attempts: i64,
    description: Option<String>,
    /// Why the last attempt failed.
    error: Option<String>,
    /// The steps that its step depends on.
    needs: Vec<String>,
    dispatch_id: Option<String>,
    rolled_back_by: Option<String>,
    seq: i64,
    created_at: String,
}

impl From<&Compensation> for CompensationJson {
    fn from(compensation: &Compensation) -> Self {
        Self {
            id: compensation.id.to_string(),
            short_id: compensation.id.short().to_owned(),
            run_id: compensation.run_id.to_string(),
            step: compensation.step.clone(),
            phase: compensation.phase.clone(),
            epoch: compensation.epoch,
            ord: compensation.ord,
            kind: compensation.action.kind(),
            action: (&compensation.action).into(),
            status: compensation.state.as_str(),
            attempts: compensation.attempts,
            description: compensation.description.clone(),
            error: error(compensation),
            needs: compensation.needs.clone(),
            dispatch_id: compensation.dispatch_id.as_ref().map(ToString::to_string),
            rolled_back_by: compensation.rolled_back_by.as_ref().map(ToString::to_string),
            seq: compensation.seq,
            created_at: compensation.created_at.to_string(),
        }
    }
}

/// Why the last attempt failed; why nothing was done is no error.
fn error(compensation: &Compensation) -> Option<String> {
    compensation.last_error.clone().filter(|_| compensation.state != State::Skipped)
}

/// What is done to undo an effect.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "snake_case")]
enum ActionJson {
    /// A program is run, without a shell.
    Exec {
        argv: Vec<String>,
        #[serde(flatten)]
        how: HowJson,
    },
    /// A line is run by sh.
    Shell {
        line: String,
        #[serde(flatten)]
        how: HowJson,
    },
    /// Paths are put back as they were when this was declared.
    RestoreFiles { files: Vec<BeforeJson> },
    /// A process is ended.
    KillProcess {
        /// Its number; null while it is not known.
        pid: Option<u32>,
        /// The file that its number is written to, from the project's root.
        pid_file: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pid_file_b64: Option<String>,
    },
    /// Nothing needs to be done.
    Skip { reason: Option<String> },
    /// Nothing is undone; the step is to be retried.
    Retry { reason: Option<String> },
    /// It cannot be undone.
    Pivot { reason: Option<String> },
}

/// How a command is run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HowJson {
    /// Where, from the project's directory; null: there.
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd_b64: Option<String>,
    env: BTreeMap<String, String>,
    timeout_ms: u64,
    /// How often it is retried.
    retries: u32,
    /// The wait before a retry; doubled each time.
    backoff_ms: u64,
}

/// A path, and what stood there when its compensation was declared.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BeforeJson {
    #[serde(flatten)]
    path: PathJson,
    /// absent, file or symlink.
    #[cfg_attr(test, schemars(extend("enum" = ["absent", "file", "symlink"])))]
    was: &'static str,
    /// Permission bits in octal.
    mode: Option<String>,
    sha256: Option<String>,
    /// Where a symlink pointed.
    target: Option<String>,
}

/// Text as it is shown: what is run is the exact one.
fn masked(text: &str) -> String {
    mask(text).into_owned()
}

impl From<&Action> for ActionJson {
    fn from(action: &Action) -> Self {
        match action {
            Action::Exec { argv, how } => {
                Self::Exec { argv: argv.iter().map(|word| masked(word)).collect(), how: how.into() }
            }
            Action::Shell { line, how } => Self::Shell { line: masked(line), how: how.into() },
            Action::RestoreFiles { files } => {
                Self::RestoreFiles { files: files.iter().map(BeforeJson::from).collect() }
            }
            Action::KillProcess { pid_file, identity, .. } => Self::KillProcess {
                pid: identity.as_ref().map(|identity| identity.pid),
                pid_file: pid_file.as_ref().map(PathJson::from).map(|file| file.path),
                pid_file_b64: pid_file.as_ref().map(PathJson::from).and_then(|file| file.path_b64),
            },
            Action::Skip { reason } => Self::Skip { reason: reason.clone() },
            Action::Retry { reason } => Self::Retry { reason: reason.clone() },
            Action::Pivot { reason } => Self::Pivot { reason: reason.clone() },
        }
    }
}

impl From<&How> for HowJson {
    fn from(how: &How) -> Self {
        Self {
            cwd: how.directory.as_ref().map(PathJson::from).map(|cwd| cwd.path),
            cwd_b64: how.directory.as_ref().map(PathJson::from).and_then(|cwd| cwd.path_b64),
            env: how.environment.iter().map(|(name, value)| (name.clone(), masked(value))).collect(),
            timeout_ms: u64::try_from(how.timeout().as_millis()).unwrap_or(u64::MAX),
            retries: how.retries,
            backoff_ms: how.backoff_ms,
        }
    }
}

impl From<&FileBefore> for BeforeJson {
    fn from(file: &FileBefore) -> Self {
        let blank = Self { path: (&file.path).into(), was: "absent", mode: None, sha256: None, target: None };
        let lossy = |path: &PathText| String::from_utf8_lossy(&path.0).into_owned();
        match &file.before {
            Before::Absent => blank,
            Before::File { hash, mode } => {
                Self { was: "file", mode: Some(format!("{mode:04o}")), sha256: Some(hex(hash)), ..blank }
            }
            Before::Symlink { target } => Self { was: "symlink", target: Some(lossy(target)), ..blank },
        }
    }
}

/// What was undone of a run, or would be.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct UndoneJson {
    run_id: String,
    /// done, stopped, failed or planned.
    #[cfg_attr(test, schemars(extend("enum" = ic_rollback::compensation::Status::WORDS)))]
    status: &'static str,
    /// What was tried, in that order; of a dry run, what would be.
    results: Vec<UndoneStepJson>,
    /// The compensations that were meant and are not undone.
    compensations_left: Vec<String>,
    /// The step that cannot be undone, and because of which something is left.
    held_by: Option<String>,
    /// Whether the run stays closed (`rolling_back`) until more is undone.
    closed: bool,
    /// The call that resumes with the rest.
    resume: Option<String>,
    /// Of a dry run: why the real call would be refused; left out if it would not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalJson>,
}

/// What became of one compensation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct UndoneStepJson {
    id: String,
    step: String,
    /// exec, file, process, skip, retry or pivot.
    #[cfg_attr(test, schemars(extend("enum" = ic_saga::Action::KINDS)))]
    kind: &'static str,
    /// armed, running or failed where it is not undone yet; skipped: nothing was done about it, as declared.
    #[cfg_attr(test, schemars(extend("enum" = ic_saga::State::WORDS[1..])))]
    status: &'static str,
    /// How often its undo was begun.
    attempts: i64,
    /// Why the last attempt failed.
    error: Option<String>,
    /// Why nothing was done about it.
    reason: Option<String>,
}

impl From<&Compensation> for UndoneStepJson {
    fn from(one: &Compensation) -> Self {
        Self {
            id: one.id.to_string(),
            step: one.step.clone(),
            kind: one.action.kind(),
            status: one.state.as_str(),
            attempts: one.attempts,
            error: error(one),
            reason: one.last_error.clone().filter(|_| one.state == State::Skipped),
        }
    }
}

impl UndoneJson {
    pub(crate) fn new(report: &Report, resume: Option<&str>) -> Self {
        Self {
            run_id: report.run_id.to_string(),
            status: report.status.as_str(),
            results: report.results.iter().map(UndoneStepJson::from).collect(),
            compensations_left: report.left.iter().map(|one| one.id.to_string()).collect(),
            held_by: report.pivot.clone(),
            closed: report.is_closed,
            resume: resume.map(str::to_owned),
            refusal: report.refusal.as_ref().map(RefusalJson::from),
        }
    }
}

/// How much of a run can be undone.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CoverageJson {
    run_id: String,
    steps: Vec<CoveredJson>,
    /// The declared steps among all, 0-100, rounded down; without steps 100.
    percentage: u8,
    /// The steps without a declared undo.
    undeclared: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

/// What a step declares about its undo.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CoveredJson {
    step: String,
    /// compensated, skip, pivot or undeclared.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::coverages())))]
    coverage: &'static str,
}

impl CoverageJson {
    pub(crate) fn new(run_id: &RunId, report: &CompensationReport) -> Self {
        let warning = (!report.is_complete()).then(|| WarningJson {
            code: "undeclared_steps",
            message: format!(
                "No undo is declared for {} of {}: {}.",
                report.undeclared.len(),
                counted(report.total, "step"),
                report.undeclared.join(", ")
            ),
        });
        let covered = |(step, coverage): &(String, Coverage)| CoveredJson {
            step: step.clone(),
            coverage: coverage.as_str(),
        };
        Self {
            run_id: run_id.to_string(),
            steps: report.steps.iter().map(covered).collect(),
            percentage: report.percentage,
            undeclared: report.undeclared.clone(),
            warnings: warning.into_iter().collect(),
        }
    }

    /// The warning in it, for people.
    pub(crate) fn warning(&self) -> Option<&str> {
        self.warnings.first().map(|warning| warning.message.as_str())
    }
}
