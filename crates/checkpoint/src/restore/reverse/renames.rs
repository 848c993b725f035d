//! Names that others gave since to files that a piece of work left: to the work they are gone, and nothing of them is undone there.

use std::collections::HashMap;

use ic_base::Result;
use ic_ledger::events::Hash;

use super::work_changes::Own;
use crate::diff::{self, DiffState};
use crate::objects::Objects;

impl Own {
    /// Adds the new names of files of the work, as two looks at the tree show them: what goes at one path and comes at another with the
    /// same content is a rename. `is_of_others`: whether a change of a path between the two is not of the work. Errors: `corrupt` if an
    /// object cannot be read.
    pub fn add_renames(
        &mut self,
        objects: &Objects,
        (from, to): (&Hash, &Hash),
        is_of_others: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let renames = renames(objects, from, to, is_of_others)?;
        follow(self.renamed.values_mut(), &renames);
        let own = renames.into_iter().filter(|(path, _)| self.changes.contains_key(path));
        self.renamed.extend(own.collect::<Vec<_>>());
        Ok(())
    }

    /// Says which look at the tree was the last: what was renamed since is seen when the work is undone.
    pub fn seen_last(&mut self, tree: Hash) {
        self.last_look = Some(tree);
    }

    /// By path, the names that others gave to what the work left there. `now`: the current tree.
    pub(super) fn new_names(&self, objects: &Objects, now: &Hash) -> Result<HashMap<Vec<u8>, Vec<u8>>> {
        let mut names: HashMap<_, _> = self.renamed.clone().into_iter().collect();
        let Some(last) = &self.last_look else { return Ok(names) };
        let renames = renames(objects, last, now, |_| true)?;
        follow(names.values_mut(), &renames);
        for (path, new) in renames {
            names.entry(path).or_insert(new);
        }
        Ok(names)
    }
}

/// What has another name again.
fn follow<'n>(names: impl Iterator<Item = &'n mut Vec<u8>>, renames: &HashMap<Vec<u8>, Vec<u8>>) {
    for name in names {
        if let Some(new) = renames.get(name) {
            name.clone_from(new);
        }
    }
}

/// The files that have another name in the later of two trees: what it is, by what it was.
fn renames(
    objects: &Objects,
    from: &Hash,
    to: &Hash,
    counts: impl Fn(&[u8]) -> bool,
) -> Result<HashMap<Vec<u8>, Vec<u8>>> {
    let (mut gone, mut come) = (Vec::new(), HashMap::new());
    diff::diff(objects, Some(from), Some(to), &mut |difference| {
        match (&difference.before, &difference.after) {
            // An empty file is like any other.
            (Some(DiffState::File { hash, size: 1.., .. }), None) if counts(&difference.path) => {
                gone.push((difference.path, *hash));
            }
            (None, Some(DiffState::File { hash, size: 1.., .. })) if counts(&difference.path) => {
                come.insert(*hash, difference.path);
            }
            _ => {}
        }
        Ok(())
    })?;
    let new = |(path, hash): (Vec<u8>, Hash)| come.get(&hash).map(|new: &Vec<u8>| (path, new.clone()));
    Ok(gone.into_iter().filter_map(new).collect())
}
