//! Carrying a plan out. Every write goes through [`RootDir`], every file is looked at just before it is replaced, and one
//! that fails does not stop the rest.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::atomic::AtomicU64;

use ic_base::{Code, Diagnose, Diagnosis, RestoreId, Result};

use super::database::{self, Unused};
use super::plan::{RestoreNode, RestorePlan, RestoreStep};
use super::sparse::Sparse;
use crate::attributes::Attributes;
use crate::manifest::PathText;
use crate::nested_work_trees::{Around, Places};
use crate::objects::{Objects, hash_of};
use crate::rootfs::{EntryState, FileAttributes, MAKE, RootDir, split};

mod comparison;
mod files;
mod group;

use self::comparison::{looks_of, same};
use self::group::Group;

/// What the owner of a directory needs to reach what is in it.
const ENTER: u32 = 0o100;

/// What became of a plan.
#[derive(Debug, Default)]
pub struct ApplyOutcome {
    /// Steps that are done, or were before.
    pub done: u64,
    /// Paths that could not be changed, and why; they are as they were.
    pub failed: Vec<(PathText, String)>,
    /// Attributes that could not be given back, and of what.
    pub not_kept: Vec<(PathText, String)>,
}

/// How far a restore is, to be read from another thread.
#[derive(Debug, Default)]
pub struct ApplyProgress {
    /// Steps that are done.
    pub done: AtomicU64,
}

/// The beginning of the names of a restore's temporary files.
fn temporary_prefix(id: &RestoreId) -> Vec<u8> {
    [crate::names::TEMPORARY, id.as_str().as_bytes(), b"-"].concat()
}

/// Makes every change of the plan that was not made yet.
///
/// A path that is neither as the plan found it nor as it leaves it is left alone and reported, as is one that fails.
pub fn apply(
    objects: &Objects,
    root: &RootDir,
    plan: &RestorePlan,
    id: &RestoreId,
    progress: &ApplyProgress,
) -> ApplyOutcome {
    let groups: Vec<Group<'_>> = plan.databases.iter().map(|database| Group::of(database, plan)).collect();
    let grouped = groups.iter().flat_map(Group::steps).map(|(_, step)| step.path.0.as_slice()).collect();
    let applier = Applier { objects, root, prefix: temporary_prefix(id), grouped };
    // From the top down: what lies in a directory that its owner has closed to himself is not found.
    applier.open_up(plan);
    // A work tree may have been made since the plan.
    let places = Places::of(root.path());
    let mut around = Around::new(&places);
    let mut failed: Vec<Option<Diagnosis>> =
        plan.steps.iter().map(|step| Some(lies_in(&around.find(directory_of(step))?))).collect();
    // Databases are cleared before anything is made: their old logs must be gone on the disk, too, when the new database comes.
    for group in &groups {
        let stays = group.steps().iter().find_map(|(at, _)| failed[*at].as_ref().map(Diagnosis::message));
        let cleared = match stays {
            Some(why) => Err(Diagnosis::new(Code::FileConflict, why)),
            None => applier.clear(group),
        };
        group.note(cleared, &mut failed);
    }
    // Removals from the bottom up; then directories from the top down; then files; then the modes of directories from the bottom
    // up, because a directory without write permission takes no new files.
    pass(plan, &mut failed, true, &|step| applier.remove(step));
    pass(plan, &mut failed, false, &|step| applier.make_directory(step));
    for group in &groups {
        // Only a group that was cleared as a whole is filled: half of it would not be a state of the database.
        if group.steps().iter().all(|(at, _)| failed[*at].is_none()) {
            group.note(applier.fill(group), &mut failed);
        }
    }
    files::write(&applier, plan, &mut failed, progress);
    // What is tied to another path needs that one to be as it should be.
    pass(plan, &mut failed, false, &|step| applier.link(step));
    pass(plan, &mut failed, true, &|step| applier.dress_directory(step));
    // A directory that became a work tree since the plan keeps its mode.
    for (path, mode) in plan.closed.iter().filter(|(path, _)| around.find(&path.0).is_none()) {
        // A failure is ignored: a directory that others removed since needs no mode.
        let _ = applier.set_looks_of_directory(&path.0, (*mode).into());
    }
    let mut outcome = ApplyOutcome::default();
    for (step, failed) in plan.steps.iter().zip(failed) {
        match failed {
            None => outcome.done += 1,
            Some(error) => outcome.failed.push((step.path.clone(), error.message().to_owned())),
        }
    }
    outcome
}

