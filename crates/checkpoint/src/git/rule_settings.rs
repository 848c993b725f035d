//! The settings that decide what git ignores, and every file that git read to know them.
//!
//! `git config` is asked, because only git knows all the ways in which a setting may be written, included and made conditional;
//! it runs no program for that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ic_base::Result;
use ic_ledger::{GitDirs, path_from_bytes};

use super::config_files::{FoundConfig, expanded, user_file, usual_files};
use super::program::Git;

/// What git's settings say of ignore rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSettings {
    /// The file that `core.excludesFile` names, or the one that git takes where nothing is named.
    pub(crate) excludes_file: Option<PathBuf>,
    /// Whether `core.ignoreCase` lets rules match upper and lower case alike.
    pub(crate) ignores_case: bool,
}

/// Settings, and what they may depend on.
#[derive(Debug)]
pub(crate) struct KnownSettings {
    pub(crate) settings: RuleSettings,
    /// Files that were read, or would be if they were there.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Whether these are all: then the settings hold for as long as none of them changes.
    pub(crate) is_whole: bool,
}

impl RuleSettings {
    /// What git does where nothing is set.
    pub(crate) fn usual() -> Self {
        Self { excludes_file: user_file("ignore"), ignores_case: false }
    }
}

/// Asks git for the settings of a work tree. `None` if there is no `git` on PATH. Errors: `git_failed`.
pub(crate) fn ask(root: &Path, dirs: &GitDirs) -> Result<Option<KnownSettings>> {
    let git = Git::new(root);
    let Some(listed) = git.ask(&["config", "--list", "--includes", "--show-origin", "-z"])? else {
        return Ok(None);
    };
    let mut found = FoundConfig::read(root, pairs(&listed));
    let excludes_file = match found.excludes {
        None => user_file("ignore"),
        Some(b"") => None,
        Some(named) => match expanded(named) {
            Some(path) => Some(path),
            None => expanded_by_git(&git)?,
        },
    };
    let excludes_file = excludes_file.map(|path| root.join(path));
    let settings = RuleSettings { excludes_file, ignores_case: found.ignores_case };
    // If a file that git read is gone again, the settings are outdated already.
    found.is_whole &= found.files.iter().all(|file| file.exists());
    let mut files = found.files;
    files.extend(found.included);
    files.extend(usual_files(dirs));
    // Where the system's file lies is built into git. An older git does not tell; then it is known as soon as it says anything.
    let system = git.ask(&["var", "GIT_CONFIG_SYSTEM"]).ok().flatten().unwrap_or_default();
    files.extend(system.split(|byte| *byte == b'\n').filter(|path| !path.is_empty()).map(path_from_bytes));
    if found.is_by_branch {
        // A switch of branches writes HEAD; where refs lie in tables, the list of those.
        files.extend(["HEAD", "reftable/tables.list"].map(|name| dirs.git_dir.join(name)));
    }
    Ok(Some(KnownSettings { settings, files, is_whole: found.is_whole }))
}

/// What `core.excludesFile` names, where only git can expand it, as `~user/`.
fn expanded_by_git(git: &Git<'_>) -> Result<Option<PathBuf>> {
    let path = git.run(&["config", "--includes", "--type=path", "-z", "core.excludesFile"])?;
    let path = path.strip_suffix(b"\0").unwrap_or(&path);
    Ok((!path.is_empty()).then(|| path_from_bytes(path)))
}

/// A list's words in twos: a setting's origin, and its name with its value on a new line.
fn pairs(listed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut words = listed.split(|byte| *byte == 0);
    std::iter::from_fn(move || Some((words.next()?, words.next()?)))
}
