//! Running a command as a piece of work: one call that captures the tree, starts the command, and records how it ended and what it left.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::display::path_text;
use ic_base::mask::mask;
use ic_base::{CallId, Diagnose, DispatchId, Result, RunId, Seq, SessionId, Timestamp, title};
use ic_checkpoint::git;
use ic_checkpoint::record::CheckpointLink;
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchWork};
use ic_dispatch::report::DispatchReport;
use ic_effects::child::supervision::{CommandStreams, SupervisedCommand, supervise};
use ic_effects::child::{ChildExit, CommandOutcome};
use ic_effects::process::ProcessIdentity;
use ic_kernel::Kernel;
use ic_kernel::worker::process_of;
use ic_ledger::{Snapshot, Transaction, private};
use ic_phase::gate::Gates;
use ic_phase::point::{NewPoint, PointKind};
use ic_phase::run::{self, NewRun};
use ic_phase::{Chain, Run};
use ic_session::{self as session, AgentSession, NewCall, NewPrompt, NewSession, call};
use ic_worktree::auto::{SeenTree, TakenTree};
use ic_worktree::{CaptureSettings, Warning, retention, root_of};
use rustix::process::Signal;

use crate::hooks::caller::is_going;
use crate::hooks::commits::{self, Since};
use crate::run::complete_own;

pub use ic_effects::child::supervision::require_startable;

/// The client of the sessions of commands, and the tool of their calls.
pub const CLIENT: &str = "exec";

/// The longest log of a command, in bytes.
const LONGEST_LOG: u64 = 64 << 20;

/// How long a command may take to end after a signal, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// What is to be run, and how.
pub struct ExecRequest<'a> {
    /// The run that the work belongs to; `None`: that of the calling dispatch, else one of its own.
    pub run: Option<&'a str>,
    /// Its phase; `None`: the run's current one.
    pub phase: Option<&'a str>,
    /// What is said of the work.
    pub work: DispatchWork,
    /// The program and its arguments.
    pub argv: &'a [OsString],
    /// The directory in which it starts.
    pub directory: &'a Path,
    /// After this time it is ended.
    pub timeout: Option<Duration>,
    /// How often a command that fails is run again.
    pub retries: u32,
    /// The pause before the first retry; each further one is twice as long.
    pub backoff: Duration,
    /// Where the command's output goes.
    pub output: ExecOutput,
    /// How the tree is captured; `None`: not at all.
    pub kept: Option<&'a CaptureSettings>,
}

/// Where the output of the command goes, beside its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecOutput {
    /// To the streams of the caller.
    Streams,
    /// To the caller's standard error.
    ErrorStream,
    /// Nowhere; the command gets no input.
    Nowhere,
    /// To the terminal, which is the command's own as long as it runs. There is no log.
    Terminal,
}

/// What a caller does while the command runs.
pub trait ExecWatch {
    /// Is called when the work is on record, before the command starts.
    fn begun(&mut self, dispatch: &Dispatch) -> Result<()>;
    /// The signal that this process got, if it got one.
    fn signal(&self) -> Option<Signal>;
    /// The command that records the death of this process: its program, then its arguments.
    fn if_killed(&self, dispatch: &DispatchId) -> Vec<OsString>;
}

