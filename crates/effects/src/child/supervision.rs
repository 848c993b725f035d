//! A command that works with the caller's own streams, and that does not outlive its caller.
//!
//! The caller starts a guard first: a shell that waits on a pipe which only the caller holds. The command joins the guard's process group.
//!
//! ```text
//!   caller ──────pipe──────▶ guard         both in one group, which the guard leads
//!      └─────starts────────▶ command ──▶ what the command starts
//! ```
//!
//! When the end of the command is on record, the caller writes a line and the guard ends. When the pipe closes without a line, the caller
//! was killed: the guard asks the group to end, records that by a command of the caller's, and kills the rest. There is no moment at which
//! the command runs without a guard, because its group is there before it.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_sys::foreground::{give_terminal_to, has_terminal};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, kill_process_group, waitid};

use super::gate::SHELL;
use super::log::CommandLog;
use super::{CANCEL_INTERVAL, ChildExit, CommandOutcome, Program, await_end, lookup, output};
use ic_dispatch::process::{ProcessIdentity, end_group};

/// What the guard runs: its arguments are the command that records the caller's death.
//   trap ''       ignored, and not handled: what this shell starts inherits that, so no Ctrl-C ends the recorder
//   echo          the guard is ready
//   read          a line dismisses it; the end of the pipe means that the caller is dead
//   "$@"          waits until the group has ended, or for a second, before it looks at the tree
//   >/dev/null    the caller, who read its standard output, is dead
//   kill -KILL 0  last, because it ends this shell as well
const GUARD: &str =
    "trap '' HUP INT QUIT TERM TSTP; echo; read -r _ && exit 0; kill -TERM 0; \"$@\" >/dev/null; kill -KILL 0";

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct SupervisedCommand<'a> {
    /// The program and its arguments.
    pub argv: &'a [OsString],
    /// The directory in which it starts.
    pub directory: &'a Path,
    /// Added to our own environment.
    pub environment: Vec<(OsString, OsString)>,
    /// After this time its group is ended.
    pub timeout: Option<Duration>,
    /// How long it may take to end after a signal, before SIGKILL.
    pub grace: Duration,
    /// Where its output goes.
    pub streams: CommandStreams<'a>,
    /// Whether it reads our standard input; else it has none.
    pub has_input: bool,
}

