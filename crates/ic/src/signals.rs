//! Ctrl-C, and being asked to end: the first time a flag, the second time the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{Diagnose, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that is set when somebody interrupts this process.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: what ends the process looks at the flag before this very signal sets it.
        flag::register_conditional_default(signal, interrupted.clone())
            .and_then(|_| flag::register(signal, interrupted.clone()))
            .while_doing(|| "listening for signals".to_owned())?;
    }
    Ok(interrupted)
}
