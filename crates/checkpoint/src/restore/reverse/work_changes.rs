//! What one piece of work did, path by path.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ic_ledger::events::Hash;

use super::path_state::is_same;
use crate::diff::{DiffState, Difference};
use crate::manifest::GitContent;
use crate::objects::hash_of;

/// What stood at a path before a piece of work and what it left; `None`: nothing.
pub type LookPair = (Option<DiffState>, Option<DiffState>);

/// What one piece of work did to a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// By path, oldest first. Neighbours that meet are one.
    pub(super) changes: BTreeMap<Vec<u8>, Vec<LookPair>>,
    /// Paths that changed during the work and stay.
    pub(super) stays: BTreeMap<Vec<u8>, StayReason>,
    /// Paths that changed while the work was under way and did nothing, and what is to be said of those that it never changed.
    pub(super) beside: BTreeMap<Vec<u8>, String>,
    /// Paths that the work changed and of which no checkpoint holds content, and why.
    unkept: BTreeMap<Vec<u8>, String>,
    /// What others did to paths after the work had changed them, oldest first.
    since: BTreeMap<Vec<u8>, Vec<Since>>,
    /// Paths at which others changed what the work had changed, and how that is said: what stands there is not of one of them alone.
    pub(super) clashes: BTreeMap<Vec<u8>, String>,
    /// Of those, the paths at which only lines clash. Each has two changes, from the path without the work to the path with it: first without
    /// the lines that others changed after the work, then with them.
    pub(super) ways: BTreeMap<Vec<u8>, Vec<LookPair>>,
    /// What the work is known to have changed at paths of which `changes` has what their whole history comes to.
    pub(super) replayed: BTreeMap<Vec<u8>, Vec<LookPair>>,
    /// Of those, the paths that others did not change after the work.
    pub(super) alone: BTreeSet<Vec<u8>>,
    /// Directories that work made which is undone: they go with the last thing in them.
    pub(super) of_undone: BTreeSet<Vec<u8>>,
    /// Of those, the paths that a person changed after the work.
    pub(super) by_persons: BTreeSet<Vec<u8>>,
    /// What paths with a clash were right before it without the work, and without what is undone by now.
    pub(super) before_clash: BTreeMap<Vec<u8>, Option<DiffState>>,
    /// The names that others gave since to files that the work left, the newest last.
    pub(super) renamed: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// The tree at the last look.
    pub(super) last_look: Option<Hash>,
    /// Files that came and went between two looks.
    pub(super) unseen: BTreeSet<Vec<u8>>,
    /// Where git has contents of these states that no checkpoint may hold, by their hashes.
    pub sources: HashMap<Hash, GitContent>,
    /// Texts of these states that no checkpoint holds, by their hashes: there may be as many as paths, and each is asked for.
    pub(super) texts: HashMap<Hash, Vec<u8>>,
}

/// Why a path stays that changed while a piece of work was under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StayReason {
    /// It may be of the work or of others: a person decides.
    Shared(String),
    /// It is of the work, and a merge cannot undo it.
    Part(String),
    /// It is of others.
    Theirs(String),
}

/// A change of a path that others made after the work had changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Since {
    /// How many of the changes of the work stood at the path by then.
    own: usize,
    change: LookPair,
}

impl Own {
    /// Adds what differs between two looks at the tree between which this work alone was under way.
    pub fn add(&mut self, difference: Difference) {
        let Difference { path, before, after } = difference;
        // The root is no path of its own that a step could name.
        if path.is_empty() || is_same(before.as_ref(), after.as_ref()) {
            return;
        }
        // What its history comes to is without this change.
        self.ways.remove(&path);
        let others = self.since.get(&path).and_then(|since| since.last()).map_or(0, |since| since.own);
        let pairs = self.changes.entry(path).or_default();
        // Two changes are one only if the second begins where the first ended, and others did nothing in between.
        let is_alone = others < pairs.len();
        match pairs.last_mut() {
            Some((_, last)) if is_alone && is_same(last.as_ref(), before.as_ref()) => *last = after,
            _ => pairs.push((before, after)),
        }
    }

    /// Adds what others changed, and have not undone. It counts where the work had changed the path before.
    pub fn add_since(&mut self, difference: Difference) {
        let Difference { path, before, after } = difference;
        if let Some(pairs) = self.changes.get(&path) {
            let since = Since { own: pairs.len(), change: (before, after) };
            self.since.entry(path).or_default().push(since);
        }
    }

    /// Whether others met a part of a path as it was before a change of the work, counted from zero, and changed it. If the part is as the
    /// work left it, others made it so again, and it is theirs.
    pub(super) fn is_of_others<P: PartialEq>(
        &self,
        path: &[u8],
        change: usize,
        part: impl Fn(Option<&DiffState>) -> P,
    ) -> bool {
        let (Some(pairs), Some(since)) = (self.changes.get(path), self.since.get(path)) else { return false };
        let before = part(pairs[change].0.as_ref());
        // Only what came after this change of the work can have met it.
        since.iter().filter(|since| since.own > change).any(|since| {
            let (from, to) = &since.change;
            part(from.as_ref()) == before && part(to.as_ref()) != before
        })
    }

    /// Adds a text of a state that no checkpoint holds.
    pub fn add_text(&mut self, text: Vec<u8>) {
        self.texts.insert(hash_of(&text), text);
    }

    /// The texts of its states that no checkpoint holds.
    pub fn texts(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.texts.values()
    }

    /// Lets a directory that the work did not make go if its undo leaves nothing in it.
    pub fn leave_if_empty(&mut self, path: Vec<u8>) {
        self.of_undone.insert(path);
    }

