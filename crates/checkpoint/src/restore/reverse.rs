//! Undoing only what one piece of work did: each of its changes is merged out of the current tree, newest first.
//!
//! A change is a pair: what stood at a path before, and what the work left there. A path that is as the work left it gets what stood there
//! before. Text that others changed since is merged: the base is what the work left, one side what stands there now, the other what
//! stood there before. What cannot be merged is a conflict, and never becomes markers in a file.

mod directories;
mod merge;
mod path_reversal;
mod path_state;
mod renames;
mod replay;
#[cfg(test)]
mod tests;
mod work_changes;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::slice::from_ref;

use ic_base::Result;
use ic_ledger::events::Hash;

use crate::diff::{DiffState, Difference, Finder};
use crate::objects::Objects;
use crate::restore::plan::PlannedDatabase;
use crate::rootfs::RootDir;

pub use merge::{MOST_MERGED, has_change, merged};
use path_reversal::{Backwards, LineConflict, PathReversal, SAME_LINES};
use path_state::is_same;
pub use replay::{ChangeOwner, LineDecision, Past, ReplayedPath, without_returns};
use work_changes::StayReason;
pub use work_changes::{LookPair, Own};

/// Why a path stays, or is asked about, that is as the work left it though others changed it in between.
const RETURNED: &str = "others made it so again since, or brought it back";

/// What a path is, and the texts that were merged for that and that no checkpoint holds.
type StateWithTexts = (Option<DiffState>, Vec<Vec<u8>>);

/// What is to be done to undo a piece of work.
#[derive(Debug, Default)]
pub struct Reversed {
    /// How the current tree (`before`) differs from what it is to become (`after`).
    pub differences: Vec<Difference>,
    /// Paths that cannot be merged, and why. Their differences lead to what stood there before the work; where only lines conflict, to the
    /// file without the work, in which these lines are as they were before it.
    pub conflicts: Vec<(Vec<u8>, String)>,
    /// Of those, the paths that are as before the work already: what others did there is gone.
    pub as_before: HashSet<Vec<u8>>,
    /// Of those where only lines conflict, what the path is without the rest of the work while these lines stay.
    pub without_lines: BTreeMap<Vec<u8>, DiffState>,
    /// Paths that stay as they are, and why: nothing of the work is there, or what others need.
    pub left: Vec<(Vec<u8>, String)>,
    /// Paths that stay as they are though something of the work is there, and why.
    pub parts: Vec<(Vec<u8>, String)>,
    /// Merged texts, which no checkpoint holds yet.
    pub texts: Vec<Vec<u8>>,
}

/// The current tree, exactly and in the form that a checkpoint would have.
#[derive(Clone, Copy)]
pub struct Now<'n> {
    /// The directory of the tree, for texts that no checkpoint holds.
    pub root: &'n RootDir,
    /// The exact tree: all that a restore may change, databases byte by byte.
    pub exact: &'n Hash,
    /// As a checkpoint of it would have it: of an SQLite database, what is in its log is in its copy.
    pub usual: &'n Hash,
    /// Databases with what stands beside them.
    pub databases: &'n [PlannedDatabase],
}

