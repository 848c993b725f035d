//! Which object store belongs to a ledger, and how it comes by it.
//!
//! A store lies beside its ledger under the whole name of the ledger's file, and knows the ledger by its id: two ledgers in one
//! directory never share content, and a store that was put in the place of another is not used. The store of a ledger that got another
//! name is found by its id at the next opening: it is moved, or copied where the ledger is a copy of one that is still there. Each step
//! leaves one whole store for each ledger, here or there, so that a crash between two of them is settled by the next opening.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, LedgerId, Result};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::objects::{Objects, TreeMemory};
use ic_checkpoint::restore::journal;
use ic_kernel::Kernel;
use ic_ledger::{DATABASE_SIDE_SUFFIXES, Identity, OpenOptions, SideDatabase, faults, is_ledger, path_bytes, sibling};

use super::store_requirements;

/// The usual name of a ledger, whose store has a name without it.
const USUAL: &str = "ic.db";

/// The end of a store's name.
const STORE: &str = "objects.db";

/// The object store of a ledger; whether it is there is another matter.
pub fn objects_path(ledger: &Path) -> PathBuf {
    store_of(&real(ledger))
}

/// By the whole name of the ledger's file, which is the one on disk.
pub(super) fn store_of(ledger: &Path) -> PathBuf {
    match ledger.file_name() {
        Some(name) if name != USUAL => ledger.with_file_name([name, OsStr::new(STORE)].join(OsStr::new("."))),
        _ => ledger.with_file_name(STORE),
    }
}

/// The ledger's file under its own name: a link, or a name in other letters on a disk that heeds no case, leads to the same store.
pub(super) fn real(ledger: &Path) -> PathBuf {
    let Ok(path) = fs::canonicalize(ledger) else { return ledger.to_owned() };
    let (Some(directory), Some(name), Ok(meta)) = (path.parent(), path.file_name(), fs::metadata(&path)) else {
        return path;
    };
    let mut other_name = None;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name() == name {
            return path;
        }
        if entry.ino() == meta.ino() {
            other_name = Some(entry.path());
        }
    }
    other_name.unwrap_or(path)
}

/// Opens the store of the kernel's ledger, and makes it if there is none.
///
/// Errors: `foreign_store` if another ledger's store lies in its place: nothing is written. Those of [`Objects::open`].
pub(super) fn open(kernel: &Kernel, options: OpenOptions) -> Result<Objects> {
    let identity = kernel.ledger.identity()?;
    let path = objects_path(kernel.ledger.path());
    // A ledger in a file has made this directory; one on a server has not.
    ic_ledger::make_store(kernel.store())?;
    if !SideDatabase::exists(&path) {
        bring(kernel, &identity, &path, options)?;
    }
    let objects = Objects::open(&path, options)?.with_trees(kernel.trees.get_or_init(TreeMemory::default).clone());
    let owner = match objects.owner()? {
        Some(owner) => owner,
        // The store first, then the ledger (`found_store` below): a crash in between leaves a store that knows its ledger. The other way
        // round, the ledger would claim a store that does not know it.
        None => objects.claim(&identity.id)?,
    };
    if owner != identity.id {
        let error = foreign(kernel, &path, &owner);
        objects.leave();
        return Err(error);
    }
    if !identity.has_store {
        kernel.ledger.found_store()?;
        objects.use_log()?;
    }
    Ok(objects)
}

/// Looks at the store of the kernel's ledger, if it has one. Errors: `foreign_store`. Nothing is written.
pub fn look(kernel: &Kernel, options: OpenOptions) -> Result<Option<Objects>> {
    let path = objects_path(kernel.ledger.path());
    let Some(objects) = Objects::look(&path, options)? else { return Ok(None) };
    let identity = kernel.ledger.identity()?;
    match objects.owner()? {
        Some(owner) if owner != identity.id => {
            objects.leave();
            Err(foreign(kernel, &path, &owner))
        }
        _ => Ok(Some(objects)),
    }
}

