//! One step: the records that are written before it begins, and its command.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{CheckpointId, CompensationId, Diagnose, DispatchId, Result, RunId, Timestamp};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::manifest::PathText;
use ic_dispatch::Dispatch;
use ic_dispatch::dispatch::{self, DispatchWork};
use ic_dispatch::process::ProcessIdentity;
use ic_effects::EffectAction;
use ic_effects::action::How;
use ic_effects::child::Program;
use ic_effects::compensation::{self, Compensation, CompensationEnd, NewCompensation};
use ic_effects::undo::written;
use ic_ledger::{Snapshot, Transaction, private};
use ic_phase::point::{self, NewPoint, PointKind};
use ic_undo::compensation::remember_files;
use ic_worktree::StepShot;

use crate::definition::{self, StepCommand};
use crate::flow::Flow;
use crate::table::{self, StepRow, WorkflowStepState};

/// The longest log of an attempt, in bytes.
pub(crate) const LONGEST_LOG: u64 = 64 << 20;

/// A command that is ready to run; its step is recorded as running.
pub(crate) struct Job {
    pub(crate) at: usize,
    pub(crate) program: Program,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) log: PathBuf,
}

/// The compensation of a step that was begun before.
#[derive(Default)]
struct OpenCompensation {
    /// Not run yet, so it is kept, with its idempotency key.
    kept: Option<CompensationId>,
    /// Its undo was cut off, so it is not known what is left of the effect.
    cut_off: Option<Compensation>,
}

