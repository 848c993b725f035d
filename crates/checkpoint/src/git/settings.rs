//! The names of a repository's settings, listed once: the next command that needs them believes the last list for as long as every file
//! that git read for it, or would read, holds the same bytes. Nothing of it outlives the process.
//!
//! The files are read before git is asked and again after, so the list is of what they held. A file that only the list named is read before
//! the next question: then that is the last one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Mutex, PoisonError};

use ic_ledger::GitDirs;
use ic_ledger::regular_file::read_line;

use super::config_files::{FoundConfig, usual_files};
use super::error::{GitError, GitResult};

/// What lists them: the scope, the file and the setting of each.
pub(super) const LIST: [&str; 5] = ["config", "--list", "--show-scope", "--show-origin", "-z"];

/// Where most builds of git have the system's file. One that says something is named by the list, wherever it lies.
const SYSTEM: &str = "/etc/gitconfig";

static LAST: Last = Last(Mutex::new(None));

/// The last list of this process.
struct Last(Mutex<Option<Listed>>);

/// A list, and what it stands on.
#[derive(Clone)]
struct Listed {
    root: PathBuf,
    names: Vec<u8>,
    /// `None`: what they held while git was asked is not known.
    files: BTreeMap<PathBuf, Option<Content>>,
}

/// What a file holds; `None`: it is not there.
type Content = Option<Vec<u8>>;

/// The scope and the name of each setting, each with a NUL after it. `ask` runs git with [`LIST`]. `None`: there is no `git` on PATH.
///
/// Errors: `git_failed` where git cannot list its settings: what it would run is not known then.
pub(super) fn names(root: &Path, ask: impl FnOnce() -> io::Result<Output>) -> GitResult<Option<Vec<u8>>> {
    LAST.names(root, ask)
}

impl Last {
    fn names(&self, root: &Path, ask: impl FnOnce() -> io::Result<Output>) -> GitResult<Option<Vec<u8>>> {
        // It is cloned, so that no other thread waits for the lock while git runs.
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = last.filter(|last| last.root == root);
        if let Some(last) = last.as_ref().filter(|last| last.holds()) {
            return Ok(Some(last.names.clone()));
        }
        let dirs = ic_ledger::git_dirs(root);
        let mut files: BTreeSet<PathBuf> = last.into_iter().flat_map(|last| last.files.into_keys()).collect();
        files.extend(dirs.iter().flat_map(usual_files).chain([SYSTEM.into()]));
        let before = contents(files);
        let output = match ask() {
            // The command itself will not be found either, and its caller knows what to make of that.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            said => said.map_err(GitError::not_run(&LIST))?,
        };
        if !output.status.success() {
            return Err(GitError::ended(&LIST, output.status, &output.stderr));
        }
        let names = names_in(&output.stdout);
        let listed = dirs.and_then(|dirs| Listed::new(root, &dirs, &output.stdout, names.clone(), &before));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = listed;
        Ok(Some(names))
    }
}

impl Listed {
    /// `None` where git read more than can be told.
    fn new(
        root: &Path,
        dirs: &GitDirs,
        text: &[u8],
        names: Vec<u8>,
        before: &BTreeMap<PathBuf, Option<Content>>,
    ) -> Option<Self> {
        let found = FoundConfig::read(root, settings(text).map(|(_, origin, setting)| (origin, setting)));
        if !found.is_whole {
            return None;
        }
        // Settings may be included by branch, so where HEAD is decides, too.
        let branch = ["HEAD", "reftable/tables.list"].map(|name| dirs.git_dir.join(name));
        let branch = branch.into_iter().filter(|_| found.is_by_branch);
        let mut files = contents(before.keys().cloned());
        for (file, content) in &mut files {
            if before.get(file) != Some(content) {
                // It changed while git was asked, so it is not known which of the two git read.
                *content = None;
            }
        }
        let others = found.files.into_iter().chain(found.included).chain(branch);
        for file in others {
            files.entry(file).or_insert(None);
        }
        Some(Self { root: root.to_owned(), names, files })
    }

    /// Whether every file holds what it held while git was asked.
    fn holds(&self) -> bool {
        self.files.iter().all(|(file, content)| content.is_some() && content_of(file) == *content)
    }
}

fn contents(files: impl IntoIterator<Item = PathBuf>) -> BTreeMap<PathBuf, Option<Content>> {
    let with_content = |file: PathBuf| {
        let content = content_of(&file);
        (file, content)
    };
    files.into_iter().map(with_content).collect()
}

