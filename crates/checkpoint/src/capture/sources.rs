//! Where ignore rules come from besides the `.gitignore` files of the tree.

use ic_store::GitDirs;
use ic_store::trust::open_regular;
use ignore::gitignore::gitconfig_excludes_path;

use super::rules::rules_in;

/// What git heeds everywhere in a work tree.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The root is a work tree of git's.
    pub(crate) is_git: bool,
    /// Capital and small letters are equal (`core.ignoreCase`).
    pub(crate) ignores_case: bool,
    /// Files with rules, the first of which that says anything decides.
    pub(crate) texts: Vec<Vec<u8>>,
}

impl Sources {
    /// Reads them.
    pub(crate) fn read(git: Option<&GitDirs>) -> Self {
        let Some(git) = git else { return Self::default() };
        let files = [Some(git.common_dir.join("info/exclude")), gitconfig_excludes_path()];
        let texts =
            files.into_iter().flatten().filter_map(|path| rules_in(open_regular(&path).ok()?)).collect();
        Self { is_git: true, ignores_case: false, texts }
    }
}
