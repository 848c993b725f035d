//! SQLite databases in a restore: which of them change together with the files beside them, and who has one open.
//!
//! A log belongs to one state of its database: beside another state SQLite replays it anyway, and destroys the database.
//! So the side files of a database that changes are saved raw, the database too, and all of them change together.
//!
//! Whether a program uses one is asked of the locks that SQLite takes and of the files that processes have open. What cannot be
//! seen: a process of another user (unless root asks) or in another container that holds no lock at this moment, which is an idle
//! connection to a database without a write-ahead log; who opened such a one under another of its names, where the kernel (before Linux
//! 5.14) or a layered file system tells other inodes of open files; and a program that uses it over a network file system without locks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::events::Hash;
use ic_ledger::{DATABASE_SIDE_SUFFIXES, is_database, path_from_bytes};
use ic_sys::open_files::{SoughtFile, holder_of};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use super::plan::{Limits, PlannedDatabase};
use crate::diff::{DiffState, Difference, Finder};
use crate::manifest::PathText;
use crate::objects::Objects;
use crate::rootfs::{EntryState, RootDir};

/// The length of what tells a database from other files.
const HEAD: usize = 16;

/// What a restore would do to databases that have files beside them.
#[derive(Debug, Default)]
pub struct Touched {
    /// Those that change together with their side files.
    pub databases: Vec<PlannedDatabase>,
    /// Side files that the target holds and that would come to lie beside a database that does not change.
    pub strangers: Vec<Vec<u8>>,
}

/// The database that a path is a side file of, by its name alone.
fn database_of(path: &[u8]) -> Option<&[u8]> {
    DATABASE_SIDE_SUFFIXES
        .iter()
        .find_map(|end| path.strip_suffix(*end))
        // A name that is an ending and nothing else belongs to no database.
        .filter(|path| path.last().is_some_and(|last| *last != b'/'))
}

/// The names of the side files of a database.
pub fn sides_of(database: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    DATABASE_SIDE_SUFFIXES.iter().map(move |end| [database, end].concat())
}

/// Finds the databases with side files, now or in the target, that a restore would touch.
///
/// `now`: the current tree. Errors: `corrupt`.
pub fn touched(
    objects: &Objects,
    root: &RootDir,
    now: &Hash,
    target: &Hash,
    differences: &[Difference],
    limits: &Limits,
) -> Result<Touched> {
    let (mut here, mut there) = (Finder::new(objects, now)?, Finder::new(objects, target)?);
    let by_path: BTreeMap<&[u8], &Difference> =
        differences.iter().map(|difference| (difference.path.as_slice(), difference)).collect();
    let is_directory = |state: &Option<DiffState>| matches!(state, Some(DiffState::Directory { .. }) | None);
    // Each path that changes may be a database, or lie beside one.
    let stems: BTreeSet<&[u8]> = by_path
        .iter()
        .filter(|(_, difference)| !is_directory(&difference.before) || !is_directory(&difference.after))
        .flat_map(|(path, _)| [Some(*path), database_of(path)])
        .flatten()
        .filter(|path| !path.is_empty())
        .collect();
    let mut touched = Touched::default();
    for stem in stems {
        // A tree with many changes has few names like these, so names come first and content last.
        let (now, target) = (beside(&mut here, stem)?, beside(&mut there, stem)?);
        if now.is_empty() && target.is_empty() {
            continue;
        }
        let difference = by_path.get(stem).copied();
        let (stands, comes) = (here.find(stem)?, there.find(stem)?);
        if !is_one(objects, root, stem, comes.as_ref()) {
            continue;
        }
        let changes = difference.is_some_and(|difference| {
            limits.allow(difference)
                && match (&difference.before, &difference.after) {
                    (_, Some(after)) => after.is_content(),
                    (before, None) => before.as_ref().is_some_and(DiffState::is_content),
                }
        });
        let brings: Vec<Vec<u8>> = target.iter().filter(|(_, is_kept)| *is_kept).map(|(p, _)| p.clone()).collect();
        // A database that stays the same changes together with the log that the target has for it.
        let stays_the_same = difference.is_none() && matches!((&stands, &comes), (Some(a), Some(b)) if a == b);
        if changes || (stays_the_same && !brings.is_empty()) {
            let sides: BTreeSet<Vec<u8>> = now.into_iter().chain(target).map(|(path, _)| path).collect();
            let sides = sides.into_iter().map(PathText).collect();
            touched.databases.push(PlannedDatabase { path: PathText(stem.to_vec()), sides });
        } else if stands.is_some() {
            // The database stays in a state that this log does not belong to.
            touched.strangers.extend(brings);
        }
    }
    Ok(touched)
}

/// Side files with whether a tree holds their content.
type Sides = Vec<(Vec<u8>, bool)>;

/// The side files that a tree has beside a database.
fn beside(tree: &mut Finder<'_>, database: &[u8]) -> Result<Sides> {
    let mut sides = Vec::new();
    for side in sides_of(database) {
        match tree.find(&side)? {
            None | Some(DiffState::Directory { .. }) => {}
            Some(state) => sides.push((side, state.is_content())),
        }
    }
    Ok(sides)
}

/// Whether a path is a database, in the tree or in the target.
fn is_one(objects: &Objects, root: &RootDir, path: &[u8], target: Option<&DiffState>) -> bool {
    let is_in_target = || match target {
        Some(DiffState::File { hash, .. }) => is_kept_as_one(objects, hash),
        _ => false,
    };
    stands_as_one(root, path) || is_in_target()
}

