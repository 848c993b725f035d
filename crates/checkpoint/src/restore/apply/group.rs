//! Databases that change together with the files beside them.
//!
//! A program that opens a database during the restore, or after a crash in it, must find one state or the other, or no database. So the
//! database is removed first and written last: while it is away, the files beside it are only files.
//! The other way round, a database would lack its log for a moment, or meet one of another state, and SQLite would destroy it.

use ic_base::{Diagnosis, Result};
use ic_ledger::faults;

use super::super::database;
use super::super::plan::{PlannedDatabase, RestoreNode, RestorePlan, RestoreStep};
use super::comparison::looks_of;
use super::{Applier, changed};
use crate::rootfs::EntryState;

/// A database and the steps that change it and what lies beside it.
pub(super) struct Group<'p> {
    database: &'p PlannedDatabase,
    /// The database's own step first; each with its place in the plan.
    steps: Vec<(usize, &'p RestoreStep)>,
}

impl<'p> Group<'p> {
    pub(super) fn of(database: &'p PlannedDatabase, plan: &'p RestorePlan) -> Self {
        let own = |step: &RestoreStep| step.path == database.path;
        let mut steps: Vec<(usize, &RestoreStep)> = plan
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| own(step) || database.sides.contains(&step.path))
            .collect();
        steps.sort_by_key(|(at, step)| (!own(step), *at));
        Self { database, steps }
    }

    pub(super) fn steps(&self) -> &[(usize, &'p RestoreStep)] {
        &self.steps
    }

    /// Records what became of the group: one that fails, fails as a whole.
    pub(super) fn note(&self, result: Result<()>, failed: &mut [Option<Diagnosis>]) {
        let Err(error) = result else { return };
        for (at, _) in &self.steps {
            failed[*at].get_or_insert_with(|| Diagnosis::new(error.code(), error.message()));
        }
    }
}

impl Applier<'_> {
    /// Removes the files of the group that the plan replaces or removes, the database first.
    ///
    /// A path that is gone is as good as removed: it was saved, and a restore that was killed here goes this way again. Errors:
    /// `file_conflict` for a path that is neither as the plan found it nor as it leaves it, `busy` for a database in use: nothing is
    /// removed.
    pub(super) fn clear(&self, group: &Group<'_>) -> Result<()> {
        let path = &group.database.path.0;
        // First: what a program uses is not as it was looked at, which would be said of it then.
        drop(database::require_unused(self.root, path)?);
        let mut goes = Vec::new();
        for (_, step) in group.steps() {
            let found = self.root.look_at(&step.path.0)?;
            let path = &step.path.0;
            // What only has to look otherwise is not removed.
            let is_left = step.after.as_ref().is_some_and(|node| self.root.has_plainly(path, &found, node));
            let is_found = step.before.as_ref().is_some_and(|node| self.root.has(path, &found, node));
            match &found {
                EntryState::Absent | EntryState::Directory(_) => {}
                _ if is_left => {}
                _ if is_found => goes.push((step, found)),
                _ => return Err(changed(&step.path.0)),
            }
        }
        // A log that came since the plan belongs to the state that is about to go.
        for side in database::sides_of(path) {
            let is_known = group.database.sides.iter().any(|known| known.0 == side);
            if !is_known && !matches!(self.root.look_at(&side)?, EntryState::Absent) {
                return Err(database::beside_a_stranger(&side));
            }
        }
        // Once more: to close a file, as comparing it does, ended the locks on it.
        let _unused = database::require_unused(self.root, path)?;
        for (step, found) in &goes {
            faults::step("-- removing a file of a database");
            self.root.remove_file(&step.path.0, &|now| now == found)?;
        }
        // A crash of the machine may keep a later change and lose an earlier one.
        if goes.is_empty() { Ok(()) } else { self.root.sync() }
    }

    /// Makes what the group's plan leaves, the database last. Errors: `file_conflict` where something else stands by now.
    pub(super) fn fill(&self, group: &Group<'_>) -> Result<()> {
        let mut is_any = false;
        // The list is filled backwards, because the database is its first entry.
        for (_, step) in group.steps().iter().rev() {
            let Some(after) = &step.after else { continue };
            if matches!(after, RestoreNode::Directory { .. }) {
                continue;
            }
            let found = self.root.look_at(&step.path.0)?;
            if self.root.has_plainly(&step.path.0, &found, after) {
                if let Some(looks) = looks_of(after).filter(|_| !self.root.is_dressed(&step.path.0, after)) {
                    self.root.set_mode(&step.path.0, looks, &|now| *now == found)?;
                }
                continue;
            }
            if !matches!(found, EntryState::Absent) {
                return Err(changed(&step.path.0));
            }
            // After a loss of power, the database must not be there without its log.
            if is_any && step.path == group.database.path {
                self.root.sync()?;
            }
            faults::step("-- writing a file of a database");
            self.place(step, &found)?;
            is_any = true;
        }
        Ok(())
    }
}
