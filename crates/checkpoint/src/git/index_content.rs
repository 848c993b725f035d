//! What an index says, apart from the stats of files that git wrote into it: most commands of git's write only those anew.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ic_ledger::IndexEntry;
use ic_ledger::events::Hash;
use sha2::{Digest, Sha256};

use super::index::each_of_file;
use super::program::Git;

/// What an index says, whatever stats git wrote into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexContent {
    /// Of the paths of its entries.
    pub(crate) paths: Hash,
    /// Of all that its entries say.
    pub(crate) entries: Hash,
}

/// The number of bytes that are hashed at once: to pass a few bytes at a time takes as long as to compute the hash.
const BLOCK: usize = 16 * 1024;

/// Where a file is, when it was written, and the checksum at its end.
type FileStamp = ([u64; 3], [i64; 4], [u8; 20]);

/// The stamp of an index; `None` where git is set to write no checksum.
fn stamp(git_dir: &Path) -> Option<FileStamp> {
    let mut file = File::open(git_dir.join("index")).ok()?;
    let (meta, mut end) = (file.metadata().ok()?, [0; 20]);
    file.seek(SeekFrom::End(-20)).ok()?;
    file.read_exact(&mut end).ok()?;
    let written = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
    (end != [0; 20]).then_some(([meta.dev(), meta.ino(), meta.size()], written, end))
}

/// What the file said that was read last in this process, and its stamp: a capture asks for it twice.
static LAST_READ: Mutex<Option<(FileStamp, IndexContent)>> = Mutex::new(None);

impl IndexContent {
    /// Of the index that git works with; `None` where its file is not of the usual form.
    pub(crate) fn now(git: &Git<'_>) -> Option<Self> {
        let stamp = stamp(&ic_ledger::git_dirs(git.root)?.git_dir);
        let last = *LAST_READ.lock().unwrap_or_else(PoisonError::into_inner);
        match last.filter(|(of, _)| Some(*of) == stamp) {
            Some((_, content)) => Some(content),
            None => Self::read(git, |_| ()),
        }
    }

    /// As [`IndexContent::now`]; `visit` sees each entry.
    pub(super) fn read(git: &Git<'_>, mut visit: impl FnMut(&IndexEntry)) -> Option<Self> {
        let dirs = ic_ledger::git_dirs(git.root)?;
        let before = stamp(&dirs.git_dir);
        // Hashed as they are read: a list of all of them would be as long as the file.
        let (mut paths, mut entries) = (Sha256::new(), Sha256::new());
        let (mut of_paths, mut of_entries) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
        each_of_file(git, |entry| {
            visit(entry);
            of_paths.extend_from_slice(&entry.path);
            of_paths.push(0);
            // Neither needs a separator: both are of the same length in every entry of an index.
            of_entries.extend_from_slice(&entry.mode_and_flags());
            of_entries.extend_from_slice(entry.oid());
            for (hash, block) in [(&mut paths, &mut of_paths), (&mut entries, &mut of_entries)] {
                if block.len() >= BLOCK {
                    hash.update(&block);
                    block.clear();
                }
            }
        })?;
        paths.update(&of_paths);
        let paths: Hash = paths.finalize().into();
        entries.update(&of_entries);
        entries.update(paths);
        let content = Self { paths, entries: entries.finalize().into() };
        // Git may have replaced the file while it was read. The stamp belongs to what was read only if it is the same as before.
        if let Some(stamp) = before.filter(|_| stamp(&dirs.git_dir) == before) {
            *LAST_READ.lock().unwrap_or_else(PoisonError::into_inner) = Some((stamp, content));
        }
        Some(content)
    }
}