/// Whether a database stands at a path of the tree.
fn stands_as_one(root: &RootDir, path: &[u8]) -> bool {
    let mut head = [0; HEAD];
    root.open_file(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && is_database(&head)
}

/// Whether an object is a database.
fn is_kept_as_one(objects: &Objects, hash: &Hash) -> bool {
    is_database(&head_of(objects, hash))
}

/// The first bytes of an object; fewer, or none, where it is short or cannot be read.
fn head_of(objects: &Objects, hash: &Hash) -> Vec<u8> {
    let mut head = Head(Vec::new());
    // It ends with an error as soon as there is enough: the rest is not read.
    let _ = objects.read_to(hash, &mut head);
    head.0
}

struct Head(Vec<u8>);

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = HEAD.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if room == 0 { Err(io::ErrorKind::Other.into()) } else { Ok(bytes.len().min(room)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A database that no program uses. While this lives, SQLite lets no program begin to.
#[derive(Debug)]
pub struct Unused(#[expect(dead_code, reason = "closing them ends the locks")] Vec<std::fs::File>);

/// What must hold before one file is replaced or removed, without what lies beside it: it is no database that a program uses, and no
/// database comes or goes beside a log. `comes`: the object that takes its place.
///
/// Errors: `busy`, saying who uses it or what stands beside it.
pub fn require_alone(root: &RootDir, objects: &Objects, path: &[u8], comes: Option<&Hash>) -> Result<Option<Unused>> {
    let stands = stands_as_one(root, path);
    // An index (`-shm`) without a log does no harm: the next program that opens the database makes it anew.
    let is_log = |side: &Vec<u8>| {
        !side.ends_with(b"-shm") && matches!(root.state(side), Ok(EntryState::File(_) | EntryState::Symlink(..)))
    };
    let stranger = sides_of(path).find(is_log);
    let unused = if stands { Some(require_unused(root, path)?) } else { None };
    match stranger {
        Some(stranger) if stands || comes.is_some_and(|hash| is_kept_as_one(objects, hash)) => {
            Err(beside_a_stranger(&stranger))
        }
        _ => Ok(unused),
    }
}

/// Errors: `busy`, naming who has the database or a file beside it open.
pub(super) fn require_unused(root: &RootDir, database: &[u8]) -> Result<Unused> {
    let mut held = Vec::new();
    for path in [database.to_vec()].into_iter().chain(sides_of(database)) {
        let Ok(EntryState::File(_)) = root.state(&path) else { continue };
        match lock(root, &path) {
            Ok(file) => held.extend(file),
            // POSIX lets a system say either where another process holds a lock.
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(in_use("a program holds a lock on it")),
            // Where the file system has no locks, what is open must tell.
            Err(_) => {}
        }
    }
    // This comes after the locks: a program that begins to use the database from now on meets them.
    match opened_by(root, database) {
        Some(process) => Err(in_use(&format!("process {process} has it open"))),
        None => Ok(Unused(held)),
    }
}

/// Whether a database stands there that a program uses, whatever lies beside it.
pub fn stands_in_use(root: &RootDir, path: &[u8]) -> bool {
    stands_as_one(root, path) && is_in_use(root, path)
}

/// Whether a program uses a database, as far as can be known.
pub fn is_in_use(root: &RootDir, database: &[u8]) -> bool {
    require_unused(root, database).is_err()
}

fn in_use(why: &str) -> Diagnosis {
    Diagnosis::new(
        Code::Busy,
        format!("database_in_use: it is an SQLite database in use ({why}); end the program that uses it."),
    )
}

/// What tells that a log came to stand beside a database that is about to change.
pub(super) fn beside_a_stranger(side: &[u8]) -> Diagnosis {
    let side = String::from_utf8_lossy(side).into_owned();
    Diagnosis::new(
        Code::Busy,
        format!(
            "database_in_use: {side} beside it belongs to another state of it; end the program that uses it, or move \
             that file away, and try again."
        ),
    )
}

/// Locks the whole of a file against every lock of SQLite. A connection to a database with a write-ahead log holds a lock until it is
/// closed, any other connection only while it reads or writes.
fn lock(root: &RootDir, path: &[u8]) -> std::result::Result<Option<std::fs::File>, Errno> {
    // A lock against readers needs the right to write; without it, one against writers is what can be had.
    let (file, operation) = match root.open_to_lock(path, true) {
        Ok(file) => (file, FlockOperation::NonBlockingLockExclusive),
        Err(_) => match root.open_to_lock(path, false) {
            Ok(file) => (file, FlockOperation::NonBlockingLockShared),
            Err(_) => return Ok(None),
        },
    };
    fcntl_lock(&file, operation).map(|()| Some(file))
}

/// The process that has a database or a file beside it open: by name, also where that name is gone from the tree, or by inode.
fn opened_by(root: &RootDir, database: &[u8]) -> Option<u32> {
    let paths = [database.to_vec()].into_iter().chain(sides_of(database));
    let sought: Vec<SoughtFile> = paths
        .map(|path| {
            let stat = match root.state(&path) {
                Ok(EntryState::File(stat)) => Some(stat),
                _ => None,
            };
            SoughtFile {
                path: root.path().join(path_from_bytes(&path)),
                identity: stat.map(|stat| (stat.dev, stat.ino)),
                has_other_names: stat.is_some_and(|stat| stat.names > 1),
            }
        })
        .collect();
    // Where the system does not say what is open, the locks must tell.
    holder_of(&sought).ok().flatten()
}
