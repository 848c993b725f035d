//! What a walk knows, and the directories and names that it comes to.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ic_ledger::events::Hash;
use rustix::fd::OwnedFd;
use rustix::fs::{Stat, fstat};

use super::cache::{Cache, CacheSeen, Key};
use super::findings::WalkFindings;
use super::memory_maps::Maps;
use super::options::{CaptureOptions, CaptureProgress};
use super::partial_captures::PartialCapture;
use super::rules::{CaptureRules, Level};
use crate::attributes::FileOwner;
use crate::nested_work_trees::Places;
use crate::objects::{Objects, Writer};
use crate::scratch::LazyScratch;
use crate::tree::Reason;
use crate::unreadable_files::OpenedFile;

/// What a walk needs to know.
pub(crate) struct Walk<'w> {
    pub(crate) root: &'w Path,
    pub(crate) writer: &'w Writer<'w>,
    pub(crate) objects: &'w Objects,
    pub(crate) options: &'w CaptureOptions,
    pub(crate) rules: &'w CaptureRules<'w>,
    pub(crate) progress: &'w CaptureProgress,
    pub(crate) cache: Option<&'w Cache>,
    /// The cache, where the new one goes on after it.
    pub(super) base: Option<&'w Cache>,
    /// When the capture began, by the file system's clock, in nanoseconds.
    pub(crate) now: i64,
    pub(crate) index_is_same: bool,
    /// Who the root belongs to.
    pub(super) owner: FileOwner,
    /// Where copies of databases are made.
    pub(crate) scratch: &'w LazyScratch,
    /// What processes have mapped.
    pub(crate) maps: &'w Maps,
    /// Other work trees below the root.
    pub(super) places: &'w Places,
    /// Files of the ledger and its store, by device and number: they are never captured.
    pub(crate) own: HashSet<(u64, u64)>,
    /// What captures have read that did not end.
    pub(super) unfinished: PartialCapture,
    pub(super) found: Mutex<WalkFindings>,
    pub(super) is_changed: AtomicBool,
}

impl Walk<'_> {
    /// Whether there are so few directories that threads would cost more than they gain, as long as little is to be read.
    pub(super) fn is_small(&self) -> bool {
        self.cache.is_some_and(Cache::is_small)
    }
}

/// A directory that was walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visited {
    pub(crate) hash: Hash,
    /// Where its record lies in the new cache.
    pub(crate) at: u64,
}

/// The result of walking a directory; the reason, if it is left out.
pub(super) type Walked = Result<Visited, Reason>;

/// A directory to be walked.
pub(crate) struct VisitedDirectory {
    pub(crate) fd: OwnedFd,
    pub(crate) path: Vec<u8>,
    /// How many directories it lies in.
    pub(super) depth: usize,
    pub(super) above: Arc<Level>,
    pub(super) is_ignored: bool,
    pub(super) old: Option<u64>,
    /// Set if its owner had closed it to himself: it is open during the walk, and closed again when this is dropped.
    pub(super) opened: Option<OpenedFile>,
}

impl VisitedDirectory {
    /// Its state, with the permission bits that it had before it was opened for the walk.
    pub(super) fn stat(&self) -> rustix::io::Result<Stat> {
        let mut stat = fstat(&self.fd)?;
        if let Some(opened) = &self.opened {
            stat.st_mode = stat.st_mode & !0o7777 | ic_sys::stat::permissions(opened.mode()).as_raw_mode();
        }
        Ok(stat)
    }
}

/// What is to be done about a name.
pub(crate) enum Todo<'c> {
    Nothing(CacheSeen<'c>, bool),
    Target(Key, Vec<u8>),
    Read(Key),
    /// A database with a log or journal beside it.
    Database(Key),
    /// A database byte by byte, whatever lies beside it.
    Raw(Key),
    Enter {
        old: Option<u64>,
        is_ignored: bool,
    },
    /// The name is gone since the directory was listed.
    Drop,
}
