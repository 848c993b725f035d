//! What git tracks in a work tree, from its top.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ic_ledger::GitDirs;

use super::cache::Header;
use super::text::{number_in, number_of};
use crate::git::index;
use crate::git::index_content::IndexContent;
use crate::git::program::Git;

/// The paths that git tracks. `None` when its index cannot be read, and git cannot be asked: the ignore rules then stand alone.
pub(crate) fn tracked(root: &Path) -> Option<Vec<Vec<u8>>> {
    index::tracked(&Git::new(root))
}

/// The state of an index that is not there.
const NO_INDEX: u64 = 1;

/// No state of an index: git was not asked about it, or did not answer.
const UNKNOWN: u64 = 2;

/// Where an index's state has a number of the paths in it; the upper half tells its file. Older programs take both for one number, and ask
/// git.
const PATHS: u64 = 0xffff_ffff;

const UNASKED: &str = "git cannot list tracked files: tracked files that a rule ignores are not captured";

/// Git's index, as far as what is captured depends on it.
pub(crate) struct IndexSeen {
    /// What the next capture compares its own with.
    pub(crate) state: u64,
    /// It holds the paths of the last capture's: nothing is judged otherwise for what else it says.
    pub(crate) is_same: bool,
    /// A number for what git tracks though a rule ignores it: where it is another, names are judged anew.
    pub(crate) tracked: u64,
}

impl IndexSeen {
    /// Git is asked only where the paths in its index changed. `last`: what the last capture saw.
    pub(crate) fn now(root: &Path, git: Option<&GitDirs>, last: Option<Header>) -> Self {
        // A state is one of the small numbers, or 64 bits: [1][31 of the index's stat][32 of the paths in it].
        // 0 stands for a root without git.
        let old = last.unwrap_or_default();
        let Some(git) = git else { return Self { state: 0, is_same: old.index == 0, tracked: old.tracked } };
        let file = index_file(git);
        let is_same_file = file == if old.index <= UNKNOWN { old.index } else { old.index & !PATHS };
        if is_same_file && last.is_some() {
            return Self { state: old.index, is_same: true, tracked: old.tracked };
        }
        let has_paths = old.index > UNKNOWN && last.is_some();
        let known = has_paths.then_some(Known { paths: old.index & PATHS, number: old.tracked });
        // If the paths are 0, it is not known which they are, so names are judged anew.
        let (state, is_same, tracked) = match tracked_though_ignored(root, known) {
            Some(now) if file > UNKNOWN => (file | now.paths, now.paths != 0 && known == Some(now), now.number),
            Some(now) => (file, is_same_file, now.number),
            // There is an index and no answer: the next capture asks again.
            None if file > NO_INDEX => (UNKNOWN, is_same_file, UNKNOWN),
            None => (file, is_same_file, UNKNOWN),
        };
        Self { state, is_same, tracked }
    }

    /// To be called if git could not list what it tracks: the next capture asks again, even if the index is the same.
    pub(crate) fn forget(&mut self) {
        if self.state > NO_INDEX {
            self.state = UNKNOWN;
        }
    }

    /// What is not known of tracked files, as a sentence.
    pub(crate) fn doubt(&self) -> Option<String> {
        (self.state == UNKNOWN).then(|| UNASKED.to_owned())
    }
}

/// A number that changes whenever the index's file does; its lower half is free.
fn index_file(git: &GitDirs) -> u64 {
    let Ok(meta) = std::fs::metadata(git.git_dir.join("index")) else { return NO_INDEX };
    let numbers = [
        meta.ino(),
        meta.size(),
        meta.mtime().cast_unsigned(),
        meta.mtime_nsec().cast_unsigned(),
        meta.ctime().cast_unsigned(),
        meta.ctime_nsec().cast_unsigned(),
    ];
    // The highest bit is set, because the small numbers have other meanings.
    (number_of(&numbers.map(u64::to_le_bytes).concat()) | 1 << 63) & !PATHS
}

/// What git tracks though a rule ignores it, and when that was so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// A number for the paths that the index held; 0: it is not known.
    paths: u64,
    /// A number for those of them that a rule ignores, as git says.
    number: u64,
}

/// The last answer of git's in this process, and about which root.
static LAST: Mutex<Option<(PathBuf, Known)>> = Mutex::new(None);

/// What git tracks though a rule ignores it; `None` when it cannot be asked. `known`: what it was at the last capture.
///
/// It tells whether names have to be judged anew though their rules are the same. While the index holds the same paths it stays the same,
/// and git is not asked: rules that changed have names judged anew by themselves.
fn tracked_though_ignored(root: &Path, known: Option<Known>) -> Option<Known> {
    let git = Git::new(root);
    // 0 means that the paths are not known, so known ones are never 0.
    let paths = || IndexContent::now(&git).map_or(0, |now| (number_in(&now.paths) & PATHS).max(1));
    let before = paths();
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let last = last.filter(|(of, _)| of == root).map(|(_, known)| known);
    if let Some(known) = known.into_iter().chain(last).find(|known| before != 0 && known.paths == before) {
        return Some(known);
    }
    let listed = git.ask(&["ls-files", "-z", "-c", "-i", "--exclude-standard"]).ok()??;
    let number = number_of(listed.strip_suffix(b"\0").unwrap_or(&listed));
    // If the index changed while git ran, it is not known which of the two states git listed: nothing is remembered then.
    let is_same = before != 0 && before == paths();
    let known = Known { paths: if is_same { before } else { 0 }, number };
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = is_same.then(|| (root.to_owned(), known));
    Some(known)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::{Header, IndexSeen};

    #[test]
    fn git_is_asked_again_where_the_paths_of_the_index_changed_and_only_there() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let git = |arguments: &str| {
            let said = Command::new("git").args(arguments.split(' ')).current_dir(root).output().unwrap();
            assert!(said.status.success(), "{said:?}");
        };
        git("init -q");
        for (name, text) in [(".gitignore", "*.log\n"), ("a.txt", "a"), ("b.log", "b")] {
            fs::write(root.join(name), text).unwrap();
        }
        git("add -f .gitignore a.txt b.log");
        let dirs = ic_ledger::git_dirs(root);
        let now = |last| IndexSeen::now(root, dirs.as_ref(), last);
        let first = now(None);
        // No answer of git's: where it stays, git was not asked.
        let kept = |seen: &IndexSeen| Some(Header { index: seen.state, tracked: 77, ..Header::default() });
        let same = now(kept(&first));
        assert!(same.is_same && same.tracked == 77 && same.state == first.state);
        fs::write(root.join("a.txt"), "another").unwrap();
        git("add a.txt");
        let staged = now(kept(&same));
        assert!(staged.is_same && staged.tracked == 77 && staged.state != same.state, "the same paths");
        fs::write(root.join("c.txt"), "c").unwrap();
        git("add c.txt");
        let more = now(kept(&staged));
        assert!(!more.is_same && more.tracked == first.tracked, "no rule ignores what came");
        git("rm -q --cached b.log");
        let less = now(kept(&more));
        assert!(!less.is_same && ![77, first.tracked].contains(&less.tracked));
        // What an older program kept is one number: git is asked.
        let older = now(Some(Header { index: less.state ^ 0xffff_ffff, tracked: 77, ..Header::default() }));
        assert!(older.is_same && older.tracked == 77, "the file is the same");
        fs::write(root.join("a.txt"), "a third").unwrap();
        git("add a.txt");
        let after = now(Some(Header { index: less.state ^ 0xffff_ffff, tracked: 77, ..Header::default() }));
        assert_eq!(after.tracked, less.tracked);
    }
}
