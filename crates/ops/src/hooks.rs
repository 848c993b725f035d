//! What the hooks of a coding agent record: a prompt is a dispatch that ends when the agent stops, and work that was undone goes no
//! further.
//!
//! ```text
//!   prompt ──▶ RUNNING ── stop ──▶ (completed)          a rollback at any time: its calls are refused until the next prompt
//!                 └── next prompt ──▶ (cancelled: interrupted)
//! ```
//!
//! The tree is looked at before the transaction that begins or ends a prompt. A repeated hook (a client that has two installations of it)
//! finds what the first one recorded.

pub mod calls;
mod commits;
pub mod guard;
mod hold;
mod queued;
pub mod subagents;

pub use hold::hold;

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, RunId, SessionId, Timestamp, title};
use ic_checkpoint::git;
use ic_checkpoint::record::Link;
use ic_dispatch::dispatch::{self, Dispatch, Ending, Tokens, Work};
use ic_dispatch::report::Report;
use ic_journal::made::Made;
use ic_journal::table::{self, RollbackRecord};
use ic_journal::{Layer, steps};
use ic_kernel::Kernel;
use ic_phase::gate::Gates;
use ic_phase::point::{Kind, NewPoint};
use ic_phase::run::{self, NewRun};
use ic_phase::{Chain, Run};
use ic_session::{self as session, NewPrompt, NewSession, Prompt, Session};
use ic_store::{Snapshot, Transaction};
use ic_worktree::auto::Taken;
use ic_worktree::{Settings, Warning, retention};

use crate::advance;

/// Who tells: a client, and what it calls the session.
#[derive(Debug, Clone, Copy)]
pub struct Teller<'a> {
    /// The client.
    pub client: &'a str,
    /// Its name of the session.
    pub client_id: &'a str,
}

/// What a client says of a prompt.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
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
    /// Whether the agent reads what is answered. Where it does not, [`news`] tells it what was undone.
    pub is_heard: bool,
}

/// Counts the tokens in the client's own record from a place in it; `None` where they cannot be told.
pub type Counted<'a> = &'a dyn Fn(Option<u64>) -> Option<Tokens>;

/// A prompt that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The work that it began.
    pub dispatch: Dispatch,
    /// Whether it is the first one of its session.
    pub is_first: bool,
    /// What was undone since the agent last heard of it, for the agent.
    pub undone: Option<String>,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Records a prompt: the point before it, and the work that it begins. What the prompt before it began is ended, if it still ran.
///
/// Errors: whatever the ledger says; a capture that fails is a warning.
pub fn prompt(
    kernel: &Kernel,
    teller: Teller<'_>,
    asked: &Asked<'_>,
    kept: Option<&Settings>,
) -> Result<Recorded> {
    queued::keep(kernel, teller, asked)?;
    if let Some(known) = kernel.read(|snapshot| repeated(snapshot, teller, asked))? {
        return Ok(Recorded { dispatch: known, is_first: false, undone: None, warnings: Vec::new() });
    }
    let root = kernel.project.root.clone();
    let (session_id, run_id): (SessionId, RunId) = (kernel.context.new_id(), kernel.context.new_id());
    let id: DispatchId = kernel.context.new_id();
    let open = kernel.read(|snapshot| open_run(snapshot, teller, asked))?;
    let link = Link {
        run_id: Some(open.as_ref().map_or(&run_id, |run| &run.id).clone()),
        phase: open.as_ref().map(|run| run.phase.clone()),
        ..Link::default()
    };
    let taken = Taken::take_if(kernel, kept, &root, link.clone());
    let nothing = Taken::nothing();
    let head = git::head(&root);
    let left = kernel.read(|snapshot| left_open(snapshot, teller))?;
    let made = left.map(|(prompt, since)| commits::made(kernel, &root, &prompt, &since)).unwrap_or_default();
    let (dispatch, is_first, undone) = kernel.write(|tx, now| {
        // A client that calls twice calls at once.
        if let Some(known) = repeated(tx, teller, asked)? {
            return Ok((known, false, None));
        }
        // Asked of the run that it worked in: where that has ended since, what follows goes into another one.
        let known = session::by_client(tx, teller.client, teller.client_id)?;
        let is_first = known.is_none();
        let undone = known.filter(|_| asked.is_heard).map_or(Ok(None), |known| since_told(tx, &known))?;
        let session = session_of(kernel, tx, now, teller, asked, (&session_id, &run_id))?;
        let run = run::get(tx, &session.run_id)?;
        if let Some(before) = session::latest(tx, &session.id)? {
            interrupt(tx, now, &before, &made)?;
        }
        subagents::end_left(tx, now, &session, false)?;
        // What waited has its turn now, or went into the turn before.
        session::queue(tx, &session, None)?;
        // What was captured for another run is not this one's: it was closed meanwhile.
        let taken = if link.run_id.as_ref() == Some(&run.id) { &taken } else { &nothing };
        let begun = begin_work(tx, now, (teller, asked), (&session, &run, &id), taken, head.as_deref())?;
        if asked.is_heard {
            session::told(tx, &session, begun.seq)?;
        }
        Ok((begun, is_first, undone))
    })?;
    Ok(Recorded { dispatch, is_first, undone, warnings: taken.warnings.clone() })
}

