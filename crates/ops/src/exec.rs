//! Running a command as a piece of work: one call that captures the tree, starts the command, and records how it ended and what it left.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::display::path_text;
use ic_base::mask::mask;
use ic_base::{Code, Diagnose, Diagnosis, DispatchId, Result, title};
use ic_dispatch::dispatch::{Dispatch, DispatchEnding};
use ic_effects::child::supervision::{CommandStreams, GroupGuard, SupervisedCommand, supervise};
use ic_effects::child::{ChildExit, CommandOutcome};
use ic_kernel::Kernel;
use ic_ledger::private;
use ic_worktree::Warning;
use rustix::process::Signal;

use crate::direct_work::{self, DirectWork};

pub use ic_effects::child::supervision::require_startable;

/// The longest log of a command, in bytes.
const LONGEST_LOG: u64 = 64 << 20;

/// How long a command may take to end after a signal, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// What is to be run, and how.
pub struct ExecRequest<'a> {
    /// The work that it is.
    pub work: DirectWork<'a>,
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
/// Errors, with which nothing has run: `invalid_value` for a command that cannot be started, or for a run of another work tree; those of a
/// run's reference; `unknown_phase`, `run_not_active`, `rolling_back`, `stale_dispatch`. With any later error the work has failed.
pub fn exec(kernel: &Kernel, request: &ExecRequest<'_>, watch: &mut dyn ExecWatch) -> Result<ExecutedCommand> {
    require_startable(request.argv, request.directory)?;
    let id: DispatchId = kernel.context.new_id();
    // The guard comes first, so that work which is on record as running has one. There is none only after a command
    // that had to be ended, until the next attempt or the end:
    //
    //   guard ─▶ begin: RUNNING ─▶ attempts ─▶ end: on record ─▶ guard is dismissed
    //               └── killed: the guard ends what the command left, and records the end
    let mut guard = GroupGuard::start(&watch.if_killed(&id), &environment(kernel, None))?;
    let (begun, mut warnings) = direct_work::begin(kernel, &id, &request.work)?;
    let log = log_path(kernel, &begun);
    let attempted = attempt(kernel, request, (&begun, &log), (&mut guard, watch));
    let (outcome, attempts) = match attempted {
        Ok(attempted) => attempted,
        Err(error) => {
            // The work is on record as running, so it gets its end before the error is returned.
            let ending = DispatchEnding::Failed { error: error.message() };
            direct_work::end(kernel, &id, &ending, request.work.kept)?;
            return Err(error);
        }
    };
    let signal = watch.signal();
    let error = error_of(&outcome, signal);
    let (dispatch, more) = direct_work::end(kernel, &id, &ending_of(&outcome, signal, &error), request.work.kept)?;
    // Only now: until the end is on record, a killed process is recorded by its guard.
    guard.dismiss();
    if let ChildExit::NotStarted(why) = outcome.exit {
        return Err(Diagnosis::new(Code::Io, why));
    }
    if let Some(error) = outcome.stream_error {
        // The output is the answer of this call, so an exit of 0 without it would be untrue.
        return Err(error.hint(format!("what the command did stands; what it wrote until then: {}", path_text(&log))));
    }
    warnings.extend(more);
    warnings.extend(outcome.log_error.map(|error| Warning {
        code: "log_incomplete",
        message: format!("the log {} is incomplete: {}", path_text(&log), error.message()),
    }));
    Ok(ExecutedCommand { dispatch, exit: outcome.exit, signal, attempts, log, warnings })
}

/// The file with the output of a dispatch's command, masked; `None`: no command was run for it, or it had a terminal.
pub fn log_of(kernel: &Kernel, dispatch: &Dispatch) -> Option<PathBuf> {
    Some(log_path(kernel, dispatch)).filter(|log| log.is_file())
}

fn log_path(kernel: &Kernel, dispatch: &Dispatch) -> PathBuf {
    kernel.log_directory(&dispatch.run_id).join(format!("{}.log", dispatch.id))
}

/// A command for people, on one line, without the secrets in it.
pub fn command_line(argv: &[OsString]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    title(&mask(&words.join(" ")))
}

/// What a command, or the record of a killed process, finds in its environment.
pub(crate) fn environment(kernel: &Kernel, work: Option<&Dispatch>) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = vec![("IC_DB".into(), kernel.ledger.name().into())];
    if let Some(work) = work {
        all.push(("IC_RUN".into(), work.run_id.as_str().into()));
        all.push(("IC_DISPATCH".into(), work.id.as_str().into()));
    }
    all
}

/// Runs the command until it succeeds, has no retry left, or this process is told to end.
fn attempt(
    kernel: &Kernel,
    request: &ExecRequest<'_>,
    (begun, log): (&Dispatch, &Path),
    (guard, watch): (&mut GroupGuard, &mut dyn ExecWatch),
) -> Result<(CommandOutcome, u32)> {
    let directory = kernel.log_directory(&begun.run_id);
    private::directories(&directory).while_doing(|| format!("making {}", directory.display()))?;
    watch.begun(begun)?;
    let command = SupervisedCommand {
        argv: request.argv,
        directory: request.directory,
        environment: environment(kernel, Some(begun)),
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
    };
    let (mut attempts, mut pause) = (1, request.backoff);
    loop {
        let outcome = supervise(&command, guard, &|| watch.signal().map(passed_on))?;
        let is_last = attempts > request.retries || outcome.exit == ChildExit::Code(0);
        if is_last || !wait(pause, watch) {
            return Ok((outcome, attempts));
        }
        attempts += 1;
        pause = pause.saturating_mul(2);
        if guard.is_dismissed() {
            // Its group was ended with a command that took too long.
            *guard = GroupGuard::start(&watch.if_killed(&begun.id), &environment(kernel, None))?;
        }
    }
}

/// A command that goes on when its terminal is closed would go on for ever.
fn passed_on(signal: Signal) -> Signal {
    if signal == Signal::HUP { Signal::TERM } else { signal }
}

/// Waits before a retry; `false`: this process is told to end.
fn wait(pause: Duration, watch: &dyn ExecWatch) -> bool {
    // This asks as often as `supervise` does while the command runs.
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

/// Why the command failed, in a few words.
fn error_of(outcome: &CommandOutcome, signal: Option<Signal>) -> String {
    if let Some(signal) = signal {
        return format!("ic exec was ended by {}", name_of(signal));
    }
    match &outcome.exit {
        ChildExit::Code(code) => format!("exit {code}"),
        ChildExit::Signal(signal) => format!("ended by signal {signal}"),
        ChildExit::TimedOut => format!("no end after {:.1?}", outcome.duration),
        // `supervise` does not return it. It stands here because the match has no catch-all.
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
        // The exit is looked at before the signal: a command that ends with 0 after it was asked to end has done its
        // work.
        ChildExit::Code(0) => DispatchEnding::Completed { summary: None, verdict: None },
        _ if signal.is_some() => DispatchEnding::Interrupted { error },
        ChildExit::TimedOut => DispatchEnding::TimedOut { error },
        _ => DispatchEnding::Failed { error },
    }
}
