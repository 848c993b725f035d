//! Names that others gave since to files that a piece of work left: to the work they are gone, and nothing of them is undone there.
//!
//! What goes at one path and comes at another with the same content is a rename, and so is, of a file of the work, what comes with at least
//! half of its lines: others changed it before the next look.

use std::collections::{HashMap, HashSet};

use ic_base::Result;
use ic_ledger::events::Hash;

use super::merge::MOST_MERGED;
use super::path_reversal::Backwards;
use super::path_state::{Content, content};
use super::work_changes::{LookPair, Own};
use crate::diff::{self, DiffState};
use crate::objects::Objects;

impl Own {
    /// Adds the new names of files of the work, as two looks at the tree show them. `is_of_others`: whether a change of a path between the two
    /// is not of the work. Errors: `corrupt` if an object cannot be read.
    pub fn add_renames(
        &mut self,
        objects: &Objects,
        (from, to): (&Hash, &Hash),
        is_of_others: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let backwards = Backwards { objects, root: None, own: &*self, side: None };
        let renames = renames(backwards, (from, to), is_of_others, (Vec::new(), &self.files_of_work()))?;
        // Known names come first: what was renamed once more gets one more name. New ones are added after that.
        follow(self.renamed.values_mut(), &renames);
        let own = renames.into_iter().filter(|(path, _)| self.changes.contains_key(path));
        let own: Vec<_> = own.map(|(path, new)| (path, vec![new])).collect();
        self.renamed.extend(own);
        Ok(())
    }

    /// Says which look at the tree was the last: what was renamed since is seen when the work is undone.
    pub fn seen_last(&mut self, tree: Hash) {
        self.last_look = Some(tree);
    }

    /// The names that others gave to what the work left, by its paths, as far as looks show them.
    pub fn renamed(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.renamed.iter().filter_map(|(path, names)| Some((path, names.last()?)))
    }

    /// By path, the names that others gave to what the work left there, the newest last. `now`: the current tree.
    pub(super) fn new_names(&self, backwards: Backwards<'_>, now: &Hash) -> Result<HashMap<Vec<u8>, Vec<Vec<u8>>>> {
        let mut names: HashMap<_, _> = self.renamed.clone().into_iter().collect();
        let Some(last) = &self.last_look else { return Ok(names) };
        let own = (self.gone_unseen(), &self.files_of_work());
        let renames = renames(backwards, (last, now), |_| true, own)?;
        follow(names.values_mut(), &renames);
        for (path, new) in renames {
            names.entry(path).or_insert_with(|| vec![new]);
        }
        Ok(names)
    }

    /// Says that a file of the work came and went between two looks, so that neither shows it.
    pub fn came_and_went(&mut self, path: Vec<u8>) {
        self.unseen.insert(path);
    }

    /// The files that no look shows, as the work left them.
    fn gone_unseen(&self) -> Vec<Moved> {
        let file = |path: &Vec<u8>| match self.pairs(path).last() {
            Some((_, Some(file @ DiffState::File { size: 1.., .. }))) => {
                Some(Moved { path: path.clone(), content: content(file) })
            }
            _ => None,
        };
        self.unseen.iter().filter_map(file).collect()
    }

    /// The names that the work itself gave to what it removed last at these paths: what it is, by what it was.
    pub(super) fn names_of_work<'p>(
        &self,
        backwards: Backwards<'_>,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> HashMap<Vec<u8>, Vec<u8>> {
        let file = |path: &[u8], state: &Option<DiffState>| match state {
            Some(file @ DiffState::File { size: 1.., .. }) => {
                Some(Moved { path: path.to_vec(), content: content(file) })
            }
            _ => None,
        };
        let removed = |path: &'p [u8]| {
            let last = self.pairs(path).last().filter(|(_, after)| after.is_none());
            last.and_then(|(before, _)| file(path, before))
        };
        let made = |(path, pairs): (&Vec<u8>, &Vec<LookPair>)| {
            let first = pairs.first().filter(|(before, _)| before.is_none());
            first.and_then(|(_, after)| file(path, after))
        };
        let gone: Vec<Moved> = paths.filter_map(removed).collect();
        let come: Vec<Moved> =
            if gone.is_empty() { Vec::new() } else { self.changes.iter().filter_map(made).collect() };
        new_names(backwards, &gone, &come, |_| true)
    }

    /// The paths of the work, and the names that its files have by now.
    fn files_of_work(&self) -> HashSet<Vec<u8>> {
        let names = self.renamed().map(|(_, name)| name);
        self.changes.keys().chain(names).cloned().collect()
    }
}

/// What has another name again.
fn follow<'n>(all: impl Iterator<Item = &'n mut Vec<Vec<u8>>>, renames: &HashMap<Vec<u8>, Vec<u8>>) {
    for names in all {
        if let Some(new) = names.last().and_then(|name| renames.get(name)) {
            names.push(new.clone());
        }
    }
}

/// A file that goes, or one that comes.
struct Moved {
    path: Vec<u8>,
    content: Content,
}