impl Flow<'_> {
    /// Records that an attempt of a step begins: its checkpoint, its dispatch, its armed compensation. `shared` is the checkpoint of steps
    /// that run now, which this one shares.
    pub(crate) fn begin(&mut self, at: usize, shared: Option<&CheckpointId>) -> Result<Job> {
        let step = self.definition.steps[at].clone();
        let old = self.rows.get(&at).cloned();
        // Only a failed attempt with retries left is still `running` here: after a crash, `lose_running` ends the row.
        // A retry begins from the point of its first attempt, so it takes no checkpoint of its own.
        let is_retry = old.as_ref().is_some_and(|row| row.state == WorkflowStepState::Running);
        let shot = match (&shared, is_retry) {
            (None, false) => self.shoot(at, format!("before the step {}", step.id))?,
            _ => None,
        };
        // A capture holds the lock of the store already. Taken twice, the lock would wait behind a sweep that waits for this very process.
        // It keeps a sweep from the contents that no row names before the transaction below.
        let _lock = match &shot {
            Some(_) => None,
            None => Some(lock::store(self.workspace.objects.path(), LockMode::Shared, self.settings.busy_timeout)?),
        };
        let open = self.open_compensation(old.as_ref())?;
        // This comes before the transaction: the action may read files of any size, and every process needs the write lock.
        let action = match (&step.compensate, &open.kept) {
            (Some(declared), None) => Some(self.action(declared)?),
            _ => None,
        };
        // There is one file for each step and epoch: the attempts append to it.
        let log = self.saga.log_file(&format!("{}-{:04}.log", self.run.epoch, at + 1))?;
        // Before the step is on record: a step that runs must find its file.
        make_outputs(&outputs_of(&log), open.kept.is_some())?;
        // The ids are made outside of the transaction: one that is run again must record the same ids.
        let new_dispatch: DispatchId = self.kernel.context.new_id();
        let new_compensation: CompensationId = self.kernel.context.new_id();
        let checkpoint = shot.as_ref().map(|shot| shot.id().clone()).or_else(|| shared.cloned());
        let (row, key) = self.saga.write(|tx, now| {
            // Checked in the transaction that begins the step: a cancelled run must not begin another one.
            self.require_ours(tx)?;
            if !is_retry {
                let attempt = next_attempt(tx, &self.run, &step.id)?;
                let new = NewPoint { kind: PointKind::Step, name: &step.id, attempt, session: None, title: None };
                record_point(tx, now, &new, &self.run.id, shot.as_ref(), shared)?;
            }
            let dispatch = self.dispatch_of(tx, now, &step, old.as_ref(), &new_dispatch)?;
            let new = action.as_ref().map(|action| (action, &new_compensation));
            let compensation_id = self.take_or_arm(tx, now, &step, &dispatch.id, &open, new)?;
            let key = if let Some(id) = &compensation_id {
                id.as_str().to_owned()
            } else {
                // Without a compensation the first dispatch gives the key, so that all attempts have the same.
                let first = table::first_dispatch(tx, &self.run.id, self.run.epoch, &step.id)?;
                first.as_ref().unwrap_or(&dispatch.id).as_str().to_owned()
            };
            let mut row = StepRow {
                step: step.id.clone(),
                dispatch_id: Some(dispatch.id),
                compensation_id,
                log: Some(log.clone()),
                ..self.running(old.as_ref(), checkpoint.as_ref())
            };
            row.started = table::put_step(tx, now, &self.run.id, self.run.epoch, &row)?;
            Ok((row, key))
        })?;
        let job = self.job(at, &step, &row, key, log);
        self.rows.insert(at, row);
        Ok(job)
    }

    /// The row of an attempt that begins; it keeps what the step had before its first attempt.
    fn running(&self, old: Option<&StepRow>, checkpoint: Option<&CheckpointId>) -> StepRow {
        let retried = old.filter(|row| row.state == WorkflowStepState::Running);
        StepRow {
            step: String::new(),
            state: WorkflowStepState::Running,
            started: 0,
            dispatch_id: None,
            // A resumed step keeps the checkpoint from before its first attempt, which may have changed the tree.
            checkpoint_id: old.and_then(|row| row.checkpoint_id.clone()).or_else(|| checkpoint.cloned()),
            compensation_id: None,
            attempts: old.map_or(0, |row| row.attempts) + 1,
            exit_code: None,
            error: None,
            duration_ms: None,
            log: None,
            // After a crash, the commits since this one are the step's, including those of an earlier attempt.
            head: retried.map_or(self.head.clone(), |row| row.head.clone()),
            child: None,
        }
    }

    /// The unfinished dispatch of the step, or a new one, which is begun.
    fn dispatch_of(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        step: &definition::WorkflowStep,
        old: Option<&StepRow>,
        new: &DispatchId,
    ) -> Result<Dispatch> {
        if let Some(id) = old.and_then(|row| row.dispatch_id.as_ref()) {
            let known = dispatch::get(tx, id)?;
            // The dispatch of an interrupted step has no end, and the next attempt continues its work.
            if !known.status.is_finished() {
                return Ok(known);
            }
        }
        let work = DispatchWork { name: Some(step.id.clone()), ..DispatchWork::default() };
        let made = dispatch::create(tx, now, new, &self.run.id, self.run.epoch, &step.phase, &work)?;
        dispatch::start(tx, now, &made, None)
    }

    /// The state of the step's compensation before an attempt.
    fn open_compensation(&self, old: Option<&StepRow>) -> Result<OpenCompensation> {
        let Some(id) = old.and_then(|row| row.compensation_id.as_ref()) else {
            return Ok(OpenCompensation::default());
        };
        let known = self.kernel.read(|snapshot| compensation::get(snapshot, id))?;
        Ok(match known.state.is_open() {
            true if known.is_cut_off() => OpenCompensation { kept: None, cut_off: Some(known) },
            true => OpenCompensation { kept: Some(id.clone()), cut_off: None },
            false => OpenCompensation::default(),
        })
    }

    /// The step's compensation for the attempt that begins: the one that was kept, or a new one.
    fn take_or_arm(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        step: &definition::WorkflowStep,
        dispatch: &DispatchId,
        open: &OpenCompensation,
        new: Option<(&EffectAction, &CompensationId)>,
    ) -> Result<Option<CompensationId>> {
        if let Some(cut_off) = &open.cut_off {
            // The step makes the effect anew, whatever is left of it, and the new undo reverts that.
            let why = "its step ran again after its undo was interrupted, and has its own undo";
            compensation::finish(tx, now, cut_off, CompensationEnd::Skipped(why))?;
        }
        Ok(match (&open.kept, new) {
            (Some(kept), _) => {
                compensation::begin_step_again(tx, now, kept, dispatch)?;
                Some(kept.clone())
            }
            (None, Some((action, id))) => Some(self.arm(tx, now, step, dispatch, action, id)?),
            (None, None) => None,
        })
    }

    /// Arms a new compensation of the step.
    fn arm(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        step: &definition::WorkflowStep,
        dispatch_id: &DispatchId,
        action: &EffectAction,
        id: &CompensationId,
    ) -> Result<CompensationId> {
        let needs: Vec<String> = step.needs.iter().map(|need| self.definition.steps[*need].id.clone()).collect();
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
        compensation::arm(tx, now, &new).map(|made| made.id)
    }

    fn job(&self, at: usize, step: &definition::WorkflowStep, row: &StepRow, key: String, log: PathBuf) -> Job {
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        let mut set = |key: &str, value: OsString| environment.push((key.into(), value));
        // The step's own variables come first: of two values of a name, the later one counts.
        step.environment.iter().for_each(|(key, value)| set(key, value.into()));
        set("IC_DB", self.kernel.ledger.name().into());
        set("IC_RUN", self.run.id.as_str().into());
        set("IC_STEP", step.id.as_str().into());
        set("IC_OUTPUTS", outputs_of(&log).into());
        set("IC_DISPATCH", row.dispatch_id.as_ref().map_or("", DispatchId::as_str).into());
        set("IC_IDEMPOTENCY_KEY", key.into());
        Job {
            at,
            program: match &step.run {
                StepCommand::Script { text, shell } => {
                    let argv = shell.argv(text);
                    Program::Argv(argv.into_iter().map(OsString::from).collect())
                }
                StepCommand::Argv(argv) => Program::Argv(argv.iter().map(OsString::from).collect()),
            },
            directory: self.run.project_dir.join(step.directory.as_deref().unwrap_or(Path::new(""))),
            environment,
            timeout: step.timeout,
            log,
        }
    }

    /// The action of a declared compensation, with the present contents that it must restore later.
    fn action(&self, declared: &definition::StepCompensation) -> Result<EffectAction> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let how = || How {
            directory: declared.directory.as_deref().map(|d| PathText(ic_ledger::path_bytes(d).to_vec())),
            environment: declared.environment.clone(),
            timeout_ms: declared.timeout.map(millis),
            retries: declared.retries.max,
            backoff_ms: millis(declared.retries.backoff),
        };
        Ok(match &declared.action {
            definition::StepAction::Exec { argv } => EffectAction::Exec { argv: argv.clone(), how: how() },
            definition::StepAction::Shell(line) => EffectAction::Shell { line: line.clone(), how: how() },
            definition::StepAction::RestoreFile(paths) => {
                let paths: Vec<PathText> = paths.iter().map(|path| self.below_root(path)).collect();
                EffectAction::RestoreFiles { files: remember_files(self.kernel, &self.workspace, &paths)? }
            }
            definition::StepAction::KillProcess(file) => {
                let file = self.below_root(file);
                // A file from an earlier run may name a process that this step has not started.
                let before = written(&self.workspace.root, &file);
                EffectAction::KillProcess { pid_file: Some(file), identity: None, before }
            }
            definition::StepAction::Skip(reason) => EffectAction::Skip { reason: reason.clone() },
            definition::StepAction::Pivot(reason) => EffectAction::Pivot { reason: reason.clone() },
            definition::StepAction::Retry(reason) => EffectAction::Retry { reason: reason.clone() },
        })
    }

    /// Records the process of an attempt, before the process does anything. Errors: `run_not_active` and `stale_phase`, as
    /// [`Flow::require_ours`]: then it never does anything.
    pub(crate) fn born(&mut self, at: usize, identity: &ProcessIdentity) -> Result<()> {
        let Some(row) = self.rows.get(&at) else { return Ok(()) };
        let row = StepRow { child: Some(identity.clone()), ..row.clone() };
        self.saga.write(|tx, now| {
            // A cancellation since the step began has ended the processes that it found, and this one did not exist then.
            self.require_ours(tx)?;
            if let Some(id) = &row.dispatch_id {
                dispatch::set_process(tx, id, Some(&ic_dispatch::worker::process_of(identity)))?;
            }
            table::put_step(tx, now, &self.run.id, self.run.epoch, &row).map(|_| ())
        })?;
        self.rows.insert(at, row);
        Ok(())
    }
}

