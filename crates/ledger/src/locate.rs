//! Where the ledger lies.
//!
//! The store of a git repository is `<git common dir>/ic/`: `git clean -fdx` cannot reach it, and all linked
//! worktrees share it. Elsewhere it is `.ic/`. A regular file in place of that directory is a pointer: its
//! one line is the path of the store. No process is started; `.git` and `commondir` are read as files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ic_base::{Code, Context, Diagnose, Diagnosis, Result};

use crate::connection::OpenOptions;
use crate::faults::FaultMode;
use crate::git_dirs::{dirs_of, git_dirs, is_linked_work_tree, trim};
use crate::ledger::Ledger;
use crate::regular_file::read_line;
use crate::server_url::{ServerUrl, nominal_file};
use crate::values::path_from_bytes;
use crate::{faults, log, private, remote, trust};

pub(crate) const FILE_NAME: &str = "ic.db";

/// What the caller says about the place, strongest first.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// `--db`: the path of a file, or the URL of a server's ledger.
    pub db: Option<&'a Path>,
    /// `IC_DB`: a path or a URL, used where `--db` is not given.
    pub env_db: Option<&'a Path>,
    /// The working directory, absolute.
    pub directory: &'a Path,
}

ic_base::words! {
    /// How a place was found.
    pub enum FoundBy {
        /// Named by `--db` on the command line.
        Flag = "flag",
        /// Named by the environment variable `IC_DB`.
        Environment = "environment",
        /// A store in the git directory of this or a parent directory.
        Git = "git",
        /// `.ic/` in this or a parent directory.
        Directory = "directory",
    }
}

/// Where a ledger is, with its store and its project's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLocation {
    /// The ledger's file; of one on a server, the file that it would have in the store.
    pub db: PathBuf,
    /// The server that the ledger is on; `None`: it is a file.
    pub server: Option<ServerUrl>,
    /// The directory that holds it, and what stays on this machine of one on a server.
    pub store: PathBuf,
    /// The project's root: the top of the git work tree, else the directory that holds `.ic`. Below either, the top of a linked work tree.
    pub root: PathBuf,
    /// How it was found.
    pub found_by: FoundBy,
}

impl LedgerLocation {
    fn of_file(store: PathBuf, root: PathBuf, found_by: FoundBy) -> Self {
        Self { db: store.join(FILE_NAME), server: None, store, root, found_by }
    }

    fn of_server(url: ServerUrl, store: PathBuf, root: PathBuf, found_by: FoundBy) -> Self {
        Self { db: nominal_file(&store), server: Some(url), store, root, found_by }
    }

    /// The same place, as the ledger that was made there says: one whose store could not be read before may be on a server.
    #[must_use]
    pub fn as_made(self, ledger: &Ledger) -> Self {
        match ledger.server() {
            Some(url) if self.server.is_none() => Self::of_server(url.clone(), self.store, self.root, self.found_by),
            _ => self,
        }
    }

    /// What names the ledger: its file, or its URL.
    pub fn name(&self) -> PathBuf {
        self.server.as_ref().map_or_else(|| self.db.clone(), |url| PathBuf::from(url.to_string()))
    }

    /// Whether the store lies in git's directory, and goes with it.
    pub fn is_in_git(&self) -> bool {
        common_dir(&self.root).is_some_and(|git| self.store.starts_with(git))
    }

    /// As [`Ledger::is_of_one_host`], without opening it.
    pub fn is_of_one_host(&self) -> bool {
        self.server.is_none() || faults::is_on(FaultMode::OneHost)
    }

    /// Opens the ledger. Errors: as of [`Ledger::open`], and of [`Ledger::on_server`].
    pub fn open(&self, options: OpenOptions, context: &Context) -> Result<Ledger> {
        match &self.server {
            None => Ledger::open(&self.db, options, context),
            Some(url) => Ledger::on_server(url, &self.store, options),
        }
    }

