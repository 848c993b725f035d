//! Carrying a plan out. Every write goes through [`RootDir`], every file is looked at just before it is replaced, and one
//! that fails does not stop the rest.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ic_base::{Code, Diagnose, Diagnosis, RestoreId, Result};
use ic_events::Hash;
use ic_store::is_database;
use sha2::{Digest, Sha256};

use super::plan::{Node, Plan, Step};
use super::sparse::Sparse;
use crate::manifest::PathText;
use crate::objects::Objects;
use crate::rootfs::{Found, RootDir};

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Steps that are done, or were before.
    pub done: u64,
    /// Paths that could not be changed, and why; they are as they were.
    pub failed: Vec<(PathText, String)>,
}

/// How far it is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Steps that are done.
    pub done: AtomicU64,
}

/// The beginning of the names of a restore's temporary files.
fn temporary_prefix(id: &RestoreId) -> Vec<u8> {
    [crate::capture::TEMPORARY, id.as_str().as_bytes(), b"-"].concat()
}

/// Makes every change of the plan that was not made yet.
///
/// A path that is neither as the plan found it nor as it leaves it is left alone and reported, as is one that fails.
pub fn apply(objects: &Objects, root: &RootDir, plan: &Plan, id: &RestoreId, progress: &Progress) -> Outcome {
    let applier = Applier { objects, root, prefix: temporary_prefix(id) };
    let mut failed: Vec<Option<Diagnosis>> = plan.steps.iter().map(|_| None).collect();
    let mut pass = |reverse: bool, work: &dyn Fn(&Step) -> Result<()>| {
        let mut one = |(step, failed): (&Step, &mut Option<Diagnosis>)| {
            if failed.is_none() {
                *failed = work(step).err();
            }
        };
        let steps = plan.steps.iter().zip(&mut failed);
        if reverse { steps.rev().for_each(&mut one) } else { steps.for_each(&mut one) }
    };
    // What goes, from the bottom up; then directories from the top down; then files; then the modes of directories,
    // from the bottom up again, because a directory without write permission takes no new files.
    pass(true, &|step| applier.remove(step));
    pass(false, &|step| applier.make_directory(step));
    pass(false, &|step| {
        let result = applier.write(step);
        progress.done.fetch_add(1, Relaxed);
        result
    });
    pass(true, &|step| applier.set_directory_mode(step));
    for (path, mode) in &plan.closed {
        // A directory that somebody removed meanwhile needs nothing back.
        let _ = applier.set_mode_of_directory(&path.0, *mode);
    }
    let mut outcome = Outcome::default();
    for (step, failed) in plan.steps.iter().zip(failed) {
        match failed {
            None => outcome.done += 1,
            Some(error) => outcome.failed.push((step.path.clone(), error.message().to_owned())),
        }
    }
    outcome
}

/// Removes the temporary files that a killed restore left beside the paths of its plan.
pub fn sweep(root: &RootDir, plan: &Plan, id: &RestoreId) -> usize {
    let prefix = temporary_prefix(id);
    let mut directories: Vec<&[u8]> = plan.steps.iter().map(|step| parent(&step.path.0)).collect();
    directories.sort_unstable();
    directories.dedup();
    // A directory that is gone holds none.
    directories.into_iter().map(|directory| root.remove_temporary(directory, &prefix).unwrap_or(0)).sum()
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&[], |at| &path[..at])
}

struct Applier<'a> {
    objects: &'a Objects,
    root: &'a RootDir,
    prefix: Vec<u8>,
}

