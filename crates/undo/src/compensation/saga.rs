//! The right to undo the effects of a run, and how a run is closed for it.
//!
//! The owner holds the run's lock and a token; each write of the journal happens in a transaction that checks the token.
//! A process that takes over after a crash first ends what its predecessor left running.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ic_base::{CheckpointId, CompensationId, Diagnose, Result, RunId, Timestamp};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{CheckpointKind, CheckpointLink};
use ic_dispatch::process;
use ic_effects::compensation::{self, Compensation, CompensationEnd, CompensationState};
use ic_effects::undo::{self, GRACE};
use ic_kernel::Kernel;
use ic_kernel::owner::{self, OwnerLock};
use ic_ledger::Transaction;
use ic_ledger::events::{EventType, NewEvent};
use ic_phase::{Run, RunStatus, run};
use ic_worktree::capture::{Purpose, Shot};
use ic_worktree::{CaptureSettings, Workspace};

/// Who watches compensations being run.
pub trait Sink {
    /// An attempt begins, and is on record.
    fn begins(&mut self, compensation: &Compensation);
    /// The attempt ended, and its outcome is on record.
    fn ended(&mut self, compensation: &Compensation);
}

/// No caller watches: only a plan is made, or the journal reports what happened.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Sink for Unwatched {
    fn begins(&mut self, _: &Compensation) {}
    fn ended(&mut self, _: &Compensation) {}
}

/// The right to execute or compensate a run, until it is dropped.
pub struct Saga<'k> {
    /// The ledger and what belongs to it.
    pub kernel: &'k Kernel,
    /// How content is kept.
    pub settings: &'k CaptureSettings,
    /// The run that is taken.
    pub run_id: RunId,
    /// Set from elsewhere: no further undo begins, and the one under way is ended.
    pub interrupted: Arc<AtomicBool>,
    token: String,
    _lock: OwnerLock,
}

impl<'k> Saga<'k> {
    /// Takes the run over. Errors: `work_running` while another process has it, `rolling_back` while a rollback over several
    /// layers is not finished: it has a journal of its own.
    pub fn take(kernel: &'k Kernel, settings: &'k CaptureSettings, run_id: &RunId) -> Result<Self> {
        let saga = Self::take_for_rollback(kernel, settings, run_id)?;
        match kernel.ledger.read(|snapshot| ic_kernel::journal::table::require_finished(snapshot, run_id)) {
            Ok(()) => Ok(saga),
            Err(error) => {
                // The explanation of the refusal depends on whether a process has the run, and until this drop this call has it.
                drop(saga);
                kernel.read(|_| Err(error))
            }
        }
    }

    /// As [`Saga::take`], for a rollback over several layers itself.
    pub(crate) fn take_for_rollback(kernel: &'k Kernel, settings: &'k CaptureSettings, run_id: &RunId) -> Result<Self> {
        // The lock is taken before the token: a caller that is refused must not make the writes of the owner fail.
        let lock = OwnerLock::take(kernel.store(), run_id)?;
        let token = kernel.context.new_id::<CompensationId>().as_str().to_owned();
        // The lock ends with its process; the token also stops one that was thought dead and resumes writing.
        kernel.write(|tx, now| owner::claim(tx, now, run_id, &token))?;
        let interrupted = Arc::default();
        Ok(Self { kernel, settings, run_id: run_id.clone(), interrupted, token, _lock: lock })
    }

    /// Whether a run could be taken over now. Nothing is made or kept. Errors: `work_running`, `stale_dispatch`.
    pub fn require_free(kernel: &Kernel, run_id: &RunId) -> Result<()> {
        OwnerLock::require_free(kernel.store(), run_id)?;
        kernel.read(|snapshot| kernel.calling_dispatch(snapshot).map(|_| ()))
    }

    /// Whether [`Saga::take`] would take a run over now. Nothing is made or kept.
    pub fn require_takeable(kernel: &Kernel, run_id: &RunId) -> Result<()> {
        Self::require_free(kernel, run_id)?;
        kernel.read(|snapshot| ic_kernel::journal::table::require_finished(snapshot, run_id))
    }

