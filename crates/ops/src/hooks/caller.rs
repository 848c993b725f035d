//! Who tells of something, and the work that it is told of.

use ic_base::{DispatchId, Result};
use ic_checkpoint::record::CheckpointLink;
use ic_dispatch::dispatch::{Dispatch, TokenCounts};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_session::{self as session, AgentSession, Prompt};

/// Who tells: a client, and what it calls the session.
#[derive(Debug, Clone, Copy)]
pub struct Teller<'a> {
    /// The client's name, for instance `claude-code`.
    pub client: &'a str,
    /// Its name of the session.
    pub client_id: &'a str,
}

/// Counts the tokens in the client's own record from a place in it; `None` where they cannot be told.
pub type Counted<'a> = &'a dyn Fn(Option<u64>) -> Option<TokenCounts>;

impl Teller<'_> {
    /// The session that is meant, if it is known.
    pub(super) fn session(&self, snapshot: &Snapshot<'_>) -> Result<Option<AgentSession>> {
        session::by_client(snapshot, self.client, self.client_id)
    }
}

pub(super) fn latest_of(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<Prompt>> {
    let known = teller.session(snapshot)?;
    known.map_or(Ok(None), |known| session::latest(snapshot, &known.id))
}

/// What a checkpoint of work in a run is linked to.
pub(crate) fn link_of(run: &Run, dispatch: &DispatchId) -> CheckpointLink {
    CheckpointLink {
        run_id: Some(run.id.clone()),
        phase: Some(run.phase.clone()),
        dispatch_id: Some(dispatch.clone()),
        ..CheckpointLink::default()
    }
}

pub(crate) fn is_going(work: &Dispatch, run: &Run) -> bool {
    // The run must be settled, because while it is being rolled back, the rollback alone decides what becomes of its
    // work.
    work.require_current().is_ok() && work.finished_at.is_none() && run.require_settled().is_ok()
}

/// The prompt that work is, or that began it.
pub(super) fn prompt_of_work(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<Prompt>> {
    if let Some(prompt) = session::prompt_of(snapshot, &work.id)? {
        return Ok(Some(prompt));
    }
    // One level is enough: subagents and continuations have the prompt itself as their parent.
    let parent = work.work.parent_id.as_ref();
    parent.map_or(Ok(None), |parent| session::prompt_of(snapshot, parent))
}
