//! How long a capture may take, and git with it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};

/// When a capture ends before it is whole. What it stored until then serves the next one.
#[derive(Debug, Clone, Default)]
pub struct Limit {
    until: Option<(Instant, Duration)>,
    interrupted: Option<Arc<AtomicBool>>,
}

impl Limit {
    /// A capture of a process that began at `began` ends `most` later, or once `interrupted` is set.
    pub fn new(began: Instant, most: Duration, interrupted: Option<Arc<AtomicBool>>) -> Self {
        Self { until: Some((began + most, most)), interrupted }
    }

    /// Whether there is a limit. The caller that set it may also kill the capture.
    pub fn is_any(&self) -> bool {
        self.until.is_some() || self.interrupted.is_some()
    }

    /// Errors: `timed_out` once the time is over, `interrupted` once it was asked to end.
    pub fn check(&self) -> Result<()> {
        const USED: &str = "what it stored serves the next one";
        if self.interrupted.as_ref().is_some_and(|flag| flag.load(Relaxed)) {
            let why = format!("The capture was asked to end before it was whole; {USED}.");
            return Err(Diagnosis::new(Code::Interrupted, why));
        }
        match self.until {
            Some((until, most)) if Instant::now() >= until => {
                let why = format!("The capture was not whole after {:.1} s; {USED}.", most.as_secs_f64());
                Err(Diagnosis::new(Code::TimedOut, why))
            }
            _ => Ok(()),
        }
    }
}
