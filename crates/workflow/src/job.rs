//! One step: what is recorded before it begins and after it ends, and the command between.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{CheckpointId, CompensationId, Diagnose, DispatchId, Result, Timestamp};
use ic_checkpoint::git;
use ic_checkpoint::lock::{self, Mode};
use ic_checkpoint::manifest::PathText;
use ic_dispatch::dispatch::{self, Ending, Work};
use ic_dispatch::status::DispatchStatus;
use ic_dispatch::{Dispatch, code, report};
use ic_ops::compensation::remember_files;
use ic_saga::Action;
use ic_saga::action::How;
use ic_saga::child::{Exit, Outcome, Program};
use ic_saga::compensation::{self, NewCompensation, State, StepEnd};
use ic_saga::process::ProcessIdentity;
use ic_saga::undo::{describe, with_tail, written};

use ic_store::Transaction;

use crate::definition::{self, Run};
use crate::flow::Flow;
use crate::table::{self, StepRow, StepState};

/// The longest log of an attempt, in bytes.
pub(crate) const LONGEST_LOG: u64 = 64 << 20;

/// More bytes of outputs are not read.
const LONGEST_OUTPUTS: u64 = 1 << 20;

/// A command that is ready to be run; its step is recorded as running.
pub(crate) struct Job {
    pub(crate) at: usize,
    pub(crate) program: Program,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) log: PathBuf,
}

