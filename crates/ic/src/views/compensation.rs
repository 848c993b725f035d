//! Compensations: how the effect of a step is undone, and whether it was.

pub(crate) mod compensation_report;
pub(crate) mod coverage;

use std::collections::BTreeMap;

use anstyle::Style;
use ic_base::RollbackId;
use ic_base::mask::mask;
use ic_checkpoint::manifest::PathText;
use ic_effects::action::{CompensatedFile, EffectBefore, How};
use ic_effects::{Compensation, CompensationState, EffectAction};
use ic_ledger::events::hex;
use serde::Serialize;

use crate::text::{Cell, TextTable, plain, style, styled};
use crate::views::PathJson;

shape! {
    /// How the effect of a step is undone, and whether it was.
    pub(crate) struct CompensationJson from compensation: &Compensation {
        /// The id, which its command gets as `IC_IDEMPOTENCY_KEY`.
        id: String = compensation.id.to_string(),
        short_id: String = compensation.id.short().to_owned(),
        run_id: String = compensation.run_id.to_string(),
        step: String = compensation.step.clone(),
        phase: String = compensation.phase.clone(),
        epoch: i64 = compensation.epoch,
        /// The place of its effect among those of the run, by when it was begun: 1, 2, ...
        ord: i64 = compensation.ord,
        /// exec, file, process, skip, retry or pivot.
        #[cfg_attr(test, schemars(extend("enum" = ic_effects::EffectAction::KINDS)))]
        kind: &'static str = compensation.action.kind(),
        action: ActionJson = (&compensation.action).into(),
        /// registered, armed, running, done, failed or skipped.
        status: &'static str as ic_effects::CompensationState = compensation.state.as_str(),
        /// How many attempts at its undo were begun.
        attempts: i64 = compensation.attempts,
        description: Option<String> = compensation.description.clone(),
        /// The error of the last attempt; null if it did not fail.
        error: Option<String> = error(compensation),
        /// The steps that its step depends on.
        needs: Vec<String> = compensation.needs.clone(),
        dispatch_id: Option<String> = compensation.dispatch_id.as_ref().map(ToString::to_string),
        rolled_back_by: Option<String> = undone_by(compensation).map(ToString::to_string),
        seq: i64 = compensation.seq,
        created_at: String = compensation.created_at.to_string(),
    }

    /// How a command is run: its directory, timeout and retries.
    struct HowJson from how: &How {
        /// The directory, relative to the project's; null: the project's own.
        cwd: Option<String> = how.directory.as_ref().map(PathJson::from).map(|cwd| cwd.path),
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd_b64: Option<String> = how.directory.as_ref().map(PathJson::from).and_then(|cwd| cwd.path_b64),
        env: BTreeMap<String, String> =
            how.environment.iter().map(|(name, value)| (name.clone(), masked(value))).collect(),
        timeout_ms: u64 = u64::try_from(how.timeout().as_millis()).unwrap_or(u64::MAX),
        /// The number of retries after a failure.
        retries: u32 = how.retries,
        /// The wait before a retry; doubled each time.
        backoff_ms: u64 = how.backoff_ms,
    }

    /// A path, and what was there when the compensation was declared.
    struct BeforeJson {
        #[serde(flatten)]
        path: PathJson,
        /// absent, file or symlink.
        #[cfg_attr(test, schemars(extend("enum" = ["absent", "file", "symlink"])))]
        was: &'static str,
        /// Permission bits in octal, of a file.
        mode: Option<String>,
        sha256: Option<String>,
        /// The target of a symlink.
        target: Option<String>,
    }
}

/// The error of the last attempt; `None` for a skip, whose reason is no error.
pub(crate) fn error(compensation: &Compensation) -> Option<String> {
    compensation.last_error.clone().filter(|_| compensation.state != CompensationState::Skipped)
}

