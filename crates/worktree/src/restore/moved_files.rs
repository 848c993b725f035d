//! Files that came into the tree under a new name from a place that no checkpoint has: an ignored name, that of a secret, or one outside of
//! the project.
//!
//! The target has nothing at the new name, so a restore would delete it, and no checkpoint has what it would need to make the old name
//! again. Such a file stays, and is named.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, UNIX_EPOCH};

use ic_base::Result;
use ic_checkpoint::diff::{DiffState, Difference, Finder};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::{Limits, RestorePlan};
use ic_checkpoint::restore::reverse::LineDecision;
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;

use super::super::workspace::Workspace;
use super::request::RestoreRequest;
use super::selective_undo::Rest;

/// Why such a file stays.
const MOVED_HERE: &str = "it was moved here from a name that no checkpoint has, such as an ignored one: it stays";

/// File systems write the time of a birth by a clock that lags behind that of the program.
const LAG: Duration = Duration::from_millis(20);

impl Workspace<'_> {
    /// Keeps a restore from deleting files that are older than the target and that the target has nowhere. Returns their paths; none where
    /// the caller forces files.
    pub(super) fn keep_moved(
        &self,
        limits: &mut Limits,
        target: &CheckpointRecord,
        differences: &[Difference],
        request: &RestoreRequest<'_>,
    ) -> Result<Vec<Vec<u8>>> {
        // What is there is in the safety checkpoint, so a person may decide that it goes.
        if request.force.files {
            return Ok(Vec::new());
        }
        // A file that comes back under its old name was moved by the work: its new name goes as ever.
        let changes = differences.iter().filter(|one| content(one.before.as_ref()) != content(one.after.as_ref()));
        let comes: HashSet<Hash> = changes.filter_map(|one| content(one.after.as_ref())).collect();
        let goes = || {
            let deleted = differences.iter().filter(|one| one.after.is_none() && limits.covers(&one.path));
            deleted.filter_map(|one| content(one.before.as_ref()).map(|hash| (&one.path, hash)))
        };
        let gone: HashSet<Hash> = goes().map(|(_, hash)| hash).collect();
        // A file of the target may have been moved and then changed in place: its content tells nothing about where it was.
        let may_be_edited = comes.iter().any(|hash| !gone.contains(hash));
        let is_taken = |path: &[u8]| request.decision(path) == Some(LineDecision::Take);
        let is_moved = |(path, hash): &(&Vec<u8>, Hash)| {
            !comes.contains(hash) && !is_taken(path) && self.is_older(path, target, may_be_edited)
        };
        let mut there = Finder::new(&self.objects, &target.tree)?;
        let mut moved = Vec::new();
        for (path, _) in goes().filter(is_moved) {
            // Below a name that the target left out nothing is deleted anyway: it may have been there.
            if there.find(path)?.is_none() {
                moved.push(path.clone());
            }
        }
        // Kept and not held: a directory that it is in stays, too.
        limits.keep.extend(moved.iter().cloned());
        Ok(moved)
    }

    /// Whether a file was there when the target was taken, under whatever name. A file that is written anew is another one.
    fn is_older(&self, path: &[u8], target: &CheckpointRecord, is_unchanged: bool) -> bool {
        let Ok(file) = self.root.join(path_from_bytes(path)).symlink_metadata() else { return false };
        let Ok(taken) = u64::try_from(target.created_at.millis()) else { return false };
        let before = UNIX_EPOCH + Duration::from_millis(taken);
        let is_before = |time: std::io::Result<std::time::SystemTime>| time.is_ok_and(|time| time + LAG < before);
        // A second name of a file of the target is as old as that one. Not every file system knows the time of a birth.
        let is_old = file.is_file() && file.nlink() == 1 && is_before(file.created());
        is_old && (!is_unchanged || is_before(file.modified()))
    }
}

/// Names the files that stay.
pub(super) fn name_moved(moved: Vec<Vec<u8>>, plan: &mut RestorePlan, rest: &mut Rest) {
    for path in moved.into_iter().map(PathText) {
        // Also where the directory that it keeps is named: that says nothing about the file.
        plan.skipped.push((path.clone(), MOVED_HERE.to_owned()));
        plan.left_changed.push(path.clone());
        if rest.is_without {
            rest.parts.push(path);
        }
    }
}

/// The content of a file that has any: an empty file is like any other, and nothing of it is lost.
fn content(state: Option<&DiffState>) -> Option<Hash> {
    match state {
        Some(DiffState::File { hash, size: 1.., .. }) => Some(*hash),
        _ => None,
    }
}