    /// Opens the ledger to look at it; what is not there is not made. `None` as of [`Ledger::open_to_look`].
    pub fn open_to_look(&self, options: OpenOptions) -> Result<Option<Ledger>> {
        match &self.server {
            None => Ledger::open_to_look(&self.db, options),
            Some(url) => Ledger::on_server(url, &self.store, options).map(Some),
        }
    }

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
pub fn locate(lookup: &Lookup<'_>) -> Result<LedgerLocation> {
    let named = lookup.db.map(|db| (db, FoundBy::Flag)).or(lookup.env_db.map(|db| (db, FoundBy::Environment)));
    if let Some((db, found_by)) = named {
        return named_place(db, found_by, lookup.directory);
    }
    // A linked work tree of another repository is a place of its own in the ledger above it.
    let mut inner = None;
    for level in lookup.directory.ancestors() {
        inner = inner.or_else(|| is_linked_work_tree(level).then_some(level));
        let root = inner.unwrap_or(level);
        // At each level, the store in git's own directory comes first: `git clean` cannot reach it.
        for (store, found_by) in candidates(level) {
            if let Some(usual) = store
                && let Some(store) = follow_pointer(&usual)?
            {
                if let Some(url) = remote::read(&store)? {
                    // A pointer that came with a cloned repository would send this user's record to another person's
                    // server.
                    trust::require_own_ledger(&remote::path(&store), &store, &usual, level)?;
                    return Ok(LedgerLocation::of_server(url, store, root.to_owned(), found_by));
                }
                if has_ledger(&usual, &store)? {
                    trust::require_own_ledger(&store.join(FILE_NAME), &store, &usual, level)?;
                    return Ok(LedgerLocation::of_file(store, root.to_owned(), found_by));
                }
            }
        }
    }
    Err(Diagnosis::new(
        Code::NoLedger,
        format!("No ledger in {} or any directory above it.", lookup.directory.display()),
    )
    .hint("create one with: ic init; to record what a coding agent does: ic hooks install claude-code"))
}

/// Where the store of a project with this root may be.
fn candidates(level: &Path) -> [(Option<PathBuf>, FoundBy); 2] {
    [(common_dir(level).map(|git| git.join("ic")), FoundBy::Git), (Some(level.join(".ic")), FoundBy::Directory)]
}

/// Where `init` puts the ledger: the flag or environment, else the git repository's store, else `.ic/` here.
pub fn initial_place(lookup: &Lookup<'_>, store: Option<&Path>) -> Result<LedgerLocation> {
    let found_by = match common_dir_above(lookup.directory) {
        Some(_) => FoundBy::Git,
        None => FoundBy::Directory,
    };
    let root = project_root(lookup.directory);
    match (store, lookup.db, lookup.env_db) {
        (Some(store), ..) => {
            let store = absolute(store, lookup.directory)?;
            Ok(LedgerLocation::of_file(store, root, found_by))
        }
        (None, None, None) => {
            let default = default_store(lookup.directory);
            let store = follow_pointer(&default)?.unwrap_or(default);
            // A store that lacks bits of its owner cannot be read here; `create` mends it first and reads it then.
            let remote = if private::lacks_bits(&store) { None } else { remote::read(&store)? };
            Ok(match remote {
                Some(url) => LedgerLocation::of_server(url, store, root, found_by),
                None => LedgerLocation::of_file(store, root, found_by),
            })
        }
        (None, Some(db), _) => named_place(db, FoundBy::Flag, lookup.directory),
        (None, None, Some(db)) => named_place(db, FoundBy::Environment, lookup.directory),
    }
}

/// What `--db` or `IC_DB` names, seen from a directory: a URL is the same everywhere.
pub fn named_from(db: &Path, directory: &Path) -> PathBuf {
    match db.to_str() {
        Some(text) if ServerUrl::is_meant(text) => db.to_owned(),
        _ => directory.join(db),
    }
}

/// The top of the git work tree that holds `directory`, else `directory` itself.
pub fn project_root(directory: &Path) -> PathBuf {
    directory.ancestors().find(|level| common_dir(level).is_some()).unwrap_or(directory).to_owned()
}

fn named_place(db: &Path, found_by: FoundBy, directory: &Path) -> Result<LedgerLocation> {
    if db.as_os_str().is_empty() {
        return Err(Diagnosis::new(Code::InvalidValue, "The path of the ledger is empty.")
            .hint("give a path: --db PATH, or unset IC_DB"));
    }
    let root = project_root(directory);
    if let Some(text) = db.to_str().filter(|text| ServerUrl::is_meant(text)) {
        let url = ServerUrl::parse(text)?;
        // A URL does not name this machine's part of the ledger: that is in the store which leads there, or in the usual place.
        let (store, root) = if let Some(found) = store_that_leads_to(&url, directory)? {
            found
        } else {
            let default = default_store(directory);
            (follow_pointer(&default)?.unwrap_or(default), root)
        };
        return Ok(LedgerLocation::of_server(url, store, root, found_by));
    }
    let db = absolute(db, directory)?;
    let store = db.parent().unwrap_or(Path::new("/")).to_owned();
    Ok(LedgerLocation { db, server: None, store, root, found_by })
}

/// The nearest store that leads to a ledger of this name on a server, and the project that it is of: what stays on this machine lies there.
fn store_that_leads_to(url: &ServerUrl, directory: &Path) -> Result<Option<(PathBuf, PathBuf)>> {
    for level in directory.ancestors() {
        for (usual, _) in candidates(level) {
            if let Some(usual) = usual
                && let Some(store) = follow_pointer(&usual)?
                && remote::read(&store).is_ok_and(|found| found.is_some_and(|found| found.is_named_as(url)))
                // A store that came with a clone is not this user's, whatever it is called.
                && trust::require_own_ledger(&remote::path(&store), &store, &usual, level).is_ok()
            {
                return Ok(Some((store, level.to_owned())));
            }
        }
    }
    Ok(None)
}

pub(crate) fn default_store(directory: &Path) -> PathBuf {
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
pub(crate) fn follow_pointer(store: &Path) -> Result<Option<PathBuf>> {
    match fs::metadata(store) {
        Ok(meta) if meta.is_dir() => Ok(Some(store.to_owned())),
        Ok(_) => {
            let line = read_line(store).while_doing(|| format!("reading {}", store.display()))?;
            let base = store.parent().unwrap_or(Path::new("/"));
            Ok(Some(base.join(path_from_bytes(trim(&line)))))
        }
        // NotADirectory: something above it is a file.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e).while_doing(|| format!("looking for {}", store.display())),
    }
}

/// Whether the ledger is in `store`, which was looked for at `usual`. What cannot be looked at, or is pointed to and is not
/// there (an unmounted disk), is an error: a search further up would find, and write to, the ledger of another project.
fn has_ledger(usual: &Path, store: &Path) -> Result<bool> {
    let db = store.join(FILE_NAME);
    let found = db.try_exists().while_doing(|| format!("looking for {}", db.display()));
    let found = found.map_err(|error| private::with_bits(error, store))?;
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

#[cfg(test)]
mod tests;
