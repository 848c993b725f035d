//! Who did the work of a run, and who said something about it: the same agent does not count as another one.

use std::collections::HashSet;

use ic_base::{Code, Diagnosis, DispatchId, Result, Seq};
use ic_dispatch::dispatch;
use ic_dispatch::{Dispatch, DispatchStatus, code};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, events};
use ic_phase::Run;
use ic_session as session;
use ic_undo::points::is_idle;

/// The dispatches and sessions that agents are known by. A person who works by hand has neither.
#[derive(Debug, Default)]
pub(crate) struct KnownAgents {
    dispatches: HashSet<String>,
    sessions: HashSet<(String, String)>,
}

impl KnownAgents {
    /// Those who did the work of a run so far.
    pub(crate) fn workers(snapshot: &Snapshot<'_>, run: &Run) -> Result<Self> {
        let mut workers = Self::default();
        for work in dispatch::of_run(snapshot, &run.id)? {
            // Interrupted work is cancelled, too. If work was undone in part, the rest of it is still here.
            let has_begun = work.status != DispatchStatus::Pending
                && (work.started_seq.is_some() || work.status != DispatchStatus::Cancelled);
            let stands = work.rolled_back_by.is_none() || work.undone_in_part_from().is_some();
            if has_begun && stands && is_work(snapshot, run, &work)? {
                workers.add(snapshot, &work)?;
                // Work that an agent's shell began or ended under no name of its own is that of its session.
                for seq in [work.started_seq, work.finished_seq].into_iter().flatten() {
                    workers.add_session(events::author(snapshot, seq)?.and_then(|actor| actor.session));
                }
            }
        }
        Ok(workers)
    }

    /// Those who recorded an event, and the dispatch that it is of, with the work in which that began.
    pub(super) fn authors(snapshot: &Snapshot<'_>, seq: Seq, of: Option<&DispatchId>) -> Result<Self> {
        let mut authors = Self::default();
        let actor = events::author(snapshot, seq)?;
        // A worker that makes a review of its own calls on behalf of itself: the event says so, where the review does not.
        let of_actor = actor.as_ref().and_then(|actor| actor.dispatch.clone()).map(DispatchId::from_ledger);
        for id in of.cloned().into_iter().chain(of_actor) {
            authors.add_with_parents(snapshot, &dispatch::get(snapshot, &id)?)?;
        }
        authors.add_session(actor.and_then(|actor| actor.session));
        Ok(authors)
    }

    /// Those who make this call.
    fn callers(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Self> {
        let mut callers = Self::default();
        callers.add_session(kernel.session.clone());
        if let Some(caller) = kernel.calling_dispatch(snapshot)? {
            callers.add_with_parents(snapshot, &caller)?;
        }
        Ok(callers)
    }

    /// Whether none of them is among these others.
    pub(super) fn are_others_than(&self, others: &Self) -> bool {
        // Either is enough to recognize an agent. A script has a dispatch and no session. The shell of an agent has a
        // session, and has its dispatch only while a prompt is under way.
        self.dispatches.is_disjoint(&others.dispatches) && self.sessions.is_disjoint(&others.sessions)
    }

    /// What an agent began speaks for that agent.
    fn add_with_parents(&mut self, snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<()> {
        dispatch::with_parents(snapshot, work)?.iter().try_for_each(|one| self.add(snapshot, one))
    }

    fn add(&mut self, snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<()> {
        self.dispatches.insert(work.id.to_string());
        // A subagent works in the session of its agent.
        self.add_session(session::of_work(snapshot, work)?.map(|session| (session.client, session.client_id)));
        Ok(())
    }

    /// A session has a name of its own here in each work tree, and is one agent in all of them.
    fn add_session(&mut self, session: Option<(String, String)>) {
        self.sessions.extend(session.map(|(client, id)| (client, session::places::own_name(&id).to_owned())));
    }
}

/// Whether a dispatch is work to be reviewed: not a review, which ends with a verdict and changed nothing.
fn is_work(snapshot: &Snapshot<'_>, run: &Run, work: &Dispatch) -> Result<bool> {
    if work.verdict.is_none() || !code::commits_of(snapshot, &work.id)?.is_empty() {
        return Ok(true);
    }
    // Of what was captured it is known whether it changed anything; while it goes on, it may.
    let is_captured = session::prompt_of(snapshot, &work.id)?.is_some();
    Ok(!code::files_of(snapshot, &work.id)?.is_empty() || (is_captured && !is_idle(snapshot, run, work)?))
}

/// Errors: `gate_blocked` if one of those who did the work of a run makes this call: `what` needs the word of another.
pub(crate) fn require_another(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, what: &str) -> Result<()> {
    // A person has neither a dispatch nor a session, and is therefore always another one.
    if KnownAgents::callers(kernel, snapshot)?.are_others_than(&KnownAgents::workers(snapshot, run)?) {
        return Ok(());
    }
    let message = format!("The gate asks for the word of another than who did the work: {what}.");
    Err(Diagnosis::new(Code::GateBlocked, message)
        .hint("let another agent record the verdict or the artifact, or a person decide")
        .detail("run_id", run.id.as_str()))
}