/// What undoes a piece of work in a tree. Errors: `corrupt` if an object cannot be read.
pub fn reverse<'o>(objects: &'o Objects, now: Now<'o>, own: &'o Own) -> Result<Reversed> {
    let backwards = Backwards { objects, root: Some(now.root), own, side: None };
    let renamed = own.new_names(backwards, now.usual)?;
    let mut old_names: HashMap<Vec<u8>, Vec<Vec<u8>>> = HashMap::new();
    for (path, names) in &renamed {
        if let Some(name) = names.last() {
            old_names.entry(name.clone()).or_default().push(path.clone());
        }
    }
    let mut work = Work {
        objects,
        now,
        finder: Finder::new(objects, now.exact)?,
        usual: Finder::new(objects, now.usual)?,
        moved: own.moved(),
        renamed,
        old_names,
        backwards,
        wanted: BTreeMap::new(),
        reversed: Reversed::default(),
    };
    let mut changes = own.changes.iter().filter(|(path, _)| !own.stays.contains_key(*path)).peekable();
    // Where nothing can be undone, it is for a person to say whether the work counts as undone.
    let is_nothing = changes.peek().is_none();
    let Reversed { conflicts, left, parts, .. } = &mut work.reversed;
    for (path, stay) in &own.stays {
        let (stays, why) = match stay {
            StayReason::Shared(why) => (&mut *conflicts, why),
            StayReason::Part(why) | StayReason::Theirs(why) if is_nothing => (&mut *conflicts, why),
            StayReason::Part(why) => (&mut *parts, why),
            StayReason::Theirs(why) => (&mut *left, why),
        };
        stays.push((path.clone(), why.clone()));
    }
    // Paths that the work never changed need no decision: they are only named.
    left.extend(own.noted().map(|(path, why)| (path.clone(), why.clone())));
    for (path, pairs) in changes {
        work.step_back(path, pairs)?;
    }
    work.hold_new_names();
    // They were made by work that is undone by now, and stood only for what others had in them.
    for path in &own.of_undone {
        let now = work.finder.find(path)?;
        // This only proposes it: `keep_directories` keeps those that hold anything of others.
        if matches!(now, Some(DiffState::Directory { .. })) && !work.wanted.contains_key(path) {
            work.wanted.insert(path.clone(), (now, None));
        }
    }
    // First the directories: one that stays can hold what comes back.
    work.keep_directories()?;
    work.require_parents()?;
    Ok(work.done())
}

struct Work<'o> {
    objects: &'o Objects,
    now: Now<'o>,
    finder: Finder<'o>,
    usual: Finder<'o>,
    backwards: Backwards<'o>,
    moved: BTreeMap<Vec<u8>, Vec<u8>>,
    /// By path, the names that others gave since to what the work left there, the newest last.
    renamed: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// By its newest name, the paths at which the work left a file.
    old_names: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// What a path is and what it is to become.
    wanted: BTreeMap<Vec<u8>, LookPair>,
    reversed: Reversed,
}