/// The point before a prompt, and the work that it begins.
fn begin_work(
    tx: &Transaction<'_>,
    now: Timestamp,
    (teller, asked): (Teller<'_>, &Asked<'_>),
    (session, run, id): (&Session, &Run, &DispatchId),
    taken: &Taken,
    head: Option<&str>,
) -> Result<Dispatch> {
    let point = NewPoint {
        kind: Kind::Prompt,
        session: Some(session.id.as_str()),
        ..NewPoint::of_dispatch(id.as_str())
    };
    taken.record_point(tx, now, run, &point)?;
    let work = Work {
        agent_type: Some(teller.client.to_owned()),
        name: Some(title(first_line(asked.text))),
        model: asked.model.map(title),
        prompt_file: None,
        parent_id: parent_in(tx, run, asked.parent)?,
    };
    let created = dispatch::create(tx, now, id, &run.id, run.epoch, &run.phase, &work)?;
    let begun = dispatch::start(tx, now, &created, None)?;
    let new = NewPrompt { prompt_id: asked.prompt_id, head, transcript_start: asked.transcript_size };
    session::begin_prompt(tx, now, session, &begun, new)?;
    Ok(begun)
}

/// The dispatch that began a prompt's work: the one in whose environment the client runs, if it is of this run and goes on itself.
fn parent_in(snapshot: &Snapshot<'_>, run: &Run, parent: Option<&DispatchId>) -> Result<Option<DispatchId>> {
    let Some(parent) = parent else { return Ok(None) };
    let found = dispatch::find(snapshot, parent)?;
    let is_fit = |work: &Dispatch| work.run_id == run.id && is_going(work, run);
    Ok(found.filter(is_fit).map(|work| work.id))
}

/// What is kept of a prompt: its first line that says anything.
fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// The work of this very prompt, if a hook recorded it before.
fn repeated(snapshot: &Snapshot<'_>, teller: Teller<'_>, asked: &Asked<'_>) -> Result<Option<Dispatch>> {
    let Some(prompt) = latest_of(snapshot, teller)? else { return Ok(None) };
    if asked.prompt_id.is_none() || prompt.prompt_id.as_deref() != asked.prompt_id {
        return Ok(None);
    }
    dispatch::get(snapshot, &prompt.dispatch_id).map(Some)
}

