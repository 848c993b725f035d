//! Where the ledger lies.
//!
//! The store of a git repository is `<git common dir>/ic/`: `git clean -fdx` cannot reach it, and all linked
//! worktrees share it. Elsewhere it is `.ic/`. A regular file in place of that directory is a pointer: its
//! one line is the path of the store. No process is started; `.git` and `commondir` are read as files.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ic_base::{Code, Context, Diagnose, Diagnosis, Result, shell_word};

use crate::connection::OpenOptions;
use crate::git_dirs::{dirs_of, git_dirs, trim};
use crate::ledger::Ledger;
use crate::regular::read_line;
use crate::values::{path_bytes, path_from_bytes};
use crate::{faults, filesystem, log, migrate, private, trust};

const FILE_NAME: &str = "ic.db";

/// What the caller says about the place, strongest first.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// `--db`.
    pub db: Option<&'a Path>,
    /// `IC_DB`.
    pub env_db: Option<&'a Path>,
    /// The working directory, absolute.
    pub directory: &'a Path,
}

ic_base::words! {
    /// How a place was found.
    pub enum FoundBy {
        /// `--db`.
        Flag = "flag",
        /// `IC_DB`.
        Environment = "environment",
        /// A store in the git directory of this or a parent directory.
        Git = "git",
        /// `.ic/` in this or a parent directory.
        Directory = "directory",
    }
}

/// A ledger's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The ledger's file.
    pub db: PathBuf,
    /// The directory that holds it.
    pub store: PathBuf,
    /// The project's root: the top of the git work tree, else the directory that holds `.ic`.
    pub root: PathBuf,
    /// How it was found.
    pub found_by: FoundBy,
}

impl Place {
    /// The log that stands beside the ledger now, with its newest changes; `None` if there is none.
    pub fn log(&self) -> Option<PathBuf> {
        let db = log::real(&self.db);
        (log::length(&db) > 0).then(|| log::path_of(&db))
    }
}

/// Finds the ledger: the flag, the environment, then upwards from the working directory.
///
/// Errors: `no_ledger` when there is none above, or it came with a repository that was cloned; `permission_denied` when it is
/// another user's. A place named by flag or environment is not checked here.
pub fn locate(lookup: &Lookup<'_>) -> Result<Place> {
    let named =
        lookup.db.map(|db| (db, FoundBy::Flag)).or(lookup.env_db.map(|db| (db, FoundBy::Environment)));
    if let Some((db, found_by)) = named {
        return named_place(db, found_by, lookup.directory);
    }
    for level in lookup.directory.ancestors() {
        let candidates = [
            (common_dir(level).map(|git| git.join("ic")), FoundBy::Git),
            (Some(level.join(".ic")), FoundBy::Directory),
        ];
        for (store, found_by) in candidates {
            if let Some(usual) = store
                && let Some(store) = follow_pointer(&usual)?
                && has_ledger(&usual, &store)?
            {
                let db = store.join(FILE_NAME);
                trust::require_own_ledger(&db, &store, &usual, level)?;
                return Ok(Place { db, store, root: level.to_owned(), found_by });
            }
        }
    }
    Err(Diagnosis::new(
        Code::NoLedger,
        format!("No ledger in {} or any directory above it.", lookup.directory.display()),
    )
    .hint("create one with: ic init"))
}

/// Where `init` puts the ledger: the flag or environment, else the git repository's store, else `.ic/` here.
pub fn initial_place(lookup: &Lookup<'_>, store: Option<&Path>) -> Result<Place> {
    let found_by = match common_dir_above(lookup.directory) {
        Some(_) => FoundBy::Git,
        None => FoundBy::Directory,
    };
    let root = project_root(lookup.directory);
    match (store, lookup.db, lookup.env_db) {
        (Some(store), ..) => {
            let store = absolute(store, lookup.directory)?;
            Ok(Place { db: store.join(FILE_NAME), store, root, found_by })
        }
        (None, None, None) => {
            let default = default_store(lookup.directory);
            let store = follow_pointer(&default)?.unwrap_or(default);
            Ok(Place { db: store.join(FILE_NAME), store, root, found_by })
        }
        (None, Some(db), _) => named_place(db, FoundBy::Flag, lookup.directory),
        (None, None, Some(db)) => named_place(db, FoundBy::Environment, lookup.directory),
    }
}