impl Work<'_> {
    /// A database and the files beside it are one: who wrote into its log since changed it, and it comes back without one.
    fn step_back_database(&mut self, path: &[u8], pairs: &[LookPair], one: &PlannedDatabase) -> Result<()> {
        let (now, seen) = (self.finder.find(path)?, self.usual.find(path)?);
        // A database is never merged: from the newest change on, each must meet what the work left.
        let mut to = seen.clone();
        for (before, after) in pairs.iter().rev() {
            if is_same(to.as_ref(), after.as_ref()) {
                to.clone_from(before);
            } else if !is_same(to.as_ref(), before.as_ref()) {
                to = pairs.first().and_then(|(before, _)| before.clone());
                self.reversed.conflicts.push((path.to_vec(), "others wrote into the database since".to_owned()));
                break;
            }
        }
        if is_same(to.as_ref(), seen.as_ref()) {
            return Ok(());
        }
        self.wanted.insert(path.to_vec(), (now, to));
        for side in &one.sides {
            let stands = self.finder.find(&side.0)?;
            self.wanted.insert(side.0.clone(), (stands, None));
        }
        Ok(())
    }

    fn step_back(&mut self, path: &[u8], pairs: &[LookPair]) -> Result<()> {
        let databases = self.now.databases;
        if let Some(one) = databases.iter().find(|one| one.path.0 == path) {
            return self.step_back_database(path, pairs, one);
        }
        // What stands beside a database goes where the database goes.
        if databases.iter().any(|one| one.sides.iter().any(|side| side.0 == path)) {
            return Ok(());
        }
        let now = self.finder.find(path)?;
        let own = self.backwards.own;
        if let Some(name) = self.name_by_now(path)? {
            let paths = self.paths_of(&name)?;
            // The work changed one file under several names. All of that is undone once, at the newest name.
            let is_first = paths.first().is_some_and(|first| first == path);
            let pairs: Vec<LookPair> = paths.iter().flat_map(|path| own.pairs(path)).cloned().collect();
            return if is_first { self.step_back(&name, &pairs) } else { Ok(()) };
        }
        let to = match self.backwards.back(path, pairs, now.as_ref())? {
            PathReversal::To { state, texts, again } => {
                let is_as_it_was = is_same(now.as_ref(), state.as_ref());
                if let Some(why) = own.clashes.get(path).filter(|_| !is_as_it_was) {
                    return self.conflict(path, pairs, now, why.clone());
                }
                let without = if is_as_it_was { self.without_returned(path, now.as_ref())? } else { None };
                let is_by_persons = own.by_persons.contains(path) && !own.is_of_nobody(path);
                if is_as_it_was && (again || without.is_some()) {
                    let Reversed { conflicts, parts, left, .. } = &mut self.reversed;
                    let (list, why) = match (is_by_persons, &without) {
                        // Whether they wrote it anew, or git brought it back with what they wrote, is not known.
                        (true, Some(_)) => (conflicts, RETURNED),
                        (true, None) => (parts, RETURNED),
                        (false, _) if own.is_of_nobody(path) => (left, "it is the same without this work"),
                        (false, _) => (left, "others made it so again since"),
                    };
                    list.push((path.to_vec(), why.to_owned()));
                } else if let (true, None, Some(name)) = (is_as_it_was, &state, self.last_name(path)) {
                    let name = String::from_utf8_lossy(name);
                    let why = format!("others renamed it to {name} since, which is not changed");
                    self.reversed.parts.push((path.to_vec(), why));
                }
                let (state, texts) = without.filter(|_| is_by_persons).unwrap_or((state, texts));
                self.reversed.texts.extend(texts);
                state
            }
            PathReversal::Stays(why) => {
                self.reversed.parts.push((path.to_vec(), why));
                return Ok(());
            }
            PathReversal::Conflict(why) => return self.conflict(path, pairs, now, why),
        };
        self.wanted.insert(path.to_vec(), (now, to));
        Ok(())
    }

    /// The name that others gave to a file of the work: it is the same file, and the work's changes go out of it there.
    fn name_by_now(&mut self, path: &[u8]) -> Result<Option<Vec<u8>>> {
        let own = self.backwards.own;
        // A file that the work made or removed is not one that stood under another name.
        let stood = own.pairs(path).iter().all(|(before, after)| before.is_some() && after.is_some());
        let is_one = |name: &&Vec<u8>| stood && !own.changes.contains_key(*name) && !own.stays.contains_key(path);
        let Some(name) = self.last_name(path).filter(is_one).cloned() else { return Ok(None) };
        // If something has the old name again, the change is taken out of that.
        Ok(self.finder.find(path)?.is_none().then_some(name))
    }

    fn last_name(&self, path: &[u8]) -> Option<&Vec<u8>> {
        self.renamed.get(path).and_then(|names| names.last())
    }

    /// The paths at which the work changed the file that has a name by now, oldest first: others renamed it in between.
    fn paths_of(&mut self, name: &Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let mut paths = Vec::new();
        for path in self.old_names.get(name).cloned().unwrap_or_default() {
            if self.name_by_now(&path)?.as_ref() == Some(name) {
                paths.push(path);
            }
        }
        // The more names it had since, the older.
        paths.sort_by_key(|path| std::cmp::Reverse(self.renamed.get(path).map_or(0, Vec::len)));
        Ok(paths)
    }

    /// What a path is without what the work is known to have changed there, and the texts merged for that. `None`: others did not make it
    /// again.
    fn without_returned(&self, path: &[u8], now: Option<&DiffState>) -> Result<Option<StateWithTexts>> {
        let Some(pairs) = self.backwards.own.replayed.get(path) else { return Ok(None) };
        // The changes are taken out as if others had done nothing. If that would change the path, others made it so again.
        let alone = Own::default();
        Ok(match (Backwards { own: &alone, ..self.backwards }).back(path, pairs, now)? {
            PathReversal::To { state, texts, .. } if !is_same(now, state.as_ref()) => Some((state, texts)),
            _ => None,
        })
    }

    /// A conflict, unless others changed what the work only gave another name: then both stay.
    fn conflict(&mut self, path: &[u8], pairs: &[LookPair], now: Option<DiffState>, mut why: String) -> Result<()> {
        if let Some(name) = self.last_name(path).filter(|_| now.is_none()) {
            why = format!("others renamed it to {} since", String::from_utf8_lossy(name));
        }
        if let Some(from) = self.moved.get(path) {
            let from = String::from_utf8_lossy(from);
            let why = format!("it was {from}, which is restored; others changed it since, so both are kept");
            self.reversed.parts.push((path.to_vec(), why));
            return Ok(());
        }
        if let Some(lines) = self.line_conflict(path, pairs, now.as_ref())? {
            self.conflict_of_lines(path, now, lines, why);
            return Ok(());
        }
        self.reversed.conflicts.push((path.to_vec(), why));
        let own = self.backwards.own;
        let before_clash = own.before_clash.get(path).cloned();
        if let Some(Some(DiffState::File { hash, .. })) = &before_clash {
            self.reversed.texts.extend(own.texts.get(hash).cloned());
        }
        let first = || pairs.first().and_then(|(before, _)| before.clone());
        self.wanted.insert(path.to_vec(), (now, before_clash.unwrap_or_else(first)));
        Ok(())
    }

    /// What becomes of a path in which only lines conflict; `None`: something else does.
    fn line_conflict(&self, path: &[u8], pairs: &[LookPair], now: Option<&DiffState>) -> Result<Option<LineConflict>> {
        let own = self.backwards.own;
        match own.ways.get(path).map(Vec::as_slice) {
            Some([taken, left]) => self.backwards.lines(path, [from_ref(taken), from_ref(left)], now),
            // Which lines clash in its history, a merge with the current file alone does not tell: the file stays whole, or none of it.
            _ if own.clashes.contains_key(path) => {
                let found = self.backwards.lines(path, [pairs, pairs], now)?;
                Ok(found.map(|found| LineConflict { left: None, is_open: true, lines: String::new(), ..found }))
            }
            _ => self.backwards.lines(path, [pairs, pairs], now),
        }
    }

    /// What the work renamed while what others did to it is in conflict has their lines under its new name: it is decided with the old one.
    fn hold_new_names(&mut self) {
        let conflicts = self.reversed.conflicts.iter().map(|(path, _)| path.as_slice());
        for (path, name) in self.backwards.own.names_of_work(self.backwards, conflicts) {
            if matches!(self.wanted.get(&name), Some((Some(_), None))) {
                let why = format!("it was {}, which others changed", String::from_utf8_lossy(&path));
                self.reversed.conflicts.push((name, why));
            }
        }
    }

    fn conflict_of_lines(&mut self, path: &[u8], now: Option<DiffState>, found: LineConflict, why: String) {
        let LineConflict { taken, left, is_open, lines, texts } = found;
        self.reversed.texts.extend(texts);
        if is_open {
            let why = match lines.as_str() {
                "" => why,
                _ if why == SAME_LINES => format!("{why}: {lines}"),
                _ => format!("{why}; {SAME_LINES}: {lines}"),
            };
            self.reversed.conflicts.push((path.to_vec(), why));
            self.reversed.without_lines.extend(left.map(|left| (path.to_vec(), left)));
        }
        self.wanted.insert(path.to_vec(), (now, taken));
    }

    fn done(self) -> Reversed {
        let (as_before, changes): (Vec<_>, Vec<_>) =
            self.wanted.into_iter().partition(|(_, (now, to))| is_same(now.as_ref(), to.as_ref()));
        let differences = changes.into_iter().map(|(path, (before, after))| Difference { path, before, after });
        // A path is in the way once, for what was found first.
        let (mut seen, mut conflicts) = (HashSet::new(), self.reversed.conflicts);
        conflicts.retain(|(path, _)| seen.insert(path.clone()));
        let as_before = as_before.into_iter().map(|(path, _)| path).filter(|path| seen.contains(path)).collect();
        Reversed { differences: differences.collect(), conflicts, as_before, ..self.reversed }
    }
}
