//! Subagents: what one does is a dispatch of its own, the child of the prompt that began it.
//!
//! ```text
//!   its first call that may change files ──▶ RUNNING ── it stops ──▶ (completed)
//!                                               ├── the session ends ──▶ (cancelled)
//!                                               └── a person types again, and it is in no call ──▶ (completed: its client told no end)
//! ```
//!
//! A continuation is like that: what an agent does after it has stopped, because a task of its own ended, and before a person types again.
//! That ends it in a call, too: an agent to which a person types is in none, whatever its client told.
//!
//! One that only reads has no work to undo, and no row. A subagent may go on after its prompt has ended: clients run them in the
//! background.

use ic_base::{DispatchId, Result, Timestamp, title};
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchWork, TokenCounts};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, Transaction};
use ic_phase::point::NewPoint;
use ic_phase::{Run, run};
use ic_session::{self as session, AgentSession, Prompt, call};
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, Warning};

use super::caller::{Counted, Teller, is_going, link_of, prompt_of_work};
use super::commits;
use super::tool_call::ToldCall;

/// Begins the work of a subagent with its first call that may change files: a point, with what was captured before the call.
pub(super) fn begin(
    tx: &Transaction<'_>,
    now: Timestamp,
    (id, prompt): (&DispatchId, &Prompt),
    told: &ToldCall<'_>,
    taken: &TakenTree,
) -> Result<Dispatch> {
    let parent = dispatch::get(tx, &prompt.dispatch_id)?;
    let run = run::get(tx, &parent.run_id)?;
    let point = NewPoint { session: Some(prompt.session_id.as_str()), ..NewPoint::of_dispatch(id.as_str()) };
    taken.record_point(tx, now, &run, &point)?;
    let kind = match (told.agent_id, told.agent_type) {
        // A continuation is the work of the agent itself, so it has the type of the prompt.
        (None, _) => parent.work.agent_type.clone().unwrap_or_default(),
        (Some(_), Some(kind)) => title(kind),
        (Some(_), None) => "subagent".to_owned(),
    };
    let is_continuation = told.agent_id.is_none();
    // The line may hold a password or a token, and the name is shown in every list.
    let line = title(&ic_base::mask::mask(told.line));
    let work = DispatchWork {
        name: Some(match (is_continuation, line.as_str()) {
            (true, _) => title(&format!("after its end: {line}")),
            (false, "") => kind.clone(),
            (false, line) => title(&format!("{kind}: {line}")),
        }),
        agent_type: Some(kind),
        parent_id: Some(parent.id.clone()),
        ..DispatchWork::default()
    };
    let created = dispatch::create(tx, now, id, &run.id, run.epoch, &run.phase, &work)?;
    dispatch::start(tx, now, &created, None)
}

/// The work of a subagent that has not ended; `None`: it has none, or a call of it begins another piece.
pub(super) fn unfinished(snapshot: &Snapshot<'_>, session: &AgentSession, agent_id: &str) -> Result<Option<Dispatch>> {
    let found = newest(snapshot, session, agent_id)?;
    Ok(found.filter(|work| work.status == DispatchStatus::Running && work.require_current().is_ok()))
}

/// The newest work of a subagent.
pub(super) fn newest(snapshot: &Snapshot<'_>, session: &AgentSession, agent_id: &str) -> Result<Option<Dispatch>> {
    let found = call::work_of_agent(snapshot, &session.id, agent_id)?;
    found.map(|id| dispatch::get(snapshot, &id)).transpose()
}

/// The continuation of a prompt that has not ended.
pub(super) fn continuation(snapshot: &Snapshot<'_>, prompt: &Prompt) -> Result<Option<Dispatch>> {
    let found = call::continuation_of(snapshot, &prompt.dispatch_id)?;
    let found = found.map(|id| dispatch::get(snapshot, &id)).transpose()?;
    Ok(found.filter(|work| work.status == DispatchStatus::Running && work.require_current().is_ok()))
}

/// Ends what a subagent did: it stopped. Nothing happens where it did nothing that is on record.
///
/// Errors: whatever the ledger says; a capture that fails is a warning.
pub fn stop(
    kernel: &Kernel,
    teller: Teller<'_>,
    agent_id: &str,
    kept: Option<&CaptureSettings>,
    count: Counted<'_>,
) -> Result<Vec<Warning>> {
    let found = kernel.read(|snapshot| {
        let Some(session) = teller.session(snapshot)? else {
            return Ok(None);
        };
        Ok(newest(snapshot, &session, agent_id)?.filter(|work| work.finished_at.is_none()))
    })?;
    // Tokens are counted from 0: a subagent has a transcript of its own, and all of it is its work.
    found.map_or_else(|| Ok(Vec::new()), |work| finish(kernel, &work, kept, count(Some(0))))
}