/// The files that have another name in the later of two trees: what it is, by what it was. `gone` are files that may have a new name though
/// neither tree has the old one; of `own` files, also those that were changed count.
fn renames(
    backwards: Backwards<'_>,
    (from, to): (&Hash, &Hash),
    counts: impl Fn(&[u8]) -> bool,
    (mut gone, own): (Vec<Moved>, &HashSet<Vec<u8>>),
) -> Result<HashMap<Vec<u8>, Vec<u8>>> {
    let mut come = Vec::new();
    diff::diff(backwards.objects, Some(from), Some(to), &mut |difference| {
        let (file, all) = match (difference.before, difference.after) {
            (Some(file), None) => (file, &mut gone),
            (None, Some(file)) => (file, &mut come),
            _ => return Ok(()),
        };
        // An empty file is like any other.
        if let DiffState::File { size: 1.., .. } = file
            && counts(&difference.path)
        {
            all.push(Moved { path: difference.path, content: content(&file) });
        }
        Ok(())
    })?;
    Ok(new_names(backwards, &gone, &come, |path| own.contains(path)))
}

/// The new names of files that go, of those that `may_be_changed` also where only half of the lines came with it.
fn new_names(
    backwards: Backwards<'_>,
    gone: &[Moved],
    come: &[Moved],
    may_be_changed: impl Fn(&Vec<u8>) -> bool,
) -> HashMap<Vec<u8>, Vec<u8>> {
    let mut names = same(gone, come);
    let taken: HashSet<&Vec<u8>> = names.values().collect();
    let come: Vec<&Moved> = come.iter().filter(|one| !taken.contains(&one.path)).collect();
    let is_changed = |one: &&Moved| may_be_changed(&one.path) && !names.contains_key(&one.path);
    let changed: Vec<&Moved> = gone.iter().filter(is_changed).collect();
    names.extend(alike(backwards, &changed, come));
    names
}

/// The files that came with the content of one that went, by that. Of more with the same content, one with the same last name first.
fn same(gone: &[Moved], come: &[Moved]) -> HashMap<Vec<u8>, Vec<u8>> {
    let mut free: HashMap<Hash, Vec<&Moved>> = HashMap::new();
    for one in come {
        free.entry(one.content.hash).or_default().push(one);
    }
    let mut names = HashMap::new();
    for has_its_name in [true, false] {
        for one in gone {
            let Some(free) = free.get_mut(&one.content.hash).filter(|_| !names.contains_key(&one.path)) else {
                continue;
            };
            if let Some(at) = free.iter().position(|new| !has_its_name || last_name(new) == last_name(one)) {
                names.insert(one.path.clone(), free.remove(at).path.clone());
            }
        }
    }
    names
}

fn last_name(file: &Moved) -> Option<&[u8]> {
    file.path.rsplit(|byte| *byte == b'/').next()
}

/// The files that came with at least half of the lines of one that went, by that.
fn alike(backwards: Backwards<'_>, gone: &[&Moved], come: Vec<&Moved>) -> Vec<(Vec<u8>, Vec<u8>)> {
    /// Of more files on one side, none is compared: each is read, and compared with each.
    const MOST: usize = 100;
    /// In bytes, of all comparisons: about a second.
    const MOST_COMPARED: u64 = 200 << 20;
    let size = |all: &[&Moved]| all.iter().map(|one| one.content.size.min(MOST_MERGED)).sum::<u64>();
    let compared = size(gone) * come.len() as u64 + size(&come) * gone.len() as u64;
    if compared == 0 || gone.len() > MOST || come.len() > MOST || compared > MOST_COMPARED {
        return Vec::new();
    }
    // What cannot be read is like nothing, as what is no text or too large to be merged.
    let text = |one: &Moved| {
        let is_small = one.content.size <= MOST_MERGED;
        is_small.then(|| backwards.text(&one.path, one.content, &[]).ok().flatten()).flatten()
    };
    let mut come: Vec<_> = come.into_iter().filter_map(|one| Some((one, text(one)?))).collect();
    let mut found = Vec::new();
    for one in gone {
        let Some(was) = text(one) else { continue };
        // By their sizes alone, most have less than half in common.
        let half = |is: &String| was.len().max(is.len()).div_ceil(2);
        let sizes = come.iter().enumerate().filter(|(_, (_, is))| was.len().min(is.len()) >= half(is));
        let likeness = sizes.map(|(at, (_, is))| (in_common(&was, is), half(is), at));
        if let Some((_, _, at)) = likeness.filter(|(common, half, _)| common >= half).max() {
            found.push((one.path.clone(), come.swap_remove(at).0.path.clone()));
        }
    }
    found
}

/// How many bytes of lines two texts have in common, in whichever order.
fn in_common(one: &str, other: &str) -> usize {
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for line in one.split_inclusive('\n') {
        *lines.entry(line).or_default() += 1;
    }
    let mut common = 0;
    for line in other.split_inclusive('\n') {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            common += line.len();
        }
    }
    common
}
