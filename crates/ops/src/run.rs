//! Creating, changing, cancelling and reopening runs.

mod cancel;

use std::ops::ControlFlow;
use std::path::Path;

use ic_base::{AgentId, Code, Diagnosis, DispatchId, Result, RunId, Timestamp};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::owner::OwnerLock;
use ic_ledger::{Snapshot, Transaction};
use ic_phase::gate::Gates;
use ic_phase::gate::{AuthorRule, Requirement};
use ic_phase::run::{self, NewRun, RunSettings};
use ic_phase::skip::{self, SkipRecord};
use ic_phase::{Chain, Run};
use ic_runtrack::{Agent, agent};

use ic_kernel::Kernel;
use ic_worktree::Warning;
use ic_worktree::auto::TakenTree;
use ic_worktree::capture::CaptureOccasion;

use crate::advance;
use crate::advance::authors::require_another;

pub(crate) use cancel::is_executed;
pub use cancel::{CancelPart, Cancelled, Worker, cancel};

/// A run that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedRun {
    /// The run as recorded.
    pub run: Run,
    /// Whether this call made it; else it was open already, under the same scope.
    pub is_new: bool,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Creates a run; its id is given here. With `kept`, a configured state database is looked at as it stands at the beginning, and where
/// checkpoints are taken automatically the working tree is captured.
pub fn create(kernel: &Kernel, new: &NewRun, kept: Option<&ic_worktree::CaptureSettings>) -> Result<CreatedRun> {
    create_with(kernel, new, kept, |_, _, _| Ok(()))
}

/// As [`create`], with what else is recorded in the same transaction.
pub fn create_with(
    kernel: &Kernel,
    new: &NewRun,
    kept: Option<&ic_worktree::CaptureSettings>,
    also: impl Fn(&Transaction<'_>, Timestamp, &Run) -> Result<()>,
) -> Result<CreatedRun> {
    let id: RunId = kernel.context.new_id();
    let open = kernel.read(|snapshot| {
        // A call that would be refused is refused before the tree is captured.
        kernel.calling_dispatch(snapshot)?;
        open_already(snapshot, new)
    })?;
    if let Some(open) = open {
        return Ok(open);
    }
    let taken = match kept {
        // The row gets the run's id when there is a run.
        Some(settings) => TakenTree::take_first(kernel, settings, &id, new),
        None => TakenTree::nothing(),
    };
    kernel.write(|tx, now| {
        // Another process may have made it while the tree was captured.
        if let Some(open) = open_already(tx, new)? {
            return Ok(open);
        }
        let run = run::create(tx, now, id.clone(), new.clone())?;
        let occasion = CaptureOccasion { run_id: &run.id, epoch: run.epoch, phase: &run.phase };
        taken.record(tx, now, occasion, || Ok(run.seq))?;
        also(tx, now, &run)?;
        Ok(CreatedRun { run, is_new: true, warnings: taken.warnings.clone() })
    })
}

/// The run that a call means which is made again: the one that is open in the project under the same scope, for the same goal on the
/// same chain. `None`: none is open under this scope, or the run has none.
///
/// Errors: `scope_taken` where another one is open: `scope:NAME` would name neither.
fn open_already(snapshot: &Snapshot<'_>, new: &NewRun) -> Result<Option<CreatedRun>> {
    let Some(scope) = &new.scope_id else { return Ok(None) };
    let Some(run) = ic_phase::run_reference::open_of_scope(snapshot, scope, &new.project_dir)? else {
        return Ok(None);
    };
    let short = run.id.short();
    // A goal is recorded without the secrets in it.
    if run.goal != ic_base::mask::mask(&new.goal) || run.chain != new.chain {
        let message = format!("The run {short} is open under the scope {scope:?}, with another goal or other phases.");
        return Err(Diagnosis::new(Code::ScopeTaken, message)
            .hint(format!(
                "use it: ic run status {short}; or end it: ic run cancel {short}; or name another --scope-id"
            ))
            .detail("run_id", run.id.as_str())
            .detail("scope_id", scope.as_str()));
    }
    let message = format!("the run {short} is open under the scope {scope:?}: no other one was created");
    Ok(Some(CreatedRun { run, is_new: false, warnings: vec![Warning { code: "run_exists", message }] }))
}

/// A run that is made for a session or for a command.
pub(crate) fn own(project: &Path, goal: String) -> NewRun {
    NewRun {
        goal,
        chain: Chain::of_session(),
        project_dir: project.to_owned(),
        complexity: None,
        auto_advance: true,
        gates: Gates::default(),
        scope_id: None,
        metadata: "{}".to_owned(),
    }
}

/// Completes a run that was made for a session or for a command, if it is open. Rolled-back work may do this, too, as it may record its
/// end.
pub(crate) fn complete_own(kernel: &Kernel, run: &RunId) -> Result<()> {
    // A run that a person cancelled, or that is in the middle of a rollback, is left alone.
    let open = |snapshot: &Snapshot<'_>| Ok(Some(run::get(snapshot, run)?).filter(|run| run.require_active().is_ok()));
    // Most have ended: the write lock is taken only for the others.
    if kernel.read(open)?.is_none() {
        return Ok(());
    }
    // One advance is enough: its chain is `work`, `done`, and it was made without gates. If trees are captured, the end
    // of its last work has a checkpoint, so none is taken here.
    kernel.write_late_too(|tx, now| open(tx)?.map_or(Ok(()), |run| advance::advance_in(kernel, tx, now, &run)))
}

/// Changes settings of a run. Errors: `rolling_back`.
pub fn set(kernel: &Kernel, reference: &str, settings: &RunSettings) -> Result<Run> {
    kernel.write(|tx, now| run::set(tx, now, &kernel.run(tx, reference)?, settings))
}

/// Marks a phase ahead to be skipped; returns the run, the skip, and whether it is new. Errors: those of
/// [`check_skip`](ic_phase::machine::check_skip); `invalid_value` for a phase in which steps of the run's workflow are to be run.
pub fn skip(kernel: &Kernel, reference: &str, phase: &str, reason: &str) -> Result<(Run, SkipRecord, bool)> {
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        let is_by_other = |asked: &[Requirement]| asked.iter().any(|requirement| requirement.by == AuthorRule::Other);
        if run.gates.iter().any(|(from, _, asked)| from == phase && is_by_other(asked)) {
            // Its gate would not be asked.
            require_another(kernel, tx, &run, &format!("{phase} cannot be skipped by its workers"))?;
        }
        let (skip, is_new) = skip::add(tx, now, &run, phase, reason)?;
        // This comes after `add`, so that its errors come first. A refusal here fails the transaction, and the skip
        // with it.
        require_no_steps(kernel, tx, &run, phase)?;
        Ok((run, skip, is_new))
    })
}

