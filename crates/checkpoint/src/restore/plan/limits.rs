//! What a restore may change: the paths it is asked for, and those that it is kept from.

use std::collections::{BTreeMap, BTreeSet};

use super::PlannedDatabase;
use crate::diff::{DiffState, Difference};

/// What the restore is limited to.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Only these paths, and what is below them; empty: everything.
    pub paths: Vec<Vec<u8>>,
    /// Only exactly these paths and the directories they need; `None`: everything.
    pub only: Option<BTreeSet<Vec<u8>>>,
    /// These paths, and what is below them, do not change.
    pub keep: BTreeSet<Vec<u8>>,
    /// Side files of databases that are restored: they change with their database. A side file that the target left out counts as
    /// absent there, because its content was in the copy of the database.
    pub sides: BTreeSet<Vec<u8>>,
    /// These paths stay, and why.
    pub held: BTreeMap<Vec<u8>, String>,
}

impl Limits {
    /// Whether what stands at a path may change.
    pub(in crate::restore) fn allow_path(&self, path: &[u8]) -> bool {
        self.allow(&Difference { path: path.to_vec(), before: None, after: None })
    }

    /// Whether nothing is left out.
    pub fn is_everything(&self) -> bool {
        self.paths.is_empty() && self.only.is_none() && self.keep.is_empty()
    }

    /// Keeps databases and what lies beside them together: where one of them is kept, all are.
    pub fn keep_together(&mut self, databases: &mut Vec<PlannedDatabase>) {
        databases.retain(|one| {
            let mut all = one.sides.iter().chain([&one.path]);
            let is_kept = all.any(|path| self.keep.iter().any(|base| is_at_or_below(&path.0, base)));
            if is_kept {
                self.keep.extend(one.sides.iter().chain([&one.path]).map(|path| path.0.clone()));
            }
            !is_kept
        });
    }

    /// Whether a path is none of those that the restore is kept from.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.reaches(path, |base| is_at_or_below(path, base))
    }

    /// What the path is to hold; nothing for a side file that the target left out and that changes with its database.
    pub(super) fn wanted<'s>(&self, path: &[u8], after: Option<&'s DiffState>) -> Option<&'s DiffState> {
        after.filter(|after| after.is_content() || !self.sides.contains(path))
    }

    fn reaches(&self, path: &[u8], fits: impl Fn(&Vec<u8>) -> bool) -> bool {
        // Side files go with their database, even if only the database was named. What is kept stays in any case.
        let is_named = (self.paths.is_empty() || self.paths.iter().any(fits))
            && self.only.as_ref().is_none_or(|only| is_or_holds_one(path, only));
        (is_named || self.sides.contains(path)) && !self.keep.iter().any(|base| is_at_or_below(path, base))
    }

    pub(in crate::restore) fn allow(&self, difference: &Difference) -> bool {
        let path = &difference.path;
        // What is made below a directory needs the directory.
        let makes_directory =
            difference.before.is_none() && matches!(difference.after, Some(DiffState::Directory { .. }));
        let fits = |base: &Vec<u8>| is_at_or_below(path, base) || (makes_directory && is_below(base, path));
        self.reaches(path, fits)
    }
}

/// Whether `path` is `base` or lies below it. Everything lies below the empty path.
pub fn is_at_or_below(path: &[u8], base: &[u8]) -> bool {
    path == base || is_below(path, base)
}

fn is_below(path: &[u8], base: &[u8]) -> bool {
    base.is_empty() || path.strip_prefix(base).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Whether `path` is one of them, or one of them lies below it.
fn is_or_holds_one(path: &[u8], all: &BTreeSet<Vec<u8>>) -> bool {
    // What lies below stands together in their order, at the first that is not less than the path with a slash.
    let first = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
    all.contains(path) || all.range(first..).next().is_some_and(|next| is_below(next, path))
}