/// How the command ended.
#[derive(Debug)]
pub struct ExecutedCommand {
    /// The work as recorded.
    pub dispatch: Dispatch,
    /// How the last attempt ended.
    pub exit: ChildExit,
    /// The signal to this process that ended it.
    pub signal: Option<Signal>,
    /// How often the command was started.
    pub attempts: u32,
    /// Where its output is, masked.
    pub log: PathBuf,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Runs a command as a piece of work, and returns when it has ended and that is recorded.
///
/// The work is a prompt of a session that has no other one, with one call, which lasts as long as the command: so what it changed is told
/// from what others change at the same time, just as for agents, and an undo takes it out alone.
///
/// Errors, with which nothing has run: `invalid_value` for a command that cannot be started; those of a run's reference; `unknown_phase`,
/// `run_not_active`, `rolling_back`, `stale_dispatch`. A capture that fails is a warning.
pub fn exec(kernel: &Kernel, request: &ExecRequest<'_>, watch: &mut dyn ExecWatch) -> Result<ExecutedCommand> {
    require_startable(request.argv, request.directory)?;
    let (begun, mut warnings) = begin(kernel, request)?;
    let log = log_of(kernel, &begun);
    if let Some(directory) = log.parent() {
        private::directories(directory).while_doing(|| format!("making {}", directory.display()))?;
    }
    watch.begun(&begun)?;
    // From here on a killed process is recorded by its guard.
    let (outcome, attempts) = attempt(kernel, request, (&begun, &log), watch)?;
    let signal = watch.signal();
    let error = error_of(&outcome, signal);
    let (dispatch, more) = end(kernel, &begun.id, &ending_of(&outcome, signal, &error), request.kept)?;
    warnings.extend(more);
    warnings.extend(outcome.log_error.map(|error| Warning {
        code: "log_incomplete",
        message: format!("the log {} is incomplete: {}", path_text(&log), error.message()),
    }));
    Ok(ExecutedCommand { dispatch, exit: outcome.exit, signal, attempts, log, warnings })
}

/// Does something to the tree as a piece of work, in this process. `request`: its run, its names and how the tree is captured; nothing else
/// of it counts.
///
/// Errors: those of [`exec`]; those of the deed, with which the work has failed.
pub fn deed<T>(kernel: &Kernel, request: &ExecRequest<'_>, deed: impl FnOnce() -> Result<T>) -> Result<(T, Dispatch)> {
    let (begun, _) = begin(kernel, request)?;
    let done = deed();
    let error = done.as_ref().err().map(|error| error.message().to_owned());
    let ending = match &error {
        Some(error) => DispatchEnding::Failed { error },
        None => DispatchEnding::Completed { summary: None, verdict: None },
    };
    let (ended, _) = end(kernel, &begun.id, &ending, request.kept)?;
    done.map(|done| (done, ended))
}

/// Records that the process which ran a command was killed, and its command with it. Work that has ended keeps its state.
///
/// Errors: `dispatch_not_found`; whatever the ledger says.
pub fn record_killed(kernel: &Kernel, id: &DispatchId, kept: Option<&CaptureSettings>) -> Result<Dispatch> {
    end(kernel, id, &DispatchEnding::Interrupted { error: "ic exec was killed" }, kept).map(|(dispatch, _)| dispatch)
}

/// Where the output of a dispatch's command is.
pub fn log_of(kernel: &Kernel, dispatch: &Dispatch) -> PathBuf {
    let name = format!("{}.log", dispatch.id);
    kernel.store().join("logs").join(dispatch.run_id.as_str()).join(name)
}

/// Captures the tree, and records in one transaction that the work has begun.
fn begin(kernel: &Kernel, request: &ExecRequest<'_>) -> Result<(Dispatch, Vec<Warning>)> {
    let context = &kernel.context;
    let (id, new_run): (DispatchId, RunId) = (context.new_id(), context.new_id());
    let (session, call): (SessionId, CallId) = (context.new_id(), context.new_id());
    let open = |snapshot: &Snapshot<'_>| -> Result<Option<(Run, String)>> {
        let caller = kernel.calling_dispatch(snapshot)?;
        let run = match (request.run, &caller) {
            (Some(reference), _) => kernel.run(snapshot, reference)?,
            (None, Some(caller)) => run::get(snapshot, &caller.run_id)?,
            (None, None) => return Ok(None),
        };
        // A command in a fork is work of that place, even if a dispatch of another one calls.
        if request.run.is_none() && root_of(&run.project_dir) != kernel.project.root {
            return Ok(None);
        }
        run.require_active()?;
        let phase = run.phase_or_current(request.phase)?;
        Ok(Some((run, phase)))
    };
    // A call that will be refused is refused before the tree is walked.
    let known = kernel.read(open)?;
    let project = known.as_ref().map_or_else(|| kernel.project.root.clone(), |(run, _)| run.project_dir.clone());
    let link = CheckpointLink {
        run_id: Some(known.as_ref().map_or_else(|| new_run.clone(), |(run, _)| run.id.clone())),
        phase: known.as_ref().map(|(_, phase)| phase.clone()),
        ..CheckpointLink::default()
    };
    let taken = TakenTree::take_if(kernel, request.kept, &project, link);
    let root = root_of(&project);
    let stand = (git::head(&root), git::log_size(&root));
    let own = ProcessIdentity::of(std::process::id())?.as_ref().map(process_of);
    let begun = kernel.write(|tx, now| {
        let (run, phase) = if let Some(known) = open(tx)? {
            known
        } else {
            let run = run::create(tx, now, new_run.clone(), own_run(&project, request))?;
            let phase = run.phase_or_current(request.phase)?;
            (run, phase)
        };
        let new = NewSession {
            id: &session,
            client: CLIENT,
            client_id: id.as_str(),
            run_id: &run.id,
            owns_run: run.id == new_run,
            project_dir: &kernel.project.root,
            transcript: None,
        };
        let session = session::begin(tx, now, &new)?;
        let point = NewPoint {
            kind: PointKind::Prompt,
            session: Some(session.id.as_str()),
            ..NewPoint::of_dispatch(id.as_str())
        };
        taken.record_point(tx, now, &run, &point)?;
        let seen = taken.recorded(tx, &root)?;
        // What a piece of work of the same run began goes back with it.
        let parent_id = kernel.calling_dispatch(tx)?.filter(|caller| caller.run_id == run.id).map(|caller| caller.id);
        let work = DispatchWork { parent_id, ..request.work.clone() };
        let made = dispatch::create(tx, now, &id, &run.id, run.epoch, &phase, &work)?;
        begin_call(tx, now, (&call, request, &stand), (&session, &made, seen))?;
        dispatch::start(tx, now, &made, own.as_ref())
    })?;
    Ok((begun, taken.warnings.clone()))
}

