//! Work that this program runs or does itself: a command, or the adoption of a fork.
//!
//! It is a prompt of a session that has no other one, with one call, which lasts as long as the work. So what it changed is told from what
//! others change at the same time just as for agents, and an undo takes it out alone.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ic_base::{CallId, Code, Diagnosis, DispatchId, Result, RunId, Seq, SessionId, Timestamp};
use ic_checkpoint::git;
use ic_checkpoint::record::CheckpointLink;
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchWork};
use ic_dispatch::process::{ProcessIdentity, wait_for_others_of_guard};
use ic_dispatch::report::DispatchReport;
use ic_dispatch::worker::{Life, life, process_of};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, Transaction};
use ic_phase::point::{NewPoint, PointKind};
use ic_phase::{Run, run};
use ic_session::{self as session, AgentSession, NewCall, NewPrompt, NewSession, OF_COMMANDS, call};
use ic_worktree::auto::{SeenTree, TakenTree};
use ic_worktree::{CaptureSettings, Warning, Workspace, forks, retention, root_of};

use crate::hooks::caller::{is_going, link_of};
use crate::hooks::commits::{self, Since};
use crate::run::{complete_own, own};

/// What a piece of work is made of that begins now.
pub struct DirectWork<'a> {
    /// The run that it belongs to; `None`: that of the calling dispatch, else one of its own.
    pub run: Option<&'a str>,
    /// Its phase; `None`: the run's current one.
    pub phase: Option<&'a str>,
    /// What is said of it.
    pub work: DispatchWork,
    /// What is done: one line, masked.
    pub line: String,
    /// How the tree is captured; `None`: not at all.
    pub kept: Option<&'a CaptureSettings>,
}

/// How long a command may take to end when this program was killed, before its tree is looked at.
const GRACE_OF_KILLED: Duration = Duration::from_secs(1);

/// How work ends that this program could not end itself.
const WAS_KILLED: DispatchEnding<'static> = DispatchEnding::Interrupted { error: "ic was killed" };

/// Captures the tree, and records in one transaction that the work with this id has begun; returns what went less well, too.
///
/// Errors: those of a run's reference; `file_conflict` in an unfinished fork; `invalid_value` for a run of another work tree;
/// `unknown_phase`, `run_not_active`, `rolling_back`, `stale_dispatch`. A capture that fails is a warning.
pub(crate) fn begin(kernel: &Kernel, id: &DispatchId, new: &DirectWork<'_>) -> Result<(Dispatch, Vec<Warning>)> {
    let context = &kernel.context;
    forks::require_finished(&kernel.project.root)?;
    end_killed(kernel, new.kept)?;
    let new_run: RunId = context.new_id();
    let (session, call): (SessionId, CallId) = (context.new_id(), context.new_id());
    // A call that will be refused is refused before the tree is walked.
    let known = kernel.read(|snapshot| open_run(kernel, snapshot, new))?;
    let project = known.as_ref().map_or_else(|| kernel.project.root.clone(), |(run, _)| run.project_dir.clone());
    let link = CheckpointLink {
        run_id: Some(known.as_ref().map_or_else(|| new_run.clone(), |(run, _)| run.id.clone())),
        phase: known.as_ref().map(|(_, phase)| phase.clone()),
        ..CheckpointLink::default()
    };
    let taken = TakenTree::take_if(kernel, new.kept, &project, link);
    let root = root_of(&project);
    let stand = (git::head(&root), git::log_size(&root));
    // This is our own process, and not the command's: it lives over all attempts and until the end is on record. So if
    // the process of some work is gone, the work was killed.
    let own_process = ProcessIdentity::of(std::process::id())?.as_ref().map(process_of);
    let begun = kernel.write(|tx, now| {
        // The events of this transaction, in their order:
        //
        //   (run_created) ─▶ session_begun ─▶ point_created ─▶ checkpoint ─▶ dispatch_created ─▶ dispatch_started
        //
        // The point is where an undo goes back to. What follows it is undone; the run and its session stay. The run is
        // looked up again, because it may have ended or moved while the tree was captured.
        let (run, phase) = if let Some(known) = open_run(kernel, tx, new)? {
            known
        } else {
            let goal = new.work.name.clone().unwrap_or_else(|| new.line.clone());
            let run = run::create(tx, now, new_run.clone(), own(&project, goal))?;
            let phase = run.phase_or_current(new.phase)?;
            (run, phase)
        };
        let session = NewSession {
            id: &session,
            client: OF_COMMANDS,
            client_id: id.as_str(),
            run_id: &run.id,
            owns_run: run.id == new_run,
            project_dir: &kernel.project.root,
            transcript: None,
        };
        let session = session::begin(tx, now, &session)?;
        let point = NewPoint {
            kind: PointKind::Prompt,
            session: Some(session.id.as_str()),
            ..NewPoint::of_dispatch(id.as_str())
        };
        taken.record_point(tx, now, &run, &point)?;
        let seen = taken.recorded(tx, &root)?;
        // What a piece of work of the same run began goes back with it.
        let parent_id = kernel.calling_dispatch(tx)?.filter(|caller| caller.run_id == run.id).map(|caller| caller.id);
        let work = DispatchWork { parent_id, ..new.work.clone() };
        let made = dispatch::create(tx, now, id, &run.id, run.epoch, &phase, &work)?;
        begin_call(tx, now, (&call, &new.line, &stand), (&session, &made, seen))?;
        dispatch::start(tx, now, &made, own_process.as_ref())
    })?;
    Ok((begun, taken.warnings.clone()))
}