    /// Adds a path at which a change may be of the work or of others.
    pub fn share(&mut self, path: Vec<u8>, why: &str) {
        // It replaces a reason that was noted before: here a person must decide. The reasons below replace none.
        self.stays.insert(path, StayReason::Shared(why.to_owned()));
    }

    /// Leaves a path unchanged where others changed something.
    pub fn leave(&mut self, path: Vec<u8>, why: &str) {
        self.stays.entry(path).or_insert_with(|| StayReason::Theirs(why.to_owned()));
    }

    /// Leaves a path unchanged although the work changed it.
    pub fn leave_part(&mut self, path: Vec<u8>, why: &str) {
        self.stays.entry(path).or_insert_with(|| StayReason::Part(why.to_owned()));
    }

    /// Leaves a path unchanged because no checkpoint holds content of it, although the work changed it.
    pub fn leave_unkept(&mut self, path: Vec<u8>, why: &str) {
        self.unkept.insert(path, why.to_owned());
    }

    /// The paths that the work changed and of which no checkpoint holds content, and why.
    pub fn unkept(&self) -> impl Iterator<Item = (&Vec<u8>, &String)> {
        self.unkept.iter()
    }

    /// Notes a change that was made while the work was under way, and that it did not make. It is told where the work changed nothing else
    /// at the path.
    pub fn note(&mut self, path: Vec<u8>, why: &str) {
        self.beside.entry(path).or_insert_with(|| why.to_owned());
    }

    /// Forgets what is known of other paths than these.
    pub fn keep_only(&mut self, paths: &BTreeSet<Vec<u8>>) {
        self.changes.retain(|path, _| paths.contains(path));
        self.stays.retain(|path, _| paths.contains(path));
        self.beside.retain(|path, _| paths.contains(path));
        self.unkept.retain(|path, _| paths.contains(path));
    }

    /// What is noted of paths that the work never changed.
    pub(super) fn noted(&self) -> impl Iterator<Item = (&Vec<u8>, &String)> {
        let is_else = |path: &Vec<u8>| self.changes.contains_key(path) || self.stays.contains_key(path);
        self.beside.iter().filter(move |(path, _)| !is_else(path))
    }

    /// Whether it is not others who make a path what it is without the work: what the work met is undone.
    pub(super) fn is_of_nobody(&self, path: &[u8]) -> bool {
        self.alone.contains(path)
    }

    /// Puts one change of a path in place of all that are known, which it returns.
    pub(super) fn replace(&mut self, path: &[u8], change: LookPair) -> Vec<LookPair> {
        self.forget_others(path);
        self.changes.insert(path.to_vec(), vec![change]).unwrap_or_default()
    }

    /// Forgets what others did at a path: its history says it.
    pub(super) fn forget_others(&mut self, path: &[u8]) {
        self.since.remove(path);
    }

    /// Adds paths that the work had to do with, though nothing is known to be undone there.
    pub fn know(&mut self, paths: BTreeSet<Vec<u8>>) {
        for path in paths {
            self.changes.entry(path).or_default();
        }
    }

    /// Whether there is nothing to undo.
    pub fn is_empty(&self) -> bool {
        self.stays.is_empty() && self.beside.is_empty() && self.changes.values().all(Vec::is_empty)
    }

    /// The paths that others changed after the work had.
    pub fn met(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.since.keys()
    }

    /// The paths that may have been changed by the work or by others, or of whose change no content is kept; and why.
    pub fn unsure(&self) -> impl Iterator<Item = (&Vec<u8>, &String)> {
        let stays = self.stays.iter().filter_map(|(path, reason)| match reason {
            StayReason::Shared(why) | StayReason::Part(why) => Some((path, why)),
            StayReason::Theirs(_) => None,
        });
        stays.chain(self.unkept.iter().filter(|(path, _)| !self.stays.contains_key(*path)))
    }

    /// What is known to have changed at a path, oldest first.
    pub fn pairs(&self, path: &[u8]) -> &[LookPair] {
        self.changes.get(path).map_or(&[], Vec::as_slice)
    }

    /// The paths of which it is known that the work changed them, and that do not stay.
    pub fn known(&self) -> BTreeSet<Vec<u8>> {
        self.changes.keys().filter(|path| !self.stays.contains_key(*path)).cloned().collect()
    }

    /// Whether a path may have been changed by others, too.
    pub fn is_of_several(&self, path: &[u8]) -> bool {
        self.since.contains_key(path) || self.stays.contains_key(path)
    }

    /// The paths that changed, those that stay too.
    pub fn paths(&self) -> BTreeSet<Vec<u8>> {
        self.changes.keys().chain(self.stays.keys()).chain(self.beside.keys()).cloned().collect()
    }
}

impl Own {
    /// Paths that the work made of what it removed elsewhere, and where that was: to people it is a rename.
    pub(super) fn moved(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let content = |state: &Option<DiffState>| match state {
            // All empty files are alike: that one is gone and another is there is no rename.
            Some(DiffState::File { hash, size, .. }) if *size > 0 => Some(*hash),
            _ => None,
        };
        let ends = |pairs: &Vec<LookPair>| Some((pairs.first()?.0.clone(), pairs.last()?.1.clone()));
        let mut removed = BTreeMap::new();
        for (path, pairs) in &self.changes {
            if let Some((before, None)) = ends(pairs)
                && let Some(hash) = content(&before)
            {
                removed.entry(hash).or_insert_with(|| path.clone());
            }
        }
        let mut moved = BTreeMap::new();
        for (path, pairs) in &self.changes {
            if let Some((None, after)) = ends(pairs)
                && let Some(from) = content(&after).and_then(|hash| removed.get(&hash))
            {
                moved.insert(path.clone(), from.clone());
            }
        }
        moved
    }
}
