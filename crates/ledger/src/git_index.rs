//! Git's index, read from its file: <https://git-scm.com/docs/index-format>. No process is started.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use crate::git_dirs::GitDirs;
use crate::regular_file::read_line;

/// The longest path that is read, in bytes: a damaged index must not fill the memory.
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
    // A search for words and no parser: what is looked for is `extensions.objectFormat = sha256`.
    let says = |word: &[u8]| config.windows(word.len()).any(|window| window == word);
    Ok(if says(b"objectformat") && says(b"sha256") { 32 } else { 20 })
}

fn scan(index: &Path, path: &[u8], hash_length: usize) -> io::Result<bool> {
    let file = match File::open(index) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut entries = IndexEntries::new(BufReader::new(file), hash_length)?;
    let mut before = Vec::new();
    while let Some(IndexEntry { path: name, .. }) = entries.next_entry()? {
        // A path in conflict has several entries.
        // An index that is not sorted is damaged, and the search below would end too early in it.
        if *name < before {
            return Err(ErrorKind::InvalidData.into());
        }
        let lower = name.to_ascii_lowercase();
        if lower.strip_prefix(path).is_some_and(|rest| matches!(rest.first(), None | Some(b'/'))) {
            return Ok(true);
        }
        // Names are sorted, and lower-case letters come after upper-case ones: past the lower-case form, no form of the path can follow.
        if name.as_slice() > path && !name.starts_with(path) {
            return Ok(false);
        }
        before.clone_from(name);
    }
    Ok(false)
}

/// An entry of an index.
#[derive(Debug, Clone, Default)]
pub struct IndexEntry {
    /// What it is, as git writes modes.
    pub mode: u32,
    /// The file's length when git last found it equal to the entry, in bytes; 0 if git has to compare it again.
    pub size: u32,
    /// The file's modification time at that moment, in seconds and nanoseconds.
    pub written_at: (u32, u32),
    /// Its path, from the top of the work tree. In a split index, what replaces an entry of the other file has none.
    pub path: Vec<u8>,
    oid: [u8; LONGEST_HASH],
    hash_length: usize,
    flags: u16,
    extended: u16,
}

impl IndexEntry {
    /// The name of its object, in bytes.
    pub fn oid(&self) -> &[u8] {
        &self.oid[..self.hash_length]
    }

    /// 0, or which side of a conflict it is.
    pub fn stage(&self) -> u8 {
        u8::try_from(self.flags >> 12 & 3).unwrap_or_default()
    }

    /// Whether git is told not to look at the file.
    pub fn is_assumed(&self) -> bool {
        self.flags & ASSUMED != 0
    }

    /// Whether it is only intended to be added.
    pub fn is_intended(&self) -> bool {
        self.extended & INTENDED != 0
    }

    /// What it says, but for its path, its object and the stat of the file that git wrote into it.
    pub fn mode_and_flags(&self) -> [u8; 8] {
        let [m0, m1, m2, m3] = self.mode.to_be_bytes();
        let ([f0, f1], [e0, e1]) = (self.flags.to_be_bytes(), self.extended.to_be_bytes());
        [m0, m1, m2, m3, f0, f1, e0, e1]
    }

    /// Whether it says more, as that a sparse checkout leaves the file out.
    pub fn says_more(&self) -> bool {
        self.extended & !INTENDED != 0
    }
}

// An entry, by offset; numbers are big-endian. Version 4 shortens the path and pads nothing.
//
//   0       8       16    20    24     28    32    36     40                           + 2
//   ctime   mtime   dev   ino   mode   uid   gid   size   object (20 or 32)   flags    extended flags, path, NUL, padding
const STAT: usize = 40;
/// The longest name of an object, in bytes.
pub const LONGEST_HASH: usize = 32;
// The flags: one bit ASSUMED, one bit EXTENDED, two bits of the stage, twelve bits for the length of the path.
const ASSUMED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const INTENDED: u16 = 0x2000;
/// The longest path whose length is in the flags.
const LONGEST_SAID: u16 = 0x0fff;

/// Reads the entries of an index one after the other.
#[derive(Debug)]
pub struct IndexEntries<R> {
    reader: R,
    version: u32,
    hash_length: usize,
    left: u32,
    /// The entry that was read last. In version 4 the next path builds on its path; its memory is used again.
    entry: IndexEntry,
}

impl<R: BufRead> IndexEntries<R> {
    /// Begins with the index that `reader` reads from its first byte. `hash_length`: as [`hash_length`] says. Errors: those of reading;
    /// `InvalidData` for an index of another form.
    pub fn new(mut reader: R, hash_length: usize) -> io::Result<Self> {
        let mut header = [0; 12];
        reader.read_exact(&mut header)?;
        let (version, left) = (number(&header, 4), number(&header, 8));
        if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) || hash_length > LONGEST_HASH {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(Self { reader, version, hash_length, left, entry: IndexEntry { hash_length, ..IndexEntry::default() } })
    }

