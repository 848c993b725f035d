//! Ctrl-C, and being asked to end: the first time a flag, the second time the end.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ic_base::{Diagnose, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// How often a terminal's watcher looks: often enough for an answer to Ctrl-C that is felt as one.
const POLL: Duration = Duration::from_millis(100);

/// How long the end may take before anything is said: most calls are over by then, and a second Ctrl-C is then nobody's thought.
const PATIENCE: Duration = Duration::from_millis(300);

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
    for signal in [SIGINT, SIGTERM] {
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
    anstream::eprintln!("{text}");
}
