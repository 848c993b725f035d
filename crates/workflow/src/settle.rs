//! The records of a step after an attempt: how it ended, its commits, its outputs, what is known about its undo.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use ic_base::{Result, Timestamp};
use ic_checkpoint::git;
use ic_dispatch::dispatch::{self, DispatchEnding};
use ic_dispatch::status::DispatchStatus;
use ic_dispatch::{Dispatch, code, report};
use ic_effects::EffectAction;
use ic_effects::child::{ChildExit, CommandOutcome};
use ic_effects::compensation::{self, CompensationEnd, StepEnd};
use ic_effects::tail::with_tail;
use ic_effects::undo::{describe, written};
use ic_ledger::Transaction;
use ic_ledger::regular_file::open_regular_itself;

use crate::flow::Flow;
use crate::job::outputs_of;
use crate::table::{self, StepRow, WorkflowStepState};

/// The number of bytes of outputs that are read.
const LONGEST_OUTPUTS: u64 = 1 << 20;

/// The exit of an attempt of which nothing ran.
const NOT_BEGUN: ChildExit = ChildExit::NotStarted(String::new());

impl Flow<'_> {
    /// Records the end of an attempt; `will_retry`: another one follows.
    pub(crate) fn ended(&mut self, at: usize, outcome: &CommandOutcome, will_retry: bool) -> Result<()> {
        let Some(row) = self.rows.get(&at).cloned() else { return Ok(()) };
        let error = match &outcome.exit {
            ChildExit::Code(0) => None,
            other => Some(with_tail(&describe(other), &outcome.tail)),
        };
        let state = match &outcome.exit {
            ChildExit::Code(0) => WorkflowStepState::Succeeded,
            ChildExit::Cancelled => WorkflowStepState::Interrupted,
            // The row stays `running`: after a crash before the retry, the next executor takes the step for interrupted.
            _ if will_retry => WorkflowStepState::Running,
            _ => WorkflowStepState::Failed,
        };
        let row = StepRow {
            state,
            exit_code: match outcome.exit {
                ChildExit::Code(code) => Some(i64::from(code)),
                _ => None,
            },
            error,
            duration_ms: i64::try_from(outcome.duration.as_millis()).ok(),
            child: None,
            ..row
        };
        self.settle(at, row, Some(&outcome.exit))
    }

    /// Records that the attempts of a dead executor have ended. Their processes were ended when the run was taken over.
    pub(crate) fn lose_running(&mut self) -> Result<()> {
        let running = self.in_state(&[WorkflowStepState::Running]);
        let first = running.iter().filter_map(|at| self.rows.get(at)).min_by_key(|row| row.started);
        if let Some(first) = first {
            // Commits since the first of them began are their work.
            self.head.clone_from(&first.head);
        }
        for at in running {
            let Some(row) = self.rows.get(&at).cloned() else { continue };
            // A process that is not on record did not become the command.
            let exit = row.child.is_none().then_some(NOT_BEGUN);
            let error = Some("its executor died".to_owned());
            let row = StepRow { state: WorkflowStepState::Interrupted, error, child: None, ..row };
            self.settle(at, row, exit.as_ref())?;
        }
        Ok(())
    }

    /// Records that a step which failed is not tried again, though retries were left: another failure ended the workflow.
    pub(crate) fn give_up(&mut self, at: usize) -> Result<()> {
        let Some(row) = self.rows.get(&at).cloned() else { return Ok(()) };
        // The last attempt failed, and the next one was not begun. For its undo, such a step has failed (`end_of`).
        self.settle(at, StepRow { state: WorkflowStepState::Interrupted, ..row }, Some(&NOT_BEGUN))
    }

    /// Records that steps which need a failed one are skipped.
    pub(crate) fn pass_over_dependents(&mut self, failed: usize) -> Result<()> {
        let because = format!("it needs {}, which failed", self.definition.steps[failed].id);
        // A resume leaves a step that it forgot `pending`: no attempt of this executor was begun.
        let begun = |at: &usize| self.rows.get(at).is_some_and(|row| row.state != WorkflowStepState::Pending);
        let passed: Vec<(usize, StepRow)> = self
            .plan
            .descendants(failed)
            .into_iter()
            .filter(|at| !begun(at))
            .map(|at| {
                let row = self.rows.get(&at).cloned();
                let row = row.unwrap_or_else(|| StepRow::pending(&self.definition.steps[at].id));
                (at, StepRow { state: WorkflowStepState::Skipped, error: Some(because.clone()), ..row })
            })
            .collect();
        self.saga.write(|tx, now| {
            passed
                .iter()
                .try_for_each(|(_, row)| table::put_step(tx, now, &self.run.id, self.run.epoch, row).map(|_| ()))
        })?;
        self.rows.extend(passed);
        Ok(())
    }

    /// Records a step that runs no longer, with its commits, its outputs, and what is known about its undo. `exit`: how its command ended;
    /// `None`: it is not known.
    fn settle(&mut self, at: usize, row: StepRow, exit: Option<&ChildExit>) -> Result<()> {
        let step = &self.definition.steps[at];
        // The commits are read from where HEAD was read last, so that no commit is recorded for two steps.
        let since = if self.head.is_some() { self.head.clone() } else { row.head.clone() };
        // Asked before the write lock is taken: git may take long, and every other process waits for that lock.
        let head = git::head(&self.workspace.root);
        let commits = if head == since || head.is_none() {
            report::DispatchReport::default()
        } else {
            // Commits that git cannot list are found by the next checkpoint; a rollback asks before it touches them.
            let log = git::log_since(&self.workspace.root, since.as_deref(), &[]).unwrap_or_default();
            report::parse(&log).unwrap_or_default()
        };
        let outputs = row.log.as_deref().map(|log| read_outputs(&outputs_of(log))).unwrap_or_default();
        let runs_when_failed = step.compensate.as_ref().is_none_or(|declared| declared.on_failure);
        self.saga.write(|tx, now| {
            table::put_step(tx, now, &self.run.id, self.run.epoch, &row)?;
            if let Some(id) = &row.dispatch_id {
                let dispatch = dispatch::get(tx, id)?;
                code::record(tx, now, &dispatch, &commits)?;
                // A rollback or a cancelling may have ended the dispatch while the command ran.
                if dispatch.status == DispatchStatus::Running && dispatch.rolled_back_by.is_none() {
                    end_dispatch(tx, now, &dispatch, &row, matches!(exit, Some(ChildExit::TimedOut)))?;
                }
            }
            // A step that is tried again keeps its compensation open: the next attempt uses it.
            let Some(id) = row.compensation_id.as_ref().filter(|_| row.state != WorkflowStepState::Running) else {
                return Ok(());
            };
            let compensation = compensation::get(tx, id)?;
            if !compensation.state.is_open() {
                return Ok(());
            }
            let action = learn(&compensation.action, &self.workspace.root);
            compensation::end_step(tx, now, &compensation, end_of(exit), &outputs, &action)?;
            if row.state == WorkflowStepState::Failed && !runs_when_failed {
                let why = "declared not to run when its own step failed";
                compensation::finish(tx, now, &compensation, CompensationEnd::Skipped(why))?;
            }
            Ok(())
        })?;
        // HEAD is kept only once the commits are on record: after an error, the next call finds them again.
        self.head = head;
        self.rows.insert(at, row);
        Ok(())
    }
}

