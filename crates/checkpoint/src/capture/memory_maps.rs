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
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use ic_ledger::path_from_bytes;
use ic_sys::lease::Writers;
use rustix::fd::OwnedFd;
use rustix::fs::{fstat, fstatfs, makedev, stat, syncfs};

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

/// File systems on which the first store through a new map always moves a file's times: ext4, XFS, Btrfs, F2FS.
///
/// On others (tmpfs is one) a page that was read through the map first may be stored to without any trace.
const NOTICING: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];

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
        let kind = fstatfs(&root).ok().and_then(|fs| u64::try_from(fs.f_type).ok());
        let device = fstat(&root).ok().map(|stat| Key::of(&stat).dev);
        let noticing = device.filter(|_| kind.is_some_and(|kind| NOTICING.contains(&kind)));
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
            let found = mapped(Path::new("/proc"));
            if found.is_none() || self.flush == Flush::Always {
                // What is written to disk is write-protected, so the next store moves the times. It fails on a broken disk,
                // where the capture goes wrong by itself.
                let _ = syncfs(&self.root);
            }
            found.unwrap_or_default()
        })
    }
}

/// Device and inode of every file that a process has mapped shared; `None` where no process can be seen at all.
///
/// Maps that cannot be written now count too: they may have been, with their pages still writable in all but name.
fn mapped(proc: &Path) -> Option<HashSet<(u64, u64)>> {
    // If this process cannot read its own maps, there is no `/proc` to ask.
    let own = proc.join("self/maps");
    File::open(own).ok()?;
    let mut files = HashSet::new();
    let mut maps = Vec::new();
    for entry in std::fs::read_dir(proc).ok()?.flatten() {
        // In `/proc` only processes have numbers for names.
        if !entry.file_name().as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        maps.clear();
        // A process that has ended since stores nothing any more; the maps of another user's process cannot be read.
        let read = File::open(entry.path().join("maps")).and_then(|mut file| file.read_to_end(&mut maps));
        if read.is_ok() {
            maps.split(|byte| *byte == b'\n').filter_map(shared).for_each(|found| add(found, &mut files));
        }
    }
    Some(files)
}

/// A shared map of a file, as a line says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shared<'l> {
    device: u64,
    inode: u64,
    path: &'l [u8],
}

/// `7f8f63a48000-7f8f63a58000 rw-s 00000000 fe:00 10010742                   /tmp/x.mm`
fn shared(line: &[u8]) -> Option<Shared<'_>> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    if fields.nth(1)?.get(3) != Some(&b's') {
        return None;
    }
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (_offset, device, inode) = (text()?, text()?, text()?);
    let (major, minor) = device.split_once(':')?;
    let number = |hex| u32::from_str_radix(hex, 16).ok();
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    Some(Shared { device: makedev(number(major)?, number(minor)?), inode: inode.parse().ok()?, path })
}

fn add(found: Shared<'_>, files: &mut HashSet<(u64, u64)>) {
    // 0 is memory without a file. A file that was found before needs no second look.
    if found.inode == 0 || !files.insert((found.device, found.inode)) || !found.path.starts_with(b"/") {
        return;
    }
    // On Btrfs and overlays a map's device is not the one that stat says, so the path is asked too.
    if let Ok(stat) = stat(path_from_bytes(found.path)) {
        let key = Key::of(&stat);
        files.insert((key.dev, key.ino));
    }
}

#[cfg(test)]
mod tests;
