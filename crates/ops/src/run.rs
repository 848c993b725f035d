//! Creating, changing and cancelling runs.

use ic_base::{Result, RunId, Timestamp};
use ic_dispatch::{Dispatch, cancel};
use ic_phase::Run;
use ic_phase::run::{self, NewRun, Settings};
use ic_phase::skip::{self, Skip};
use ic_runtrack::{Agent, agent};
use ic_store::Transaction;

use crate::Kernel;
use crate::checkpoint::auto::{Occasion, Taken};
use crate::checkpoint::{self, Warning};

/// A run that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The run.
    pub run: Run,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Creates a run; its id is given here. With `kept`, a configured state database is looked at as it is at the beginning, and where
/// checkpoints are taken automatically the working tree is captured.
pub fn create(kernel: &Kernel, new: NewRun, kept: Option<&checkpoint::Settings>) -> Result<Created> {
    create_with(kernel, new, kept, |_, _, _| Ok(()))
}

/// As [`create`], with what else is recorded in the same transaction.
pub fn create_with(
    kernel: &Kernel,
    mut new: NewRun,
    kept: Option<&checkpoint::Settings>,
    also: impl Fn(&Transaction<'_>, Timestamp, &Run) -> Result<()>,
) -> Result<Created> {
    new.id = kernel.context.new_id::<RunId>();
    kernel.read(|snapshot| kernel.calling_dispatch(snapshot))?;
    let taken = match kept {
        // The row gets the run's id when there is a run.
        Some(settings) => Taken::take_first(kernel, settings, &new),
        None => Taken::nothing(),
    };
    kernel.write(|tx, now| {
        let run = run::create(tx, now, new.clone())?;
        let occasion = Occasion { run_id: &run.id, epoch: run.epoch, phase: &run.phase };
        taken.record(tx, now, occasion, || Ok(run.seq))?;
        also(tx, now, &run)?;
        Ok(Created { run, warnings: taken.warnings.clone() })
    })
}

/// Changes settings of a run. Errors: `rolling_back`.
pub fn set(kernel: &Kernel, reference: &str, settings: &Settings) -> Result<Run> {
    kernel.write(|tx, now| run::set(tx, now, &kernel.run(tx, reference)?, settings))
}

/// Marks a phase ahead to be passed over; returns the run, the skip, and whether it is new.
pub fn skip(kernel: &Kernel, reference: &str, phase: &str, reason: &str) -> Result<(Run, Skip, bool)> {
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        let (skip, is_new) = skip::add(tx, now, &run, phase, reason)?;
        Ok((run, skip, is_new))
    })
}

/// A run that was called off, with what ended with it, as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// The run as it is now.
    pub run: Run,
    /// The dispatches that had not ended; they are cancelled.
    pub dispatches: Vec<Dispatch>,
    /// The agents that were active; they are failed.
    pub agents: Vec<Agent>,
}

/// Calls a run off, with its unfinished dispatches and active agents. Errors: `run_not_active`, `rolling_back`.
pub fn cancel(kernel: &Kernel, reference: &str, reason: Option<&str>) -> Result<Cancelled> {
    kernel.write(|tx, now| {
        let run = run::cancel(tx, now, &kernel.run(tx, reference)?, reason)?;
        let dispatches = cancel::cancel_unfinished(tx, now, &run.id, reason)?;
        let agents = agent::fail_active(tx, now, &run.id, run.epoch)?;
        Ok(Cancelled { run, dispatches, agents })
    })
}
