//! How work and sessions end, which run a session works in, and which session calls.

use std::path::PathBuf;

use ic_base::{Code, Diagnosis, DispatchId, Result, RunId, SessionId, title};
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchFilter};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::{Run, run};
use ic_session::{self as session, AgentSession, Prompt, call};
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, Warning, retention};

use super::caller::{Counted, Teller, is_going, latest_of, link_of};
use super::{commits, first_look, subagents};
use crate::advance;
use crate::run::complete_own;

/// Ends what the newest prompt of a session began, or its continuation: the agent stopped. Returns what went less well.
///
/// Errors: whatever the ledger says; a capture that fails is a warning.
pub fn stop(
    kernel: &Kernel,
    teller: Teller<'_>,
    kept: Option<&CaptureSettings>,
    count: Counted<'_>,
) -> Result<Vec<Warning>> {
    end_newest(kernel, teller, kept, count, false)
}

/// As [`stop`]. `is_session_over`: the session ended, perhaps without a stop.
fn end_newest(
    kernel: &Kernel,
    teller: Teller<'_>,
    kept: Option<&CaptureSettings>,
    count: Counted<'_>,
    is_session_over: bool,
) -> Result<Vec<Warning>> {
    let open = kernel.read(|snapshot| {
        let Some(prompt) = latest_of(snapshot, teller)? else { return Ok(None) };
        let work = match prompt.ended_at {
            None => Some(dispatch::get(snapshot, &prompt.dispatch_id)?),
            Some(_) => subagents::continuation(snapshot, &prompt)?,
        };
        Ok(work.map(|work| (prompt, work)))
    })?;
    // Before the return below: a turn that no person began may have no open work.
    end_unprompted(kernel, teller)?;
    let Some((prompt, work)) = open else { return Ok(Vec::new()) };
    if prompt.ended_at.is_some() {
        return subagents::finish(kernel, &work, kept, None);
    }
    let (run, since, is_cut_off) = kernel.read(|snapshot| state_at_end(snapshot, &work, &prompt, is_session_over))?;
    // Of work that was undone or whose run is closed nothing is captured: the undo was its end.
    let kept = kept.filter(|_| is_going(&work, &run));
    let mut taken = TakenTree::take_if(kernel, kept, &run.project_dir, link_of(&run, &prompt.dispatch_id));
    // This is asked after the capture: an agent that began while the tree was read may have changed what was seen.
    if kernel.read(|snapshot| is_last_at_work(snapshot, &work, &run))? {
        taken = taken.settled();
    }
    let made = since.map(|since| commits::made(kernel, &run.project_dir, &prompt, &since));
    let tokens = prompt.transcript_start.and_then(|start| count(Some(start)));
    kernel.write_late_too(|tx, now| {
        let work = dispatch::get(tx, &prompt.dispatch_id)?;
        let run = run::get(tx, &work.run_id)?;
        // Before the return below: the prompt of work that was undone has ended, too.
        session::end_prompt(tx, now, &prompt)?;
        if let Some(made) = &made {
            commits::record(tx, now, &work, made)?;
        }
        subagents::record_tokens(tx, now, &work, tokens)?;
        if !is_going(&work, &run) {
            return Ok(());
        }
        // A prompt without a call gets its first look only now, and this one look is its beginning and its end.
        let (work, is_recorded) = first_look::take_at_end(tx, now, &work, &taken)?;
        if !is_recorded {
            // This comes right before the end, with no event in between: readers find what the work left there.
            taken.record_after(tx, now, &run)?;
        }
        let completed = DispatchEnding::Completed { summary: None, verdict: None };
        let cancelled = DispatchEnding::Cancelled { reason: Some("interrupted") };
        dispatch::finish(tx, now, &work, if is_cut_off { &cancelled } else { &completed }).map(drop)
    })?;
    let mut warnings = taken.warnings.clone();
    // Pruning waits for the store's locks, which `taken` still has.
    drop(taken);
    complete_left(kernel, &prompt.session_id)?;
    if let Some(settings) = kept {
        warnings.extend(retention::tidy(kernel, settings, &run.project_dir));
    }
    Ok(warnings)
}

/// The run of the work that ends, where its commits begin that are not on record, and whether it was stopped in the middle of a call.
fn state_at_end(
    snapshot: &Snapshot<'_>,
    work: &Dispatch,
    prompt: &Prompt,
    is_session_over: bool,
) -> Result<(Run, Option<commits::Since>, bool)> {
    let run = run::get(snapshot, &work.run_id)?;
    // A session that ends in the middle of a call was stopped by a person, who may have changed files before.
    let is_cut_off = is_session_over && call::is_newest_cut_off(snapshot, &work.id)?;
    let since = if is_cut_off {
        commits::unrecorded_by_interrupted(snapshot, work, prompt)?
    } else {
        commits::unrecorded(snapshot, work, prompt)?
    };
    Ok((run, since, is_cut_off))
}

/// Ends a turn that no person began: what follows without a prompt is none of it.
fn end_unprompted(kernel: &Kernel, teller: Teller<'_>) -> Result<()> {
    let known = |snapshot: &Snapshot<'_>| teller.session(snapshot);
    if kernel.read(known)?.is_none_or(|known| known.unprompted.is_none()) {
        return Ok(());
    }
    kernel.write_late_too(|tx, _| known(tx)?.map_or(Ok(()), |known| session::go_on(tx, &known, None)))
}

