//! An open ledger with what every operation needs beside it, and the door that is closed to late work.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};

use crate::owner;
use ic_base::{Code, Context, Diagnosis, DispatchId, Result, RollbackId, RunId, Timestamp};
use ic_checkpoint::objects::TreeMemory;
use ic_dispatch::process::ProcessIdentity;
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::{Actor, Ledger, Snapshot, Transaction, events};
use ic_phase::Run;
use ic_phase::run_reference::{self, ProjectScope, RunStanding};

use crate::closed_run;
use crate::dependents::Above;
use crate::idle_runs::standing;
use crate::own_actor::own_actor;

/// The dispatch on whose behalf a write is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its id, or the end of it.
    pub reference: String,
    /// Whether it was named in this very call, rather than by the environment.
    pub explicit: bool,
}

/// An open ledger, the clock and ids, where the caller stands and on whose behalf it writes.
pub struct Kernel {
    /// The ledger that everything is read from and written to.
    pub ledger: Ledger,
    /// The clock and ids.
    pub context: Context,
    /// The directory and root in which `@` is looked for.
    pub project: ProjectScope,
    /// The dispatch that calls, if one does.
    pub caller: Option<Caller>,
    /// The open run that the caller's session works in: `@` means it.
    pub own_run: Option<RunId>,
    /// The session of a coding agent that calls or of which a hook tells: the client, and what that calls the session.
    pub session: Option<(String, String)>,
    /// Who calls; looked up when something is written, if it was not said.
    pub own_actor: OnceCell<Actor>,
    /// The questions to the floors above.
    pub above: Above,
    /// The directories of checkpoints that this command has read.
    pub trees: OnceCell<TreeMemory>,
    /// Whether a rolled-back dispatch may call: it executes the rollback that rolls it back.
    // It is a cell, because it is set when the rollback has begun: by then others hold a reference to this kernel.
    accepts_late: Cell<bool>,
}

impl Kernel {
    /// A project whose callers are no dispatches, and which has no workflows.
    pub fn new(ledger: Ledger, context: Context, project: ProjectScope) -> Self {
        Self {
            ledger,
            context,
            project,
            caller: None,
            own_run: None,
            session: None,
            own_actor: OnceCell::new(),
            above: Above::default(),
            trees: OnceCell::new(),
            accepts_late: Cell::new(false),
        }
    }