/// Where the output of a command goes.
#[derive(Debug, Clone, Copy)]
pub enum CommandStreams<'a> {
    /// To our own streams, byte by byte, and masked into a log of at most this many bytes.
    Relayed(&'a Path, u64),
    /// As [`CommandStreams::Relayed`], with both streams on our standard error.
    RelayedToError(&'a Path, u64),
    /// Into the log alone.
    Logged(&'a Path, u64),
    /// The terminal itself, for a command that asks a person; there is no log.
    Terminal,
}

/// Refuses what could not be started. Errors: `invalid_value`, with a sentence that says why.
pub fn require_startable(argv: &[OsString], directory: &Path) -> Result<()> {
    let environment = std::env::vars_os().collect();
    lookup::argv(&Program::Argv(argv.to_vec()), directory, &environment)
        .map(drop)
        .map_err(|why| Diagnosis::new(Code::InvalidValue, why))
}

/// Runs a command to its end, in the group of a guard, which stays. `stop` is asked about every 20 ms; the first signal that it returns is passed on to the command's group, which
/// is killed if it has not ended within the grace period.
///
/// [`ChildExit::Cancelled`] is not returned: how the command ended after a signal is its own. Errors: `io_error` when a process cannot be
/// started or ended.
pub fn supervise(
    command: &SupervisedCommand<'_>,
    guard: &mut GroupGuard,
    stop: &dyn Fn() -> Option<Signal>,
) -> Result<CommandOutcome> {
    let (log, longest) = match command.streams {
        CommandStreams::Relayed(log, longest)
        | CommandStreams::RelayedToError(log, longest)
        | CommandStreams::Logged(log, longest) => (log, longest),
        CommandStreams::Terminal => return in_terminal(command, guard, stop),
    };
    // Two readers write it, one for each stream.
    let log = Mutex::new(CommandLog::append_to(log, longest));
    let over = OnceLock::new();
    let ((exit, duration), mut outputs) = thread::scope(|scope| {
        let (mut child, readers) = match start(command, guard) {
            Ok(started) => started,
            Err(error) => {
                let why = format!("{} could not be started: {error}.", lookup::shown(&command.argv[0]));
                return Ok(((ChildExit::NotStarted(why), Duration::ZERO), Vec::new()));
            }
        };
        let sinks: [Box<dyn Write + Send>; 2] = match command.streams {
            CommandStreams::Relayed(..) => [Box::new(io::stdout()), Box::new(io::stderr())],
            CommandStreams::RelayedToError(..) => [Box::new(io::stderr()), Box::new(io::stderr())],
            // `Terminal` returned above. It stands here because the match has no catch-all.
            CommandStreams::Logged(..) | CommandStreams::Terminal => [Box::new(io::sink()), Box::new(io::sink())],
        };
        let (log, over) = (&log, &over);
        let reading = readers.into_iter().zip(sinks).map(|(reader, mut sink)| {
            thread::Builder::new()
                .spawn_scoped(scope, move || output::relay(reader, log, &mut *sink, over))
                .while_doing(|| "starting a thread".to_owned())
        });
        let reading: Vec<_> = reading.collect::<Result<_>>()?;
        // An error is returned only below, when the readers know that it is over: the scope waits for them.
        let ended = attend(&mut child, guard, command, stop);
        over.get_or_init(Instant::now);
        let joined = reading.into_iter().map(|one| {
            one.thread().unpark();
            one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let outputs: Vec<_> = joined.collect();
        ended.map(|ended| (ended, outputs))
    })?;
    let log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(CommandOutcome {
        exit,
        duration,
        output_bytes: outputs.iter().map(|one| one.bytes).sum(),
        stream_error: outputs.iter_mut().find_map(|one| one.lost.take()),
        // The last of what it said of itself: an error is on the second stream.
        tail: outputs.into_iter().rev().map(|one| one.tail).find(|tail| !tail.is_empty()).unwrap_or_default(),
        log_error: log.finish(),
    })
}

/// As [`supervise`], of a command that has the terminal.
fn in_terminal(
    command: &SupervisedCommand<'_>,
    guard: &mut GroupGuard,
    stop: &dyn Fn() -> Option<Signal>,
) -> Result<CommandOutcome> {
    // Before the command starts, because one that reads from a terminal of others is stopped.
    let terminal = Terminal::give_to(guard);
    let ended = match in_group(command, guard).map(|mut started| started.spawn()) {
        Ok(Ok(mut child)) => attend(&mut child, guard, command, stop),
        Ok(Err(error)) | Err(error) => {
            let why = format!("{} could not be started: {error}.", lookup::shown(&command.argv[0]));
            Ok((ChildExit::NotStarted(why), Duration::ZERO))
        }
    };
    drop(terminal);
    let (exit, duration) = ended?;
    Ok(CommandOutcome { duration, ..CommandOutcome::not_begun(exit) })
}

/// The terminal, as long as the group of a command has it.
struct Terminal {
    is_given: bool,
}

impl Terminal {
    /// Gives the terminal to the group of a guard, if it is ours to give.
    fn give_to(guard: &GroupGuard) -> Self {
        let group = i32::try_from(guard.identity.pid).ok().filter(|_| has_terminal());
        Self { is_given: group.is_some_and(|group| give_terminal_to(group).is_ok()) }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_given {
            // A terminal that was closed by now cannot be given to anything.
            let _ = give_terminal_to(getpgrp().as_raw_nonzero().get());
        }
    }
}

/// Does as the command when a person stops it (Ctrl-Z): this process stops, so that the shell is there again, and when it continues, so does
/// the command.
fn stop_with(child: &Child, guard: &GroupGuard) {
    // `waitid` consumes the report of a stop, so each Ctrl-Z is handled once.
    let is_stopped = || {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG).ok()?
    };
    if is_stopped().is_none() {
        return;
    }
    let _ = give_terminal_to(getpgrp().as_raw_nonzero().get());
    // SIGTSTP is not enough: a process may ignore or handle it.
    let _ = kill_process(getpid(), Signal::STOP);
    // Here this process continues: in the foreground, or in the background if a person wants that.
    if has_terminal() {
        // Its drop would take the terminal from the command at once. `in_terminal` does that at the end.
        std::mem::forget(Terminal::give_to(guard));
    }
    guard.pass_on(Signal::CONT);
}

/// The command, in the guard's group, with our own streams.
fn in_group(command: &SupervisedCommand<'_>, guard: &GroupGuard) -> io::Result<std::process::Command> {
    let mut started = std::process::Command::new(&command.argv[0]);
    started.args(&command.argv[1..]).current_dir(command.directory).envs(command.environment.iter().cloned());
    // Some agents ask this variable where they are, and would work in the directory of the caller. A path that leads here stays.
    let leads_here = |pwd| std::fs::canonicalize(pwd).ok() == std::fs::canonicalize(command.directory).ok();
    if !std::env::var_os("PWD").is_some_and(leads_here) {
        started.env("PWD", command.directory);
    }
    // The number cannot be that of another group: the guard is not collected before it is dismissed.
    started.process_group(i32::try_from(guard.identity.pid).map_err(io::Error::other)?);
    Ok(started)
}

/// Starts the command in the guard's group; the readers are those of its output and of its errors.
fn start(command: &SupervisedCommand<'_>, guard: &GroupGuard) -> io::Result<(Child, [io::PipeReader; 2])> {
    let pipe = || output::pipe().map_err(io::Error::other);
    let ((out, out_writer), (errors, errors_writer)) = (pipe()?, pipe()?);
    let mut started = in_group(command, guard)?;
    started.stdin(if command.has_input { Stdio::inherit() } else { Stdio::null() });
    started.stdout(out_writer).stderr(errors_writer);
    Ok((started.spawn()?, [out, errors]))
}

/// Sees the command to its end.
fn attend(
    child: &mut Child,
    guard: &mut GroupGuard,
    command: &SupervisedCommand<'_>,
    stop: &dyn Fn() -> Option<Signal>,
) -> Result<(ChildExit, Duration)> {
    let start = Instant::now();
    let ended = await_end(child.id())?;
    // When the group is killed, once it was asked to end.
    let mut kill_at: Option<Instant> = None;
    let mut is_late = false;
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(CANCEL_INTERVAL) {
        if matches!(command.streams, CommandStreams::Terminal) {
            stop_with(child, guard);
        }
        // From here on only the grace counts: a timeout that passes now is not why the command ends.
        if let Some(at) = kill_at {
            if Instant::now() >= at {
                break;
            }
            continue;
        }
        is_late = command.timeout.is_some_and(|timeout| start.elapsed() >= timeout);
        let signal = if is_late { Some(Signal::TERM) } else { stop() };
        if let Some(signal) = signal {
            // Only the first: a second signal to this process ends it at once, and the guard does the rest.
            guard.pass_on(signal);
            kill_at = Some(Instant::now() + command.grace);
        }
    }
    // This comes before the wait below, which would last as long as a command that ignores the signal.
    if let Some(at) = kill_at {
        // What the command started ends with it, as it was asked to.
        guard.end_others(at.saturating_duration_since(Instant::now()))?;
    }
    let status = child.wait().while_doing(|| "waiting for the command".to_owned())?;
    let exit = match (status.code(), status.signal()) {
        _ if is_late => ChildExit::TimedOut,
        (Some(code), _) => ChildExit::Code(code),
        (None, signal) => ChildExit::Signal(signal.unwrap_or_default()),
    };
    Ok((exit, start.elapsed()))
}

/// The process that ends its group when we are killed. Dropped, it is dismissed.
#[derive(Debug)]
pub struct GroupGuard {
    child: Child,
    /// None once the guard was dismissed.
    pipe: Option<PipeWriter>,
    identity: ProcessIdentity,
}

impl GroupGuard {
    /// Starts the guard, and waits until it ignores the signals that its group gets. `if_killed`: the program that records our death, and its
    /// arguments, which is run after the group was asked to end; `environment` is added to ours for it, and `IC_DISPATCH` is taken out.
    ///
    /// Errors: `io_error`.
    pub fn start(if_killed: &[OsString], environment: &[(OsString, OsString)]) -> Result<Self> {
        let doing = || "starting the guard of a command".to_owned();
        // The writer closes on exec, so the command does not inherit it: the pipe closes as soon as this process dies.
        let (reader, writer) = io::pipe().while_doing(doing)?;
        let mut child = std::process::Command::new(SHELL)
            .args(["-c", GUARD, "ic-guard"])
            .args(if_killed)
            .envs(environment.iter().cloned())
            // What it records is recorded by the caller, not by the command.
            .env_remove("IC_DISPATCH")
            .stdin(reader)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .while_doing(doing)?;
        // One line says that it is ready: a signal before that would end it.
        let mut ready = [0];
        if let Some(mut said) = child.stdout.take() {
            said.read_exact(&mut ready).while_doing(doing)?;
        }
        let identity = ProcessIdentity::of(child.id())?
            .ok_or_else(|| Diagnosis::new(Code::Io, "The guard of a command was ended at once."))?;
        Ok(Self { child, pipe: Some(writer), identity })
    }

    /// Sends a signal to all in the group; the guard ignores it.
    fn pass_on(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.identity.pid).ok().and_then(Pid::from_raw) {
            // A group that is gone got no signal, and needs none.
            let _ = kill_process_group(group, signal);
            // A process that is stopped gets the signal only when it continues.
            let _ = kill_process_group(group, Signal::CONT);
        }
    }

    /// Ends what is left of the group, without the guard.
    fn end_others(&mut self, grace: Duration) -> Result<()> {
        // The guard is in the group and ignores SIGTERM: with it, the group would use up the whole grace.
        self.dismiss();
        end_group(&self.identity, grace).map(drop)
    }

    /// Whether the guard was dismissed, as after a group that had to be ended.
    pub fn is_dismissed(&self) -> bool {
        self.pipe.is_none()
    }

    /// Lets the guard end: what it guards has ended, and that is recorded.
    pub fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // A guard that is gone reads nothing.
            let _ = pipe.write_all(b"\n");
            let _ = self.child.wait();
        }
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        // Only a process that lives drops anything.
        self.dismiss();
    }
}
