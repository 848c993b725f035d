//! What an index says, apart from the stats of files that git wrote into it: most commands of git's write only those anew.

use std::sync::{Mutex, PoisonError};

use ic_ledger::IndexEntry;
use ic_ledger::events::Hash;
use sha2::{Digest, Sha256};

use super::files;
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

/// What the file said that was read last in this process, and its stamp: a capture asks for it twice.
static LAST_READ: Mutex<Option<(Hash, IndexContent)>> = Mutex::new(None);

impl IndexContent {
    /// Of the index that git works with; `None` where its file is not of the usual form.
    pub(crate) fn now(git: &Git<'_>) -> Option<Self> {
        let stamp = files::of_index_by_content(&ic_ledger::git_dirs(git.root)?);
        let last = *LAST_READ.lock().unwrap_or_else(PoisonError::into_inner);
        match last.filter(|(of, _)| Some(*of) == stamp) {
            Some((_, content)) => Some(content),
            None => Self::read(git, |_| ()),
        }
    }

    /// As [`IndexContent::now`]; `visit` sees each entry.
    pub(super) fn read(git: &Git<'_>, mut visit: impl FnMut(&IndexEntry)) -> Option<Self> {
        let dirs = ic_ledger::git_dirs(git.root)?;
        let before = files::of_index_by_content(&dirs);
        // Hashed as they are read: a list of all of them would be as long as the file.
        let (mut paths, mut entries) = (Sha256::new(), Sha256::new());
        each_of_file(git, |entry| {
            visit(entry);
            paths.update(&entry.path);
            paths.update([0]);
            entries.update(entry.mode_and_flags());
            entries.update(entry.oid());
        })?;
        let paths: Hash = paths.finalize().into();
        entries.update(paths);
        let content = Self { paths, entries: entries.finalize().into() };
        if let Some(stamp) = before.filter(|_| files::of_index_by_content(&dirs) == before) {
            *LAST_READ.lock().unwrap_or_else(PoisonError::into_inner) = Some((stamp, content));
        }
        Some(content)
    }
}
