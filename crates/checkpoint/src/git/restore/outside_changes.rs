//! What others did to git while the work that goes back was not under way.

use super::super::state::{BRANCHES, GitState, Stash};
use super::change::{GitRestorePlan, Moved};

/// Git's state before and after a time in which others alone can have changed it.
#[derive(Debug, Clone)]
pub struct OutsideChanges {
    /// Git's state as the time began.
    pub before: GitState,
    /// Git's state as the time ended.
    pub after: GitState,
}

impl OutsideChanges {
    /// Of what was seen, what is staged alone.
    #[must_use]
    pub fn of_the_index(mut self) -> Self {
        // What is equal before and after was not changed by others. So a part is left out by making both equal.
        self.before.refs.clone_from(&self.after.refs);
        self.before.stash.clone_from(&self.after.stash);
        self
    }

    /// Of what was seen, branches and the stash alone.
    #[must_use]
    pub fn of_refs(mut self) -> Self {
        self.before.index = self.after.index;
        self.before.staged.clone_from(&self.after.staged);
        self
    }

    /// Takes out what a restore changed since: it is not as others left it any more.
    pub fn without(&mut self, restore: &Self) {
        for (name, oid) in &restore.before.refs {
            if restore.after.refs.iter().any(|(known, now)| known == name && now != oid)
                && let Some((_, left)) = self.after.refs.iter().find(|(known, _)| known == name)
                && let Some((_, found)) = self.before.refs.iter_mut().find(|(known, _)| known == name)
            {
                found.clone_from(left);
            }
        }
        if restore.before.index != restore.after.index {
            self.before.index = self.after.index;
            self.before.staged.clone_from(&self.after.staged);
        }
    }
}

/// What of git's state others changed that a restore would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MovedByOthers {
    /// A branch, by its name.
    Branch(String),
    /// The stash, in which entries were made or dropped.
    Stash,
    /// What is staged, which may be nowhere else.
    Index,
}

impl MovedByOthers {
    /// The word that scripts see in `details.moved`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Branch(_) => "branch",
            Self::Stash => "stash",
            Self::Index => "index",
        }
    }
}

/// What of a plan others changed: the first of the branches that it moves, the stash, or the index.
pub fn moved_by_others(
    plan: &GitRestorePlan,
    target: &GitState,
    current: &GitState,
    others: &[OutsideChanges],
) -> Option<MovedByOthers> {
    let is_moved = |moved: &&Moved| moved.from.is_some() && others.iter().any(|by| moves(by, &moved.name));
    let branch = plan.refs.iter().find(is_moved).map(|moved| {
        let name = moved.name.strip_prefix(BRANCHES).unwrap_or(&moved.name);
        MovedByOthers::Branch(String::from_utf8_lossy(name).into_owned())
    });
    let stash = || {
        let is_changed = plan.stash && others.iter().any(|by| changes_stash(by, target, current));
        is_changed.then_some(MovedByOthers::Stash)
    };
    let index = || {
        let is_changed = plan.index && others.iter().any(|by| is_staged_still(by, target, current));
        is_changed.then_some(MovedByOthers::Index)
    };
    branch.or_else(stash).or_else(index)
}

fn moves(by: &OutsideChanges, name: &[u8]) -> bool {
    let at = |state: &GitState| state.refs.iter().find(|(known, _)| known.0 == name).map(|(_, oid)| oid.clone());
    // One that they made counts, too: what had its name before is another branch.
    at(&by.after).is_some_and(|after| at(&by.before) != Some(after))
}

/// Whether the restore would drop a stash entry that others made, or bring one back that they dropped.
fn changes_stash(by: &OutsideChanges, target: &GitState, current: &GitState) -> bool {
    let has = |state: &GitState, entry: &Stash| state.stash.contains(entry);
    let is_put = |entry: &Stash| !has(&by.before, entry) && has(current, entry) && !has(target, entry);
    let is_taken = |entry: &Stash| !has(&by.after, entry) && has(target, entry) && !has(current, entry);
    by.after.stash.iter().any(is_put) || by.before.stash.iter().any(is_taken)
}

/// Whether what others staged is still so: the index is as they left it, or has content of theirs that HEAD does not have.
fn is_staged_still(by: &OutsideChanges, target: &GitState, current: &GitState) -> bool {
    let is_theirs = |oid: &&String| !by.before.staged.contains(*oid);
    let mut theirs = by.after.staged.iter().filter(is_theirs);
    by.before.index != by.after.index
        && (by.after.index == current.index
            || theirs.any(|oid| current.staged.contains(oid) && !target.staged.contains(oid)))
}