    /// Writes in one transaction, if the run still is ours.
    pub fn write<T>(&self, write: impl Fn(&Transaction<'_>, Timestamp) -> Result<T>) -> Result<T> {
        // The caller may be work that its own rollback has marked. The token decides who may write.
        self.kernel.write_late_too(|tx, now| {
            owner::require(tx, &self.run_id, &self.token)?;
            write(tx, now)
        })
    }

    /// Ends the steps and undos of this run that a predecessor left running. The caller has started nothing yet.
    pub fn end_children(&self) -> Result<()> {
        let children = self.kernel.read(|snapshot| self.kernel.children(snapshot, &self.run_id))?;
        children.iter().try_for_each(|child| process::end_group(child, GRACE).map(|_| ()))
    }

    /// Ends what a predecessor left running, and records of its undos that it is not known how far they came.
    pub(crate) fn end_attempts(&self) -> Result<()> {
        let running = self.kernel.read(|snapshot| {
            let mut all = compensation::list(snapshot, &self.run_id)?;
            all.retain(|one| one.state == CompensationState::Running);
            Ok(all)
        })?;
        // Commands are ended before that is recorded: one that still ran could finish its undo after the record.
        self.end_children()?;
        if running.is_empty() {
            return Ok(());
        }
        self.clear_up(&running)?;
        self.write(|tx, now| {
            let end = |one| compensation::finish(tx, now, one, CompensationEnd::CutOff).map(|_| ());
            running.iter().try_for_each(end)
        })
    }

    /// Removes what these undos left under temporary names, where they died.
    pub(crate) fn clear_up(&self, undos: &[Compensation]) -> Result<()> {
        // If the project is gone, so is what was left in it.
        if let Ok(workspace) = Workspace::of_run(self.kernel, &self.run()?, self.settings) {
            for one in undos {
                // A file that cannot be removed is in the way of nothing.
                let _ = undo::clear_up(one, &workspace.root);
            }
        }
        Ok(())
    }

    /// The run, read anew.
    pub fn run(&self) -> Result<Run> {
        self.kernel.read(|snapshot| run::get(snapshot, &self.run_id))
    }

    /// Closes the run: until it is opened again it does not advance, and no work in it is completed. Errors: `corrupt` if it is closed and
    /// its status before that is not known.
    pub fn close(&self) -> Result<()> {
        self.write(|tx, now| {
            let run = run::get(tx, &self.run_id)?;
            if run.status == RunStatus::RollingBack {
                // A status that could not be restored at the end must be found out before an effect is undone: no call makes an effect
                // again.
                return owner::status_before(tx, &run.id, RunStatus::parse).map(|_| ());
            }
            owner::remember_status(tx, &run.id, Some(run.status.as_str()))?;
            ic_ledger::events::append(tx, now, &event(&run, EventType::CompensatingBegun))?;
            run::close_for_rollback(tx, now, &run.id)
        })
    }

    /// The status that a closed run had before; `None` for one that is not closed, or that a rollback closed.
    pub(super) fn status_before(&self) -> Result<Option<RunStatus>> {
        self.kernel.read(|snapshot| owner::status_before(snapshot, &self.run_id, RunStatus::parse))
    }

    /// Gives the run back the status that it had before it was closed.
    pub fn reopen(&self) -> Result<()> {
        self.write(|tx, now| self.reopen_in(tx, now))
    }

    /// As [`Saga::reopen`], in a transaction of the caller's. Errors: `corrupt` if the status is not known; the run stays closed.
    pub fn reopen_in(&self, tx: &Transaction<'_>, now: Timestamp) -> Result<()> {
        let run = run::get(tx, &self.run_id)?;
        if run.status != RunStatus::RollingBack {
            return Ok(());
        }
        // No status is kept of a run that the fence of a rollback closed: once that rollback has ended, the run is active.
        let before = owner::status_before(tx, &run.id, RunStatus::parse)?.unwrap_or(RunStatus::Active);
        owner::remember_status(tx, &run.id, None)?;
        ic_ledger::events::append(tx, now, &event(&run, EventType::CompensatingEnded))?;
        run::reopen(tx, now, &run.id, before)
    }

    /// Captures the tree of the run, with files of `force` that ignore rules hide. Records it for that epoch of the run together with what
    /// `also` writes, and returns the recorded capture.
    pub(crate) fn keep_tree(
        &self,
        (message, epoch): (String, i64),
        force: BTreeSet<Vec<u8>>,
        also: impl Fn(&Transaction<'_>, Timestamp, &CheckpointId) -> Result<()>,
    ) -> Result<Shot> {
        let run = self.run()?;
        let workspace = Workspace::of_run(self.kernel, &run, self.settings)?;
        let _held = workspace.lock(LockMode::Exclusive)?;
        let link = CheckpointLink { run_id: Some(run.id), message: Some(message), ..CheckpointLink::default() };
        let purpose = Purpose { force, ..Purpose::new(CheckpointKind::Safety, link) };
        let shot = workspace.shoot(purpose, &CaptureProgress::default())?;
        self.write(|tx, now| {
            shot.record(tx, now, Some(epoch))?;
            also(tx, now, shot.id())
        })?;
        Ok(shot.recorded())
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// A file beside the ledger for what a command of this run says; its directory is made.
    pub fn log_file(&self, name: &str) -> Result<PathBuf> {
        let directory = self.kernel.log_directory(&self.run_id);
        ic_ledger::private::directories(&directory).while_doing(|| format!("making {}", directory.display()))?;
        Ok(directory.join(name))
    }
}

fn event(run: &Run, event_type: EventType) -> NewEvent<'_> {
    NewEvent::of(&run.id, run.epoch, event_type)
}
