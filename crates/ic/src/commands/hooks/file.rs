//! A client's file: where it is, whether it may be edited, and what it becomes, with a copy of what was there beside it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};

/// Where a file of a client is.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The file.
    pub(super) file: PathBuf,
    /// Whether it is in the home directory, for all projects.
    is_of_user: bool,
    /// How many directories the client wants around it: those that we made go with it.
    depth: usize,
}

impl Location {
    /// The file of a project that a client names so.
    pub(crate) fn of_project(root: &Path, name: &str) -> Self {
        Self { file: root.join(name), is_of_user: false, depth: Path::new(name).components().count() - 1 }
    }

    /// The file in a home directory that a client names so.
    pub(crate) fn of_user(home: &Path, name: &str) -> Self {
        Self { is_of_user: true, ..Self::of_project(home, name) }
    }

    /// Its bytes; `None`: there is none. Errors: `config_not_changed` for what is no plain file, or may not be written.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>> {
        let refused = |why: &str| refused(&self.file, why);
        // A repository could lead what is written for it anywhere; a person keeps the home directory as it suits.
        let most = if self.is_of_user { 1 } else { usize::MAX };
        if self.file.ancestors().skip(1).take(self.depth.min(most)).any(Path::is_symlink) {
            return Err(
                refused("its directory is a link").hint("make the change in the directory that it leads to")
            );
        }
        match fs::symlink_metadata(&self.file) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Ok(found) if found.is_symlink() => {
                return Err(refused("it is a link").hint("make the change in the file that it leads to"));
            }
            Ok(found) if !found.is_file() => return Err(refused("it is no file")),
            Ok(found) if found.permissions().mode() & 0o200 == 0 => {
                return Err(refused("it may not be written"));
            }
            _ => {}
        }
        fs::read(&self.file).map(Some).while_doing(|| format!("reading {}", self.file.display()))
    }
}

/// What a file is to be.
pub(crate) struct Edit {
    pub(super) location: Location,
    /// Its bytes; `None`: it is removed.
    pub(super) after: Option<Vec<u8>>,
    pub(super) before: Option<Vec<u8>>,
    /// Entries that call us and were changed by hand: their events, or the name of the server.
    pub(crate) left: Vec<String>,
    pub(super) copies: Copies,
}

/// What becomes of the copy of what was there, beside the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// One is made of what is there, if anything is; an older one goes.
    Kept,
    /// An older one stays.
    Older,
    /// It goes.
    Gone,
}

impl Edit {
    /// The file.
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

    /// Whether the file goes: nothing else would be left in it.
    pub(crate) fn removes_file(&self) -> bool {
        self.is_change() && self.after.is_none()
    }

    /// Of a dry run of two edits of one file, says what both make of it.
    pub(crate) fn followed_by(&mut self, next: &Self) {
        if self.location.file == next.location.file && self.is_change() {
            self.after.clone_from(&next.after);
        }
    }

    /// The text that the file is to have.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.after.as_deref().unwrap_or_default()).into_owned()
    }

    /// Writes it, all or nothing; what was there is kept beside it until it is removed again.
    pub(crate) fn write(&self) -> Result<()> {
        let copy = copy_of(&self.location.file);
        if !self.is_change() {
            self.drop_copy(&copy, Copies::Gone);
            return Ok(());
        }
        let doing = || format!("writing {}", self.location.file.display());
        let had_copy = copy.exists();
        match &self.before {
            Some(before) if self.copies == Copies::Kept => replace(&copy, before, None).while_doing(doing)?,
            _ => self.drop_copy(&copy, Copies::Kept),
        }
        let written = match &self.after {
            Some(bytes) => {
                let mode = fs::metadata(&self.location.file).map(|found| found.permissions().mode()).ok();
                replace(&self.location.file, bytes, mode)
            }
            None => fs::remove_file(&self.location.file),
        };
        if written.is_err() && !had_copy {
            // Nothing was changed, so nothing is left beside it.
            self.drop_copy(&copy, Copies::Kept);
        }
        written.while_doing(doing)?;
        if self.after.is_none() {
            // The directories, if they were made for the file: what is not empty stays.
            for directory in self.location.file.ancestors().skip(1).take(self.location.depth) {
                let _ = fs::remove_dir(directory);
            }
        }
        self.drop_copy(&copy, Copies::Gone);
        Ok(())
    }

    /// Removes the copy in this case, as far as it is a file.
    fn drop_copy(&self, copy: &Path, case: Copies) {
        if self.copies == case {
            let _ = fs::remove_file(copy);
        }
    }
}

pub(super) fn refused(file: &Path, why: &str) -> Diagnosis {
    Diagnosis::new(Code::ConfigNotChanged, format!("{} is left as it is: {why}.", file.display()))
}

/// Where what was there is kept.
pub(super) fn copy_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".before-ic");
    PathBuf::from(name)
}

pub(super) fn replace(file: &Path, bytes: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut name = file.as_os_str().to_owned();
    name.push(".ic-new");
    let fresh = PathBuf::from(name);
    let _ = fs::remove_file(&fresh);
    let written = write_new(&fresh, bytes, mode).and_then(|()| fs::rename(&fresh, file));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn write_new(file: &Path, bytes: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    let mut written = File::options().write(true).create_new(true).mode(mode.unwrap_or(0o600)).open(file)?;
    written.write_all(bytes)?;
    written.sync_all()
}
