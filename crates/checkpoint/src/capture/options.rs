//! What limits a capture, and how far it is.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use super::memory_maps::Flush;
use super::rules::RuleOptions;
use crate::limit::Limit;

/// What limits a capture.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// Which names are left out, and which are captured although a rule ignores them.
    pub rules: RuleOptions,
    /// Files larger than this, in bytes, are left out.
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
    /// The ledger's file; see `store`.
    pub ledger: PathBuf,
}

/// How far a capture is, to be read from another thread.
#[derive(Debug, Default)]
pub struct CaptureProgress {
    /// Files that were looked at.
    pub seen: AtomicU64,
    /// Bytes that were read.
    pub read: AtomicU64,
    /// When it ends before it is whole.
    pub limit: Limit,
}

/// How much a tree holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Regular files; each name of a file with several names counts.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Symbolic links, wherever they lead.
    pub symlinks: u64,
    /// Bytes in the files.
    pub bytes: u64,
}
