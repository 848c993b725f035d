//! Where ignore rules come from besides the `.gitignore` files of the tree.
//!
//! Which files those are, git's settings decide. They are asked for once and kept beside the stat cache, with the state of every
//! file that git read for them: where none of these changed, no process is started.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use ic_ledger::regular_file::open_regular;
use ic_ledger::{GitDirs, path_bytes, path_from_bytes};
use rustix::fs::stat;
use serde::{Deserialize, Serialize};

use super::cache::Key;
use super::text::{number_of, rules_in};
use crate::git::config_files;
use crate::git::rule_settings::{self, RuleSettings};
use crate::manifest::PathText;
use crate::tree::put_bytes;

/// What git heeds everywhere in a work tree.
#[derive(Debug, Default)]
pub(crate) struct RuleSources {
    /// The root is a work tree of git's.
    pub(crate) is_git: bool,
    /// Capital and small letters are equal (`core.ignoreCase`).
    pub(crate) ignores_case: bool,
    /// Files with rules, the first of which that says anything decides.
    pub(crate) texts: Vec<Vec<u8>>,
    /// What git may heed and we do not know, for the person.
    pub(crate) doubts: Vec<String>,
}

/// Settings as they are kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// What else they depend on: environment and directories.
    place: u64,
    excludes_file: Option<PathText>,
    ignores_case: bool,
    files: Vec<(PathText, u64)>,
}

impl RuleSources {
    /// Reads them. Settings are kept in the file `kept`; `now` is the moment by the file system's clock, in nanoseconds.
    pub(crate) fn read(root: &Path, git: Option<&GitDirs>, kept: &Path, now: i64) -> Self {
        let Some(git) = git else { return Self::default() };
        let mut sources = Self { is_git: true, ..Self::default() };
        let settings = sources.settings(root, git, kept, now);
        sources.ignores_case = settings.ignores_case;
        // They are in the order in which git asks them: the repository's own file decides before the user's.
        sources.add(&git.common_dir.join("info/exclude"));
        if let Some(file) = &settings.excludes_file {
            sources.add(file);
        }
        sources
    }

    fn settings(&mut self, root: &Path, git: &GitDirs, kept: &Path, now: i64) -> RuleSettings {
        let place = place(root, git);
        if let Some(known) = Kept::read(kept).filter(|known| known.place == place && known.holds()) {
            return known.settings();
        }
        match rule_settings::ask(root, git) {
            Ok(Some(known)) => {
                if let Some(new) = Kept::new(place, &known, now) {
                    new.write(kept);
                }
                known.settings
            }
            Ok(None) => {
                // Without git there is a doubt only where a configuration could name rules.
                if config_files::usual_files(git).any(|file| may_decide(&file)) {
                    self.doubts.push(
                        "there is no git on PATH to read its settings: core.excludesFile and core.ignoreCase are not applied"
                            .to_owned(),
                    );
                }
                RuleSettings::usual()
            }
            Err(error) => {
                self.doubts.push(format!(
                    "git cannot read its settings, so core.excludesFile and core.ignoreCase are not applied: {}",
                    error.message()
                ));
                RuleSettings::usual()
            }
        }
    }

    /// Adds the rules of a file, if there is one.
    fn add(&mut self, path: &Path) {
        let error = match open_regular(path) {
            Ok(file) => return self.texts.extend(rules_in(file)),
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {}
            // A device, as /dev/null, holds no rules for git either.
            ErrorKind::InvalidInput if !path.is_dir() => {}
            _ => {
                self.doubts.push(format!("{} cannot be read for what git ignores: {error}", path.display()));
            }
        }
    }
}