fn latest_of(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<Prompt>> {
    let known = session::by_client(snapshot, teller.client, teller.client_id)?;
    known.map_or(Ok(None), |known| session::latest(snapshot, &known.id))
}

/// The session as it works from now on: begun if it is new, in a new run if the one that it had is not open any more.
fn session_of(
    kernel: &Kernel,
    tx: &Transaction<'_>,
    now: Timestamp,
    teller: Teller<'_>,
    asked: &Asked<'_>,
    (id, run_id): (&SessionId, &RunId),
) -> Result<Session> {
    let known = session::by_client(tx, teller.client, teller.client_id)?;
    let open = open_run(tx, teller, asked)?;
    let owns_run = open.is_none();
    let run = match open {
        Some(run) => run,
        None => run::create(tx, now, run_id.clone(), own_run(kernel, teller))?,
    };
    match known {
        Some(known) if known.run_id == run.id && known.ended_at.is_none() => Ok(known),
        Some(known) => {
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
fn open_run(snapshot: &Snapshot<'_>, teller: Teller<'_>, asked: &Asked<'_>) -> Result<Option<Run>> {
    let known = session::by_client(snapshot, teller.client, teller.client_id)?;
    let wanted = asked.run.cloned().or_else(|| known.map(|known| known.run_id));
    let Some(wanted) = wanted else { return Ok(None) };
    Ok(Some(run::get(snapshot, &wanted)?).filter(|run| run.require_active().is_ok()))
}

/// A run of a session's own. Its goal repeats no prompt: what is redacted there must not stand here.
fn own_run(kernel: &Kernel, teller: Teller<'_>) -> NewRun {
    NewRun {
        goal: format!("Session {} of {}", short_of(teller.client_id), teller.client),
        chain: Chain::of_session(),
        project_dir: kernel.project.root.clone(),
        complexity: None,
        auto_advance: true,
        gates: Gates::default(),
        scope_id: None,
        metadata: "{}".to_owned(),
    }
}

/// The beginning of a client's name of a session: enough to tell two of them apart.
fn short_of(client_id: &str) -> &str {
    client_id.get(..8).unwrap_or(client_id)
}

/// Ends what a prompt began, if it still runs: the agent was interrupted, and a person typed again.
fn interrupt(tx: &Transaction<'_>, now: Timestamp, prompt: &Prompt, made: &Report) -> Result<()> {
    if prompt.ended_at.is_some() {
        return Ok(());
    }
    let work = dispatch::get(tx, &prompt.dispatch_id)?;
    commits::record(tx, now, &work, made)?;
    let is_open = work.require_current().is_ok() && work.finished_at.is_none();
    if is_open && run::get(tx, &work.run_id)?.require_settled().is_ok() {
        dispatch::finish(tx, now, &work, &Ending::Cancelled { reason: Some("interrupted") })?;
    }
    session::end_prompt(tx, now, prompt)
}

/// The newest prompt of a session, if it was interrupted in a call: what that committed is not recorded yet.
fn left_open(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<(Prompt, commits::Since)>> {
    let Some(prompt) = latest_of(snapshot, teller)?.filter(|prompt| prompt.ended_at.is_none()) else {
        return Ok(None);
    };
    let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
    Ok(commits::unrecorded(snapshot, &work, &prompt)?.map(|since| (prompt, since)))
}

/// Why the agent of a session may do nothing more until a person types again; `None`: it may. `prompt_id`: the prompt that the call is made
/// for, where the client says so: work of one that has stopped meanwhile may be late. `agent_id`: the subagent that makes it.
pub fn refusal(
    kernel: &Kernel,
    teller: Teller<'_>,
    prompt_id: Option<&str>,
    agent_id: Option<&str>,
) -> Result<Option<String>> {
    kernel.read(|snapshot| {
        let own = of_subagent(snapshot, teller, prompt_id, agent_id)?;
        // Whether it has stopped or not: it may go on by itself, because a task of its own ended, and a person has not typed since.
        let (work, whose) = match (own, latest_of(snapshot, teller)?) {
            (Some(own), _) => (own, "Your work here"),
            (None, Some(prompt)) => {
                (dispatch::get(snapshot, &prompt.dispatch_id)?, "Your work for this prompt")
            }
            (None, None) => return Ok(None),
        };
        let by = rolled_back_by(snapshot, &work)?.map(|by| table::get(snapshot, &by)).transpose()?;
        let spoken =
            session::by_client(snapshot, teller.client, teller.client_id)?.and_then(|known| known.spoken_seq);
        // A person who typed a command of ic since wants it carried out.
        if let Some(rollback) = by.filter(|by| spoken.is_none_or(|spoken| spoken < by.seq)) {
            let what = told(snapshot, &rollback)?;
            let why =
                rollback.reason.as_deref().map(|why| format!(" Why: {}.", title(why).trim_end_matches('.')));
            return Ok(Some(format!(
                "{whose} was undone: {what}.{} Stop here, say so, and wait for the next prompt.",
                why.unwrap_or_default()
            )));
        }
        let run = run::get(snapshot, &work.run_id)?;
        if run.require_settled().is_err() {
            return Ok(Some(
                "This work is being undone at the moment. Stop here, say so, and wait for the next prompt."
                    .to_owned(),
            ));
        }
        Ok(None)
    })
}

/// The newest work of the subagent that makes a call, if that call is made for the prompt that began it: for a later one it begins anew.
fn of_subagent(
    snapshot: &Snapshot<'_>,
    teller: Teller<'_>,
    prompt_id: Option<&str>,
    agent_id: Option<&str>,
) -> Result<Option<Dispatch>> {
    let Some(session) = session::by_client(snapshot, teller.client, teller.client_id)? else {
        return Ok(None);
    };
    let Some(work) = agent_id.map_or(Ok(None), |agent| subagents::newest(snapshot, &session, agent))? else {
        return Ok(None);
    };
    let named = match prompt_id {
        Some(id) => session::by_prompt_id(snapshot, &session.id, id)?,
        None => session::latest(snapshot, &session.id)?,
    };
    Ok(named.is_some_and(|prompt| Some(&prompt.dispatch_id) == work.work.parent_id.as_ref()).then_some(work))
}

/// The rollback that undid work, or the work that began it.
fn rolled_back_by(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<RollbackId>> {
    let mut next = Some(work.clone());
    while let Some(one) = next {
        if one.rolled_back_by.is_some() {
            return Ok(one.rolled_back_by);
        }
        next = one.work.parent_id.map(|parent| dispatch::get(snapshot, &parent)).transpose()?;
    }
    Ok(None)
}

/// Records that a person typed a command of ic to an agent: it is no prompt, and what it makes the agent do is not refused for what was
/// undone before.
pub fn command(kernel: &Kernel, teller: Teller<'_>) -> Result<()> {
    let known = |snapshot: &Snapshot<'_>| session::by_client(snapshot, teller.client, teller.client_id);
    if kernel.read(known)?.is_none() {
        return Ok(());
    }
    kernel.write(|tx, _| known(tx)?.map_or(Ok(()), |known| session::spoken(tx, &known)))
}

/// What was undone since the agent of a session last heard of it, said once: its next call is refused with it, where its client lets no
/// answer to a prompt through to the model.
pub fn news(kernel: &Kernel, teller: Teller<'_>) -> Result<Option<String>> {
    let pending = |snapshot: &Snapshot<'_>| -> Result<Option<(Session, String)>> {
        let Some(known) = session::by_client(snapshot, teller.client, teller.client_id)? else {
            return Ok(None);
        };
        Ok(since_told(snapshot, &known)?.map(|text| (known, text)))
    };
    if kernel.read(pending)?.is_none() {
        return Ok(None);
    }
    kernel.write(|tx, _| {
        // Calls come at once: one of them says it.
        let Some((known, text)) = pending(tx)? else { return Ok(None) };
        let newest = untold(tx, &known)?.last().map_or(known.told_seq, |rollback| rollback.seq);
        session::told(tx, &known, newest)?;
        Ok(Some(format!(
            "{text} This call was refused once to tell you: read the files again, then continue."
        )))
    })
}

/// What was undone of a session's work since its agent last heard of it, for the agent.
fn since_told(snapshot: &Snapshot<'_>, session: &Session) -> Result<Option<String>> {
    let mut news = Vec::new();
    for rollback in untold(snapshot, session)? {
        news.push(told(snapshot, &rollback)?);
    }
    Ok((!news.is_empty()).then(|| format!("Since your last answer {}.", news.join("; "))))
}

/// The rollbacks of a session's work that stand, and of which its agent has not heard.
fn untold(snapshot: &Snapshot<'_>, session: &Session) -> Result<Vec<RollbackRecord>> {
    // Of a session that ended and was resumed, the run that it works in now is not the one where something was undone.
    const RECENT: i64 = 8;
    let mut runs = vec![session.run_id.clone()];
    for prompt in session::newest(snapshot, &session.id, RECENT)? {
        runs.push(dispatch::get(snapshot, &prompt.dispatch_id)?.run_id);
    }
    runs.sort_unstable();
    runs.dedup();
    let mut found = Vec::new();
    for run in &runs {
        let all = table::of_run(snapshot, run)?;
        found.extend(all.into_iter().filter(|one| one.status.stands() && one.seq > session.told_seq));
    }
    found.sort_unstable_by_key(|one| one.seq);
    Ok(found)
}

/// `the work went back to before "add a login": 4 files`
fn told(snapshot: &Snapshot<'_>, rollback: &RollbackRecord) -> Result<String> {
    let named = |id: &str| -> Result<String> {
        let name = dispatch::resolve(snapshot, id)?.work.name.unwrap_or_default();
        Ok(format!("{:?}", title(&name)))
    };
    let point = rollback.point().and_then(|point| point.split_once(':'));
    let what = match (rollback.only(), point) {
        (Some(only), _) => format!("what was done for {} was undone", named(only.as_str())?),
        (None, Some(("prompt" | "dispatch", id))) => format!("the work went back to before {}", named(id)?),
        (None, _) => format!("the work went back to the phase {}", title(&rollback.to_phase)),
    };
    let mut files = None;
    for step in steps::of_rollback(snapshot, &rollback.id)? {
        if let Made::Tree { paths, .. } = Made::by(&step) {
            files = Some(paths);
        }
    }
    Ok(match files {
        Some(1) => format!("{what}, with 1 file"),
        Some(n) => format!("{what}, with {n} files"),
        None if rollback.layers.contains(&Layer::Files) => what,
        None => format!("{what}; files stay as they are"),
    })
}

/// Ends what the newest prompt of a session began, or its continuation: the agent stopped. `None` where nothing was open.
///
/// Errors: whatever the ledger says; a capture that fails is a warning.
pub fn stop(
    kernel: &Kernel,
    teller: Teller<'_>,
    kept: Option<&Settings>,
    count: Counted<'_>,
) -> Result<Option<(Dispatch, Vec<Warning>)>> {
    let open = kernel.read(|snapshot| {
        let Some(prompt) = latest_of(snapshot, teller)? else { return Ok(None) };
        let work = match prompt.ended_at {
            None => Some(dispatch::get(snapshot, &prompt.dispatch_id)?),
            Some(_) => subagents::continuation(snapshot, &prompt)?,
        };
        Ok(work.map(|work| (prompt, work)))
    })?;
    let Some((prompt, work)) = open else { return Ok(None) };
    if prompt.ended_at.is_some() {
        let warnings = subagents::finish(kernel, &work, kept, None)?;
        return Ok(Some((work, warnings)));
    }
    let (run, since) = kernel.read(|snapshot| {
        let run = run::get(snapshot, &work.run_id)?;
        Ok((run, commits::unrecorded(snapshot, &work, &prompt)?))
    })?;
    let link = Link {
        run_id: Some(run.id.clone()),
        phase: Some(run.phase.clone()),
        dispatch_id: Some(prompt.dispatch_id.clone()),
        ..Link::default()
    };
    let kept = kept.filter(|_| is_going(&work, &run));
    let taken = Taken::take_if(kernel, kept, &run.project_dir, link);
    let made = since.map(|since| commits::made(kernel, &run.project_dir, &prompt, &since));
    let tokens = prompt.transcript_start.and_then(|start| count(Some(start)));
    let ended = kernel.write_late_too(|tx, now| {
        let work = dispatch::get(tx, &prompt.dispatch_id)?;
        let run = run::get(tx, &work.run_id)?;
        session::end_prompt(tx, now, &prompt)?;
        if let Some(made) = &made {
            commits::record(tx, now, &work, made)?;
        }
        subagents::record_tokens(tx, now, &work, tokens)?;
        if !self::is_going(&work, &run) {
            return Ok(work);
        }
        taken.record_after(tx, now, &run)?;
        dispatch::finish(tx, now, &work, &Ending::Completed { summary: None, verdict: None })
    })?;
    let mut warnings = taken.warnings.clone();
    // Its locks stand in the way of giving anything up.
    drop(taken);
    if let Some(settings) = kept {
        warnings.extend(retention::tidy(kernel, settings, &run.project_dir));
    }
    Ok(Some((ended, warnings)))
}

fn is_going(work: &Dispatch, run: &Run) -> bool {
    work.require_current().is_ok() && work.finished_at.is_none() && run.require_settled().is_ok()
}

/// Records that a session is over: its last prompt is ended, and the run that was made for it is completed.
pub fn end(
    kernel: &Kernel,
    teller: Teller<'_>,
    why: Option<&str>,
    kept: Option<&Settings>,
    count: Counted<'_>,
) -> Result<()> {
    stop(kernel, teller, kept, count)?;
    let session = kernel.write(|tx, now| {
        let session = session::by_client(tx, teller.client, teller.client_id)?;
        if let Some(session) = &session {
            subagents::end_left(tx, now, session, true)?;
            session::end(tx, now, session, why)?;
        }
        Ok(session)
    })?;
    let Some(session) = session.filter(|session| session.owns_run) else { return Ok(()) };
    let run = kernel.read(|snapshot| run::get(snapshot, &session.run_id))?;
    if run.require_active().is_ok() {
        advance::advance(kernel, run.id.as_str(), &advance::Request::default(), None)?;
    }
    Ok(())
}

/// Lets the later prompts of a session belong to an open run of its project. The run that was made for the session is completed, unless a
/// prompt is being worked on in it: then it stays open.
///
/// Errors: `session_not_found`, `run_not_active`, `invalid_value` for a run of another project; nothing is written.
pub fn attach(kernel: &Kernel, id: &SessionId, run_reference: &str) -> Result<Session> {
    let (left, attached) = kernel.write(|tx, _| {
        let known = session::get(tx, id)?;
        let run = kernel.run(tx, run_reference)?;
        run.require_active()?;
        if run.project_dir != known.project_dir {
            let why =
                format!("Run {} is of another project than session {}.", run.id.short(), known.id.short());
            return Err(Diagnosis::new(Code::InvalidValue, why).hint("see: ic run list"));
        }
        if known.run_id == run.id {
            return Ok((None, known));
        }
        let is_idle = session::latest(tx, &known.id)?.is_none_or(|prompt| prompt.ended_at.is_some());
        let left = (known.owns_run && is_idle).then(|| known.run_id.clone());
        Ok((left, session::work_in(tx, &known, &run.id, false)?))
    })?;
    if let Some(left) = left {
        let run = kernel.read(|snapshot| run::get(snapshot, &left))?;
        if run.require_active().is_ok() {
            advance::advance(kernel, run.id.as_str(), &advance::Request::default(), None)?;
        }
    }
    Ok(attached)
}

/// Whether work was begun by the dispatch that a reference names, itself or through others.
pub fn is_begun_by(snapshot: &Snapshot<'_>, work: &DispatchId, reference: &str) -> Result<bool> {
    let mut next = dispatch::get(snapshot, work)?.work.parent_id;
    while let Some(parent) = next {
        if parent.as_str() == reference || parent.as_str().ends_with(reference) {
            return Ok(true);
        }
        next = dispatch::get(snapshot, &parent)?.work.parent_id;
    }
    Ok(false)
}

/// What an agent reads of the run that its session was given: where it is, and what its gate asks. `None`: it has a run of its own.
pub fn situation(kernel: &Kernel, teller: Teller<'_>, named: Option<&RunId>) -> Result<Option<String>> {
    const LONGEST: usize = 200;
    kernel.read(|snapshot| {
        let known = session::by_client(snapshot, teller.client, teller.client_id)?;
        let given = known.filter(|known| !known.owns_run).map(|known| known.run_id);
        let Some(id) = named.or(given.as_ref()) else { return Ok(None) };
        let run = run::get(snapshot, id)?;
        if run.require_active().is_err() {
            return Ok(None);
        }
        let short = run.id.short();
        let asks = match advance::verdict(snapshot, &run) {
            Ok(outcome) if outcome.verdict.blocks() => {
                format!("its gate asks: {}", outcome.verdict.complaint())
            }
            _ => "its gate passes".to_owned(),
        };
        let text = format!("It works in the run {short}, phase {}; {asks}.", title(&run.phase));
        let text: String = text.chars().take(LONGEST).collect();
        Ok(Some(format!("{text} See: ic run status {short}; ic gate check {short}; ic run advance {short}.")))
    })
}

/// The project that a session works in, if it is known and still there.
pub fn project_of(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<PathBuf>> {
    let known = session::by_client(snapshot, teller.client, teller.client_id)?;
    Ok(known.map(|known| known.project_dir).filter(|project| project.is_dir()))
}

/// The run of the session that calls, if it is open, and the work that it is in the middle of.
pub fn calling(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<(Run, Option<DispatchId>)>> {
    let Some(session) = session::by_client(snapshot, teller.client, teller.client_id)? else {
        return Ok(None);
    };
    let prompt = session::latest(snapshot, &session.id)?.filter(|prompt| prompt.ended_at.is_none());
    let run = run::get(snapshot, &session.run_id)?;
    Ok(Some((run, prompt.map(|prompt| prompt.dispatch_id))))
}
