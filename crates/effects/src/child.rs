//! One command, run to its end.
//!
//! The command starts behind a gate: a shell that waits on a pipe for its one line. Who the process is can thus
//! be recorded before anything of the command has run, and if we die before the line is written, nothing runs.
//! The shell then becomes the command, so that the recorded process is the command's own. It leads a process
//! group of its own, by which it is ended with all that it started. What it leaves running when it ends by
//! itself is left alone: a step may start a server on purpose.
//!
//! Its standard output and error are one pipe, read by a thread, and tokens of well-known shapes are masked before a byte of
//! it is written down or shown: `ic_base::mask`. The pipe does not live longer than the call: what
//! is to write afterwards must have its output elsewhere.

mod gate;
mod log;
mod lookup;
mod output;
pub mod supervision;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use gate::Gate;
use ic_dispatch::process::{EndedProcess, ProcessIdentity, end_group, program_name};
use log::CommandLog;

/// How often it is asked whether the run is cancelled. The end of the command is noticed at once.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, without a shell. A name without a slash is looked up in the command's PATH.
    Argv(Vec<OsString>),
    /// A text for `sh -c`.
    Shell(String),
}

/// How a command is run.
#[derive(Debug, Clone)]
pub struct ChildCommand<'a> {
    /// The program or the line that is run.
    pub program: &'a Program,
    /// The directory in which it starts.
    pub directory: &'a Path,
    /// Added to our own environment; of several values of a name, the last counts.
    pub environment: Vec<(OsString, OsString)>,
    /// Taken out of our own environment, before the additions.
    pub removed: Vec<OsString>,
    /// After this time it is ended; counted from the opening of the gate.
    pub timeout: Option<Duration>,
    /// How long it may take to end after SIGTERM, before SIGKILL.
    pub grace: Duration,
    /// The file that its output is appended to, made readable by the user alone.
    pub log: &'a Path,
    /// How many bytes of this run's output the log keeps: the first half and the last half of it.
    pub longest_log: u64,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildExit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, which was not ours.
    Signal(i32),
    /// It was ended because its time was over.
    TimedOut,
    /// It was ended, or not begun, because the run was cancelled.
    Cancelled,
    /// Nothing of it ran; a sentence says why.
    NotStarted(String),
}

/// What came of running a command.
#[derive(Debug)]
pub struct CommandOutcome {
    /// How it ended: by itself, by a signal, or by this program.
    pub exit: ChildExit,
    /// The time from the opening of the gate to the end of the command.
    pub duration: Duration,
    /// How much it wrote, kept or not.
    pub output_bytes: u64,
    /// The last of its output, masked, at most 4 KiB.
    pub tail: Vec<u8>,
    /// Why the log is not complete, if it is not. The command was not disturbed by it.
    pub log_error: Option<Diagnosis>,
    /// Why our own streams did not get all of its output; the command then found its own streams closed.
    pub stream_error: Option<Diagnosis>,
}

impl CommandOutcome {
    fn not_begun(exit: ChildExit) -> Self {
        Self { exit, duration: Duration::ZERO, output_bytes: 0, tail: Vec::new(), log_error: None, stream_error: None }
    }
}

