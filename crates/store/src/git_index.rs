//! Whether git tracks a path, by the index alone: <https://git-scm.com/docs/index-format>. No process is started.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use crate::git_dirs::GitDirs;
use crate::regular::read_line;

/// No path is longer.
const LONGEST_PATH: usize = 64 * 1024;

/// Whether the index has an entry at `path` (from the top of the work tree), or below it. Letters count as the same in upper and
/// lower case, as they do to some file systems.
///
/// Errors: those of reading; `InvalidData` for an index of another form.
pub fn tracks(dirs: &GitDirs, path: &[u8]) -> io::Result<bool> {
    let path = path.to_ascii_lowercase();
    let hash_length = hash_length(dirs)?;
    if scan(&dirs.git_dir.join("index"), &path, hash_length)? {
        return Ok(true);
    }
    // An index may be split: most of it is then in another file.
    for entry in fs::read_dir(&dirs.git_dir)? {
        let entry = entry?;
        let is_shared = entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.");
        if is_shared && scan(&entry.path(), &path, hash_length)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How long the names of objects are, in bytes: git writes down when they are not of SHA-1. Errors: those of reading.
pub fn hash_length(dirs: &GitDirs) -> io::Result<usize> {
    let config = read_line(&dirs.common_dir.join("config"))?.to_ascii_lowercase();
    let says = |word: &[u8]| config.windows(word.len()).any(|window| window == word);
    Ok(if says(b"objectformat") && says(b"sha256") { 32 } else { 20 })
}

fn scan(index: &Path, path: &[u8], hash_length: usize) -> io::Result<bool> {
    let file = match File::open(index) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut reader = BufReader::new(file);
    let mut header = [0; 12];
    reader.read_exact(&mut header)?;
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let version = number(4);
    if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut name = Vec::new();
    for _ in 0..number(8) {
        let before = name.clone();
        next_name(&mut reader, version, hash_length, &mut name)?;
        // A path in conflict has several entries.
        if name < before {
            return Err(ErrorKind::InvalidData.into());
        }
        let lower = name.to_ascii_lowercase();
        if lower.strip_prefix(path).is_some_and(|rest| matches!(rest.first(), None | Some(b'/'))) {
            return Ok(true);
        }
        // Names are sorted, and lower-case letters stand after upper-case ones: what is wanted cannot follow any more.
        if name.as_slice() > path && !name.starts_with(path) {
            return Ok(false);
        }
    }
    Ok(false)
}

/// Reads the next entry and puts its name in place of the one before, on which its own may build.
fn next_name(
    reader: &mut impl BufRead,
    version: u32,
    hash_length: usize,
    name: &mut Vec<u8>,
) -> io::Result<()> {
    const STAT: usize = 40;
    const EXTENDED: u16 = 0x4000;
    let mut fixed = [0; STAT + 32 + 2];
    let fixed = &mut fixed[..STAT + hash_length + 2];
    reader.read_exact(fixed)?;
    let mut length = fixed.len();
    let flags = u16::from_be_bytes([fixed[length - 2], fixed[length - 1]]);
    if version >= 3 && flags & EXTENDED != 0 {
        reader.read_exact(&mut [0; 2])?;
        length += 2;
    }
    let kept = if version == 4 { name.len().checked_sub(offset(reader)?) } else { Some(0) };
    name.truncate(kept.ok_or(ErrorKind::InvalidData)?);
    let read = reader.by_ref().take(LONGEST_PATH as u64).read_until(0, name)?;
    // In a split index, what replaces an entry of the other file has no name of its own.
    if name.pop() != Some(0) {
        return Err(ErrorKind::InvalidData.into());
    }
    if version < 4 {
        // Entries are padded with NUL bytes to a multiple of eight; one of them has been read.
        let padding = (8 - (length + read) % 8) % 8;
        reader.read_exact(&mut [0; 8][..padding])?;
    }
    Ok(())
}

/// A number as pack files write offsets: seven bits a byte, each step one more.
fn offset(reader: &mut impl Read) -> io::Result<usize> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    let mut number = usize::from(byte[0] & 0x7f);
    while byte[0] & 0x80 != 0 {
        reader.read_exact(&mut byte)?;
        let next =
            number.checked_add(1).and_then(|number| number.checked_mul(128)).ok_or(ErrorKind::InvalidData)?;
        number = next | usize::from(byte[0] & 0x7f);
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::tracks;
    use crate::git_dirs;

    fn git(directory: &Path, arguments: &[&str]) {
        let said = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(arguments)
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(said.status.success(), "{arguments:?}: {said:?}");
    }

    #[test]
    fn entries_are_found_in_every_form_of_the_index() {
        for (format, version) in
            [("sha1", "2"), ("sha1", "3"), ("sha1", "4"), ("sha256", "2"), ("sha256", "4")]
        {
            let directory = tempfile::tempdir().unwrap();
            let top = directory.path();
            git(top, &["init", "-q", &format!("--object-format={format}")]);
            let dirs = git_dirs(top).unwrap();
            assert!(!tracks(&dirs, b".ic").unwrap(), "there is no index yet");
            for name in [".gitignore", ".ib", ".ic.yaml", "a", "sub/.ic.d/x", "sub/z", "z"] {
                std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
                std::fs::write(top.join(name), name).unwrap();
            }
            git(top, &["add", "."]);
            if version == "3" {
                std::fs::write(top.join("later"), "").unwrap();
                git(top, &["add", "-N", "later"]);
            } else {
                git(top, &["update-index", "--index-version", version]);
            }
            assert!(!tracks(&dirs, b".ic").unwrap(), "{format} {version}");
            assert!(!tracks(&dirs, b"sub/.ic").unwrap(), "{format} {version}");
            assert!(tracks(&dirs, b"sub").unwrap() && tracks(&dirs, b"z").unwrap(), "{format} {version}");
            for name in [".Ic/ic.db", "sub/.ic/ic.db"] {
                std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
                std::fs::write(top.join(name), name).unwrap();
            }
            git(top, &["add", "."]);
            assert!(tracks(&dirs, b".ic").unwrap(), "{format} {version}");
            assert!(tracks(&dirs, b"sub/.ic").unwrap(), "{format} {version}");
            git(top, &["update-index", "--split-index"]);
            std::fs::write(top.join("new"), "").unwrap();
            git(top, &["add", "new"]);
            assert!(tracks(&dirs, b"sub/.ic").unwrap(), "{format} {version}, split");
        }
    }

    #[test]
    fn what_is_no_index_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        git(directory.path(), &["init", "-q"]);
        let dirs = git_dirs(directory.path()).unwrap();
        for wrong in
            [&b"DIRC\0\0\0\x09\0\0\0\x01"[..], b"DIRC", b"", &[b'x'; 500], b"DIRC\0\0\0\x02\xff\xff\xff\xff"]
        {
            std::fs::write(directory.path().join(".git/index"), wrong).unwrap();
            assert!(tracks(&dirs, b".ic").is_err(), "{wrong:?}");
        }
    }
}