    /// Reads over one consistent view.
    pub fn read<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.ledger.read(|snapshot| read(snapshot).map_err(|error| closed_run::explained(self, snapshot, error)))
    }

    /// Writes in one transaction, unless the calling dispatch was rolled back: `stale_dispatch`, nothing is changed.
    pub fn write<T>(&self, write: impl Fn(&Transaction<'_>, Timestamp) -> Result<T>) -> Result<T> {
        // This stands outside of the closure, which is run again if a server rolled it back: both runs record the same time.
        let now = self.context.now();
        // Checked inside of the transaction: a rollback that is recorded first makes this write late.
        self.ledger.write(|tx| {
            let caller = self.calling_dispatch(tx)?;
            tx.act_as(self.actor(caller));
            write(tx, now).map_err(|error| closed_run::explained(self, tx, error))
        })
    }

    /// Writes what is accepted from rolled-back work too: recorded commits and tokens.
    pub fn write_late_too<T>(&self, write: impl Fn(&Transaction<'_>, Timestamp) -> Result<T>) -> Result<T> {
        let now = self.context.now();
        self.ledger.write(|tx| {
            // Work that was rolled back is named, too; one that is not there is no reason to refuse a report.
            let caller = self.caller.as_ref().and_then(|caller| dispatch::resolve(tx, &caller.reference).ok());
            tx.act_as(self.actor(caller));
            write(tx, now)
        })
    }

    /// The user of this process, in the clone in which the call is made.
    pub fn own_actor(&self) -> &Actor {
        self.own_actor.get_or_init(|| own_actor(&self.project.root))
    }

    /// The seat that a call's cursors belong to: that of its clone in a ledger that clones share, and none in any other.
    pub fn cursor_seat(&self) -> &str {
        if self.ledger.is_of_one_host() { "" } else { &self.own_actor().seat }
    }

    /// Who did it where it was another user, or was done in another clone: `bob@build`.
    pub fn other_person(&self, actor: &Actor) -> Option<String> {
        let own = self.own_actor();
        // The directory of a project and the name of its machine may change: a ledger of one host is of one clone.
        let is_own = own.user == actor.user && (own.seat == actor.seat || self.ledger.is_of_one_host());
        (!is_own).then(|| actor.person())
    }

    /// Who calls, on behalf of this dispatch.
    fn actor(&self, caller: Option<Dispatch>) -> Actor {
        let own = self.own_actor();
        Actor { session: self.session.clone(), dispatch: caller.map(|caller| caller.id.to_string()), ..own.clone() }
    }

    /// The directory of the ledger.
    pub fn store(&self) -> &Path {
        self.ledger.path().parent().unwrap_or(Path::new("/"))
    }

    /// Where the output of commands of a run is kept, beside the ledger; it may not exist yet.
    pub fn log_directory(&self, run: &RunId) -> PathBuf {
        self.store().join("logs").join(run.as_str())
    }

    /// The run that a reference names. Errors: those of [`run_reference::resolve`].
    pub fn run(&self, snapshot: &Snapshot<'_>, reference: &str) -> Result<Run> {
        if let ("@", Some(own)) = (reference, &self.own_run) {
            return ic_phase::run::get(snapshot, own);
        }
        run_reference::resolve(snapshot, reference, &self.project, &|snapshot, run, is_only| {
            self.standing(snapshot, run, is_only)
        })
    }

    /// The open run of this project, which `@` names; `None` if there is none. Errors: `ambiguous_run`.
    pub fn current(&self, snapshot: &Snapshot<'_>) -> Result<Option<Run>> {
        if let Some(own) = &self.own_run {
            return ic_phase::run::get(snapshot, own).map(Some);
        }
        run_reference::current(snapshot, &self.project, &|snapshot, run, is_only| self.standing(snapshot, run, is_only))
    }

    /// How an open run stands to a call that names none; the only one of its directory is busy to it.
    pub fn standing(&self, snapshot: &Snapshot<'_>, run: &Run, is_only: bool) -> Result<RunStanding> {
        // In a ledger that clones share, a directory of the same path may be that of another one.
        if !self.ledger.is_of_one_host()
            && events::author(snapshot, run.seq)?.is_some_and(|author| author.seat != self.own_actor().seat)
        {
            return Ok(RunStanding::OfAnotherSeat);
        }
        if is_only { Ok(RunStanding::Busy) } else { standing(&self.above, self.store(), snapshot, run) }
    }

    /// The processes of a run's steps and undos of which no end was recorded.
    pub fn children(&self, snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<ProcessIdentity>> {
        let steps = (self.above.step_workers)(snapshot, run)?.into_iter().map(|(_, child)| child);
        Ok(steps.chain(owner::undo_workers(snapshot, run)?).collect())
    }

    /// The dispatch that calls, if one does. Errors: `stale_dispatch`, `dispatch_not_found`.
    pub fn calling_dispatch(&self, snapshot: &Snapshot<'_>) -> Result<Option<Dispatch>> {
        let Some(caller) = &self.caller else { return Ok(None) };
        let dispatch = dispatch::resolve(snapshot, &caller.reference)?;
        if !self.accepts_late.get() {
            // The dispatch that began it may have been undone alone: then nothing of this one counts either.
            dispatch::with_parents(snapshot, &dispatch)?.iter().try_for_each(Dispatch::require_current)?;
        }
        Ok(Some(dispatch))
    }

    /// Errors: `stale_dispatch`, `dispatch_not_found` for a caller that may not write.
    pub fn require_current_caller(&self) -> Result<()> {
        self.read(|snapshot| self.calling_dispatch(snapshot).map(|_| ()))
    }

    /// Lets a dispatch carry out the rollback that it began and that covers itself.
    pub fn accept_late(&self) {
        self.accepts_late.set(true);
    }

    /// Lets the calling dispatch finish the rollback that undid it, as the call that began it may.
    pub fn accept_late_of(&self, rollback: &RollbackId) -> Result<()> {
        let Some(caller) = &self.caller else { return Ok(()) };
        // Resolved without the check of `calling_dispatch`, which would refuse a dispatch that is rolled back.
        let dispatch = self.read(|snapshot| dispatch::resolve(snapshot, &caller.reference))?;
        if dispatch.rolled_back_by.as_ref() == Some(rollback) {
            self.accepts_late.set(true);
        }
        Ok(())
    }

    /// The dispatch that what is recorded in `run` belongs to: the calling one, if it is of this run.
    ///
    /// Errors: `dispatch_of_other_run` if a dispatch of another run was named in this very call.
    pub fn dispatch_in(&self, snapshot: &Snapshot<'_>, run: &RunId) -> Result<Option<DispatchId>> {
        match (self.calling_dispatch(snapshot)?, &self.caller) {
            (Some(dispatch), _) if dispatch.run_id == *run => Ok(Some(dispatch.id)),
            // One from the environment may belong to another run by chance; one that was named is a mistake.
            (Some(dispatch), Some(caller)) if caller.explicit => Err(Diagnosis::new(
                Code::DispatchOfOtherRun,
                format!("The dispatch {} belongs to another run.", dispatch.id.short()),
            )
            .detail("dispatch_id", dispatch.id.as_str())
            .detail("run_id", dispatch.run_id.as_str())),
            _ => Ok(None),
        }
    }
}
