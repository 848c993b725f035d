//! A prompt is recorded: the point before it, and the work that it begins.

use std::path::Path;

use ic_base::{DispatchId, Result, RunId, SessionId, Timestamp, title};
use ic_checkpoint::git;
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchWork};
use ic_dispatch::report::DispatchReport;
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, Transaction};
use ic_phase::Run;
use ic_phase::point::{NewPoint, PointKind};
use ic_phase::run::{self, NewRun, RunStatus};
use ic_session::{self as session, AgentSession, NewPrompt, NewSession, Prompt};
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, Warning};

use crate::run::own;

use super::caller::{Teller, is_going, latest_of};
use super::undone_work::since_told;
use super::{commits, first_look, queued_prompts, subagents};

/// What a client says of a prompt.
#[derive(Debug, Clone, Copy)]
pub struct AskedPrompt<'a> {
    /// The client's name of the prompt, if it has one.
    pub prompt_id: Option<&'a str>,
    /// What the person typed.
    pub text: &'a str,
    /// The model, as far as the client says.
    pub model: Option<&'a str>,
    /// The client's own record of the session.
    pub transcript: Option<&'a Path>,
    /// How long that is, in bytes: the prompt's tokens are counted from there on.
    pub transcript_size: Option<u64>,
    /// The dispatch in whose environment the client was started.
    pub parent: Option<&'a DispatchId>,
    /// An open run of this project that the session's work belongs to; `None`: one of its own.
    pub run: Option<&'a RunId>,
    /// Whether the agent reads what is answered. Where it does not, [`super::news`] tells it what was undone.
    pub is_heard: bool,
    /// Whether its own hook never came, and a call tells of it.
    pub is_unseen: bool,
}

/// A prompt that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedPrompt {
    /// The work that it began.
    pub dispatch: Dispatch,
    /// Whether it is the first one of its session.
    pub is_first: bool,
    /// Whether the session works in a new run of its own from here on.
    pub begins_run: bool,
    /// What was undone since the agent last heard of it, for the agent.
    pub undone: Option<String>,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Records a prompt: the point before it, and the work that it begins. What the prompt before it began is ended, if it still ran. The tree