impl Flow<'_> {
    /// Records that an attempt of a step begins: its checkpoint, its dispatch, its compensation, armed. `shared` is the
    /// checkpoint of steps that run now, which this one shares.
    pub(crate) fn begin(&mut self, at: usize, shared: Option<CheckpointId>) -> Result<Job> {
        let step = self.definition.steps[at].clone();
        let old = self.rows.get(&at).cloned();
        let is_retry = old.as_ref().is_some_and(|row| row.state == StepState::Running);
        let shot = match (&shared, is_retry) {
            (None, false) => self.shoot(at, format!("before the step {}", step.id))?,
            _ => None,
        };
        let _lock = lock::store(self.workspace.objects.path(), Mode::Shared, self.settings.busy_timeout)?;
        let action = step.compensate.as_ref().map(|declared| self.action(declared)).transpose()?;
        let log = self.saga.log_file(&format!("{}-{:04}.log", self.run.epoch, at + 1))?;
        let outputs = outputs_of(&log);
        std::fs::write(&outputs, b"").while_doing(|| format!("writing {}", outputs.display()))?;
        let new_dispatch: DispatchId = self.kernel.context.new_id();
        let new_compensation: CompensationId = self.kernel.context.new_id();
        let checkpoint = shot.as_ref().map(|shot| shot.id().clone()).or(shared);
        let row = self.saga.write(|tx, now| {
            if let Some(shot) = &shot {
                shot.record(tx, now, self.run.epoch)?;
            }
            let owner = (&self.run.id, self.run.epoch);
            let dispatch = self.dispatch_of(tx, now, &step, old.as_ref(), &new_dispatch)?;
            let made = action.as_ref().map(|action| (action, &new_compensation));
            let compensation_id = self.compensation_of(tx, now, &step, old.as_ref(), &dispatch.id, made)?;
            let row = StepRow {
                step: step.id.clone(),
                state: StepState::Running,
                started: 0,
                dispatch_id: Some(dispatch.id),
                checkpoint_id: old
                    .as_ref()
                    .and_then(|row| row.checkpoint_id.clone())
                    .or_else(|| checkpoint.clone()),
                compensation_id,
                attempts: old.as_ref().map_or(0, |row| row.attempts) + 1,
                exit_code: None,
                error: None,
                duration_ms: None,
                log: Some(log.clone()),
                head: old.as_ref().filter(|_| is_retry).map_or(self.head.clone(), |row| row.head.clone()),
                child: None,
            };
            table::put_step(tx, now, owner, &row)?;
            Ok(row)
        })?;
        let job = self.job(at, &step, &row, log);
        self.rows.insert(at, row);
        Ok(job)
    }

    /// The step's work under way, taken up; else a new dispatch, begun.
    fn dispatch_of(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        step: &definition::Step,
        old: Option<&StepRow>,
        new: &DispatchId,
    ) -> Result<Dispatch> {
        if let Some(id) = old.and_then(|row| row.dispatch_id.as_ref()) {
            let known = dispatch::get(tx, id)?;
            if !known.status.is_finished() {
                return Ok(known);
            }
        }
        let work = Work { name: Some(step.id.clone()), ..Work::default() };
        let made = dispatch::create(tx, now, new, (&self.run.id, self.run.epoch), &step.phase, &work)?;
        dispatch::start(tx, now, &made, None)
    }

    /// The step's compensation that is not run yet, taken up with its idempotency key; else a new one, armed.
    fn compensation_of(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        step: &definition::Step,
        old: Option<&StepRow>,
        dispatch_id: &DispatchId,
        new: Option<(&Action, &CompensationId)>,
    ) -> Result<Option<CompensationId>> {
        if let Some(id) = old.and_then(|row| row.compensation_id.as_ref())
            && compensation::get(tx, id)?.state.is_open()
        {
            return Ok(Some(id.clone()));
        }
        let Some((action, id)) = new else { return Ok(None) };
        let needs: Vec<String> =
            step.needs.iter().map(|need| self.definition.steps[*need].id.clone()).collect();
        let new = NewCompensation {
            id,
            run: (&self.run.id, self.run.epoch),
            dispatch_id: Some(dispatch_id),
            step: &step.id,
            needs: &needs,
            phase: &step.phase,
            action,
            description: None,
        };
        compensation::arm(tx, now, &new).map(|made| Some(made.id))
    }

    fn job(&self, at: usize, step: &definition::Step, row: &StepRow, log: PathBuf) -> Job {
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        let mut set = |key: &str, value: OsString| environment.push((key.into(), value));
        step.environment.iter().for_each(|(key, value)| set(key, value.into()));
        set("IC_DB", self.kernel.ledger.path().into());
        set("IC_RUN", self.run.id.as_str().into());
        set("IC_STEP", step.id.as_str().into());
        set("IC_OUTPUTS", outputs_of(&log).into());
        let dispatch = row.dispatch_id.as_ref().map_or("", DispatchId::as_str);
        set("IC_DISPATCH", dispatch.into());
        set(
            "IC_IDEMPOTENCY_KEY",
            row.compensation_id.as_ref().map_or(dispatch, CompensationId::as_str).into(),
        );
        Job {
            at,
            program: match &step.run {
                Run::Shell(line) => Program::Shell(line.clone()),
                Run::Argv(argv) => Program::Argv(argv.iter().map(OsString::from).collect()),
            },
            directory: self.run.project_dir.join(step.directory.as_deref().unwrap_or(Path::new(""))),
            environment,
            timeout: step.timeout,
            log,
        }
    }

    /// What a declared compensation does, with what it must remember of the tree as it is now.
    fn action(&self, declared: &definition::Compensate) -> Result<Action> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let how = || How {
            directory: declared.directory.as_deref().map(|d| PathText(ic_store::path_bytes(d).to_vec())),
            environment: declared.environment.clone(),
            timeout_ms: declared.timeout.map(millis),
            retries: declared.retries.max,
            backoff_ms: millis(declared.retries.backoff),
        };
        Ok(match &declared.action {
            definition::Action::Exec { argv } => Action::Exec { argv: argv.clone(), how: how() },
            definition::Action::Shell(line) => Action::Shell { line: line.clone(), how: how() },
            definition::Action::RestoreFile(paths) => {
                let paths: Vec<PathText> = paths.iter().map(|path| self.below_root(path)).collect();
                Action::RestoreFiles { files: remember_files(self.kernel, &self.workspace, &paths)? }
            }
            definition::Action::KillProcess(file) => {
                Action::KillProcess { pid_file: Some(self.below_root(file)), identity: None }
            }
            definition::Action::Skip(reason) => Action::Skip { reason: reason.clone() },
            definition::Action::Pivot(reason) => Action::Pivot { reason: reason.clone() },
            definition::Action::Retry(reason) => Action::Retry { reason: reason.clone() },
        })
    }

    /// Records the process of an attempt, before it does anything.
    pub(crate) fn born(&mut self, at: usize, identity: &ProcessIdentity) -> Result<()> {
        let Some(row) = self.rows.get_mut(&at) else { return Ok(()) };
        row.child = Some(identity.clone());
        let row = row.clone();
        self.saga.write(|tx, now| table::put_step(tx, now, (&self.run.id, self.run.epoch), &row))
    }

    /// Records how an attempt ended; `will_retry`: another one follows.
    pub(crate) fn ended(&mut self, at: usize, outcome: &Outcome, will_retry: bool) -> Result<()> {
        let Some(row) = self.rows.get(&at).cloned() else { return Ok(()) };
        let error = match &outcome.exit {
            Exit::Code(0) => None,
            other => Some(with_tail(&describe(other), &outcome.tail)),
        };
        let state = match &outcome.exit {
            Exit::Code(0) => StepState::Succeeded,
            Exit::Cancelled => StepState::Interrupted,
            _ if will_retry => StepState::Running,
            _ => StepState::Failed,
        };
        let row = StepRow {
            state,
            exit_code: match outcome.exit {
                Exit::Code(code) => Some(i64::from(code)),
                _ => None,
            },
            error,
            duration_ms: i64::try_from(outcome.duration.as_millis()).ok(),
            child: None,
            ..row
        };
        self.settle(at, row, matches!(outcome.exit, Exit::TimedOut))
    }

    /// Records that the attempt of an executor that died is over.
    pub(crate) fn lost(&mut self, at: usize) -> Result<()> {
        let Some(row) = self.rows.get(&at).cloned() else { return Ok(()) };
        if let Some(child) = &row.child {
            ic_saga::process::end_group(child, ic_saga::undo::GRACE)?;
        }
        let error = Some("its executor died".to_owned());
        self.settle(at, StepRow { state: StepState::Interrupted, error, child: None, ..row }, false)
    }

    /// Records that a step which failed is not tried again, though it might have been: something else ended the workflow.
    pub(crate) fn give_up(&mut self, at: usize) -> Result<()> {
        let Some(row) = self.rows.get(&at).cloned() else { return Ok(()) };
        self.settle(at, StepRow { state: StepState::Interrupted, ..row }, false)
    }

    /// Records that what needs a step that failed is not begun.
    pub(crate) fn pass_over_dependents(&mut self, failed: usize) -> Result<()> {
        let because = format!("it needs {}, which failed", self.definition.steps[failed].id);
        let begun = |at: &usize| self.rows.get(at).is_some_and(|row| row.state != StepState::Pending);
        let passed: Vec<(usize, StepRow)> = self
            .plan
            .descendants(failed)
            .into_iter()
            .filter(|at| !begun(at))
            .map(|at| {
                let row = self.rows.get(&at).cloned();
                let row = row.unwrap_or_else(|| StepRow::pending(&self.definition.steps[at].id));
                (at, StepRow { state: StepState::Skipped, error: Some(because.clone()), ..row })
            })
            .collect();
        self.saga.write(|tx, now| {
            passed
                .iter()
                .try_for_each(|(_, row)| table::put_step(tx, now, (&self.run.id, self.run.epoch), row))
        })?;
        self.rows.extend(passed);
        Ok(())
    }

    /// Records a step that is not under way any more, with its commits, its outputs, and what is known about its undo.
    fn settle(&mut self, at: usize, row: StepRow, timed_out: bool) -> Result<()> {
        let step = &self.definition.steps[at];
        let since = if self.head.is_some() { self.head.clone() } else { row.head.clone() };
        let head = git::head(&self.workspace.root);
        let commits = if head == since || head.is_none() {
            report::Report::default()
        } else {
            // Commits that git cannot tell are found by the next checkpoint; a rollback asks before it touches them.
            let log = git::log_since(&self.workspace.root, since.as_deref()).unwrap_or_default();
            report::parse(&log).unwrap_or_default()
        };
        let outputs = row.log.as_deref().map(|log| read_outputs(&outputs_of(log))).unwrap_or_default();
        let runs_when_failed = step.compensate.as_ref().is_none_or(|declared| declared.on_failure);
        self.saga.write(|tx, now| {
            table::put_step(tx, now, (&self.run.id, self.run.epoch), &row)?;
            if let Some(id) = &row.dispatch_id {
                let dispatch = dispatch::get(tx, id)?;
                code::record(tx, now, &dispatch, &commits)?;
                if dispatch.status == DispatchStatus::Running && dispatch.rolled_back_by.is_none() {
                    end_dispatch(tx, now, &dispatch, &row, timed_out)?;
                }
            }
            let Some(id) = row.compensation_id.as_ref().filter(|_| row.state != StepState::Running) else {
                return Ok(());
            };
            let compensation = compensation::get(tx, id)?;
            if !compensation.state.is_open() {
                return Ok(());
            }
            let end = if row.state == StepState::Succeeded { StepEnd::Succeeded } else { StepEnd::Failed };
            let action = learn(&compensation.action, &self.workspace.root);
            compensation::end_step(tx, now, &compensation, end, &outputs, &action)?;
            if row.state == StepState::Failed && !runs_when_failed {
                let why = "declared not to run when its own step failed";
                compensation::finish(tx, now, &compensation, State::Skipped, Some(why))?;
            }
            Ok(())
        })?;
        self.head = head;
        self.rows.insert(at, row);
        Ok(())
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
        StepState::Succeeded => Ending::Completed { summary: None, verdict: None },
        StepState::Failed if timed_out => Ending::TimedOut { error },
        StepState::Failed => Ending::Failed { error },
        // It goes on, or can be taken up again.
        StepState::Running | StepState::Interrupted | StepState::Pending | StepState::Skipped => {
            return Ok(());
        }
    };
    dispatch::finish(tx, now, dispatch, &ending).map(|_| ())
}

/// What is known about an undo now that its step has ended: the process whose number it wrote down.
fn learn(action: &Action, root: &Path) -> Action {
    match action {
        Action::KillProcess { pid_file: Some(file), identity: None } => {
            Action::KillProcess { pid_file: Some(file.clone()), identity: written(root, file) }
        }
        other => other.clone(),
    }
}

fn outputs_of(log: &Path) -> PathBuf {
    log.with_extension("outputs")
}

/// The `KEY=VALUE` lines that a step wrote. Lines that are none, and names that are ours, do not count.
fn read_outputs(path: &Path) -> BTreeMap<String, String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST_OUTPUTS).read_to_end(&mut bytes));
    if read.is_err() {
        return BTreeMap::new();
    }
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with("IC_")
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
