//! Remembers a file before a task begins, and restores it.
//!
//! The path is walked from a directory that existed before, without following links. So a task that puts a link into the path cannot make
//! an undo delete or overwrite another file.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_checkpoint::rootfs::{EntryState, RootDir, check_path};

/// The longest file whose content is kept in memory, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A file, as it was before its task.
pub(super) struct FileBeforeTask {
    /// Absolute, because the working directory may change before the undo.
    path: PathBuf,
    before: Result<Before>,
}

struct Before {
    /// The nearest directory above it that existed, without links.
    base: PathBuf,
    /// The path from that directory.
    below: Vec<u8>,
    state: State,
}

enum State {
    Absent,
    File { content: Vec<u8>, mode: u32 },
}

impl FileBeforeTask {
    /// Remembers a file. If it could not be restored, the reason is remembered.
    pub(super) fn of(path: &Path) -> Self {
        match std::path::absolute(path).while_doing(|| format!("resolving {}", path.display())) {
            Ok(path) => Self { before: look(&path), path },
            Err(e) => Self { before: Err(e), path: path.to_owned() },
        }
    }

    /// Restores the file. If it is unchanged, nothing is written.
    ///
    /// Errors: `conflict` if the former content is unknown, or what is at the path now cannot be replaced.
    pub(super) fn put_back(&self) -> Result<()> {
        let before = match &self.before {
            Ok(before) => before,
            Err(e) => {
                return Err(self
                    .refusal(&format!("what it was before is not known ({e})"))
                    .hint("take it from a checkpoint: ic checkpoint restore ID --path FILE --yes"));
            }
        };
        match &before.state {
            State::Absent => self.delete(before),
            State::File { content, mode } => self.write(before, content, *mode),
        }
    }

    fn delete(&self, before: &Before) -> Result<()> {
        // Without its directory, the file is gone as well.
        let Some(root) = self.open(before)? else { return Ok(()) };
        match root.state(&before.below).while_doing(|| self.reading())? {
            // A link in the path: either the task made the file through it, or it is not the task's. Deleting could hit the wrong file.
            EntryState::Absent if self.path.symlink_metadata().is_ok() => Err(self.elsewhere()),
            EntryState::Absent => Ok(()),
            EntryState::Directory(_) => Err(self.refusal("a directory stands there")),
            EntryState::File(_) | EntryState::Symlink(..) | EntryState::Special => {
                // This is asked once more at the removal, because a directory may have taken the place of the file.
                root.remove_file(&before.below, &|found| !matches!(found, EntryState::Directory(_)))
            }
        }
    }

    fn write(&self, before: &Before, content: &[u8], mode: u32) -> Result<()> {
        let root = match self.open(before)? {
            Some(root) => root,
            None => self.make_base(before)?,
        };
        match root.state(&before.below).while_doing(|| self.reading())? {
            EntryState::Directory(_) => return Err(self.refusal("a directory stands there")),
            EntryState::File(stat) if stat.mode == mode => {
                if read_small(&root, &before.below).is_ok_and(|now| now.as_deref() == Some(content)) {
                    return Ok(());
                }
            }
            EntryState::Absent | EntryState::File(_) | EntryState::Symlink(..) | EntryState::Special => {}
        }
        // Checked once more just before the rename, because another process may have put a directory there.
        let still = |found: &EntryState| !matches!(found, EntryState::Directory(_));
        root.write_file(&before.below, mode, &temporary_name(), &still, &mut |file| {
            file.write_all(content).while_doing(|| format!("writing {}", self.path.display()))
        })
    }

    /// Opens the directory that existed before; `None` if it is gone.
    fn open(&self, before: &Before) -> Result<Option<RootDir>> {
        match fs::canonicalize(&before.base) {
            // The same real path as before: a link that was put into it would lead to another directory.
            Ok(now) if now == before.base => RootDir::open(&before.base).map(Some),
            Ok(_) => Err(self.elsewhere()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).while_doing(|| self.reading()),
        }
    }

    /// Creates the directory again. Its former permissions are unknown, so only this user has access.
    fn make_base(&self, before: &Before) -> Result<RootDir> {
        ic_ledger::private::directories(&before.base).while_doing(|| format!("creating {}", before.base.display()))?;
        self.open(before)?.ok_or_else(|| self.elsewhere())
    }

    fn reading(&self) -> String {
        format!("looking at {}", self.path.display())
    }

    fn elsewhere(&self) -> Diagnosis {
        self.refusal("the way to it leads elsewhere than before")
    }

    fn refusal(&self, why: &str) -> Diagnosis {
        Diagnosis::new(Code::Conflict, format!("{} was not changed: {why}.", self.path.display()))
            .detail("path", self.path.to_string_lossy().into_owned())
    }
}

fn look(path: &Path) -> Result<Before> {
    let unusable = |what: &str| Diagnosis::new(Code::Conflict, what);
    // The task may make the directories above its file, so the path is pinned where it exists now.
    let existing = path.ancestors().skip(1).find(|level| level.is_dir());
    let (existing, below) = existing
        .and_then(|existing| Some((existing, path.strip_prefix(existing).ok()?)))
        .ok_or_else(|| unusable("it has no directory"))?;
    let below = below.as_os_str().as_bytes().to_vec();
    check_path(&below).map_err(|_| unusable("it is no path of a file"))?;
    let base = fs::canonicalize(existing).while_doing(|| format!("resolving {}", existing.display()))?;
    let root = RootDir::open(&base)?;
    let reading = || format!("reading {}", path.display());
    let state = match root.state(&below).while_doing(reading)? {
        EntryState::Absent => State::Absent,
        EntryState::File(stat) => {
            let content = read_small(&root, &below).while_doing(reading)?;
            State::File { content: content.ok_or_else(|| unusable("it is over 1 MiB"))?, mode: stat.mode }
        }
        EntryState::Symlink(..) => return Err(unusable("it is a symbolic link")),
        EntryState::Directory(_) => return Err(unusable("it is a directory")),
        EntryState::Special => return Err(unusable("it is a socket, fifo or device")),
    };
    Ok(Before { base, below, state })
}

/// The content of a file; `None` if it is too long to keep.
fn read_small(root: &RootDir, below: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    // One byte more than is kept, to tell a file that is too long from one that fits.
    root.open_file(below)?.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= MAX_BYTES).then_some(content))
}

/// A name that no file has, unless a process with this id died while it wrote one.
fn temporary_name() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".ic-undo-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)).into_bytes()
}

#[cfg(test)]
mod tests;