/// The directory that a step changes, or changes a name in.
fn directory_of(step: &RestoreStep) -> &[u8] {
    let is_directory = |node: &Option<RestoreNode>| matches!(node, Some(RestoreNode::Directory { .. }));
    if is_directory(&step.before) || is_directory(&step.after) { &step.path.0 } else { split(&step.path.0).0 }
}

/// Why a path of another work tree stays.
fn lies_in(place: &[u8]) -> Diagnosis {
    let place = String::from_utf8_lossy(place);
    Diagnosis::new(Code::FileConflict, format!("it belongs to the work tree {place}, which is a place of its own"))
}

/// Does some work for each step that did not fail before.
fn pass(plan: &RestorePlan, failed: &mut [Option<Diagnosis>], reverse: bool, act: &dyn Fn(&RestoreStep) -> Result<()>) {
    let mut one = |(step, failed): (&RestoreStep, &mut Option<Diagnosis>)| {
        if failed.is_none() {
            *failed = act(step).err();
        }
    };
    let steps = plan.steps.iter().zip(failed);
    if reverse { steps.rev().for_each(&mut one) } else { steps.for_each(&mut one) }
}

/// Removes the temporary files that a killed restore left beside the paths of its plan.
pub fn sweep(root: &RootDir, plan: &RestorePlan, id: &RestoreId) -> usize {
    let prefix = temporary_prefix(id);
    let mut directories: Vec<&[u8]> = plan.steps.iter().map(|step| split(&step.path.0).0).collect();
    directories.sort_unstable();
    directories.dedup();
    // A directory that is gone holds none.
    directories.into_iter().map(|directory| root.remove_temporary(directory, &prefix).unwrap_or(0)).sum()
}

struct Applier<'a> {
    objects: &'a Objects,
    root: &'a RootDir,
    prefix: Vec<u8>,
    /// Paths of databases that change together with their side files, and of those.
    grouped: BTreeSet<&'a [u8]>,
}