/// A workflow does all of its steps: if a phase were skipped, its steps would never run, or run in another phase.
fn require_no_steps(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, phase: &str) -> Result<()> {
    let left = (kernel.above.steps_left)(snapshot, run)?;
    let steps: Vec<String> = left.into_iter().filter(|step| step.phase == phase).map(|step| step.name).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let message = format!("{phase} cannot be skipped: steps of the workflow run in it ({}).", steps.join(", "));
    Err(Diagnosis::new(Code::InvalidValue, message)
        .hint("a workflow runs all of its steps; to leave some out, start one without them")
        .detail("phase", phase)
        .detail("steps", steps))
}

/// A cancelled run that is active again, with what its cancelling ended and no reopening revives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reopened {
    /// The run after the reopening.
    pub run: Run,
    /// The dispatches that stay cancelled.
    pub dispatches: Vec<Dispatch>,
    /// The agents that stay failed.
    pub agents: Vec<Agent>,
}

/// Makes a cancelled run active again. Errors: `run_not_active` for one that is not cancelled, `rolling_back`; `work_running`
/// while an executor of the run still lives.
pub fn reopen(kernel: &Kernel, reference: &str, reason: &str) -> Result<Reopened> {
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        let reopened = run::reopen_cancelled(tx, now, &run, reason)?;
        // An executor ends at its next write because the run is cancelled. Reopened before, it would continue a step whose dispatch has
        // ended.
        OwnerLock::require_free(kernel.store(), &run.id)?;
        let (dispatches, agents) = ended_by_cancel(tx, &run.id)?;
        Ok(Reopened { run: reopened, dispatches, agents })
    })
}

/// The work that the newest cancelling of a run ended. Whatever ended before it has its event before it.
fn ended_by_cancel(tx: &Transaction<'_>, run_id: &RunId) -> Result<(Vec<Dispatch>, Vec<Agent>)> {
    let (mut dispatches, mut agents) = (Vec::new(), Vec::new());
    ic_ledger::events::each_of_run(tx, run_id, |event| {
        match (event.event_type.as_str(), event.subject_id) {
            // What an earlier cancelling ended was reported when the run was reopened after it.
            ("run_cancelled", _) => {
                dispatches.clear();
                agents.clear();
            }
            ("dispatch_cancelled", Some(id)) => dispatches.push(DispatchId::from_ledger(id)),
            ("agent_failed", Some(id)) => agents.push(AgentId::from_ledger(id)),
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let dispatches = dispatches.iter().map(|id| dispatch::get(tx, id)).collect::<Result<_>>()?;
    let agents = agents.iter().map(|id| agent::get(tx, id)).collect::<Result<_>>()?;
    Ok((dispatches, agents))
}