/// is looked at after that: a hook that is killed for taking too long has lost the look, and not the prompt.
///
/// Errors: whatever the ledger says; a capture that fails is a warning.
pub fn prompt(
    kernel: &Kernel,
    teller: Teller<'_>,
    asked: &AskedPrompt<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<RecordedPrompt> {
    // This comes before `record`, which takes it for a repeated prompt: it comes under the name of the one that is at
    // work.
    queued_prompts::keep(kernel, teller, asked)?;
    let mut recorded = record(kernel, teller, asked, kept)?;
    if let Some(kept) = kept {
        let (dispatch, warnings) = first_look::take(kernel, recorded.dispatch, kept)?;
        recorded.dispatch = dispatch;
        recorded.warnings.extend(warnings);
    }
    if recorded.undone.is_some() {
        // Only now: a hook that was killed before this has told the agent nothing, so the next prompt must tell it.
        kernel.write(|tx, _| {
            let known = teller.session(tx)?;
            known.map_or(Ok(()), |known| session::told(tx, &known, recorded.dispatch.seq))
        })?;
    }
    Ok(recorded)
}

/// Records a prompt without a look at the tree. Where it is to be looked at, its work waits for that before it begins.
pub(super) fn record(
    kernel: &Kernel,
    teller: Teller<'_>,
    asked: &AskedPrompt<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<RecordedPrompt> {
    let (is_first, begins_run, undone, warnings) = (false, false, None, Vec::new());
    if let Some(dispatch) = kernel.read(|snapshot| repeated(snapshot, teller, asked))? {
        return Ok(RecordedPrompt { dispatch, is_first, begins_run, undone, warnings });
    }
    let root = kernel.project.root.clone();
    let (session_id, run_id): (SessionId, RunId) = (kernel.context.new_id(), kernel.context.new_id());
    let id: DispatchId = kernel.context.new_id();
    // Git is asked before the transaction, so that no other process waits for it.
    let head = git::head(&root);
    let left = kernel.read(|snapshot| left_open(snapshot, teller))?;
    let made = left.map(|(prompt, since)| commits::made(kernel, &root, &prompt, &since)).unwrap_or_default();
    let (dispatch, is_first, undone) = kernel.write(|tx, now| {
        // A client with two installations runs both hooks at the same time. The one that comes second finds the prompt recorded.
        if let Some(known) = repeated(tx, teller, asked)? {
            return Ok((known, false, None));
        }
        // The question is about the run that the session worked in. If that has ended since, the session goes into another run below.
        let known = teller.session(tx)?;
        let is_first = known.is_none();
        let undone = known.filter(|_| asked.is_heard).map_or(Ok(None), |known| since_told(tx, &known))?;
        let session = session_of(kernel, tx, now, teller, asked, (&session_id, &run_id))?;
        let run = run::get(tx, &session.run_id)?;
        // If it has no end by now, a person interrupted it: clients tell of that only by the next prompt.
        if let Some(before) = session::latest(tx, &session.id)? {
            interrupt(tx, now, &before, &made)?;
        }
        subagents::end_own_calls(tx, now, &session)?;
        // Clients run subagents in the background, so those that are in a call stay at work.
        subagents::end_left(tx, now, &session, false)?;
        // A prompt that waited in the queue has its turn now, or became part of the turn before.
        session::queue(tx, &session, None)?;
        session::go_on(tx, &session, None)?;
        let begun = begin_work(tx, now, (teller, asked), (&session, &run, &id), head.as_deref())?;
        // If nothing is captured, no look follows that would start the work.
        let begun = if kept.is_none() { dispatch::start(tx, now, &begun, None)? } else { begun };
        Ok((begun, is_first, undone))
    })?;
    let begins_run = dispatch.run_id == run_id;
    Ok(RecordedPrompt { dispatch, is_first, begins_run, undone, warnings })
}

/// The point before a prompt, and the work that it begins.
fn begin_work(
    tx: &Transaction<'_>,
    now: Timestamp,
    (teller, asked): (Teller<'_>, &AskedPrompt<'_>),
    (session, run, id): (&AgentSession, &Run, &DispatchId),
    head: Option<&str>,
) -> Result<Dispatch> {
    let point =
        NewPoint { kind: PointKind::Prompt, session: Some(session.id.as_str()), ..NewPoint::of_dispatch(id.as_str()) };
    // The point is recorded without a tree: the capture takes longer and may be killed. `first_look` gives the point
    // its checkpoint.
    TakenTree::nothing().record_point(tx, now, run, &point)?;
    let work = DispatchWork {
        agent_type: Some(teller.client.to_owned()),
        name: Some(title(first_line(asked.text))),
        model: asked.model.map(title),
        prompt_file: None,
        parent_id: parent_in(tx, run, asked.parent)?,
    };
    let created = dispatch::create(tx, now, id, &run.id, run.epoch, &run.phase, &work)?;
    let new = NewPrompt { prompt_id: asked.prompt_id, head, transcript_start: asked.transcript_size };
    session::begin_prompt(tx, now, session, &created, new)?;
    Ok(created)
}

/// The dispatch that began a prompt's work: the one in whose environment the client runs, if it is of this run and goes on itself.
fn parent_in(snapshot: &Snapshot<'_>, run: &Run, parent: Option<&DispatchId>) -> Result<Option<DispatchId>> {
    let Some(parent) = parent else { return Ok(None) };
    let found = dispatch::find(snapshot, parent)?;
    // The environment may be inherited from long ago: work that has ended begins nothing.
    let is_fit = |work: &Dispatch| work.run_id == run.id && is_going(work, run);
    Ok(found.filter(is_fit).map(|work| work.id))
}

/// What is kept of a prompt: its first line that says anything.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// The work of this very prompt, if a hook recorded it before.
fn repeated(snapshot: &Snapshot<'_>, teller: Teller<'_>, asked: &AskedPrompt<'_>) -> Result<Option<Dispatch>> {
    let Some(prompt) = latest_of(snapshot, teller)? else { return Ok(None) };
    // Calls of one turn come at the same time. The first of them began its work.
    let is_begun = asked.is_unseen && asked.prompt_id.is_none() && prompt.ended_at.is_none();
    if !is_begun && (asked.prompt_id.is_none() || prompt.prompt_id.as_deref() != asked.prompt_id) {
        return Ok(None);
    }
    dispatch::get(snapshot, &prompt.dispatch_id).map(Some)
}

/// The session as it works from now on: begun if it is new, in a new run if the one that it had is not open any more.
fn session_of(
    kernel: &Kernel,
    tx: &Transaction<'_>,
    now: Timestamp,
    teller: Teller<'_>,
    asked: &AskedPrompt<'_>,
    (id, run_id): (&SessionId, &RunId),
) -> Result<AgentSession> {
    let known = teller.session(tx)?;
    let open = match open_run(tx, teller, asked)? {
        None => resumed(tx, now, known.as_ref())?,
        open => open,
    };
    let owns_run = open.is_none();
    let run = match open {
        Some(run) => run,
        None => run::create(tx, now, run_id.clone(), own_run(kernel, teller))?,
    };
    match known {
        Some(known) if known.run_id == run.id && known.ended_at.is_none() => Ok(known),
        Some(known) => {
            // A run of its own that was opened again is still its own, though it was not made here.
            let owns_run = owns_run || known.owns_run && known.run_id == run.id;
            session::work_in(tx, &known, &run.id, owns_run)
        }
        None => session::begin(
            tx,
            now,
            &NewSession {
                id,
                client: teller.client,
                client_id: teller.client_id,
                run_id: &run.id,
                owns_run,
                project_dir: &kernel.project.root,
                transcript: asked.transcript,
            },
        ),
    }
}

/// The open run that the prompt belongs to: the one that was named, else the one that the session works in.
fn open_run(snapshot: &Snapshot<'_>, teller: Teller<'_>, asked: &AskedPrompt<'_>) -> Result<Option<Run>> {
    let known = teller.session(snapshot)?;
    let wanted = asked.run.cloned().or_else(|| known.map(|known| known.run_id));
    let Some(wanted) = wanted else { return Ok(None) };
    Ok(Some(run::get(snapshot, &wanted)?).filter(|run| run.require_active().is_ok()))
}

/// The run that was made for a session and that its end completed, open again: a conversation has one run, however often it is resumed.
fn resumed(tx: &Transaction<'_>, now: Timestamp, known: Option<&AgentSession>) -> Result<Option<Run>> {
    let Some(known) = known.filter(|known| known.owns_run) else { return Ok(None) };
    let run = run::get(tx, &known.run_id)?;
    if run.status != RunStatus::Completed {
        return Ok(None);
    }
    run::reopen_completed(tx, now, &run, "its session was resumed").map(Some)
}

/// A run of a session's own. Its goal repeats no prompt: what is redacted there must not stand here.
fn own_run(kernel: &Kernel, teller: Teller<'_>) -> NewRun {
    own(&kernel.project.root, format!("Session {} of {}", short_of(teller.client_id), teller.client))
}

/// The beginning of a client's name of a session: enough to tell two of them apart.
fn short_of(client_id: &str) -> &str {
    let own = session::places::own_name(client_id);
    own.get(..8).unwrap_or(own)
}

/// Ends what a prompt began, if it still runs: the agent was interrupted, and a person typed again.
fn interrupt(tx: &Transaction<'_>, now: Timestamp, prompt: &Prompt, made: &DispatchReport) -> Result<()> {
    if prompt.ended_at.is_some() {
        return Ok(());
    }
    let work = dispatch::get(tx, &prompt.dispatch_id)?;
    commits::record(tx, now, &work, made)?;
    let is_open = work.require_current().is_ok() && work.finished_at.is_none();
    // While the run is being rolled back, the rollback decides what becomes of its work.
    if is_open && run::get(tx, &work.run_id)?.require_settled().is_ok() {
        dispatch::finish(tx, now, &work, &DispatchEnding::Cancelled { reason: Some("interrupted") })?;
    }
    session::end_prompt(tx, now, prompt)
}

/// The newest prompt of a session, if it was interrupted in a call: what that committed is not recorded yet.
fn left_open(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<(Prompt, commits::Since)>> {
    let Some(prompt) = latest_of(snapshot, teller)?.filter(|prompt| prompt.ended_at.is_none()) else {
        return Ok(None);
    };
    let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
    Ok(commits::unrecorded_by_interrupted(snapshot, &work, &prompt)?.map(|since| (prompt, since)))
}
