//! A configuration file of a client: where it is, whether it may be edited, how it is written, and the copy of its former content.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};

/// The place of a configuration file.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// Its absolute path, which may not exist yet.
    pub(super) file: PathBuf,
    /// Whether it is in the home directory, for all projects.
    is_of_user: bool,
    /// How many of its directories belong to the client. They are removed with the file if they are empty then.
    depth: usize,
}

impl Location {
    /// The file `name` of a project.
    pub(crate) fn of_project(root: &Path, name: &str) -> Self {
        Self { file: root.join(name), is_of_user: false, depth: Path::new(name).components().count() - 1 }
    }

    /// The file `name` of a home directory.
    pub(crate) fn of_user(home: &Path, name: &str) -> Self {
        Self { is_of_user: true, ..Self::of_project(home, name) }
    }

    /// Its bytes; `None` if it does not exist. Errors: `config_not_changed` for a link, for what is no regular file, and for a read-only
    /// one.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>> {
        let refused = |why: &str| refused(&self.file, why);
        // A link in a repository could lead the edit to any file. In a home directory only the last one is checked: a person may link the
        // others.
        let most = if self.is_of_user { 1 } else { usize::MAX };
        if self.file.ancestors().skip(1).take(self.depth.min(most)).any(Path::is_symlink) {
            return Err(refused("its directory is a link").hint("make the change in the directory that it leads to"));
        }
        match fs::symlink_metadata(&self.file) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Ok(found) if found.is_symlink() => {
                return Err(refused("it is a link").hint("make the change in the file that it leads to"));
            }
            Ok(found) if !found.is_file() => return Err(refused("it is no file")),
            // A rename replaces even a read-only file, but who made it so wants it left alone.
            Ok(found) if found.permissions().mode() & 0o200 == 0 => {
                return Err(refused("it may not be written"));
            }
            // Any other error is met again by the read below, which names it.
            _ => {}
        }
        fs::read(&self.file).map(Some).while_doing(|| format!("reading {}", self.file.display()))
    }
}

/// A change of a configuration file.
pub(crate) struct Edit {
    pub(super) location: Location,
    /// Its bytes afterwards; `None`: it is removed.
    pub(super) after: Option<Vec<u8>>,
    pub(super) before: Option<Vec<u8>>,
    /// Entries that call ic and were changed by hand, which stay: their events, or the name of the server.
    pub(crate) left: Vec<String>,
    pub(super) copies: Copies,
}

/// What happens to the copy of the former content, beside the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// The former content is copied, if there is any, over an older copy.
    Kept,
    /// An older one stays.
    Older,
    /// The copy is removed.
    Gone,
}

impl Edit {
    /// The path of the file, absolute.
    pub(crate) fn file(&self) -> &Path {
        &self.location.file
    }

    /// Whether it is in the home directory, for all projects.
    pub(crate) fn is_of_user(&self) -> bool {
        self.location.is_of_user
    }

    /// Whether anything is to be written.
    pub(crate) fn is_change(&self) -> bool {
        self.after != self.before
    }

    /// Whether the file is removed, because nothing else would be left in it.
    pub(crate) fn removes_file(&self) -> bool {
        self.is_change() && self.after.is_none()
    }

    /// In a dry run of two edits of one file, makes this one show the result of both.
    pub(crate) fn followed_by(&mut self, next: &Self) {
        if self.location.file == next.location.file && self.is_change() {
            self.after.clone_from(&next.after);
        }
    }

    /// The text of the file afterwards; empty if it is removed.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.after.as_deref().unwrap_or_default()).into_owned()
    }

    /// Writes the file, all or nothing. Its former content is kept beside it until the entries are uninstalled.
    pub(crate) fn write(&self) -> Result<()> {
        // former content to FILE.before-ic ──► new content to FILE.ic-new ──► renamed to FILE ──► copy removed (uninstallation)
        // After a kill at any arrow, FILE is the old or the new one, and whole.
        let copy = copy_of(&self.location.file);
        if !self.is_change() {
            // A copy may be left of an uninstallation that died after it wrote the file.
            self.drop_copy(&copy, Copies::Gone);
            return Ok(());
        }
        // The copy is complete before the file is touched, so that a crash between the two loses nothing.
        let doing = || format!("writing {}", self.location.file.display());
        let had_copy = copy.exists();
        match &self.before {
            Some(before) if self.copies == Copies::Kept => replace(&copy, before, None).while_doing(doing)?,
            // Without a former content an older copy is removed, because it would later be taken for that content. In
            // all other cases nothing happens here.
            _ => self.drop_copy(&copy, Copies::Kept),
        }
        let written = match &self.after {
            Some(bytes) => {
                // The rename brings a new file, which would have the permissions of a private one.
                let mode = fs::metadata(&self.location.file).map(|found| found.permissions().mode()).ok();
                replace(&self.location.file, bytes, mode)
            }
            None => fs::remove_file(&self.location.file),
        };
        if written.is_err() && !had_copy {
            // Nothing was changed, so no new copy stays.
            self.drop_copy(&copy, Copies::Kept);
        }
        written.while_doing(doing)?;
        if self.after.is_none() {
            // Directories that were made for the file; those that are not empty stay, because `remove_dir` fails.
            for directory in self.location.file.ancestors().skip(1).take(self.location.depth) {
                let _ = fs::remove_dir(directory);
            }
        }
        self.drop_copy(&copy, Copies::Gone);
        Ok(())
    }

    /// Removes the copy, if this is the case that `copies` names and it is a file.
    fn drop_copy(&self, copy: &Path, case: Copies) {
        if self.copies == case {
            let _ = fs::remove_file(copy);
        }
    }
}

pub(super) fn refused(file: &Path, why: &str) -> Diagnosis {
    Diagnosis::new(Code::ConfigNotChanged, format!("{} was not changed: {why}.", file.display()))
}

/// The path of the copy of the former content.
pub(super) fn copy_of(file: &Path) -> PathBuf {
    ic_ledger::sibling(file, ".before-ic")
}

// Written beside the file and renamed over it, so that a client never reads half a file. A name that a crash left is removed first.
pub(super) fn replace(file: &Path, bytes: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let fresh = ic_ledger::sibling(file, ".ic-new");
    let _ = fs::remove_file(&fresh);
    let written = write_new(&fresh, bytes, mode).and_then(|()| fs::rename(&fresh, file));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn write_new(file: &Path, bytes: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    // The file is new: a link at this name is not followed.
    let mut written = File::options().write(true).create_new(true).mode(mode.unwrap_or(0o600)).open(file)?;
    written.write_all(bytes)?;
    // Before the rename: after a power loss the name must not lead to an empty file.
    written.sync_all()
}