impl Applier<'_> {
    fn remove(&self, step: &Step) -> Result<()> {
        let path = &step.path.0;
        let Some(before) = &step.before else { return Ok(()) };
        let is_directory = |node: &Node| matches!(node, Node::Directory { .. });
        let goes = match &step.after {
            None => true,
            Some(after) => is_directory(before) != is_directory(after),
        };
        if !goes {
            return Ok(());
        }
        match self.state(path)? {
            Found::Absent => Ok(()),
            Found::Directory(_) if is_directory(before) => self.root.remove_directory(path),
            found if step.after.as_ref().is_some_and(|after| self.is(path, &found, after)) => Ok(()),
            found => {
                self.require_unused(path)?;
                if !self.is(path, &found, before) {
                    return Err(changed(path));
                }
                self.root.remove_file(path, &|now| same(now, &found))
            }
        }
    }

    fn make_directory(&self, step: &Step) -> Result<()> {
        let makes = matches!(step.after, Some(Node::Directory { .. }))
            && !matches!(step.before, Some(Node::Directory { .. }));
        if !makes {
            return Ok(());
        }
        match self.state(&step.path.0)? {
            Found::Directory(_) => Ok(()),
            Found::Absent => self.root.make_directory(&step.path.0),
            _ => Err(changed(&step.path.0)),
        }
    }

    fn write(&self, step: &Step) -> Result<()> {
        let path = &step.path.0;
        let (Some(after), before) = (&step.after, &step.before) else { return Ok(()) };
        if matches!(after, Node::Directory { .. }) {
            return Ok(());
        }
        let found = self.state(path)?;
        if self.is(path, &found, after) {
            return Ok(());
        }
        self.require_unused(path)?;
        let is_expected = match before {
            // What stood in its place was removed before.
            None | Some(Node::Directory { .. }) => matches!(found, Found::Absent),
            Some(before) => self.is(path, &found, before),
        };
        if !is_expected {
            return Err(changed(path));
        }
        let still = |now: &Found| same(now, &found);
        match (before, after) {
            (Some(Node::File { hash, .. }), Node::File { hash: same, mode, .. }) if hash == same => {
                self.root.set_mode(path, *mode, &still)
            }
            (_, Node::File { hash, mode, .. }) => {
                let temporary = self.temporary(hash);
                self.root.write_file(path, *mode, &temporary, &still, &mut |file: &mut File| {
                    let mut sparse = Sparse::new(file);
                    self.objects.read_to(hash, &mut sparse)?;
                    sparse.finish().while_doing(|| format!("writing {}", String::from_utf8_lossy(path)))
                })
            }
            (_, Node::Symlink(target)) => {
                let temporary = self.temporary(&crate::objects::hash_of(path));
                self.root.make_symlink(path, &target.0, &temporary, &still)
            }
            (_, Node::Directory { .. }) => Ok(()),
        }
    }

    fn set_directory_mode(&self, step: &Step) -> Result<()> {
        match step.after {
            Some(Node::Directory { mode }) => self.set_mode_of_directory(&step.path.0, mode),
            _ => Ok(()),
        }
    }

    fn set_mode_of_directory(&self, path: &[u8], mode: u32) -> Result<()> {
        match self.state(path)? {
            Found::Directory(stat) if stat.mode == mode => Ok(()),
            Found::Directory(_) => self.root.set_mode(path, mode, &|now| matches!(now, Found::Directory(_))),
            _ => Err(changed(path)),
        }
    }

    fn state(&self, path: &[u8]) -> Result<Found> {
        self.root.state(path).while_doing(|| format!("looking at {}", String::from_utf8_lossy(path)))
    }

    /// Whether exactly this stands there: content and permission bits.
    fn is(&self, path: &[u8], found: &Found, node: &Node) -> bool {
        match (found, node) {
            (Found::File(stat), Node::File { hash, size, mode }) => {
                stat.size == *size
                    && stat.mode == *mode
                    && self.hash(path).is_some_and(|found| found == *hash)
            }
            (Found::Symlink(_, target), Node::Symlink(expected)) => *target == expected.0,
            (Found::Directory(_), Node::Directory { .. }) => true,
            _ => false,
        }
    }

    fn hash(&self, path: &[u8]) -> Option<Hash> {
        let mut file = self.root.open_file(path).ok()?;
        let mut digest = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer).ok()? {
                0 => return Some(digest.finalize().into()),
                count => digest.update(&buffer[..count]),
            }
        }
    }

    /// Errors: `busy` for an SQLite database with a live log: replaced under its writer, it would be torn.
    fn require_unused(&self, path: &[u8]) -> Result<()> {
        let is_there = |end: &[u8]| {
            self.root.state(&[path, end].concat()).is_ok_and(|found| matches!(found, Found::File(_)))
        };
        if !is_there(b"-wal") && !is_there(b"-journal") {
            return Ok(());
        }
        let mut head = [0; 16];
        let is_one = self.root.open_file(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
            && is_database(&head);
        if is_one {
            return Err(Diagnosis::new(
                Code::Busy,
                "database_in_use: it is an SQLite database with a live log; end the program that uses it.",
            ));
        }
        Ok(())
    }

    fn temporary(&self, what: &Hash) -> Vec<u8> {
        [&self.prefix[..], &ic_events::hex(what).as_bytes()[..16]].concat()
    }
}

/// Whether a path is as it was found a moment ago.
fn same(now: &Found, before: &Found) -> bool {
    now == before
}

fn changed(path: &[u8]) -> Diagnosis {
    Diagnosis::new(Code::Conflict, format!("{} was changed meanwhile.", String::from_utf8_lossy(path)))
}