/// Whether content of the ledger waits under another name, to be taken along by the next opening.
pub(super) fn is_elsewhere(kernel: &Kernel, options: OpenOptions) -> Result<bool> {
    let own = objects_path(kernel.ledger.path());
    Ok(!sources(&kernel.ledger.identity()?, &own, options).is_empty())
}

fn foreign(kernel: &Kernel, path: &Path, owner: &LedgerId) -> Diagnosis {
    Diagnosis::new(
        Code::ForeignStore,
        format!(
            "{} holds the content of another ledger, not of {}.",
            path.display(),
            kernel.ledger.path().display()
        ),
    )
    .hint(format!(
        "put this ledger's own {} back; if it is lost, move that one away and remove what needed it: ic checkpoint verify --repair",
        path.file_name().unwrap_or_default().display()
    ))
    .detail("store", path.to_string_lossy().into_owned())
    .detail("belongs_to", owner.as_str())
}

/// Brings the ledger's content from where another name of the ledger left it.
fn bring(kernel: &Kernel, identity: &Identity, own: &Path, options: OpenOptions) -> Result<()> {
    for source in sources(identity, own, options) {
        // Under this lock, no other process captures into it, sweeps it or moves it.
        let _lock = lock::store(&source, LockMode::Exclusive, options.busy_timeout)?;
        // Another process brought it while this one waited for the lock.
        if SideDatabase::exists(own) {
            return Ok(());
        }
        // Another process may have moved it while this one waited for the lock.
        let Some(objects) = Objects::look(&source, options)? else { continue };
        if objects.owner()?.as_ref() != Some(&identity.id) {
            objects.leave();
            continue;
        }
        Objects::forget_copy(own)?;
        // Moved where it is this ledger's alone, which costs nothing. Copied where another ledger there still needs it.
        if others(kernel, &source, own)?.is_empty() {
            return take(objects, own);
        }
        let live = store_requirements::readable(kernel, &objects)?;
        let copied = objects.copy_to(own, &live, &identity.id, options);
        objects.leave();
        return copied;
    }
    Ok(())
}

/// Moves a store that the ledger has alone.
fn take(objects: Objects, own: &Path) -> Result<()> {
    let source = objects.path().to_owned();
    // The caches are moved before the store: caches without a store are ignored, and with it they are right again.
    faults::step("-- moving the caches");
    match fs::rename(source.with_extension("cache"), own.with_extension("cache")) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        moved => moved.while_doing(|| format!("moving the caches of {}", source.display()))?,
    }
    objects.rename(own)?;
    forget(&source)
}

/// Removes what belonged to a store that is gone: its caches and, last, the lock that its remover holds.
fn forget(store: &Path) -> Result<()> {
    let gone = |result: std::io::Result<()>| match result {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    };
    gone(fs::remove_dir_all(store.with_extension("cache")))
        .and_then(|()| gone(fs::remove_file(sibling(store, ".lock.turn"))))
        .and_then(|()| gone(fs::remove_file(sibling(store, ".lock"))))
        .while_doing(|| format!("removing what belonged to {}", store.display()))
}

/// Stores beside the ledger's place that know its id: the ledger was renamed, or copied.
fn sources(identity: &Identity, own: &Path, options: OpenOptions) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (path, _) in files_beside(own) {
        let is_store = path.as_os_str().as_encoded_bytes().ends_with(STORE.as_bytes());
        if is_store && path != own {
            // A file that cannot be opened is not a source. It stays where it is.
            let looked = Objects::look(&path, options).ok().flatten();
            if let Some(objects) = looked {
                if objects.owner().is_ok_and(|owner| owner.as_ref() == Some(&identity.id)) {
                    found.push(path);
                }
                objects.leave();
            }
        }
    }
    found
}