/// The number of an attempt at a step that begins now: one more than that of the last point of the step which no rollback undid. So a point
/// that an undo left standing keeps its name.
fn next_attempt(snapshot: &Snapshot<'_>, run: &ic_phase::Run, step: &str) -> Result<i64> {
    let mut last = 0;
    for known in point::named_in(snapshot, &run.id, PointKind::Step, step)? {
        if ic_undo::points::taken_back_by(snapshot, run, known.seq)?.is_none() {
            last = last.max(known.attempt);
        }
    }
    Ok(last + 1)
}

/// Records the point before an attempt at a step. Steps that begin from one checkpoint share a point: a rollback to before one of them goes
/// to before all.
fn record_point(
    tx: &Transaction<'_>,
    now: Timestamp,
    new: &NewPoint<'_>,
    run: &RunId,
    shot: Option<&StepShot>,
    shared: Option<&CheckpointId>,
) -> Result<()> {
    let run = ic_phase::run::get(tx, run)?;
    if let Some(shot) = shot {
        return shot.record_point(tx, now, &run, new);
    }
    // Without a capture, the point has the event of the steps that it shares a checkpoint with, or one of its own.
    let known = match shared {
        Some(id) => point::of_checkpoint(tx, &run.id, id)?,
        None => None,
    };
    let seq = known.map_or_else(|| point::announce(tx, now, &run, new), Ok)?;
    point::insert(tx, now, &run, new, seq, shared)
}

/// The file in which a step writes its outputs, beside its log.
pub(crate) fn outputs_of(log: &Path) -> PathBuf {
    log.with_extension("outputs")
}

/// Makes the file of outputs, empty. `keeps`: the outputs of earlier attempts stay, for the undo that they share.
fn make_outputs(path: &Path, keeps: bool) -> Result<()> {
    let make = || {
        let mut file = private::open(path, File::options().create(true).read(true).append(true))?;
        if !keeps {
            return file.set_len(0);
        }
        // An empty file needs no line break: its last byte counts as one.
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        // An attempt may have been killed in the middle of a line.
        if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
    };
    make().while_doing(|| format!("writing {}", path.display()))
}
