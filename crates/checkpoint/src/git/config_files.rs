//! The files that git reads its settings from: where they lie, and which of them a list of settings names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ic_ledger::{GitDirs, path_from_bytes};

/// The configuration files that git looks for, wherever the system's lies.
pub(crate) fn usual_files(dirs: &GitDirs) -> impl Iterator<Item = PathBuf> {
    // These are more files than git reads here: if one that it does not read changes, git is only asked once more.
    let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].map(|name| std::env::var_os(name).map(PathBuf::from));
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
pub(super) fn expanded(value: &[u8]) -> Option<PathBuf> {
    if let Some(rest) = value.strip_prefix(b"~/") {
        return std::env::var_os("HOME").map(|home| Path::new(&home).join(path_from_bytes(rest)));
    }
    // Users' homes, the prefix and what is optional are for git to resolve.
    let is_plain = !value.starts_with(b"~") && !value.starts_with(b"%(") && !value.starts_with(b":(");
    is_plain.then(|| path_from_bytes(value))
}

/// What is read off the list of all settings.
pub(super) struct FoundConfig<'l> {
    /// The value of `core.excludesFile`, not expanded; empty if it is set to nothing.
    pub(super) excludes: Option<&'l [u8]>,
    /// Whether `core.ignoreCase` is set.
    pub(super) ignores_case: bool,
    /// Files that say something.
    pub(super) files: BTreeSet<PathBuf>,
    /// What files include, or would under another condition.
    pub(super) included: BTreeSet<PathBuf>,
    pub(super) is_by_branch: bool,
    pub(super) is_whole: bool,
}

impl<'l> FoundConfig<'l> {
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
            // Git names the repository's file from where it runs, which is the root: `file:.git/config`.
            let file = origin.strip_prefix(b"file:").map(|path| root.join(path_from_bytes(path)));
            // `core.ignorecase`, a line break, `true`. A key that was written without `=` has no line break, and means true.
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
                        // A file whose place is not known cannot be watched for changes.
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
