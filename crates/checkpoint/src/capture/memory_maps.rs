//! Files that processes have mapped into memory.
//!
//! A store through a shared map moves a file's times once, when its page becomes writable, and not again before the page was
//! written to disk: up to half a minute in which the file changes and its stat says nothing. So what a process has mapped
//! when it is read is not trusted: the next capture reads it again, whether that process lives or not. That is enough where
//! the file system makes a new map's first store move the times: a process that maps the file after the look moves them with its
//! first store, and the file is then too young to be trusted. `read` sees the page cache, so nothing has to be written to disk.
//! docs/adr/0018-memory-maps.md has the figures.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use ic_sys::lease::Writers;
use rustix::fd::OwnedFd;
use rustix::fs::fstat;

use super::cache::Key;

ic_base::words! {
    /// How captures learn of stores through memory maps.
    #[derive(Default)]
    pub enum Flush {
        /// By the kernel; where it does not say, by the maps of the processes that can be seen; and where there are none to be read, by
        /// writing the file system to disk.
        #[default]
        Auto = "auto",
        /// By all of these.
        Always = "always",
        /// Stores through memory maps are not looked for: a change by one may be missed.
        Never = "never",
    }
}

/// A file that is not longer is read again sooner than a look at every process's maps tells whether it has to be.
const CHEAP_TO_READ: u64 = 1 << 20;

/// What is known of memory maps in one capture.
#[derive(Debug)]
pub(crate) struct Maps {
    flush: Flush,
    root: OwnedFd,
    /// The root's device, if its file system notices stores.
    noticing: Option<u64>,
    /// Looked for when it is needed first: where nothing is read, nothing needs to be known.
    files: OnceLock<HashSet<(u64, u64)>>,
}

impl Maps {
    pub(crate) fn new(root: &OwnedFd, flush: Flush) -> io::Result<Self> {
        let root = root.try_clone()?;
        let device = fstat(&root).ok().map(|stat| Key::of(&stat).dev);
        let noticing = device.filter(|_| ic_sys::file_systems::notices_mapped_stores(&root));
        Ok(Self { flush, root, noticing, files: OnceLock::new() })
    }

    /// Whether a process has this file mapped, so that it may change without a trace from now on. To be asked before it is read:
    /// a process that maps it afterwards moves its times to after the capture's beginning.
    pub(crate) fn may_be_stored_to(&self, file: &File, key: &Key) -> bool {
        if self.flush == Flush::Always {
            // For its side effect: with `Always`, it also writes the file system to disk.
            self.files();
        }
        match self.writers(file, key) {
            Writers::None => false,
            // It is open for writing at least. To read it once more costs less than to look whether it is mapped.
            Writers::Some if key.size <= CHEAP_TO_READ => true,
            Writers::Some | Writers::Unknown => self.has(key),
        }
    }

    /// Only where a file system is known to keep maps and open files as one: an overlay maps another file than the one that was opened.
    fn writers(&self, file: &File, key: &Key) -> Writers {
        // Only files on the root's own device count: another file system may be mounted below it.
        if self.flush == Flush::Never || self.noticing != Some(key.dev) {
            return Writers::Unknown;
        }
        ic_sys::lease::writers_of(file.as_fd())
    }

    fn has(&self, key: &Key) -> bool {
        self.files().contains(&(key.dev, key.ino))
    }

    /// Whether this file may have changed although its stat is the same as when it was trusted.
    pub(crate) fn may_hide_changes(&self, key: &Key) -> bool {
        // Where a store through a map moves the times, an unchanged stat is enough, and no map is looked at.
        self.noticing != Some(key.dev) && self.has(key)
    }

    fn files(&self) -> &HashSet<(u64, u64)> {
        self.files.get_or_init(|| {
            if self.flush == Flush::Never {
                return HashSet::new();
            }
            let found = ic_sys::memory_maps::shared_files();
            if found.is_none() || self.flush == Flush::Always {
                // What is written to disk is write-protected, so the next store moves the times. It fails on a broken disk,
                // where the capture goes wrong by itself.
                let _ = ic_sys::file_systems::flush(&self.root);
            }
            found.unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests;
