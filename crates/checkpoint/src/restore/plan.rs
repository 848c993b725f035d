//! What a restore would do: a pure function of how the tree differs from its target.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::attributes::Attributes;
use crate::diff::{DiffState, Difference};
use crate::manifest::{PathText, hash_text};
use crate::names::goes_through_one_like_git;
use crate::tree::Reason;

mod limits;

pub use self::limits::{Limits, is_at_or_below};

ic_base::words! {
    /// What is done about a path.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum RestoreAction {
        /// It is made; there was nothing.
        Create = "create",
        /// It gets other content.
        Modify = "modify",
        /// It is removed; the target has nothing there.
        Delete = "delete",
        /// It gets other permission bits.
        Chmod = "chmod",
        /// It gets another owner, ACL or other extended attributes.
        Attributes = "attributes",
        /// It becomes one file with another path, or one of its own; its content stays.
        Link = "link",
        /// It becomes something else: a file, a link, a directory.
        Replace = "replace",
    }
}

/// What stands at a path, as a plan keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreNode {
    /// A regular file, whose content is an object of the store.
    File {
        /// The SHA-256 of its content.
        #[serde(with = "hash_text")]
        hash: ic_ledger::events::Hash,
        /// Its length in bytes.
        size: u64,
        /// Its permission bits (07777), as the target has them.
        mode: u32,
        /// What it has beside.
        #[serde(default, skip_serializing_if = "Attributes::is_usual")]
        attributes: Attributes,
    },
    /// A symbolic link, and where it points.
    Symlink(PathText),
    /// A directory, and its permission bits.
    Directory {
        /// Its permission bits (07777), as the target has them.
        mode: u32,
        /// What it has beside.
        #[serde(default, skip_serializing_if = "Attributes::is_usual")]
        attributes: Attributes,
    },
}

impl RestoreNode {
    /// What a checkpoint holds there; `None` for a name that was left out.
    pub fn of(state: &DiffState) -> Option<Self> {
        match state {
            DiffState::File { hash, size, mode, attributes } => {
                Some(Self::File { hash: *hash, size: *size, mode: *mode, attributes: attributes.clone() })
            }
            DiffState::Symlink(target) => Some(Self::Symlink(PathText(target.clone()))),
            DiffState::Directory { mode, attributes, .. } => {
                Some(Self::Directory { mode: *mode, attributes: attributes.clone() })
            }
            DiffState::Passed(_) => None,
        }
    }

    /// The same as a tree has it; a directory says nothing of what is in it.
    pub fn into_state(self) -> DiffState {
        match self {
            Self::File { hash, size, mode, attributes } => DiffState::File { hash, size, mode, attributes },
            Self::Symlink(target) => DiffState::Symlink(target.0),
            Self::Directory { mode, attributes } => DiffState::Directory { mode, attributes, is_empty: false },
        }
    }

    /// What it has beside content and permission bits; `None` for a link.
    pub fn attributes(&self) -> Option<&Attributes> {
        match self {
            Self::File { attributes, .. } | Self::Directory { attributes, .. } => Some(attributes),
            Self::Symlink(_) => None,
        }
    }

    /// The same without them.
    #[must_use]
    pub fn plain(mut self) -> Self {
        if let Self::File { attributes, .. } | Self::Directory { attributes, .. } = &mut self {
            *attributes = Attributes::default();
        }
        self
    }
}

/// A change that a restore makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreStep {
    /// The path that changes, from the root.
    pub path: PathText,
    /// How the path changes; decides in which pass it is done.
    pub action: RestoreAction,
    /// What must stand there; `None`: nothing.
    pub before: Option<RestoreNode>,
    /// What then stands there; `None`: nothing.
    pub after: Option<RestoreNode>,
    /// No checkpoint but the safety checkpoint holds what stands there now.
    pub uncaptured: bool,
    /// It becomes the same file as this path, which is as the target has it by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathText>,
    /// It becomes a file of its own, though only its looks change: other names of the same file keep theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// How many names the file may have whose looks change in place.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub names: u64,
}

fn one() -> u64 {
    1
}

