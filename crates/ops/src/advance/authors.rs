//! Who did the work of a phase, and who said something about it: the same agent does not count as another one.

use std::collections::HashSet;

use ic_base::{DispatchId, Result, RunId, Seq};
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, DispatchFilter};
use ic_kernel::Kernel;
use ic_ledger::events;
use ic_ledger::{Actor, Snapshot};
use ic_session as session;

/// The dispatches and sessions that agents are known by. A person who works by hand has neither.
#[derive(Debug, Default)]
pub(super) struct KnownAgents {
    dispatches: HashSet<String>,
    sessions: HashSet<(String, String)>,
}

impl KnownAgents {
    /// Those who did the work of a phase (`None`: of the run): of reviews, which end with a verdict, only the rest counts.
    pub(super) fn workers(snapshot: &Snapshot<'_>, run: &RunId, phase: Option<&str>) -> Result<Self> {
        let filter = DispatchFilter { run_id: Some(run), phase, status: None, limit: i64::MAX };
        let mut workers = Self::default();
        for work in dispatch::list(snapshot, &filter)? {
            // A review is no work to be reviewed, and what never began changed nothing.
            let is_work = !matches!(work.status, DispatchStatus::Pending | DispatchStatus::Cancelled);
            if is_work && work.verdict.is_none() && work.rolled_back_by.is_none() {
                workers.add(snapshot, &work.id)?;
            }
        }
        Ok(workers)
    }

    /// Those who recorded an event, and the dispatch that it is of.
    pub(super) fn authors(snapshot: &Snapshot<'_>, seq: Option<Seq>, of: Option<&DispatchId>) -> Result<Self> {
        let mut authors = Self::default();
        // A worker that makes a review of its own calls on behalf of itself: the event says so, where the review does not.
        if let Some(of) = of {
            authors.add(snapshot, of)?;
        }
        if let Some(actor) = seq.map_or(Ok(None), |seq| events::author(snapshot, seq))? {
            authors.add_actor(actor);
        }
        Ok(authors)
    }

    /// Those who make this call.
    pub(super) fn callers(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Self> {
        let mut callers = Self { sessions: kernel.session.clone().into_iter().collect(), ..Self::default() };
        if let Some(caller) = kernel.calling_dispatch(snapshot)? {
            callers.add(snapshot, &caller.id)?;
        }
        Ok(callers)
    }

    /// Whether none of them is among these others.
    pub(super) fn are_others_than(&self, others: &Self) -> bool {
        self.dispatches.is_disjoint(&others.dispatches) && self.sessions.is_disjoint(&others.sessions)
    }

    fn add(&mut self, snapshot: &Snapshot<'_>, work: &DispatchId) -> Result<()> {
        self.dispatches.insert(work.to_string());
        // A subagent works in the session of its agent.
        if let Some(session) = session::of_work(snapshot, &dispatch::get(snapshot, work)?)? {
            self.sessions.insert((session.client, session.client_id));
        }
        Ok(())
    }

    fn add_actor(&mut self, actor: Actor) {
        self.dispatches.extend(actor.dispatch);
        self.sessions.extend(actor.session);
    }
}