/// How long the guard of a command that was killed may take to record its end. It asks the group to end, waits a second, and then records; this
/// leaves it two more. A guard that is gone itself is not waited for longer.
pub(crate) const GUARDED: Duration = Duration::from_secs(3);

/// Sees that work of this place whose process was killed has its end on record: what begins now would seem to have run beside it.
fn end_killed(kernel: &Kernel, kept: Option<&CaptureSettings>) -> Result<()> {
    const LOOK: Duration = Duration::from_millis(50);
    let start = Instant::now();
    let mut killed = kernel.read(|snapshot| killed_here(kernel, snapshot))?;
    while !killed.is_empty() && start.elapsed() < GUARDED {
        thread::sleep(LOOK);
        killed = kernel.read(|snapshot| killed_here(kernel, snapshot))?;
    }
    // Their guards are gone, too. If a guard is only late, its record comes second: the work keeps the end that it has.
    for id in &killed {
        end(kernel, id, &WAS_KILLED, kept)?;
    }
    Ok(())
}

/// The work of this program in this place whose process is gone, and whose session has no end on record. It may have been undone since: its
/// run is open until then.
fn killed_here(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Vec<DispatchId>> {
    let mut killed = Vec::new();
    let calls = call::not_told_of_end(snapshot, Timestamp(0))?.into_iter();
    for call in calls.filter(|call| call.tool == OF_COMMANDS) {
        let (work, session) = (dispatch::get(snapshot, &call.dispatch_id)?, session::get(snapshot, &call.session_id)?);
        let is_own = session.client == OF_COMMANDS
            && session.ended_at.is_none()
            && life(&work) == Some(Life::Gone)
            && root_of(&run::get(snapshot, &work.run_id)?.project_dir) == kernel.project.root;
        if is_own {
            killed.push(work.id);
        }
    }
    Ok(killed)
}

/// The open run that the work belongs to, and the phase; `None`: one is made for it.
fn open_run(kernel: &Kernel, snapshot: &Snapshot<'_>, new: &DirectWork<'_>) -> Result<Option<(Run, String)>> {
    let caller = kernel.calling_dispatch(snapshot)?;
    let run = match (new.run, &caller) {
        (Some(reference), _) => kernel.run(snapshot, reference)?,
        (None, Some(caller)) => run::get(snapshot, &caller.run_id)?,
        (None, None) => return Ok(None),
    };
    if root_of(&run.project_dir) != kernel.project.root {
        // Work in a fork is of that place, even if a dispatch of another one calls.
        return match new.run {
            None => Ok(None),
            Some(_) => Err(of_another_place(&run)),
        };
    }
    run.require_active()?;
    let phase = run.phase_or_current(new.phase)?;
    Ok(Some((run, phase)))
}

fn of_another_place(run: &Run) -> Diagnosis {
    let (id, place) = (run.id.short(), run.project_dir.display());
    Diagnosis::new(Code::InvalidValue, format!("Run {id} is of another work tree: {place}."))
        .hint(format!("call it there: ic -C {place} ...; the runs here: ic run list --project ."))
        .detail("run_id", run.id.as_str())
}

/// Records the prompt of the work and its only call. `stand`: the commit that is checked out, and the size of git's log of HEAD.
fn begin_call(
    tx: &Transaction<'_>,
    now: Timestamp,
    (id, line, (head, head_log_start)): (&CallId, &str, &(Option<String>, Option<u64>)),
    (session, work, seen): (&AgentSession, &Dispatch, SeenTree),
) -> Result<()> {
    let new = NewPrompt { prompt_id: None, head: head.as_deref(), transcript_start: None };
    session::begin_prompt(tx, now, session, work, new)?;
    let new = NewCall {
        id,
        dispatch_id: &work.id,
        session_id: &session.id,
        call_id: None,
        agent_id: None,
        agent_type: None,
        tool: OF_COMMANDS,
        line,
        paths: &[],
        began_seq: seen.seq,
        before_seq: seen.end(),
        head: head.as_deref(),
        head_log_start: *head_log_start,
    };
    call::begin(tx, now, &new)
}

/// Captures the tree as the work left it, and records its commits and its end; returns what went less well, too.
///
/// Work that has ended already, or was rolled back since, keeps that state.
pub(crate) fn end(
    kernel: &Kernel,
    id: &DispatchId,
    ending: &DispatchEnding<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<(Dispatch, Vec<Warning>)> {
    let (work, run, prompt, call) = kernel.read(|snapshot| {
        let work = dispatch::get(snapshot, id)?;
        let run = run::get(snapshot, &work.run_id)?;
        let call = call::of_dispatch(snapshot, id)?.pop();
        Ok((work, run, session::prompt_of(snapshot, id)?, call))
    })?;
    // Of work that was undone nothing is captured: the undo was its end.
    let stands = |work: &Dispatch, run: &Run| work.require_current().is_ok() && run.require_settled().is_ok();
    let kept = kept.filter(|_| stands(&work, &run));
    if *ending == WAS_KILLED {
        // If something cannot be removed, nothing worse happens than that a file stays: the end is recorded either way.
        let _ = sweep(kernel, &work, kept);
    }
    // The position of a state database belongs to points, and the end of work is not a point: `record_after` would not
    // keep it.
    let alone = kept.map(|kept| CaptureSettings { state: None, ..kept.clone() });
    let root = root_of(&run.project_dir);
    let taken = TakenTree::take_if(kernel, alone.as_ref(), &run.project_dir, link_of(&run, id));
    let made = match (&prompt, &call) {
        (Some(prompt), Some(call)) => commits::made(kernel, &root, prompt, &Since::call(call)),
        _ => DispatchReport::default(),
    };
    // The end is accepted from undone work, too: its commits must be on record, and its prompt and session have ended
    // in any case.
    let ended = kernel.write_late_too(|tx, now| {
        let (work, run) = (dispatch::get(tx, id)?, run::get(tx, &run.id)?);
        // If others worked here, too, a commit on HEAD may be theirs. Then this records it for neither.
        if !is_beside_others(tx, &work)? {
            commits::record(tx, now, &work, &made)?;
        }
        let is_going = is_going(&work, &run);
        let mut ended = work;
        if stands(&ended, &run) {
            // The end is the event right after the look at what the work left.
            taken.record_after(tx, now, &run)?;
            let seen = taken.recorded(tx, &root)?;
            // A command may have reported its own end, and done more since.
            if is_going {
                ended = dispatch::finish(tx, now, &ended, ending)?;
            }
            call.as_ref().map_or(Ok(()), |call| call::end(tx, now, &call.id, seen.end()))?;
        }
        if let Some(prompt) = &prompt {
            session::end_prompt(tx, now, prompt)?;
            session::end(tx, now, &session::get(tx, &prompt.session_id)?, None)?;
        }
        Ok(ended)
    })?;
    let mut warnings = taken.warnings.clone();
    // Pruning waits for the store's locks, which `taken` still has.
    drop(taken);
    complete_run(kernel, &ended)?;
    if ended.rolled_back_by.is_some() {
        let message = "the work was undone while it ran: what it changed since then is not captured".to_owned();
        warnings.push(Warning { code: "stale_dispatch", message });
    }
    if let Some(settings) = kept {
        warnings.extend(retention::tidy(kernel, settings, &run.project_dir));
    }
    Ok((ended, warnings))
}

/// Removes what a killed adoption left beside the files that it was about to write.
fn sweep(kernel: &Kernel, work: &Dispatch, kept: Option<&CaptureSettings>) -> Result<()> {
    let adopted = work.work.name.as_deref().and_then(|name| name.strip_prefix(ADOPT));
    let (Some(name), Some(settings)) = (adopted, kept) else { return Ok(()) };
    let fork = forks::find(kernel, name)?;
    let here = Workspace::here(kernel, settings)?;
    forks::sweep(&here, &Workspace::open(kernel, fork.root.clone(), settings)?, &fork)
}

/// The beginning of the name of an adoption's work; the name of the fork follows.
pub(crate) const ADOPT: &str = "adopt ";

/// Completes the run that was made for the work alone.
fn complete_run(kernel: &Kernel, work: &Dispatch) -> Result<()> {
    let session = kernel.read(|snapshot| session::of_work(snapshot, work))?;
    let is_own = session.is_some_and(|session| session.owns_run && session.run_id == work.run_id);
    if is_own { complete_own(kernel, &work.run_id) } else { Ok(()) }
}

/// Records that the process which did the work was killed. Work that has ended keeps its state.
///
/// Errors: `dispatch_not_found`; `invalid_value` for other work than this program's own; `work_running` while its process lives.
pub fn record_killed(kernel: &Kernel, reference: &str, kept_of: KeptOf<'_>) -> Result<Dispatch> {
    let (work, client, project) = kernel.read(|snapshot| {
        let work = dispatch::resolve(snapshot, reference)?;
        let client = session::of_work(snapshot, &work)?.map(|session| session.client);
        let project = run::get(snapshot, &work.run_id)?.project_dir;
        Ok((work, client, project))
    })?;
    if client.as_deref() != Some(OF_COMMANDS) {
        let message = format!("{} is no work of ic exec.", work.id.short());
        return Err(Diagnosis::new(Code::InvalidValue, message).hint("end it: ic dispatch fail ID --error TEXT"));
    }
    // Only a process that surely lives is in the way: it records the end itself.
    if life(&work) == Some(Life::Alive) {
        let message = format!("The process of {} lives. Nothing was recorded.", work.id.short());
        return Err(Diagnosis::new(Code::WorkRunning, message).hint("wait for its end: ic wait ID"));
    }
    let kept = kept_of(&project)?;
    // The guard asked the command to end. What is written once it has ended may be a person's.
    wait_for_others_of_guard(GRACE_OF_KILLED)?;
    end(kernel, &work.id, &WAS_KILLED, kept.as_ref()).map(|(dispatch, _)| dispatch)
}

/// How the tree of a project is captured.
pub type KeptOf<'a> = &'a dyn Fn(&Path) -> Result<Option<CaptureSettings>>;

/// Whether other work than what began this one, or what this one began, was under way in the same place.
fn is_beside_others(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<bool> {
    let place = run::get(snapshot, &work.run_id)?.project_dir;
    let since = work.started_at.unwrap_or(work.created_at);
    let kin = dispatch::kin(snapshot, work)?;
    for other in dispatch::at_work_between(snapshot, work.started_seq.unwrap_or(work.seq), Seq::MAX, since)? {
        let is_here = run::get(snapshot, &other.run_id)?.project_dir == place;
        if is_here && !kin.contains(&other.id) && other.status != DispatchStatus::Pending {
            return Ok(true);
        }
    }
    Ok(false)
}