/// The end of a step; `None` if it was ended in the middle, because it may have had its effect.
fn end_of(exit: Option<&ChildExit>) -> Option<StepEnd> {
    match exit? {
        ChildExit::Code(0) => Some(StepEnd::Succeeded),
        ChildExit::Code(_) | ChildExit::NotStarted(_) => Some(StepEnd::Failed),
        ChildExit::Signal(_) | ChildExit::TimedOut | ChildExit::Cancelled => None,
    }
}

fn end_dispatch(
    tx: &Transaction<'_>,
    now: Timestamp,
    dispatch: &Dispatch,
    row: &StepRow,
    timed_out: bool,
) -> Result<()> {
    let error = row.error.as_deref().unwrap_or_default();
    let ending = match row.state {
        WorkflowStepState::Succeeded => DispatchEnding::Completed { summary: None, verdict: None },
        WorkflowStepState::Failed if timed_out => DispatchEnding::TimedOut { error },
        WorkflowStepState::Failed => DispatchEnding::Failed { error },
        // It still runs, or can be resumed.
        WorkflowStepState::Running
        | WorkflowStepState::Interrupted
        | WorkflowStepState::Pending
        | WorkflowStepState::Skipped => {
            return dispatch::set_process(tx, &dispatch.id, None);
        }
    };
    dispatch::finish(tx, now, dispatch, &ending).map(|_| ())
}

/// The action of an undo, completed after its step has ended: with the process whose number the step wrote down.
fn learn(action: &EffectAction, root: &Path) -> EffectAction {
    match action {
        EffectAction::KillProcess { pid_file: Some(file), identity: None, before } => EffectAction::KillProcess {
            pid_file: Some(file.clone()),
            // A process that was in the file before the step began is not the step's.
            identity: written(root, file).filter(|identity| before.as_ref() != Some(identity)),
            before: before.clone(),
        },
        other => other.clone(),
    }
}

/// Variables that decide what programs load and run. A step may pass on the output of others, which must not set them for its undo.
const STEERING: &[&str] = &[
    "BASHOPTS", "BASH_ENV", "CDPATH", "CLASSPATH", "EDITOR", "ENV", "HOME", "IFS", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS",
    "NODE_PATH", "PAGER", "PATH", "PERL5DB", "PERL5LIB", "PERL5OPT", "PS4", "RUBYLIB", "RUBYOPT", "SHELL", "SHELLOPTS",
    "VISUAL", "_JAVA_OPTIONS",
];
const STEERING_FAMILIES: &[&str] = &["DYLD_", "GIT_", "IC_", "LD_", "PYTHON", "XDG_"];

/// The `KEY=VALUE` lines that a step wrote. Other lines, and names that are ours or control programs, are ignored.
fn read_outputs(path: &Path) -> BTreeMap<String, String> {
    let mut bytes = Vec::new();
    // Only a regular file is opened: a pipe that a step put in its place would block for ever, and a link may lead to another's file.
    let read = open_regular_itself(path).and_then(|file| file.take(LONGEST_OUTPUTS).read_to_end(&mut bytes));
    if read.is_err() {
        return BTreeMap::new();
    }
    // These are what a shell takes for the name of a variable, without the names that steer programs.
    let is_name = |name: &str| {
        !name.is_empty()
            && !STEERING.contains(&name)
            && !STEERING_FAMILIES.iter().any(|family| name.starts_with(family))
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, value)| is_name(key) && !value.contains('\0'))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