impl Applier<'_> {
    /// Errors: `file_conflict` if what was found is not what the plan expects here.
    fn require_expected(
        &self,
        path: &[u8],
        found: &EntryState,
        before: Option<&RestoreNode>,
        after: &RestoreNode,
    ) -> Result<()> {
        let is_expected = match before {
            // What stood in its place was removed before.
            None | Some(RestoreNode::Directory { .. }) => matches!(found, EntryState::Absent),
            // If `after` is there already, this is reached only if its inode has more names than may change with it.
            Some(before) => self.root.has(path, found, before) || self.root.has_plainly(path, found, after),
        };
        if is_expected { Ok(()) } else { Err(changed(path)) }
    }

    /// Opens the directories that a change is in and that even their owner may not enter. Each gets its own bits back by its step, or at
    /// the end.
    fn open_up(&self, plan: &RestorePlan) {
        // A directory with a step of its own gets its mode by that step, which comes last. Until then it is opened, too.
        let of_step = |step: &RestoreStep| match step.before {
            Some(RestoreNode::Directory { mode, .. }) => Some((step.path.clone(), mode)),
            _ => None,
        };
        let mut closed: Vec<(PathText, u32)> =
            plan.steps.iter().filter_map(of_step).chain(plan.closed.iter().cloned()).collect();
        closed.retain(|(_, mode)| mode & ENTER == 0);
        // In the order of paths a directory comes before those in it, which are reached through it.
        closed.sort();
        for (path, mode) in closed {
            // Where it fails, what is to be done in it says why.
            let _ = self.root.set_mode(&path.0, mode | MAKE, &|now| matches!(now, EntryState::Directory(_)));
        }
    }

    fn remove(&self, step: &RestoreStep) -> Result<()> {
        let path = &step.path.0;
        let Some(before) = &step.before else { return Ok(()) };
        let is_directory = |node: &RestoreNode| matches!(node, RestoreNode::Directory { .. });
        let goes = match &step.after {
            None => true,
            // Files and links are replaced by one rename, which can replace neither a file by a directory nor a directory by a file.
            Some(after) => is_directory(before) != is_directory(after),
        };
        if !goes {
            return Ok(());
        }
        match self.root.look_at(path)? {
            // A restore that was interrupted removed it.
            EntryState::Absent => Ok(()),
            EntryState::Directory(_) if is_directory(before) => self.root.remove_directory(path),
            // A restore that was interrupted has replaced it.
            found if step.after.as_ref().is_some_and(|after| self.root.has(path, &found, after)) => Ok(()),
            found => {
                // Asked before the comparison: a database in use has often changed, and the message shall say that it is in use.
                self.require_alone(path, None)?;
                if !self.root.has(path, &found, before) {
                    return Err(changed(path));
                }
                // Once more: the comparison closed the file, and that ended this process's locks on it.
                let _unused = self.require_alone(path, None)?;
                self.root.remove_file(path, &|now| same(now, &found))
            }
        }
    }

    fn make_directory(&self, step: &RestoreStep) -> Result<()> {
        let makes = matches!(step.after, Some(RestoreNode::Directory { .. }))
            && !matches!(step.before, Some(RestoreNode::Directory { .. }));
        if !makes {
            return Ok(());
        }
        match self.root.look_at(&step.path.0)? {
            // A restore that was interrupted made it.
            EntryState::Directory(_) => Ok(()),
            EntryState::Absent => self.root.make_directory(&step.path.0),
            _ => Err(changed(&step.path.0)),
        }
    }

    fn write(&self, step: &RestoreStep) -> Result<()> {
        let path = &step.path.0;
        let (Some(after), before) = (&step.after, &step.before) else { return Ok(()) };
        let is_done_elsewhere = step.link.is_some() || self.grouped.contains(path.as_slice());
        if matches!(after, RestoreNode::Directory { .. }) || is_done_elsewhere {
            return Ok(());
        }
        let found = self.root.look_at(path)?;
        // Other names of the file are no business of this step: one that has more than it may change gets a file of its own.
        let names = if step.anew { 1 } else { step.names };
        let is_shared = matches!(found, EntryState::File(stat) if stat.names > names);
        let still = |now: &EntryState| same(now, &found);
        if self.root.has_plainly(path, &found, after)
            && !(is_shared && (step.anew || !self.root.is_dressed(path, after)))
        {
            // What an interrupted restore wrote, or could not dress as it should have.
            return match looks_of(after) {
                Some(looks) if !self.root.is_dressed(path, after) => self.root.set_mode(path, looks, &still),
                _ => Ok(()),
            };
        }
        self.require_alone(path, Some(after))?;
        self.require_expected(path, &found, before.as_ref(), after)?;
        // Once more: the comparison closed the file, and closing any handle of a file ends this process's locks on it.
        let _unused = self.require_alone(path, Some(after))?;
        match (before, after) {
            (Some(RestoreNode::File { hash, .. }), RestoreNode::File { hash: same_hash, mode, .. })
                if hash == same_hash && !is_shared =>
            {
                // The content stays, and every name of the file gets these looks: they change in place.
                self.root.set_mode(path, looks_of(after).unwrap_or((*mode).into()), &still)
            }
            _ => self.place(step, &found),
        }
    }

    /// Puts what a step leaves in its place, where `found` stands.
    fn place(&self, step: &RestoreStep, found: &EntryState) -> Result<()> {
        let path = &step.path.0;
        let still = |now: &EntryState| same(now, found);
        match &step.after {
            Some(after @ RestoreNode::File { hash, mode, .. }) => {
                let temporary = self.temporary(path);
                let looks = looks_of(after).unwrap_or((*mode).into());
                self.root.write_file(path, looks, &temporary, &still, &mut |file: &mut File| {
                    let mut sparse = Sparse::new(file);
                    self.objects.read_to(hash, &mut sparse)?;
                    sparse.finish().while_doing(|| format!("writing {}", String::from_utf8_lossy(path)))
                })
            }
            Some(RestoreNode::Symlink(target)) => {
                let temporary = self.temporary(path);
                self.root.make_symlink(path, &target.0, &temporary, &still)
            }
            Some(RestoreNode::Directory { .. }) | None => Ok(()),
        }
    }

    /// Makes a path the same file as another one.
    fn link(&self, step: &RestoreStep) -> Result<()> {
        let (path, Some(after), Some(PathText(of))) = (&step.path.0, &step.after, &step.link) else {
            return Ok(());
        };
        // Databases come with what lies beside them, each as a file of its own.
        if self.grouped.contains(path.as_slice()) {
            return Ok(());
        }
        let anchor = self.root.look_at(of)?;
        let stat = match anchor {
            EntryState::File(stat) if self.root.has_plainly(of, &anchor, after) => stat,
            _ => return Err(is_not_there(of)),
        };
        let found = self.root.look_at(path)?;
        // It is tied already. To rename one name of a file over another does nothing, and the temporary name would stay.
        if matches!(found, EntryState::File(now) if (now.dev, now.ino) == (stat.dev, stat.ino)) {
            return Ok(());
        }
        // The locks are held until the name is replaced.
        let _unused = self.require_alone(path, Some(after))?;
        self.require_expected(path, &found, step.before.as_ref(), after)?;
        let temporary = self.temporary(path);
        let tied = self.root.make_link(path, of, stat, &temporary, &|now| same(now, &found));
        // What others changed is not overwritten by a copy either.
        if tied.as_ref().is_err_and(|error| error.code() == Code::FileConflict) {
            return tied;
        }
        // Where a file cannot have one more name, the content is worth more; what was left says that it is a file of its own.
        tied.or_else(|_| self.write(&RestoreStep { link: None, anew: true, ..step.clone() }))
    }

    fn dress_directory(&self, step: &RestoreStep) -> Result<()> {
        match &step.after {
            Some(after @ RestoreNode::Directory { mode, .. }) => {
                self.set_looks_of_directory(&step.path.0, looks_of(after).unwrap_or((*mode).into()))
            }
            _ => Ok(()),
        }
    }

    fn set_looks_of_directory(&self, path: &[u8], looks: FileAttributes<'_>) -> Result<()> {
        let is_dressed = |wanted: &Attributes| self.root.attributes(path).is_ok_and(|has| has == *wanted);
        match self.root.look_at(path)? {
            EntryState::Directory(stat) if stat.mode == looks.mode && looks.attributes.is_none_or(is_dressed) => Ok(()),
            EntryState::Directory(_) => self.root.set_mode(path, looks, &|now| matches!(now, EntryState::Directory(_))),
            _ => Err(changed(path)),
        }
    }

    /// Errors: those of [`database::require_alone`].
    fn require_alone(&self, path: &[u8], after: Option<&RestoreNode>) -> Result<Option<Unused>> {
        let comes = match after {
            Some(RestoreNode::File { hash, .. }) => Some(hash),
            _ => None,
        };
        database::require_alone(self.root, self.objects, path, comes)
    }

    /// A name beside `path` that no other step uses at the same time.
    fn temporary(&self, path: &[u8]) -> Vec<u8> {
        // A hash, because the name itself may already have the 255 bytes that a file system allows.
        [&self.prefix[..], &ic_ledger::events::hex(&hash_of(path)).as_bytes()[..16]].concat()
    }
}

/// What tells that a path cannot become another name of a file.
fn is_not_there(of: &[u8]) -> Diagnosis {
    let of = String::from_utf8_lossy(of);
    Diagnosis::new(Code::FileConflict, format!("It is to be the same file as {of}, which could not be restored."))
}

fn changed(path: &[u8]) -> Diagnosis {
    Diagnosis::new(Code::FileConflict, format!("{} changed since the plan.", String::from_utf8_lossy(path)))
}

#[cfg(test)]
mod tests;
