//! What limits a capture, and how far it is.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};

use super::mapped::Flush;
use super::rules::RuleOptions;

/// What limits a capture.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is passed over, and what is not.
    pub rules: RuleOptions,
    /// Larger files are passed over, in bytes.
    pub max_file_size: u64,
    /// More files are refused.
    pub max_files: u64,
    /// How stores through memory maps are noticed.
    pub flush: Flush,
    /// Only these paths, what is below them and what they lie in can have changed since the last capture of this root, as
    /// its caller knows; `None`: anything.
    pub touched: Option<BTreeSet<Vec<u8>>>,
    /// Names that were touched at this moment or later, in nanoseconds by the file system's clock, are reported; `None`: none are.
    pub since: Option<i64>,
    /// The store's directory and the ledger's file: they are never part of a tree.
    pub store: PathBuf,
    /// See `store`.
    pub ledger: PathBuf,
}

#[cfg(test)]
impl Options {
    /// Those of a project without settings, with its ledger in this store.
    pub(crate) fn for_tests(store: PathBuf) -> Self {
        Self {
            rules: RuleOptions::default(),
            max_file_size: 10_000_000,
            max_files: 1_000_000,
            flush: Flush::Auto,
            touched: None,
            since: None,
            ledger: store.join("ic.db"),
            store,
        }
    }
}

/// How far a capture is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files that were looked at.
    pub seen: AtomicU64,
    /// Bytes that were read.
    pub read: AtomicU64,
    /// When it ends before it is whole.
    pub limit: Limit,
}

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

    /// Whether there is any: then the capture may be killed, too, by whoever limits it.
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

/// How much a tree holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Regular files.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Bytes in the files.
    pub bytes: u64,
}
