//! Ctrl-C, a closed terminal, and being asked to end: the first time a flag, the second time the end.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ic_base::{Diagnose, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// How often a terminal's watcher looks: often enough for an answer to Ctrl-C that is felt as one.
const POLL: Duration = Duration::from_millis(100);

/// How long the end may take before anything is said: most calls are over by then, and a second Ctrl-C is then nobody's thought.
const PATIENCE: Duration = Duration::from_millis(300);

/// Where Linux says which signals a process ignores.
const STATUS: &str = "/proc/self/status";

/// The signals that ask this process to end.
///
/// A child leads a group of its own, so the SIGHUP of a closed terminal and the SIGQUIT of Ctrl-\ reach this process alone:
/// unheard, they would leave the child at work with nobody who records its end. They are not heard where they are ignored
/// from the start, by `nohup` or by a shell for its background jobs. SIGINT is heard even so, because `kill -INT` is how
/// scripts end such a job.
pub(crate) fn that_end() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    signals.extend([SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal)));
    signals
}

/// A flag that is set when this process is interrupted: one for all that it does.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    static HEARD: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(interrupted) = &*heard {
        return Ok(interrupted.clone());
    }
    let interrupted = listen()?;
    *heard = Some(interrupted.clone());
    Ok(interrupted)
}

fn listen() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in that_end() {
        // In this order: what ends the process looks at the flag before this very signal sets it.
        flag::register_conditional_default(signal, interrupted.clone())
            .and_then(|_| flag::register(signal, interrupted.clone()))
            .while_doing(|| "listening for signals".to_owned())?;
    }
    // In a pipe standard error is one record, or none.
    if std::io::stderr().is_terminal() {
        let seen = interrupted.clone();
        // It ends with the process; that it cannot be started costs a sentence, not the call.
        let _ = std::thread::Builder::new().spawn(move || say_what_a_second_does(&seen));
    }
    Ok(interrupted)
}

fn say_what_a_second_does(interrupted: &AtomicBool) {
    while !interrupted.load(Ordering::SeqCst) {
        std::thread::sleep(POLL);
    }
    std::thread::sleep(PATIENCE);
    let text = "\ninterrupted: ic ends after the current operation; Ctrl-C again ends ic at once and leaves it unfinished";
    // A terminal that was closed cannot be written to.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Whether this process ignores a signal that it has no handler for.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string(STATUS);
    status
        .ok()
        .and_then(|status| is_ignored_by(&status, signal))
        .unwrap_or_else(|| is_ignored_by_a_child(signal))
}

/// Whether the status of a process says that it ignores a signal; `None`: it does not say.
fn is_ignored_by(status: &str, signal: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (signal - 1) & 1 == 1)
}

/// Where the system does not say it: a shell inherits what is ignored, and survives the signal only then.
fn is_ignored_by_a_child(signal: i32) -> bool {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("kill -{signal} $$")]);
    let ended = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ended.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{SIGHUP, SIGINT, SIGQUIT, is_ignored, is_ignored_by, is_ignored_by_a_child};

    #[test]
    fn what_a_process_ignores_is_read_from_its_status() {
        // As under `nohup`: SIGHUP alone.
        let status =
            "Name:\tic\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004002\n";
        assert_eq!(is_ignored_by(status, SIGHUP), Some(true));
        assert_eq!(is_ignored_by(status, SIGQUIT), Some(false));
        // As a job of a script in the background.
        let status = "SigIgn:\t0000000000000006\n";
        assert_eq!(
            [SIGHUP, SIGINT, SIGQUIT].map(|s| is_ignored_by(status, s)),
            [Some(false), Some(true), Some(true)]
        );
        assert_eq!((is_ignored_by("", SIGHUP), is_ignored_by("SigIgn:\tx\n", SIGHUP)), (None, None));
    }

    #[test]
    fn a_shell_and_the_status_say_the_same() {
        for signal in [SIGHUP, SIGQUIT] {
            assert_eq!(is_ignored_by_a_child(signal), is_ignored(signal), "{signal}");
        }
    }
}