impl RestoreStep {
    /// Whether it is of a directory alone: no file and no link stands there, or is to stand there.
    pub fn is_of_directory(&self) -> bool {
        let mut nodes = [&self.before, &self.after].into_iter().flatten();
        nodes.all(|node| matches!(node, RestoreNode::Directory { .. }))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(names: &u64) -> bool {
    *names == 1
}

impl RestoreStep {
    /// A change at a path, which is a file of its own.
    pub fn new(path: PathText, action: RestoreAction, before: Option<RestoreNode>, after: Option<RestoreNode>) -> Self {
        Self { path, action, before, after, uncaptured: false, link: None, anew: false, names: 1 }
    }
}

impl RestorePlan {
    /// Names a path that stays though it changed since the target was taken.
    pub fn leave_changed(&mut self, path: PathText, why: String) {
        // What stays with the directory that it lies in is named with that.
        if !self.skipped.iter().any(|(skipped, _)| is_at_or_below(&path.0, &skipped.0)) {
            self.skipped.push((path.clone(), why));
        }
        self.left_changed.push(path);
    }
}

/// What a restore does, in the order of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Every change of a path, a directory before what is in it.
    pub steps: Vec<RestoreStep>,
    /// Paths that differ and are left alone, and why.
    pub skipped: Vec<(PathText, String)>,
    /// Paths that changed since the target was taken and stay, because their old content is kept nowhere: the restore is not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_changed: Vec<PathText>,
    /// What the target had at a path and does not come back with it, because no checkpoint holds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<(PathText, String)>,
    /// Directories that stay, hold a change and may not be written into, with their permission bits: they are opened up
    /// for a moment, and a restore that was killed in that moment gives them back what they had.
    pub closed: Vec<(PathText, u32)>,
    /// SQLite databases that change together with the files beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<PlannedDatabase>,
}

/// An SQLite database, and the names of its log, index and journal that stand beside it before the restore or after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDatabase {
    /// The path of the database's own file, from the root.
    pub path: PathText,
    /// What stands beside it, from the root.
    pub sides: Vec<PathText>,
}

/// Paths that the target holds and that the capture of the current tree left out: they must be captured too before they can be
/// changed.
pub fn must_be_saved(differences: &[Difference], limits: &Limits) -> BTreeSet<Vec<u8>> {
    let mut passed: Option<&[u8]> = None;
    let mut paths = BTreeSet::new();
    for difference @ Difference { path, before, after } in differences {
        // Differences are in the order of paths, so what lies below a hidden name follows right after it.
        if matches!(before, Some(DiffState::Passed(reason)) if can_be_saved(*reason)) {
            passed = Some(path);
        }
        let is_hidden = passed.is_some_and(|base| is_at_or_below(path, base));
        if is_hidden && after.as_ref().is_some_and(DiffState::is_content) && limits.allow(difference) {
            paths.insert(path.clone());
        }
    }
    paths
}

/// Whether a capture that must holds what an ordinary one passes over for this reason.
fn can_be_saved(reason: Reason) -> bool {
    use Reason as R;
    !matches!(reason, R::Git | R::GitName | R::Store | R::Deep | R::Purged | R::Ledger | R::WorkTree)
}

/// The plan that turns the tree into the target. `differences`: `before` is the current tree, `after` the target.
///
/// `uncaptured` tells whether a path's present content is in no checkpoint yet.
pub fn plan(differences: &[Difference], limits: &Limits, uncaptured: &dyn Fn(&[u8]) -> bool) -> RestorePlan {
    let mut plan = RestorePlan::default();
    let blocked = blocked_directories(differences, limits);
    // What lies below a path that stays also stays, and follows right after it: the last such path is enough.
    let mut stuck: Option<&[u8]> = None;
    // The last directory that stays something else, and what it is.
    let mut in_the_way: Option<(&[u8], &str)> = None;
    for difference @ Difference { path, before, after } in differences {
        if stuck.is_some_and(|base| is_at_or_below(path, base)) {
            continue;
        }
        if !limits.allow(difference) {
            // This restore may not make the directory, so what should lie in it has no place either.
            if after.as_ref().is_some_and(is_directory) {
                in_the_way = before.as_ref().and_then(what_no_directory_is).map(|what| (path.as_slice(), what));
            }
            continue;
        }
        let mut skip = |reason: &str| plan.skipped.push((PathText(path.clone()), reason.to_owned()));
        let hindered = || in_the_way.filter(|(base, _)| is_at_or_below(path, base)).map(|(_, what)| what);
        if let Some(why) = limits.held.get(path).map(String::as_str).or_else(hindered) {
            skip(why);
            stuck = Some(path);
            continue;
        }
        let after = limits.wanted(path, after.as_ref());
        if let Some(repository) = lost_repository(difference) {
            plan.not_kept.push((PathText(repository.to_vec()), NO_HISTORY.to_owned()));
        }
        // A forged checkpoint may hold such a name. None is ever written: the preview says so, not the failure of the real call.
        if after.is_some_and(DiffState::is_content) && goes_through_one_like_git(path) {
            skip(Reason::GitName.as_str());
            stuck = Some(path);
            continue;
        }
        let hidden = [before.as_ref(), after].into_iter().flatten().find_map(|state| match state {
            DiffState::Passed(reason) => Some(*reason),
            _ => None,
        });
        if let Some(reason) = hidden {
            if [before.as_ref(), after].into_iter().flatten().any(DiffState::is_content) {
                skip(reason.as_str());
            }
            // Whether what lies below was there when the target was taken is not known.
            stuck = Some(path);
            continue;
        }
        if before.as_ref().is_some_and(is_directory)
            && !after.is_some_and(is_directory)
            && let Some(reason) = blocked.get(path)
        {
            // The report names the work tree itself.
            if after.is_some() || *reason != Reason::WorkTree.as_str() {
                skip(&format!("holds {reason} content"));
            }
            // What the target has in its place cannot be made, so nothing in it goes either.
            stuck = after.is_some().then_some(path);
            continue;
        }
        let (before, after) = (before.as_ref().and_then(RestoreNode::of), after.and_then(RestoreNode::of));
        // If there is no action, nothing is at the path and nothing comes: it is a side file that the target left out.
        if let Some(action) = action(before.as_ref(), after.as_ref()) {
            let uncaptured = before.is_some() && uncaptured(path);
            let step = RestoreStep::new(PathText(path.clone()), action, before, after);
            plan.steps.push(RestoreStep { uncaptured, ..step });
        }
    }
    plan
}

