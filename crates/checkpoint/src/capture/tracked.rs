//! What git tracks in a work tree, from its top.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::text::number_of;
use crate::git::index;
use crate::git::program::Git;

/// The paths that git tracks. `None` when its index cannot be read, and git cannot be asked: the ignore rules then stand alone.
pub(crate) fn tracked(root: &Path) -> Option<Vec<Vec<u8>>> {
    index::tracked(&Git::new(root))
}

/// What git tracked though a rule ignores it, when the index held certain paths.
struct Ignored {
    root: PathBuf,
    paths: u64,
    number: u64,
}

/// The last answer of git's in this process.
static LAST: Mutex<Option<Ignored>> = Mutex::new(None);

/// A number for those of them that a rule ignores, as git says; `None` when it cannot be asked.
///
/// It tells whether names have to be judged anew though their rules are the same. While the index holds the same paths it stays the same:
/// rules that changed have names judged anew by themselves.
pub(crate) fn tracked_though_ignored(root: &Path) -> Option<u64> {
    let git = Git::new(root);
    let paths = || index::paths_in_file(&git).map(|paths| number_of(&paths.join(&0)));
    let before = paths();
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(last) = last.as_ref().filter(|last| last.root == root && Some(last.paths) == before) {
        return Some(last.number);
    }
    drop(last);
    let listed = git.ask(&["ls-files", "-z", "-c", "-i", "--exclude-standard"]).ok()??;
    let number = number_of(listed.strip_suffix(b"\0").unwrap_or(&listed));
    let is_same = before.is_some() && before == paths();
    let answer = before.filter(|_| is_same).map(|paths| Ignored { root: root.to_owned(), paths, number });
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    Some(number)
}
