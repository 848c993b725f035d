//! The settings that decide what git ignores, and every file that git read to know them.
//!
//! `git config` is asked, because only git knows all the ways in which a setting may be written, included and made conditional;
//! it runs no program for that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ic_base::Result;
use ic_store::{GitDirs, path_from_bytes};

use super::program::Git;

/// What git's settings say of ignore rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSettings {
    /// The file that `core.excludesFile` names, or the one that git takes where nothing is named.
    pub(crate) excludes_file: Option<PathBuf>,
    /// `core.ignoreCase`.
    pub(crate) ignores_case: bool,
}

/// Settings, and what they may depend on.
#[derive(Debug)]
pub(crate) struct Known {
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
pub(crate) fn ask(root: &Path, dirs: &GitDirs) -> Result<Option<Known>> {
    let git = Git::new(root);
    let Some(listed) = git.ask(&["config", "--list", "--includes", "--show-origin", "-z"])? else {
        return Ok(None);
    };
    let mut found = Found::read(root, pairs(&listed));
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
    // A file that was read and is gone again: the settings are of a moment that is over.
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
    Ok(Some(Known { settings, files, is_whole: found.is_whole }))
}

/// What `core.excludesFile` names, where only git can expand it, as `~user/`.
fn expanded_by_git(git: &Git<'_>) -> Result<Option<PathBuf>> {
    let path = git.run(&["config", "--includes", "--type=path", "-z", "core.excludesFile"])?;
    let path = path.strip_suffix(b"\0").unwrap_or(&path);
    Ok((!path.is_empty()).then(|| path_from_bytes(path)))
}

/// The configuration files that git looks for, wherever the system's lies.
pub(crate) fn usual_files(dirs: &GitDirs) -> impl Iterator<Item = PathBuf> {
    let named =
        ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".gitconfig"));
    let own = [dirs.common_dir.join("config"), dirs.git_dir.join("config.worktree")];
    own.into_iter().chain(named.into_iter().flatten()).chain(home).chain(user_file("config"))
}

/// A file of git's in the user's configuration directory.
pub(super) fn user_file(name: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(directory.join("git").join(name))
}

/// A path in a setting, as far as it can be expanded without git.
fn expanded(value: &[u8]) -> Option<PathBuf> {
    if let Some(rest) = value.strip_prefix(b"~/") {
        return std::env::var_os("HOME").map(|home| Path::new(&home).join(path_from_bytes(rest)));
    }
    let is_plain = !value.starts_with(b"~") && !value.starts_with(b"%(") && !value.starts_with(b":(");
    is_plain.then(|| path_from_bytes(value))
}

/// A list's words in twos: a setting's origin, and its name with its value on a new line.
fn pairs(listed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut words = listed.split(|byte| *byte == 0);
    std::iter::from_fn(move || Some((words.next()?, words.next()?)))
}

/// What is read off the list of all settings.
pub(super) struct Found<'l> {
    excludes: Option<&'l [u8]>,
    ignores_case: bool,
    /// Files that say something.
    pub(super) files: BTreeSet<PathBuf>,
    /// What files include, or would under another condition.
    pub(super) included: BTreeSet<PathBuf>,
    pub(super) is_by_branch: bool,
    pub(super) is_whole: bool,
}

impl<'l> Found<'l> {
    /// Reads pairs of a setting's origin, and its name with its value on a new line.
    pub(super) fn read(root: &Path, listed: impl Iterator<Item = (&'l [u8], &'l [u8])>) -> Self {
        let mut found = Self {
            excludes: None,
            ignores_case: false,
            files: BTreeSet::new(),
            included: BTreeSet::new(),
            is_by_branch: false,
            is_whole: true,
        };
        for (origin, setting) in listed {
            let file = origin.strip_prefix(b"file:").map(|path| root.join(path_from_bytes(path)));
            let end = setting.iter().position(|byte| *byte == b'\n').unwrap_or(setting.len());
            let (key, value) = (&setting[..end], setting.get(end + 1..));
            let is_conditional = key.starts_with(b"includeif.") && key.ends_with(b".path");
            match (key, value) {
                (b"core.excludesfile", value) => found.excludes = value,
                (b"core.ignorecase", value) => found.ignores_case = value.is_none_or(is_true),
                (_, Some(value)) if is_conditional || key == b"include.path" => {
                    found.is_by_branch |= key.starts_with(b"includeif.onbranch:");
                    match (expanded(value), file.as_deref().and_then(Path::parent)) {
                        (Some(path), Some(directory)) => drop(found.included.insert(directory.join(path))),
                        _ => found.is_whole = false,
                    }
                }
                _ => {}
            }
            found.files.extend(file);
        }
        found
    }
}

/// A boolean, as git reads it.
fn is_true(value: &[u8]) -> bool {
    let value = value.to_ascii_lowercase();
    !matches!(value.as_slice(), b"" | b"false" | b"no" | b"off") && !value.iter().all(|byte| *byte == b'0')
}