    /// The next entry; `None` after the last one. Errors: as for [`IndexEntries::new`].
    pub fn next_entry(&mut self) -> io::Result<Option<&IndexEntry>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        if let Some(length) = self.read_in_buffer()? {
            self.reader.consume(length);
            return Ok(Some(&self.entry));
        }
        let mut fixed = [0; STAT + LONGEST_HASH + 2];
        let fixed = &mut fixed[..STAT + self.hash_length + 2];
        self.reader.read_exact(fixed)?;
        let mut length = fixed.len();
        let flags = u16::from_be_bytes([fixed[length - 2], fixed[length - 1]]);
        let mut extended = [0; 2];
        if flags & EXTENDED != 0 {
            if self.version < 3 {
                return Err(ErrorKind::InvalidData.into());
            }
            self.reader.read_exact(&mut extended)?;
            length += extended.len();
        }
        self.read_path(length, flags & LONGEST_SAID)?;
        let entry = &mut self.entry;
        entry.oid[..self.hash_length].copy_from_slice(&fixed[STAT..STAT + self.hash_length]);
        (entry.mode, entry.size) = (number(fixed, 24), number(fixed, 36));
        entry.written_at = (number(fixed, 8), number(fixed, 12));
        (entry.flags, entry.extended) = (flags, u16::from_be_bytes(extended));
        Ok(Some(&self.entry))
    }

    /// Reads the next entry if it has the usual form and lies wholly in the reader's buffer: no byte of it is copied twice. Returns its
    /// length; `None`: the caller reads it piece by piece, which also finds what is wrong with it.
    fn read_in_buffer(&mut self) -> io::Result<Option<usize>> {
        let start = STAT + self.hash_length + 2;
        let buffer = self.reader.fill_buf()?;
        let Some(fixed) = buffer.get(..start).filter(|_| self.version < 4) else { return Ok(None) };
        let flags = u16::from_be_bytes([fixed[start - 2], fixed[start - 1]]);
        let said = flags & LONGEST_SAID;
        let end = start + usize::from(said);
        // Padded with one to eight NUL bytes to a multiple of eight.
        let length = (end + 8) & !7;
        let is_usual = flags & EXTENDED == 0 && said < LONGEST_SAID;
        let Some(padding) = buffer.get(end..length).filter(|_| is_usual) else { return Ok(None) };
        let path = &buffer[start..end];
        if path.contains(&0) || padding.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
        let entry = &mut self.entry;
        entry.path.clear();
        entry.path.extend_from_slice(path);
        entry.oid[..self.hash_length].copy_from_slice(&fixed[STAT..start - 2]);
        (entry.mode, entry.size) = (number(fixed, 24), number(fixed, 36));
        entry.written_at = (number(fixed, 8), number(fixed, 12));
        (entry.flags, entry.extended) = (flags, 0);
        Ok(Some(length))
    }

    /// What follows the entries that were read.
    pub fn into_rest(self) -> R {
        self.reader
    }

    /// Reads the path of an entry in place of the one before. `length`: of the entry so far; `said`: of the path, as the entry says.
    fn read_path(&mut self, length: usize, said: u16) -> io::Result<()> {
        let path = &mut self.entry.path;
        // Version 4 writes `src/lib.rs` after `src/main.rs` as the number 7 and the text `lib.rs`: seven bytes are cut off.
        let kept = match self.version {
            4 => path.len().checked_sub(offset(&mut self.reader)?),
            _ => Some(0),
        };
        path.truncate(kept.ok_or(ErrorKind::InvalidData)?);
        let read = self.reader.by_ref().take(LONGEST_PATH as u64).read_until(0, path)?;
        if path.pop() != Some(0) {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut padding = [0; 8];
        if self.version < 4 {
            // Entries are padded with NUL bytes to a multiple of eight; one of them has been read.
            let padding = &mut padding[..(8 - (length + read) % 8) % 8];
            self.reader.read_exact(padding)?;
        }
        let is_so_long = match said {
            LONGEST_SAID => path.len() >= usize::from(LONGEST_SAID),
            said => path.len() == usize::from(said),
        };
        if is_so_long && padding == [0; 8] { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// A number as pack files write offsets: seven bits a byte, each step one more.
fn offset(reader: &mut impl Read) -> io::Result<usize> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    let mut number = usize::from(byte[0] & 0x7f);
    while byte[0] & 0x80 != 0 {
        reader.read_exact(&mut byte)?;
        let next = number.checked_add(1).and_then(|number| number.checked_mul(128)).ok_or(ErrorKind::InvalidData)?;
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
        for (format, version) in [("sha1", "2"), ("sha1", "3"), ("sha1", "4"), ("sha256", "2"), ("sha256", "4")] {
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
        for wrong in [&b"DIRC\0\0\0\x09\0\0\0\x01"[..], b"DIRC", b"", &[b'x'; 500], b"DIRC\0\0\0\x02\xff\xff\xff\xff"] {
            std::fs::write(directory.path().join(".git/index"), wrong).unwrap();
            assert!(tracks(&dirs, b".ic").is_err(), "{wrong:?}");
        }
    }
}
