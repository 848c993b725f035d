//! What commands would destroy, and what of that is lost for good.

use std::path::{Path, PathBuf};

use ic_ledger::path_bytes;
use ic_worktree::auto::LeftOut;

use super::path_words::{self, Meeting};

/// What a line for a shell would destroy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Danger {
    pub(super) acts: Vec<DangerAct>,
}

/// One command that destroys something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DangerAct {
    /// What does it: `rm -r`.
    pub(super) what: &'static str,
    /// The files, directories or branches that it is applied to.
    pub(super) targets: Vec<DangerTarget>,
    /// Whether it names what only the shell knows, or cannot be read at all.
    pub(super) is_unknown: bool,
    /// Whether a remote repository changes.
    pub(super) is_remote: bool,
    /// Whether what git alone knows goes: what is staged, a stash.
    pub(super) takes_git: bool,
}

/// What a command names: a place on the disk, or a pattern for some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DangerTarget {
    pub(super) path: PathBuf,
    pub(super) reach: DangerReach,
}

/// What goes of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DangerReach {
    /// The name, which may be one of a link.
    Name,
    /// The content that it leads to.
    Content,
    /// It and all that is below it.
    All,
    /// What git does not track below it.
    Untracked { with_ignored: bool, others: bool },
    /// What git alone knows of the repository around it.
    GitState,
}

/// What `ic` can bring back of a tree.
#[derive(Debug, Clone, Copy)]
pub enum StoredPaths<'a> {
    /// The tree is captured, except for these paths.
    AllBut(&'a [LeftOut]),
    /// Nothing: it is not captured.
    Nothing,
}

impl Danger {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.acts.is_empty()
    }

    /// Whether what git alone knows goes: what is staged, a stash.
    pub fn takes_git(&self) -> bool {
        self.acts.iter().any(|act| act.takes_git)
    }

    /// What would be lost for good in a tree with this root, for people: `rm -r` would destroy .env (secret). `None`: nothing.
    pub fn doubt(&self, root: &Path, held: StoredPaths<'_>) -> Option<String> {
        const MOST: usize = 5;
        let (mut what, mut losses) = (Vec::new(), Vec::new());
        for act in &self.acts {
            let lost = act.losses(root, held);
            if !lost.is_empty() {
                what.push(format!("`{}`", act.what));
                losses.extend(lost);
            }
        }
        dedup(&mut what);
        dedup(&mut losses);
        let more = losses.len().saturating_sub(MOST);
        let named: Vec<String> = losses.iter().take(MOST).map(|loss| ic_base::title(loss)).collect();
        let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!losses.is_empty()).then(|| {
            let named = named.join(", ");
            format!("{} would destroy what `ic` cannot restore: {named}{and_more}.", what.join(", "))
        })
    }
}

impl DangerAct {
    pub(super) fn losses(&self, root: &Path, held: StoredPaths<'_>) -> Vec<String> {
        let mut losses = Vec::new();
        if self.is_remote {
            losses.push("what the remote has".to_owned());
        }
        if self.is_unknown {
            losses.push("files that cannot be told from the command".to_owned());
        }
        for target in &self.targets {
            losses.extend(target.losses(root, held));
        }
        losses
    }
}

impl DangerTarget {
    fn losses(&self, root: &Path, held: StoredPaths<'_>) -> Vec<String> {
        let path = path_words::real(&self.path, self.reach == DangerReach::Content);
        let is_there = |path: &Path| {
            // For `data/*.csv` the directory `data` is looked for, because no file has the name of the pattern.
            let fixed = path.ancestors().find(|part| !path_words::is_pattern(&part.to_string_lossy()));
            fixed.is_some_and(|fixed| fixed.symlink_metadata().is_ok())
        };
        let Ok(inside) = path.strip_prefix(root) else {
            // A project may lie there, and what is above it takes it along, with git and what ic keeps.
            let is_above = root.starts_with(&path);
            // A directory for temporary files is no loss unless the project lies in it.
            let is_lost = (is_above || !path_words::is_temporary(&path)) && is_there(&path);
            let why = if is_above { "the project is in it" } else { "outside of the project" };
            let told = || format!("{} ({why})", path.display());
            return is_lost.then(told).into_iter().collect();
        };
        let shown = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let inside = path_bytes(inside);
        match held {
            StoredPaths::AllBut(left_out) => {
                let is_lost = |(left, why): &&LeftOut| self.takes(root, inside, left, why);
                let told = |(path, why): &LeftOut| format!("{} ({why})", String::from_utf8_lossy(path));
                left_out.iter().filter(is_lost).map(told).collect()
            }
            StoredPaths::Nothing => {
                let is_lost = is_there(&path) && !path_words::is_made_again(inside);
                let told = || match self.reach {
                    DangerReach::GitState => "what git has not committed (not captured)".to_owned(),
                    DangerReach::Untracked { .. } => "what git does not track (not captured)".to_owned(),
                    _ => format!("{} (not captured)", shown.display()),
                };
                is_lost.then(told).into_iter().collect()
            }
        }
    }

    /// Whether something goes that no checkpoint holds. `inside`: where it leads, from the root.
    fn takes(&self, root: &Path, inside: &[u8], left: &[u8], why: &str) -> bool {
        let Some(meeting) = path_words::meeting(inside, left) else { return false };
        // Both are asked: `rm -r build` has it in what is named, and `git clean -fdx` in what it meets.
        let counts = !path_words::is_made_again(left) && !path_words::is_made_again(inside);
        counts
            && match self.reach {
                DangerReach::All => true,
                // Commands for single files fail on a directory, so what was left out below it stays.
                DangerReach::Name | DangerReach::Content => meeting != Meeting::Above,
                DangerReach::Untracked { with_ignored, others } => match why {
                    "ignored" => with_ignored,
                    "git" | "store" | "ledger" => false,
                    _ => others && !is_tracked(root, left),
                },
                // The look before such a call has git's state, too, so an undo can restore it.
                DangerReach::GitState => false,
            }
    }
}

fn is_tracked(root: &Path, path: &[u8]) -> bool {
    // If git cannot be asked, the file counts as untracked, and the person is asked.
    ic_ledger::git_dirs(root).is_some_and(|dirs| ic_ledger::git_tracks(&dirs, path).unwrap_or(false))
}

/// Leaves the first of each.
pub(super) fn dedup(all: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    all.retain(|one| seen.insert(one.clone()));
}