/// Records the prompt of the work and its only call. `stand`: the commit that is checked out, and the size of git's log of HEAD.
fn begin_call(
    tx: &Transaction<'_>,
    now: Timestamp,
    (id, request, (head, head_log_start)): (&CallId, &ExecRequest<'_>, &(Option<String>, Option<u64>)),
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
        tool: CLIENT,
        line: &command_line(request.argv),
        paths: &[],
        began_seq: seen.seq,
        before_seq: seen.end(),
        head: head.as_deref(),
        head_log_start: *head_log_start,
    };
    call::begin(tx, now, &new)
}

/// A run for one command, which its end completes.
fn own_run(project: &Path, request: &ExecRequest<'_>) -> NewRun {
    NewRun {
        goal: request.work.name.clone().unwrap_or_else(|| command_line(request.argv)),
        chain: Chain::of_session(),
        project_dir: project.to_owned(),
        complexity: None,
        auto_advance: true,
        gates: Gates::default(),
        scope_id: None,
        metadata: "{}".to_owned(),
    }
}

/// A command for people, on one line, without the secrets in it.
pub fn command_line(argv: &[OsString]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    title(&mask(&words.join(" ")))
}

/// Runs the command until it succeeds, has no retry left, or this process is told to end.
fn attempt(
    kernel: &Kernel,
    request: &ExecRequest<'_>,
    (begun, log): (&Dispatch, &Path),
    watch: &mut dyn ExecWatch,
) -> Result<(CommandOutcome, u32)> {
    let if_killed = watch.if_killed(&begun.id);
    let environment = [
        ("IC_DB", kernel.ledger.name().into()),
        ("IC_RUN", OsString::from(begun.run_id.as_str())),
        ("IC_DISPATCH", OsString::from(begun.id.as_str())),
    ];
    let command = SupervisedCommand {
        argv: request.argv,
        directory: request.directory,
        environment: environment.map(|(name, value)| (name.into(), value)).into(),
        timeout: request.timeout,
        grace: GRACE,
        streams: match request.output {
            ExecOutput::Streams => CommandStreams::Relayed(log, LONGEST_LOG),
            ExecOutput::ErrorStream => CommandStreams::RelayedToError(log, LONGEST_LOG),
            ExecOutput::Nowhere => CommandStreams::Logged(log, LONGEST_LOG),
            ExecOutput::Terminal => CommandStreams::Terminal,
        },
        has_input: match request.output {
            ExecOutput::Nowhere => false,
            ExecOutput::Terminal => true,
            // The terminal belongs to the group of this process, or of the pipe that it stands in: a command that reads from it would be
            // stopped, and wait for ever.
            ExecOutput::Streams | ExecOutput::ErrorStream => !std::io::stdin().is_terminal(),
        },
        if_killed: &if_killed,
    };
    let mut attempts = 1;
    let mut pause = request.backoff;
    loop {
        // Each attempt has a guard of its own: that of the last one went with its command.
        let outcome = supervise(&command, &|| watch.signal().map(passed_on))?;
        let is_last = attempts > request.retries || outcome.exit == ChildExit::Code(0);
        if is_last || !wait(pause, watch) {
            return Ok((outcome, attempts));
        }
        attempts += 1;
        pause = pause.saturating_mul(2);
    }
}

/// A command that goes on when its terminal is closed would go on for ever.
fn passed_on(signal: Signal) -> Signal {
    if signal == Signal::HUP { Signal::TERM } else { signal }
}