/// Makes the ledger at `place` (directory 0700, files 0600), or keeps the one that is there.
///
/// `pointed`: the store was named by `--store`, and a pointer to it is left at the usual place. Returns the open
/// ledger and whether it is new. Errors: `unsupported_fs`; `ledger_exists` when the project has its ledger elsewhere;
/// `permission_denied` for a directory that everybody may write in.
pub fn create(
    place: &Place,
    pointed: bool,
    directory: &Path,
    options: OpenOptions,
    context: &Context,
) -> Result<(Ledger, bool)> {
    let default = default_store(directory);
    if pointed
        && let Some(existing) = follow_pointer(&default)?
        && existing.join(FILE_NAME).exists()
        && !same_file(&existing, &place.store)
    {
        return Err(Diagnosis::new(
            Code::LedgerExists,
            format!("This project already has its ledger in {}.", existing.display()),
        )
        .hint("use it as it is, or move its directory and run init again"));
    }
    let existing = place.store.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    filesystem::check(existing)?;
    if place.store.exists() {
        // What was made under an umask that takes its owner's bits away is of no use to anybody until it has them.
        private::mend(&place.store).while_doing(|| format!("using {}", place.store.display()))?;
        if place.db.exists() {
            private::mend(&place.db).while_doing(|| format!("using {}", place.db.display()))?;
        } else {
            trust::require_closed(&place.store)?;
        }
    } else {
        private::directories(&place.store).while_doing(|| format!("creating {}", place.store.display()))?;
        if place.store.ends_with(".ic") {
            // A repository made here later must not take the ledger for a source file.
            write_private(&place.store.join(".gitignore"), b"*\n")?;
        }
    }
    let created = migrate::create(&place.db, options, context)?;
    if pointed && !same_file(&default, &place.store) && !default.exists() {
        // After the ledger was made: a pointer that leads to no ledger would make every later call fail.
        faults::statement("-- pointing to the store");
        let mut line = path_bytes(&place.store).to_vec();
        line.push(b'\n');
        write_private(&default, &line)?;
    }
    Ok((Ledger::open(&place.db, options, context)?, created))
}

/// The top of the git work tree that holds `directory`, else `directory` itself.
pub fn project_root(directory: &Path) -> PathBuf {
    directory.ancestors().find(|level| common_dir(level).is_some()).unwrap_or(directory).to_owned()
}

fn named_place(db: &Path, found_by: FoundBy, directory: &Path) -> Result<Place> {
    if db.as_os_str().is_empty() {
        return Err(Diagnosis::new(Code::InvalidValue, "The path of the ledger is empty.")
            .hint("give a path: --db PATH, or unset IC_DB"));
    }
    let db = absolute(db, directory)?;
    let store = db.parent().unwrap_or(Path::new("/")).to_owned();
    Ok(Place { db, store, root: project_root(directory), found_by })
}

fn default_store(directory: &Path) -> PathBuf {
    common_dir_above(directory).map_or_else(|| directory.join(".ic"), |git| git.join("ic"))
}

fn common_dir_above(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(common_dir)
}

/// The directory of a repository that holds its store: of one that git itself does not know any more, too, if a store is there. A
/// repository that lost its HEAD must not lose its record and its undo with it.
fn common_dir(level: &Path) -> Option<PathBuf> {
    if let Some(dirs) = git_dirs(level) {
        return Some(dirs.common_dir);
    }
    let common_dir = dirs_of(level)?.common_dir;
    common_dir.join("ic").exists().then_some(common_dir)
}

/// The store itself, or where the pointer file in its place leads; `None` if nothing is there.
fn follow_pointer(store: &Path) -> Result<Option<PathBuf>> {
    match fs::metadata(store) {
        Ok(meta) if meta.is_dir() => Ok(Some(store.to_owned())),
        Ok(_) => {
            let line = read_line(store).while_doing(|| format!("reading {}", store.display()))?;
            let base = store.parent().unwrap_or(Path::new("/"));
            Ok(Some(base.join(path_from_bytes(trim(&line)))))
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e).while_doing(|| format!("looking for {}", store.display())),
    }
}

/// Whether the ledger is in `store`, which was looked for at `usual`. What cannot be looked at, or is pointed to and is not
/// there (an unmounted disk), is an error: going on upwards would write to somebody else's ledger.
fn has_ledger(usual: &Path, store: &Path) -> Result<bool> {
    let db = store.join(FILE_NAME);
    let found = db.try_exists().while_doing(|| format!("looking for {}", db.display()));
    let found = found.map_err(|error| {
        if !private::lacks_bits(store) {
            return error;
        }
        let path = shell_word(&store.display().to_string());
        error.hint(format!("make the directory its owner's alone again: chmod 700 {path}"))
    })?;
    if !found && usual != store {
        return Err(Diagnosis::new(
            Code::NoLedger,
            format!("{} points to {}, and there is no ledger.", usual.display(), store.display()),
        )
        .hint("is its disk mounted? to create a new one there: ic init")
        .detail("pointer", usual.to_string_lossy().into_owned())
        .detail("store", store.to_string_lossy().into_owned()));
    }
    Ok(found)
}

fn absolute(path: &Path, directory: &Path) -> Result<PathBuf> {
    std::path::absolute(directory.join(path)).while_doing(|| format!("resolving {}", path.display()))
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// Writes a small file of mode 0600, whole or not at all.
fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    // Others may be writing the same file: each has a temporary one of its own, and any of them is right.
    name.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(name);
    // What has the name already was left by a process of the same number, or put there to be written through.
    let cleared = match fs::remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    };
    let made = cleared.and_then(|()| private::create_new(&temporary));
    made.and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path))
        .while_doing(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests;