/// What a directory holds that no change may touch.
const KEPT: &str = "kept";

/// Why a directory stays in the place of a file though it may go itself.
pub const HOLDS_KEPT: &str = "holds kept content";

/// Why a repository within the tree does not come back as one.
pub const NO_HISTORY: &str =
    "it was a nested repository: no checkpoint has its .git, so its history and branches cannot be restored";

/// The directory that was a repository of its own when the target was taken, and is none now.
fn lost_repository(difference: &Difference) -> Option<&[u8]> {
    let is_git = |state: &Option<DiffState>| matches!(state, Some(DiffState::Passed(Reason::Git)));
    let is_lost = is_git(&difference.after) && !is_git(&difference.before);
    difference.path.strip_suffix(b"/.git").filter(|_| is_lost)
}

fn is_directory(state: &DiffState) -> bool {
    matches!(state, DiffState::Directory { .. })
}

/// Why nothing can be made in what stands there; `None` for a directory.
fn what_no_directory_is(state: &DiffState) -> Option<&'static str> {
    match state {
        DiffState::Directory { .. } => None,
        DiffState::Passed(reason) => Some(reason.as_str()),
        DiffState::File { .. } | DiffState::Symlink(_) => Some("lies in a file"),
    }
}

fn action(before: Option<&RestoreNode>, after: Option<&RestoreNode>) -> Option<RestoreAction> {
    use RestoreNode as N;
    let looks = |is_same| if is_same { RestoreAction::Attributes } else { RestoreAction::Chmod };
    Some(match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => RestoreAction::Create,
        (Some(_), None) => RestoreAction::Delete,
        (Some(N::File { hash, mode, .. }), Some(N::File { hash: other_hash, mode: other, .. }))
            if hash == other_hash =>
        {
            looks(mode == other)
        }
        (Some(N::Directory { mode, .. }), Some(N::Directory { mode: other, .. })) => looks(mode == other),
        (Some(N::File { .. }), Some(N::File { .. })) | (Some(N::Symlink(_)), Some(N::Symlink(_))) => {
            RestoreAction::Modify
        }
        _ => RestoreAction::Replace,
    })
}

/// Directories that would go but hold something that is never touched, and what it is.
fn blocked_directories(differences: &[Difference], limits: &Limits) -> BTreeMap<Vec<u8>, &'static str> {
    let mut blocked = BTreeMap::new();
    for difference @ Difference { path, before, after } in differences {
        let reason = match (before, after) {
            (Some(DiffState::Passed(reason)), _) => reason.as_str(),
            (Some(_), None) if !limits.allow(difference) => KEPT,
            _ => continue,
        };
        // No directory above can go while this stays in it.
        let mut directory = path.as_slice();
        while let Some(at) = directory.iter().rposition(|b| *b == b'/') {
            directory = &directory[..at];
            let known = blocked.entry(directory.to_vec()).or_insert(reason);
            // Another work tree is named apart, so whatever else is there is what keeps the directory.
            if *known == Reason::WorkTree.as_str() {
                *known = reason;
            }
        }
    }
    blocked
}

#[cfg(test)]
mod tests;