/// Waits before a retry; `false`: this process is told to end.
fn wait(pause: Duration, watch: &dyn ExecWatch) -> bool {
    const LOOK: Duration = Duration::from_millis(20);
    let start = Instant::now();
    loop {
        if watch.signal().is_some() {
            return false;
        }
        let left = pause.saturating_sub(start.elapsed());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Captures the tree as the command left it, and records its commits and its end.
///
/// Work that its own command has ended, or that was rolled back since, keeps that state.
fn end(
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
    let link = CheckpointLink {
        run_id: Some(run.id.clone()),
        phase: Some(run.phase.clone()),
        dispatch_id: Some(id.clone()),
        ..CheckpointLink::default()
    };
    // Of work that was undone nothing is captured: the undo was its end.
    let kept = kept.filter(|_| is_going(&work, &run));
    let alone = kept.map(|kept| CaptureSettings { state: None, ..kept.clone() });
    let root = root_of(&run.project_dir);
    let taken = TakenTree::take_if(kernel, alone.as_ref(), &run.project_dir, link);
    let made = match (&prompt, &call) {
        (Some(prompt), Some(call)) => commits::made(kernel, &root, prompt, &Since::call(call)),
        _ => DispatchReport::default(),
    };
    let ended = kernel.write_late_too(|tx, now| {
        let (work, run) = (dispatch::get(tx, id)?, run::get(tx, &run.id)?);
        let is_going = is_going(&work, &run);
        if !is_beside_others(tx, &work)? {
            commits::record(tx, now, &work, &made)?;
        }
        let ended = if is_going {
            // The end is the event right after the look at what the command left.
            taken.record_after(tx, now, &run)?;
            let seen = taken.recorded(tx, &root)?;
            let ended = dispatch::finish(tx, now, &work, ending)?;
            call.as_ref().map_or(Ok(()), |call| call::end(tx, now, &call.id, seen.end()))?;
            ended
        } else {
            work
        };
        if let Some(prompt) = &prompt {
            session::end_prompt(tx, now, prompt)?;
            session::end(tx, now, &session::get(tx, &prompt.session_id)?, None)?;
        }
        Ok(ended)
    })?;
    let mut warnings = taken.warnings.clone();
    // Pruning waits for the store's locks, which `taken` still has.
    drop(taken);
    if let Some(prompt) = &prompt {
        let owner = kernel.read(|snapshot| session::get(snapshot, &prompt.session_id))?;
        if owner.owns_run && ended.rolled_back_by.is_none() {
            complete_own(kernel, &ended.run_id)?;
        }
    }
    if ended.rolled_back_by.is_some() {
        let message = "the work was undone while it ran: what it changed since then is not captured".to_owned();
        warnings.push(Warning { code: "stale_dispatch", message });
    }
    if let Some(settings) = kept {
        warnings.extend(retention::tidy(kernel, settings, &run.project_dir));
    }
    Ok((ended, warnings))
}

/// Whether other work than what began this one, or what this one began, was under way in the same place.
fn is_beside_others(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<bool> {
    let place = run::get(snapshot, &work.run_id)?.project_dir;
    // A row from before ends were events has only a time.
    let since = work.started_at.unwrap_or(work.created_at);
    let family = family(snapshot, work)?;
    for other in dispatch::at_work_between(snapshot, work.started_seq.unwrap_or(work.seq), Seq::MAX, since)? {
        let is_here = run::get(snapshot, &other.run_id)?.project_dir == place;
        if is_here && !family.contains(&other.id) && other.status != DispatchStatus::Pending {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The work itself, what began it, and what it began.
fn family(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Vec<DispatchId>> {
    let mut family: Vec<DispatchId> = vec![work.id.clone()];
    family.extend(dispatch::descendants(snapshot, &work.id)?.into_iter().map(|one| one.id));
    let mut next = work.work.parent_id.clone();
    while let Some(parent) = next {
        next = dispatch::get(snapshot, &parent)?.work.parent_id;
        family.push(parent);
    }
    Ok(family)
}

/// Why the command failed, in a few words.
fn error_of(outcome: &CommandOutcome, signal: Option<Signal>) -> String {
    if let Some(signal) = signal {
        return format!("ic exec was ended by {}", name_of(signal));
    }
    match &outcome.exit {
        ChildExit::Code(code) => format!("exit {code}"),
        ChildExit::Signal(signal) => format!("ended by signal {signal}"),
        ChildExit::TimedOut => format!("no end after {:.1?}", outcome.duration),
        ChildExit::Cancelled => "cancelled".to_owned(),
        ChildExit::NotStarted(why) => why.clone(),
    }
}

fn name_of(signal: Signal) -> String {
    match signal {
        Signal::HUP => "SIGHUP".to_owned(),
        Signal::INT => "SIGINT".to_owned(),
        Signal::QUIT => "SIGQUIT".to_owned(),
        Signal::TERM => "SIGTERM".to_owned(),
        other => format!("signal {}", other.as_raw()),
    }
}

fn ending_of<'a>(outcome: &CommandOutcome, signal: Option<Signal>, error: &'a str) -> DispatchEnding<'a> {
    match outcome.exit {
        ChildExit::Code(0) => DispatchEnding::Completed { summary: None, verdict: None },
        _ if signal.is_some() => DispatchEnding::Interrupted { error },
        ChildExit::TimedOut => DispatchEnding::TimedOut { error },
        _ => DispatchEnding::Failed { error },
    }
}