/// Ends a subagent's work, or a continuation, with a capture and the commits of its last call.
pub(super) fn finish(
    kernel: &Kernel,
    work: &Dispatch,
    kept: Option<&CaptureSettings>,
    tokens: Option<TokenCounts>,
) -> Result<Vec<Warning>> {
    let (run, prompt, since) = kernel.read(|snapshot| {
        let run = run::get(snapshot, &work.run_id)?;
        let prompt = prompt_of_work(snapshot, work)?;
        let since = prompt.as_ref().map_or(Ok(None), |prompt| commits::unrecorded(snapshot, work, prompt))?;
        Ok((run, prompt, since))
    })?;
    let link = link_of(&run, &work.id);
    // Work that was undone is not captured, because the undo was its end. Nothing is captured while a rollback changes
    // the tree, either.
    let kept = kept.filter(|_| is_going(work, &run));
    let taken = TakenTree::take_if(kernel, kept, &run.project_dir, link);
    let made = prompt.zip(since).map(|(prompt, since)| commits::made(kernel, &run.project_dir, &prompt, &since));
    kernel.write_late_too(|tx, now| {
        // Another hook of the same stop may have finished the work since it was looked up.
        let work = dispatch::get(tx, &work.id)?;
        if work.finished_at.is_some() {
            return Ok(());
        }
        call::end_all(tx, &work.id)?;
        if let Some(made) = &made {
            commits::record(tx, now, &work, made)?;
        }
        record_tokens(tx, now, &work, tokens)?;
        // Work that was undone keeps its commits and tokens on record. It gets no end: the undo was its end.
        if !is_going(&work, &run::get(tx, &work.run_id)?) {
            return Ok(());
        }
        taken.record_after(tx, now, &run)?;
        dispatch::finish(tx, now, &work, &DispatchEnding::Completed { summary: None, verdict: None }).map(drop)
    })?;
    Ok(taken.warnings.clone())
}

/// Records the tokens that work used, if they were counted and are news.
pub(super) fn record_tokens(
    tx: &Transaction<'_>,
    now: Timestamp,
    work: &Dispatch,
    tokens: Option<TokenCounts>,
) -> Result<()> {
    let Some(tokens) = tokens.filter(|tokens| *tokens != TokenCounts::default() && *tokens != work.tokens) else {
        return Ok(());
    };
    dispatch::record_tokens(tx, now, work, tokens).map(drop)
}

/// Ends the subagents of a session: all of them where the session is over, else those that are in no call.
pub(super) fn end_left(tx: &Transaction<'_>, now: Timestamp, session: &AgentSession, is_over: bool) -> Result<()> {
    for work in of_session(tx, session)? {
        if work.finished_at.is_some() || work.require_current().is_err() || !is_settled(tx, &work)? {
            continue;
        }
        if is_over {
            call::end_all(tx, &work.id)?;
            dispatch::finish(tx, now, &work, &DispatchEnding::Cancelled { reason: Some("the session ended") })?;
        } else if !call::is_running(tx, &work.id)? && call::is_quiet(tx, &work.id, now)? {
            // A subagent may be between two calls while it waits for the model, so it must have been quiet for a time.
            dispatch::finish(tx, now, &work, &DispatchEnding::Completed { summary: None, verdict: None })?;
        }
    }
    Ok(())
}

/// Ends the calls of the agent itself in which a person interrupted it, and the continuations that they belong to.
pub(super) fn end_own_calls(tx: &Transaction<'_>, now: Timestamp, session: &AgentSession) -> Result<()> {
    for id in call::works_in_calls(tx, &session.id)? {
        let work = dispatch::get(tx, &id)?;
        // While the run is being rolled back, the rollback decides what becomes of its work.
        if !is_settled(tx, &work)? {
            continue;
        }
        call::end_all(tx, &id)?;
        if work.finished_at.is_none() && work.require_current().is_ok() {
            dispatch::finish(tx, now, &work, &DispatchEnding::Cancelled { reason: Some("interrupted") })?;
        }
    }
    Ok(())
}

fn is_settled(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<bool> {
    let run: Run = run::get(snapshot, &work.run_id)?;
    Ok(run.require_settled().is_ok())
}

/// The work of the subagents of a session's newest prompts.
fn of_session(snapshot: &Snapshot<'_>, session: &AgentSession) -> Result<Vec<Dispatch>> {
    /// A subagent that began more prompts ago than this was ended with one of them.
    const RECENT: i64 = 8;
    let mut found = Vec::new();
    for prompt in session::newest(snapshot, &session.id, RECENT)? {
        found.extend(dispatch::descendants(snapshot, &prompt.dispatch_id)?);
    }
    Ok(found)
}