/// `None` if it cannot be told.
fn content_of(file: &Path) -> Option<Content> {
    match read_line(file) {
        Ok(content) => Some(Some(content)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Some(None),
        // It is named where no settings of a user are wanted.
        Err(_) if file == Path::new("/dev/null") => Some(None),
        Err(_) => None,
    }
}

/// The scope, the origin and the text of each setting in a list.
fn settings(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
    let mut words = text.split(|byte| *byte == 0);
    std::iter::from_fn(move || Some((words.next()?, words.next()?, words.next()?)))
}

/// Values may be secrets, and are not needed.
fn names_in(text: &[u8]) -> Vec<u8> {
    let mut names = Vec::new();
    for (scope, _, setting) in settings(text) {
        let name = setting.split(|byte| *byte == b'\n').next().unwrap_or_default();
        for word in [scope, name] {
            names.extend_from_slice(word);
            names.push(0);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::sync::Mutex;

    use super::{LIST, Last};

    /// A repository, and how often git was asked.
    struct Asked {
        directory: tempfile::TempDir,
        last: Last,
        times: Cell<usize>,
    }

    impl Asked {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let asked = Self { directory, last: Last(Mutex::new(None)), times: Cell::new(0) };
            asked.git(&["init", "-q", "."]);
            asked
        }

        fn root(&self) -> &Path {
            self.directory.path()
        }

        fn git(&self, arguments: &[&str]) {
            assert!(Command::new("git").args(arguments).current_dir(self.root()).status().unwrap().success());
        }

        /// Whether the setting `name` is listed, and whether git had to be asked.
        fn lists(&self, name: &str) -> (bool, bool) {
            let before = self.times.get();
            let ask = || {
                self.times.set(before + 1);
                Command::new("git").arg("-C").arg(self.root()).args(LIST).output()
            };
            let names = self.last.names(self.root(), ask).unwrap().unwrap();
            let mut words = names.split(|byte| *byte == 0);
            (words.any(|word| word == name.as_bytes()), self.times.get() > before)
        }
    }

    #[test]
    fn a_list_is_believed_while_every_file_holds_the_same() {
        let asked = Asked::new();
        assert_eq!(asked.lists("filter.f.clean"), (false, true));
        assert_eq!(asked.lists("filter.f.clean"), (false, false));
        asked.git(&["config", "filter.f.clean", "cat"]);
        assert_eq!(asked.lists("filter.f.clean"), (true, true));
        assert_eq!(asked.lists("filter.f.clean"), (true, false));
        // As long as before, and within a tick of the clock.
        let config = asked.root().join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace("\"f\"", "\"g\"")).unwrap();
        assert_eq!(asked.lists("filter.f.clean"), (false, true));
        assert_eq!(asked.lists("filter.g.clean"), (true, false));
    }

    #[test]
    fn a_file_that_is_included_or_would_be_is_heeded() {
        let asked = Asked::new();
        asked.git(&["config", "include.path", "more"]);
        assert_eq!(asked.lists("filter.f.clean"), (false, true));
        assert_eq!(asked.lists("filter.f.clean"), (false, true), "what it includes was not known");
        assert_eq!(asked.lists("filter.f.clean"), (false, false));
        fs::write(asked.root().join(".git/more"), "[filter \"f\"]\nclean = cat\n").unwrap();
        assert_eq!(asked.lists("filter.f.clean"), (true, true));
        assert_eq!(asked.lists("filter.f.clean"), (true, false));
        fs::remove_file(asked.root().join(".git/more")).unwrap();
        assert_eq!(asked.lists("filter.f.clean"), (false, true));
    }

    #[test]
    fn settings_of_a_branch_are_heeded() {
        let asked = Asked::new();
        asked.git(&["config", "includeIf.onbranch:other.path", "more"]);
        fs::write(asked.root().join(".git/more"), "[hook \"h\"]\ncommand = cat\n").unwrap();
        asked.lists("hook.h.command");
        asked.lists("hook.h.command");
        assert_eq!(asked.lists("hook.h.command"), (false, false));
        asked.git(&["symbolic-ref", "HEAD", "refs/heads/other"]);
        assert_eq!(asked.lists("hook.h.command"), (true, true));
    }

    #[test]
    fn values_are_forgotten() {
        let asked = Asked::new();
        asked.git(&["config", "a.password", "secret-1\nsecret-2"]);
        asked.lists("a.password");
        let last = asked.last.0.lock().unwrap();
        let names = String::from_utf8_lossy(&last.as_ref().unwrap().names).into_owned();
        assert!(names.contains("a.password") && !names.contains("secret"), "{names}");
    }
}
