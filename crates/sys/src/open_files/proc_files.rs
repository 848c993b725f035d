//! Open files and working directories by `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::SoughtFile;

/// The processes, by number, each with its place in `/proc`.
fn processes() -> io::Result<impl Iterator<Item = (u32, PathBuf)>> {
    Ok(fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))))
}

pub(super) fn holder_of(files: &[SoughtFile]) -> io::Result<Option<u32>> {
    let own = std::process::id();
    Ok(processes()?.filter(|(pid, _)| *pid != own).find(|(_, process)| has_any(process, files)).map(|(pid, _)| pid))
}

fn has_any(process: &Path, files: &[SoughtFile]) -> bool {
    let names: Vec<&OsStr> = files.iter().filter_map(|file| file.path.file_name()).collect();
    // Of a file with several names, a program may have opened another one.
    let with_names = files.iter().filter(|file| file.has_other_names);
    let of_other_names: Vec<u64> = with_names.filter_map(|file| file.identity).map(|(_, inode)| inode).collect();
    fs::read_dir(process.join("fd")).into_iter().flatten().flatten().any(|open| {
        let Ok(link) = fs::read_link(open.path()) else { return false };
        let link = link.into_os_string().into_vec();
        // A program whose file was deleted still makes its next journal under the old name, so it counts as a user.
        let deleted = link.strip_suffix(b" (deleted)");
        let path = Path::new(OsStr::from_bytes(deleted.unwrap_or(&link)));
        // Only what has one of the names or inodes is looked at: the files of others may lie where a look would hang.
        let is_named = path.file_name().is_some_and(|name| names.contains(&name));
        if !is_named && !is_one_of(&process.join("fdinfo").join(open.file_name()), &of_other_names) {
            return false;
        }
        let identity = fs::metadata(open.path()).ok().map(|meta| (meta.dev(), meta.ino()));
        let is_it = |file: &SoughtFile| {
            (identity.is_some() && file.identity == identity) || (deleted.is_some() && file.path == path)
        };
        files.iter().any(is_it)
    })
}

/// Whether what the kernel says of an open file names one of these inodes, whatever its device.
fn is_one_of(said: &Path, inodes: &[u64]) -> bool {
    if inodes.is_empty() {
        return false;
    }
    let inode = fs::read_to_string(said)
        .ok()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse::<u64>().ok());
    inode.is_some_and(|inode| inodes.contains(&inode))
}

pub(super) fn working_directories(program: &str) -> io::Result<Vec<(u32, PathBuf)>> {
    let runs_it =
        |process: &Path| fs::read(process.join("comm")).is_ok_and(|name| name.starts_with(program.as_bytes()));
    // That of one that ended and was not waited for cannot be read.
    let directory = |(pid, process): (u32, PathBuf)| Some((pid, fs::read_link(process.join("cwd")).ok()?));
    Ok(processes()?.filter(|(_, process)| runs_it(process)).filter_map(directory).collect())
}