/// Runs a command to its end, and collects it.
///
/// `born` gets the identity of the process, which leads its group, before the command begins; when it fails,
/// nothing has run and its error is returned. It is not called when the command cannot be begun, which is
/// [`ChildExit::NotStarted`] and no error. `live` gets the output as it comes, on another thread; a slow one slows
/// the command down, but delays neither timeout nor cancellation. `cancelled` is asked about every 20 ms.
///
/// Output of what the command left running is read for at most about 200 ms after its end. After a timeout or a
/// cancellation the whole group has been ended. Errors: `io_error` or `permission_denied` when the group could not
/// be ended or the command not be waited for; it may then still run.
pub fn run(
    command: &ChildCommand<'_>,
    born: &mut dyn FnMut(&ProcessIdentity) -> Result<()>,
    live: &mut (dyn FnMut(&[u8]) + Send),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<CommandOutcome> {
    // Asked before a process is made: a run that is cancelled already must not even start one.
    if cancelled() {
        return Ok(CommandOutcome::not_begun(ChildExit::Cancelled));
    }
    let environment = gate::environment(command);
    let argv = match lookup::argv(command.program, command.directory, &environment) {
        Ok(argv) => argv,
        Err(why) => return Ok(CommandOutcome::not_begun(ChildExit::NotStarted(why))),
    };
    let (reader, writer) = output::pipe()?;
    let gate = match Gate::close(&argv, command.directory, &environment, writer) {
        Ok(gate) => gate,
        Err(error) => {
            let why = format!("{} could not be started: {error}.", lookup::shown(&argv[0]));
            return Ok(CommandOutcome::not_begun(ChildExit::NotStarted(why)));
        }
    };
    // If this returns before the gate is open, the gate is dropped: its process is ended, and nothing of the command has run.
    let Some(identity) = gate.identity()? else {
        let why = format!("{} could not be started: its process was ended at once.", lookup::shown(&argv[0]));
        return Ok(CommandOutcome::not_begun(ChildExit::NotStarted(why)));
    };
    born(&identity)?;

    let mut log = CommandLog::append_to(command.log, command.longest_log);
    let over = OnceLock::new();
    let (finished, written) = thread::scope(|scope| {
        // The reader is there before the gate opens: a command that fills its pipe waits until it is read.
        let reading = thread::Builder::new()
            .spawn_scoped(scope, || output::copy(reader, &mut log, live, &over))
            .while_doing(|| "starting a thread".to_owned())?;
        // An error in here is returned only after the thread was told to stop.
        let finished = follow(gate, &identity, command, cancelled);
        // A process that the command left may keep the pipe open. The reader waits for it only a little from now on.
        over.get_or_init(Instant::now);
        reading.thread().unpark();
        let written = reading.join().unwrap_or_else(|panic| resume_unwind(panic));
        finished.map(|finished| (finished, written))
    })?;
    // This is asked only where it ended at the gate: a command that ran may print the words of `env` itself.
    let refused = if finished.at_gate { lookup::refused(&argv[0], &written.tail) } else { None };
    let exit = refused.map_or(finished.exit, ChildExit::NotStarted);
    Ok(CommandOutcome {
        exit,
        duration: finished.duration,
        output_bytes: written.bytes,
        tail: written.tail,
        log_error: log.finish(),
        stream_error: None,
    })
}

struct Finished {
    exit: ChildExit,
    duration: Duration,
    /// The process ended as the gate's, and had not become the command.
    at_gate: bool,
}

/// Opens the gate, and sees the command to its end.
fn follow(
    mut gate: Gate,
    identity: &ProcessIdentity,
    command: &ChildCommand<'_>,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Finished> {
    // This comes before the gate opens: if the thread that waits cannot be started, nothing has run.
    let ended = await_end(identity.pid)?;
    let start = Instant::now();
    gate.open();
    let ours = match watch(&ended, command.timeout, start, cancelled) {
        // It may have ended by itself just now; then the status says how.
        Some(exit) => (end_group(identity, command.grace)? != EndedProcess::WasGone).then_some(exit),
        None => None,
    };
    let duration = start.elapsed();
    // Read before the process is collected: after that the name is gone.
    let name = program_name(identity.pid);
    let status = gate.collect().map_err(|error| {
        Diagnosis::new(Code::Io, format!("The exit status of the command is unknown: {error}."))
            .hint("the program that started this one ignores SIGCHLD; start it from a shell")
            .caused_by(error)
    })?;
    // One of the two is always there: a child that is only stopped is not collected.
    let by_itself = match (status.code(), status.signal()) {
        (Some(code), _) => ChildExit::Code(code),
        (None, signal) => ChildExit::Signal(signal.unwrap_or_default()),
    };
    let at_gate = ours.is_none() && status.code().is_some_and(|code| gate::is_failure(code, &name));
    Ok(Finished { exit: ours.unwrap_or(by_itself), duration, at_gate })
}

/// Waits until the command ended by itself (`None`), or must be ended (the reason).
fn watch(
    ended: &Receiver<()>,
    timeout: Option<Duration>,
    start: Instant,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Option<ChildExit> {
    loop {
        // With no time left it still asks once: a command that has ended by now did not time out.
        let left = timeout.map_or(CANCEL_INTERVAL, |timeout| timeout.saturating_sub(start.elapsed()));
        match ended.recv_timeout(left.min(CANCEL_INTERVAL)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Some(ChildExit::TimedOut),
            Err(RecvTimeoutError::Timeout) if cancelled() => return Some(ChildExit::Cancelled),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Sends a message when a child of ours has ended. The child is not collected, so its number stays its own.
///
/// The thread is left behind if the child cannot be ended at all.
fn await_end(pid: u32) -> Result<Receiver<()>> {
    let (tell, ended) = channel();
    let wait = move || {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // After any other error there is nothing to wait for. The call then collects the child, and reports that.
        while waitid(WaitId::Pid(pid), options).is_err_and(|error| error == Errno::INTR) {}
        // Without a receiver the call has ended already, with an error.
        let _ = tell.send(());
    };
    thread::Builder::new().spawn(wait).while_doing(|| "starting a thread".to_owned())?;
    Ok(ended)
}