/// Whether no other work that has begun is unfinished in the tree of a run, a subagent's included.
fn is_last_at_work(snapshot: &Snapshot<'_>, work: &Dispatch, run: &Run) -> Result<bool> {
    for other in dispatch::running(snapshot)? {
        let is_here = run::get(snapshot, &other.run_id)?.project_dir == run.project_dir;
        if other.id != work.id && is_here && other.rolled_back_by.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Records that a session is over: its last prompt is ended, and the run that was made for it is completed.
pub fn end(
    kernel: &Kernel,
    teller: Teller<'_>,
    why: Option<&str>,
    kept: Option<&CaptureSettings>,
    count: Counted<'_>,
) -> Result<()> {
    end_newest(kernel, teller, kept, count, true)?;
    // The end is accepted even if the work that began the session was undone: the session has ended in any case.
    let session = kernel.write_late_too(|tx, now| {
        let session = teller.session(tx)?;
        if let Some(session) = &session {
            subagents::end_left(tx, now, session, true)?;
            session::end(tx, now, session, why)?;
        }
        Ok(session)
    })?;
    let Some(session) = session else { return Ok(()) };
    // Only after the session's work has ended, because a run with running work is left open.
    complete_left(kernel, &session.id)?;
    if session.owns_run { complete_own(kernel, &session.run_id) } else { Ok(()) }
}

/// Completes the runs that were made for a session and that it works in no more: it was given another one, while a prompt was worked on.
/// Where something still runs in one, the end of the session completes it.
fn complete_left(kernel: &Kernel, id: &SessionId) -> Result<()> {
    let left = kernel.read(|snapshot| {
        let known = session::get(snapshot, id)?;
        let mut left = Vec::new();
        for run in session::own_runs_of(snapshot, id)? {
            if run != known.run_id && !is_at_work(snapshot, &run)? {
                left.push(run);
            }
        }
        Ok(left)
    })?;
    left.iter().try_for_each(|run| complete_own(kernel, run))
}

fn is_at_work(snapshot: &Snapshot<'_>, run: &RunId) -> Result<bool> {
    let running = Some(DispatchStatus::Running);
    let filter = DispatchFilter { run_id: Some(run), phase: None, status: running, limit: i64::MAX };
    let all = dispatch::list(snapshot, &filter)?;
    Ok(all.iter().any(|work| work.rolled_back_by.is_none()))
}

/// Lets the later prompts of a session belong to an open run of its project. The run that was made for the session is completed, if a
/// prompt is being worked on in it when the agent stops.
///
/// Errors: `session_not_found`, `run_not_active`, `invalid_value` for a run of another project; nothing is written.
pub fn attach(kernel: &Kernel, id: &SessionId, run_reference: &str) -> Result<AgentSession> {
    let (left, attached) = kernel.write(|tx, _| {
        let known = session::get(tx, id)?;
        // Everything is looked up in the transaction: the next prompt of the session may give it another run at the
        // same time.
        let run = kernel.run(tx, run_reference)?;
        run.require_active()?;
        if run.project_dir != known.project_dir {
            let why = format!("Run {} is of another project than session {}.", run.id.short(), known.id.short());
            return Err(Diagnosis::new(Code::InvalidValue, why).hint("see: ic run list"));
        }
        if known.run_id == run.id {
            return Ok((None, known));
        }
        // A run with a prompt at work in it is completed by that prompt's stop.
        let is_idle = session::latest(tx, &known.id)?.is_none_or(|prompt| prompt.ended_at.is_some());
        let left = (known.owns_run && is_idle).then(|| known.run_id.clone());
        Ok((left, session::work_in(tx, &known, &run.id, false)?))
    })?;
    if let Some(left) = left {
        complete_own(kernel, &left)?;
    }
    Ok(attached)
}

/// Whether work was begun by the dispatch that a reference names, itself or through others.
pub fn is_begun_by(snapshot: &Snapshot<'_>, work: &DispatchId, reference: &str) -> Result<bool> {
    let line = dispatch::with_parents(snapshot, &dispatch::get(snapshot, work)?)?;
    Ok(line[1..].iter().any(|parent| parent.id.as_str().ends_with(reference)))
}

/// What an agent reads of the run that its session was given: where it is, and what its gate asks. `None`: it has a run of its own.
pub fn situation(kernel: &Kernel, teller: Teller<'_>, named: Option<&RunId>) -> Result<Option<String>> {
    const LONGEST: usize = 200;
    kernel.read(|snapshot| {
        let known = teller.session(snapshot)?;
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
        // Cut before the commands are added: the agent must be able to read those whole.
        let text: String = text.chars().take(LONGEST).collect();
        Ok(Some(format!("{text} See: ic run status {short}; ic gate check {short}; ic run advance {short}.")))
    })
}

/// The project that a session works in, if it is known and still there.
pub fn project_of(snapshot: &Snapshot<'_>, teller: Teller<'_>) -> Result<Option<PathBuf>> {
    let known = teller.session(snapshot)?;
    Ok(known.map(|known| known.project_dir).filter(|project| project.is_dir()))
}

/// The run of a session, and the work that it is in the middle of.
pub fn calling(snapshot: &Snapshot<'_>, session: &AgentSession) -> Result<(Run, Option<DispatchId>)> {
    let prompt = session::latest(snapshot, &session.id)?.filter(|prompt| prompt.ended_at.is_none());
    let run = run::get(snapshot, &session.run_id)?;
    Ok((run, prompt.map(|prompt| prompt.dispatch_id)))
}