/// The other ledgers beside it whose store it is. `own`: the store of the ledger that asks.
fn others(kernel: &Kernel, store: &Path, own: &Path) -> Result<Vec<PathBuf>> {
    // To open and close a file that SQLite has open in this process ends SQLite's locks on it, and another process takes the ledger for
    // unused: <https://sqlite.org/howtocorrupt.html>, 2.2. So neither the ledger is looked into, under whatever name, nor its side files.
    let inode = |path: &Path| fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    let asking = inode(&real(kernel.ledger.path()));
    let is_side = |path: &Path| DATABASE_SIDE_SUFFIXES.iter().any(|end| path_bytes(path).ends_with(end));
    let mut others = Vec::new();
    for (path, is_file) in files_beside(store) {
        let theirs = store_of(&path);
        // In this order: a file is opened only where nothing else rules it out.
        if is_file
            && theirs != own
            && !is_side(&path)
            && inode(&path) != asking
            && theirs == store
            && is_ledger(&path).while_doing(|| format!("looking at {}", path.display()))?
        {
            others.push(path);
        }
    }
    Ok(others)
}

/// What lies in the directory of a store, each with whether it is a file.
fn files_beside(store: &Path) -> Vec<(PathBuf, bool)> {
    let entries = fs::read_dir(store.parent().unwrap_or(Path::new("/"))).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.metadata().is_ok_and(|meta| meta.is_file() && meta.size() > 0))).collect()
}

/// Where restores of this ledger may have left something: this project, and wherever one was made.
pub(super) fn restored_roots(kernel: &Kernel) -> Result<BTreeSet<PathBuf>> {
    let restored = kernel.read(journal::all)?.into_iter().map(|restore| restore.root);
    Ok(restored.chain([kernel.project.root.clone()]).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use ic_base::Context;
    use ic_ledger::{Lookup, OpenOptions};
    use ic_phase::run_reference::ProjectScope;

    use super::{Kernel, objects_path, others, store_of};

    /// The locks of this process on a file, as `/proc/locks` shows them (proc(5)); `None` where there is none.
    fn locks(path: &Path) -> Option<Vec<String>> {
        let inode = format!(":{} ", fs::metadata(path).unwrap().ino());
        let own = format!(" {} ", std::process::id());
        let all = fs::read_to_string("/proc/locks").ok()?;
        let of_file = all.lines().filter(|line| line.contains(&inode) && line.contains(&own));
        // The first word is a number that changes with every lock.
        Some(of_file.filter_map(|line| line.split_once(' ')).map(|(_, lock)| lock.to_owned()).collect())
    }

    #[test]
    fn looking_for_other_ledgers_ends_no_lock_of_the_open_one() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let (context, options) = (Context::system(), OpenOptions::default());
        let place = ic_ledger::initial_place(&Lookup { db: None, env_db: None, directory: &root }, None).unwrap();
        let (ledger, _) = ic_ledger::create(&place, false, &root, options, &context).unwrap();
        let db = ledger.path().to_owned();
        fs::hard_link(&db, db.with_file_name("ic.bak")).unwrap();
        let project = ProjectScope { directory: root.clone(), root };
        let kernel = Kernel::new(ledger, context, project);
        kernel.read(|_| Ok(())).unwrap();
        let index = db.with_file_name("ic.db-shm");
        let (Some(of_db), Some(of_index)) = (locks(&db), locks(&index)) else {
            eprintln!("skipped: there is no /proc/locks");
            return;
        };
        assert!(!of_db.is_empty() && !of_index.is_empty(), "an open ledger holds locks");
        let own = objects_path(&db);
        assert!(others(&kernel, &own, &own).unwrap().is_empty());
        assert_eq!((locks(&db), locks(&index)), (Some(of_db), Some(of_index)));
    }

    #[test]
    fn no_two_names_share_a_store() {
        let names = ["ic.db", "ic.bak", "ic", "team.1", "team.2", "team", "team.objects", "x.db", "objects"];
        let stores: std::collections::BTreeSet<_> =
            names.iter().map(|name| store_of(&Path::new("/s").join(name))).collect();
        assert_eq!(stores.len(), names.len(), "{stores:?}");
        assert_eq!(store_of(Path::new("/s/ic.db")), Path::new("/s/objects.db"));
        assert_eq!(store_of(Path::new("/s/team.1")), Path::new("/s/team.1.objects.db"));
    }
}