/// A number for what settings depend on besides the content of files: the variables and directories by which git finds the files.
fn place(root: &Path, git: &GitDirs) -> u64 {
    const NAMES: [&str; 5] =
        ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
    let mut bytes = Vec::new();
    for path in [root, &git.git_dir, &git.common_dir] {
        put_bytes(&mut bytes, path_bytes(path));
    }
    for name in NAMES {
        let value = std::env::var_os(name);
        // To git, an empty variable differs from one that is not set.
        bytes.push(u8::from(value.is_some()));
        put_bytes(&mut bytes, value.unwrap_or_default().as_encoded_bytes());
    }
    number_of(&bytes)
}

/// The files that git's settings depend on, and a number for what else they do, as they are kept in the file `kept`; `None` where
/// they are not known, or one of the files changed since.
pub(crate) fn settings_files(root: &Path, git: &GitDirs, kept: &Path) -> Option<(u64, Vec<PathBuf>)> {
    let place = place(root, git);
    let known = Kept::read(kept).filter(|known| known.place == place && known.holds())?;
    Some((place, known.files.iter().map(|(path, _)| path_from_bytes(&path.0)).collect()))
}

/// The state of a file; `None` if it is not there.
fn state_of(path: &Path) -> Option<Key> {
    stat(path).ok().map(|stat| Key::of(&stat))
}

/// A number for the state of a file.
fn number_of_state(key: Option<Key>) -> u64 {
    key.map_or(0, |key| {
        let numbers = [key.dev, key.ino, key.size, key.mtime.cast_unsigned(), key.ctime.cast_unsigned()];
        // 0 stands for a file that is not there.
        number_of(&numbers.map(u64::to_le_bytes).concat()).max(1)
    })
}

/// Whether a configuration could name rules: it says one of the words that this takes.
fn may_decide(path: &Path) -> bool {
    // Longer ones are taken to say it.
    const LONGEST: u64 = 1 << 20;
    let mut text = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
    text.make_ascii_lowercase();
    let says = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    let cannot_tell = read.is_err_and(|error| error.kind() != ErrorKind::NotFound);
    // The default, written out, decides nothing.
    let says_ignorecase = says(b"ignorecase") && !says(b"ignorecase = false");
    // A file that cannot be read, or only in part, may say anything.
    cannot_tell || text.len() as u64 == LONGEST || says(b"excludesfile") || says(b"include") || says_ignorecase
}

impl Kept {
    /// What can be kept of settings that were just asked for; `now` is a moment before that.
    fn new(place: u64, known: &rule_settings::KnownSettings, now: i64) -> Option<Self> {
        let text = |path: &PathBuf| PathText(path_bytes(path).to_vec());
        let files: Vec<_> = known.files.iter().map(|path| (path, state_of(path))).collect();
        // A file that was written within two seconds may be written again within the same tick, without a change of its stat.
        let is_settled = files.iter().all(|(_, key)| key.is_none_or(|key| key.is_settled(now)));
        (known.is_whole && is_settled).then(|| Self {
            place,
            excludes_file: known.settings.excludes_file.as_ref().map(text),
            ignores_case: known.settings.ignores_case,
            files: files.into_iter().map(|(path, key)| (text(path), number_of_state(key))).collect(),
        })
    }

    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Whether every file is as it was.
    fn holds(&self) -> bool {
        self.files.iter().all(|(path, state)| number_of_state(state_of(&path_from_bytes(&path.0))) == *state)
    }

    fn settings(&self) -> RuleSettings {
        RuleSettings {
            excludes_file: self.excludes_file.as_ref().map(|path| path_from_bytes(&path.0)),
            ignores_case: self.ignores_case,
        }
    }

    /// Replaces the file whole, so that no process reads half of it. If that fails, the next capture asks git again.
    fn write(&self, path: &Path) {
        let Some((text, directory)) = serde_json::to_vec(self).ok().zip(path.parent()) else { return };
        let Ok(mut file) = tempfile::NamedTempFile::new_in(directory) else { return };
        if io::Write::write_all(&mut file, &text).is_ok() {
            let _ = file.persist(path);
        }
    }
}

#[cfg(test)]
mod tests;