/// How an effect is undone.
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
    /// Paths are restored as they were when this was declared.
    RestoreFiles { files: Vec<BeforeJson> },
    /// A process is ended.
    KillProcess {
        /// The process's number; null while it is not known.
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

/// A command, masked for showing: the exact one is what runs.
fn masked(text: &str) -> String {
    mask(text).into_owned()
}

impl From<&EffectAction> for ActionJson {
    fn from(action: &EffectAction) -> Self {
        match action {
            EffectAction::Exec { argv, how } => {
                Self::Exec { argv: argv.iter().map(|word| masked(word)).collect(), how: how.into() }
            }
            EffectAction::Shell { line, how } => Self::Shell { line: masked(line), how: how.into() },
            EffectAction::RestoreFiles { files } => {
                Self::RestoreFiles { files: files.iter().map(BeforeJson::from).collect() }
            }
            EffectAction::KillProcess { pid_file, identity, .. } => Self::KillProcess {
                pid: identity.as_ref().map(|identity| identity.pid),
                pid_file: pid_file.as_ref().map(PathJson::from).map(|file| file.path),
                pid_file_b64: pid_file.as_ref().map(PathJson::from).and_then(|file| file.path_b64),
            },
            EffectAction::Skip { reason } => Self::Skip { reason: reason.clone() },
            EffectAction::Retry { reason } => Self::Retry { reason: reason.clone() },
            EffectAction::Pivot { reason } => Self::Pivot { reason: reason.clone() },
        }
    }
}

impl From<&CompensatedFile> for BeforeJson {
    fn from(file: &CompensatedFile) -> Self {
        let blank = Self { path: (&file.path).into(), was: "absent", mode: None, sha256: None, target: None };
        let lossy = |path: &PathText| String::from_utf8_lossy(&path.0).into_owned();
        match &file.before {
            EffectBefore::Absent => blank,
            EffectBefore::File { hash, mode } => {
                Self { was: "file", mode: Some(format!("{mode:04o}")), sha256: Some(hex(hash)), ..blank }
            }
            EffectBefore::Symlink { target } => Self { was: "symlink", target: Some(lossy(target)), ..blank },
        }
    }
}

/// The rollback that undid the effect. `None` if it skipped the effect: that is not undone.
fn undone_by(compensation: &Compensation) -> Option<&RollbackId> {
    compensation.rolled_back_by.as_ref().filter(|_| compensation.state != CompensationState::Skipped)
}

/// Compensations, one a line, and the errors of those that failed.
pub(crate) fn list(all: &[Compensation]) -> String {
    let mut table = TextTable::new(&["COMPENSATION", "STATE", "TRIES", "STEP", "PHASE", "UNDONE BY", "ABOUT"]);
    for one in all {
        let state = one.state.as_str();
        let rolled_back = if undone_by(one).is_some() { ", rolled back" } else { "" };
        table.row(vec![
            Cell::new(style::STRONG, one.id.short()),
            Cell::new(state_style(one.state), &format!("{state}{rolled_back}")),
            Cell::new(style::DIM, &one.attempts.to_string()),
            one.step.as_str().into(),
            one.phase.as_str().into(),
            action(&one.action).as_str().into(),
            Cell::new(style::DIM, one.description.as_deref().unwrap_or("")),
        ]);
    }
    let mut out = table.render("No compensations.");
    for one in all.iter().filter(|one| one.state == CompensationState::Failed) {
        let why = one.last_error.as_deref().unwrap_or("no reason was recorded");
        out += &format!("{} {}: {}\n", styled(style::BAD, "failed"), plain(&one.step), plain(why));
    }
    // A step that needs no undo is not one that is left.
    let has_undo = |one: &&Compensation| !matches!(one.action, EffectAction::Skip { .. });
    let open = all.iter().filter(has_undo).filter(|one| one.state.is_open()).count();
    if let (Some(first), true) = (all.first(), open > 0) {
        let run = first.run_id.short();
        let hint = format!(
            "{open} of {} not undone; to undo, the last first: ic compensation run {run}",
            all.iter().filter(has_undo).count()
        );
        out += &format!("{}\n", styled(style::DIM, &hint));
    }
    out
}

/// A few words about how an effect is undone.
pub(crate) fn action(action: &EffectAction) -> String {
    action.said()
}

pub(crate) fn state_style(state: CompensationState) -> Style {
    match state {
        CompensationState::Done => style::GOOD,
        CompensationState::Failed => style::BAD,
        CompensationState::Running => style::WARN,
        CompensationState::Registered | CompensationState::Skipped => style::DIM,
        CompensationState::Armed => style::NONE,
    }
}
