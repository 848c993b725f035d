//! Files and directories that are for the user alone: 0700 and 0600, whatever the umask.
//!
//! An umask can take away bits that the owner needs, and everything made under it would then refuse its own user. The umask is
//! the process's, shared by its threads and inherited by the commands that it runs, so it stays what it is: each thing gets the
//! missing bits right after it was made. Who opens a thing of ours that lacks them (a process died in between) adds them then.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use ic_base::{Diagnosis, shell_word};

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// Makes a directory, 0700, or keeps the one that is there; one of the user's own that lacks their bits gets them.
pub fn directory(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(DIRECTORY).create(path) {
        // Set again, because the umask may have taken bits of the mode away.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(DIRECTORY)),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => mend(path).map(|_| ()),
        Err(e) => Err(e),
    }
}

/// As [`directory`], with every directory above it that is missing.
pub fn directories(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.exists()
    {
        directories(parent)?;
    }
    directory(path)
}

/// Makes a file, 0600. Errors: that it exists.
pub fn create_new(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create_new(true).mode(FILE).open(path)?;
    settle(&file)?;
    Ok(file)
}

/// Opens a file as `options` say, 0600 where that makes it; one of the user's own that lacks their bits gets them.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let options = options.mode(FILE);
    let file = match options.open(path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied && mend(path)? => options.open(path)?,
        opened => opened?,
    };
    let meta = file.metadata()?;
    // Root opens a file without any bits, and would leave its user unable to open it.
    if meta.is_file() && meta.mode() & FILE != FILE && is_own(&meta) {
        settle(&file)?;
    }
    Ok(file)
}

/// Gives an open file 0600, where the umask has taken bits away.
pub fn settle(file: &File) -> io::Result<()> {
    if file.metadata()?.mode() & 0o777 == FILE {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(FILE))
}

/// Gives a file or directory of the user's own the bits back that its owner needs; returns whether it lacked any. What is another
/// user's, or a link, is left alone.
pub fn mend(path: &Path) -> io::Result<bool> {
    match needed_by(&fs::symlink_metadata(path)?) {
        Some(needed) => fs::set_permissions(path, Permissions::from_mode(needed)).map(|()| true),
        None => Ok(false),
    }
}

/// Whether a file or directory of the user's own lacks bits that its owner needs.
pub(crate) fn lacks_bits(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| needed_by(&meta).is_some())
}

/// An error met in a store, with what to do where the directory lacks what its owner needs.
pub(crate) fn with_bits(error: Diagnosis, store: &Path) -> Diagnosis {
    if !lacks_bits(store) {
        return error;
    }
    let path = shell_word(&store.display().to_string());
    error.hint(format!("make the directory its owner's alone again: chmod 700 {path}"))
}

/// The mode that something of the user's own should have; `None` if it has what its owner needs.
fn needed_by(meta: &fs::Metadata) -> Option<u32> {
    let needed = if meta.is_dir() { DIRECTORY } else { FILE };
    let is_ours = (meta.is_dir() || meta.is_file()) && is_own(meta);
    (is_ours && meta.mode() & needed != needed).then_some(needed)
}

fn is_own(meta: &fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{directories, mend, open};

    #[test]
    fn what_lacks_its_owners_bits_gets_them_and_nothing_else_changes() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let deep = place.path().join("a/b");
        directories(&deep).unwrap();
        assert_eq!((mode(&place.path().join("a")), mode(&deep)), (0o700, 0o700));
        let file = deep.join("file");
        for broken in [0, 0o200, 0o400] {
            drop(open(&file, File::options().write(true).create(true)).unwrap());
            set_permissions(&file, Permissions::from_mode(broken)).unwrap();
            drop(open(&file, File::options().read(true).write(true)).unwrap());
            assert_eq!(mode(&file), 0o600, "{broken:o}");
        }
        // More rights than are needed are the owner's decision.
        set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        assert!(!mend(&file).unwrap());
        assert_eq!(mode(&file), 0o640);
        set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
        let link = place.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(!mend(&link).unwrap(), "a link is not followed");
        assert_eq!(mode(&file), 0);
        set_permissions(&deep, Permissions::from_mode(0o500)).unwrap();
        directories(&deep).unwrap();
        assert_eq!(mode(&deep), 0o700);
    }
}
