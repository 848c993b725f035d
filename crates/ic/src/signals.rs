//! Ctrl-C, a closed terminal, and SIGTERM: the first one sets a flag, the second one ends the process.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use ic_base::{Diagnose, Result};
use ic_sys::signals::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level};

/// How often the watcher looks at the flag: a person takes an answer within this time for an immediate one.
const POLL: Duration = Duration::from_millis(100);

/// How long the watcher waits before it explains a second Ctrl-C: most calls have ended by then.
const PATIENCE: Duration = Duration::from_millis(300);

/// The signals that ask this process to end, and that it handles.
///
/// A child has a process group of its own, so the SIGHUP of a closed terminal and the SIGQUIT of Ctrl-\ reach only this process. If it died
/// of them, the child would work on, and its end would not be recorded. A signal that was ignored from the start, by `nohup` or by a shell
/// for its background jobs, stays ignored. SIGINT is handled even then, because `kill -INT` is how scripts end such a job.
pub(crate) fn that_end() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    signals.extend([SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal)));
    signals
}

/// The flag that is set when this process is interrupted. All callers share it.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    static HEARD: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    // A panic under this lock leaves a whole value: it is set by one assignment.
    let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(interrupted) = &*heard {
        return Ok(interrupted.clone());
    }
    let interrupted = listen()?;
    *heard = Some(interrupted.clone());
    Ok(interrupted)
}

/// Whether Ctrl-C ends this process by the handler that [`caught`] leaves.
static ENDS: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Does `work`, and says whether Ctrl-C was pressed during it. Later Ctrl-C ends the process again, or does what [`interrupted`] and
/// [`received`] say.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<(T, bool)> {
    let listening = || "listening for signals".to_owned();
    let pressed = Arc::new(AtomicBool::new(false));
    ENDS.store(false, Ordering::SeqCst);
    let heard = flag::register(SIGINT, pressed.clone()).while_doing(listening)?;
    let done = work();
    low_level::unregister(heard);
    // A handler stays installed, and without an action Ctrl-C would do nothing.
    flag::register_conditional_default(SIGINT, ENDS.clone()).while_doing(listening)?;
    ENDS.store(true, Ordering::SeqCst);
    Ok((done, pressed.load(Ordering::SeqCst)))
}

/// The number of the first signal that asks this process to end; 0: there was none. It is for a command that is run and that gets the
/// signal, too: a second one ends this process at once.
pub(crate) fn received() -> Result<Arc<AtomicUsize>> {
    // There are two values, because the handler that ends the process asks a flag, and the caller needs the number.
    ENDS.store(false, Ordering::SeqCst);
    let (is_any, first) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    for signal in that_end() {
        // As in `listen`, and in this order.
        let ends = if signal == SIGHUP { Arc::default() } else { is_any.clone() };
        flag::register_conditional_default(signal, ends)
            .and_then(|_| flag::register_usize(signal, first.clone(), usize::try_from(signal).unwrap_or_default()))
            .and_then(|_| flag::register(signal, is_any.clone()))
            .while_doing(|| "listening for signals".to_owned())?;
    }
    Ok(first)
}

fn listen() -> Result<Arc<AtomicBool>> {
    ENDS.store(false, Ordering::SeqCst);
    // false ── first signal ──► true ── second signal ──► the default action: the process ends
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in that_end() {
        // A terminal that is closed sends SIGHUP twice, by its shell and by the system: no person asked a second time, so it ends nothing.
        let ends = if signal == SIGHUP { Arc::default() } else { interrupted.clone() };
        // In this order: the first handler ends the process if the flag is set already, so it has to run before the second one sets it.
        flag::register_conditional_default(signal, ends)
            .and_then(|_| flag::register(signal, interrupted.clone()))
            .while_doing(|| "listening for signals".to_owned())?;
    }
    // Only on a terminal: in a pipe, standard error has to be one record or nothing.
    if std::io::stderr().is_terminal() {
        let seen = interrupted.clone();
        // The thread ends with the process. If it cannot be started, only this sentence is lost.
        let _ = std::thread::Builder::new().spawn(move || say_what_a_second_does(&seen));
    }
    Ok(interrupted)
}

fn say_what_a_second_does(interrupted: &AtomicBool) {
    while !interrupted.load(Ordering::SeqCst) {
        std::thread::sleep(POLL);
    }
    std::thread::sleep(PATIENCE);
    let text =
        "\ninterrupted: ic ends after the current operation; Ctrl-C again ends ic at once and leaves it unfinished";
    // Writing fails if the terminal was closed.
    let _ = writeln!(anstream::stderr(), "{text}");
}
