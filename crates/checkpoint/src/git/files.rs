//! What git's files are, read without git: equal stamps stand for equal answers of `git status`, `for-each-ref`, `ls-files` and
//! `log -g refs/stash`, as far as they do not depend on the work tree.
//!
//! The index has a stamp of its own: where it alone differs, its entries tell whether it says something else.
//! A file is told by its stat where it was left alone for two seconds before the look began, else by its content as well: the rule of
//! the stat cache. What is small and changes often (HEAD, refs) is told by its content. Whatever is of another form than git
//! writes today has no stamp, and git is asked. docs/adr/0035-git-as-it-was.md says what is believed and what is not.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ic_ledger::events::Hash;
use ic_ledger::regular_file::read_line;
use ic_ledger::{GitDirs, path_bytes};
use rustix::fs::{Access, access, stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::capture::Key;
use crate::manifest::hash_text;
use crate::objects::hash_of;
use crate::tree::put_bytes;

/// Changes when the same files are read otherwise.
const READING: u8 = 2;

/// With more refs in files of their own, asking git takes hardly longer.
const MOST_REFS: usize = 2_000;

/// Stamps of a repository's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamps {
    /// Of the index alone: most commands of git's write new stats into it, and nothing else.
    #[serde(with = "hash_text")]
    pub(super) index: Hash,
    #[serde(with = "hash_text")]
    pub(super) others: Hash,
}

/// Stamps of the repository's files; `None` where they do not tell. `now` is a moment before, by the file system's clock.
pub(super) fn of_repository(root: &Path, dirs: &GitDirs, now: i64) -> Option<Stamps> {
    let mut stamp = Stamp { bytes: vec![READING], now };
    stamp.program(root, dirs)?;
    // A HEAD that is a link would be another ref's file: git is asked instead.
    let head = dirs.git_dir.join("HEAD");
    if fs::symlink_metadata(&head).ok()?.is_symlink() {
        return None;
    }
    stamp.text(&head)?;
    let index = of_index(dirs, now)?;
    stamp.file(&dirs.common_dir.join("packed-refs"))?;
    stamp.file(&dirs.common_dir.join("logs/refs/stash"))?;
    let own = fs::canonicalize(&dirs.git_dir).ok()?;
    let mut places = vec![own.as_path()];
    if own != dirs.common_dir {
        places.push(&dirs.common_dir);
    }
    let mut left = MOST_REFS;
    for place in places {
        // The stamps of both places follow one another: the path tells where those of the second begin.
        put_bytes(&mut stamp.bytes, path_bytes(place));
        stamp.text(&place.join("reftable/tables.list"))?;
        stamp.file(&place.join("info/attributes"))?;
        stamp.file(&place.join("info/sparse-checkout"))?;
        stamp.refs(&place.join("refs"), true, &mut left)?;
        if has_shared_index(place)? {
            return None;
        }
    }
    Some(Stamps { index, others: hash_of(&stamp.bytes) })
}

/// A stamp of the index alone, as [`of_repository`] has it.
pub(super) fn of_index(dirs: &GitDirs, now: i64) -> Option<Hash> {
    let mut stamp = Stamp { bytes: vec![READING], now };
    stamp.read(&dirs.git_dir.join("index"), checksum)?;
    Some(hash_of(&stamp.bytes))
}

/// A stamp of files that hold settings, and of the attributes beside them; `None` where one may still change without a trace.
pub(super) fn of_settings(place: u64, files: &[PathBuf], now: i64) -> Option<Hash> {
    let mut stamp = Stamp { bytes: place.to_le_bytes().to_vec(), now };
    let user = super::config_files::user_file("attributes");
    // Attributes decide what `git status` says. Git reads `gitattributes` beside the system's file, and `attributes` beside the
    // user's.
    let beside = files.iter().filter_map(|file| match file.file_name()?.to_str()? {
        "gitconfig" => Some(file.with_file_name("gitattributes")),
        "config" => Some(file.with_file_name("attributes")),
        _ => None,
    });
    for file in files.iter().cloned().chain(beside).chain(user) {
        put_bytes(&mut stamp.bytes, path_bytes(&file));
        if !stamp.file(&file)? {
            return None;
        }
    }
    Some(hash_of(&stamp.bytes))
}

/// What stands for the content of an index: git ends it with a checksum of all that is before, or with zeros where it is set to write none.
fn checksum(index: &Path) -> io::Result<Hash> {
    /// As long as the shorter of the two that git knows.
    const LENGTH: u8 = 20;
    let mut file = File::open(index)?;
    let mut end = [0; LENGTH as usize];
    if let Some(start) = file.metadata()?.len().checked_sub(LENGTH.into()) {
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut end)?;
    }
    if end == [0; LENGTH as usize] {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        return Ok(hash_of(&bytes));
    }
    Ok(hash_of(&end))
}

struct Stamp {
    bytes: Vec<u8>,
    now: i64,
}

impl Stamp {
    /// The program that would be asked, and whose everything is: git refuses what belongs to others.
    fn program(&mut self, root: &Path, dirs: &GitDirs) -> Option<()> {
        let path = std::env::var_os("PATH")?;
        // Only absolute directories count, as in the PATH that git is started with (`safe_settings`).
        let mut programs =
            std::env::split_paths(&path).filter(|place| place.is_absolute()).map(|place| place.join("git"));
        let program = programs.find(|program| access(program, Access::EXEC_OK).is_ok() && program.is_file())?;
        put_bytes(&mut self.bytes, path_bytes(&program));
        self.file(&program)?;
        let mut owners = vec![rustix::process::geteuid().as_raw()];
        for place in [root, &dirs.git_dir, &dirs.common_dir] {
            owners.push(fs::metadata(place).ok()?.uid());
        }
        self.bytes.extend(owners.into_iter().flat_map(u32::to_le_bytes));
        Some(())
    }

    /// A file of any length; whether its stat alone tells.
    fn file(&mut self, path: &Path) -> Option<bool> {
        self.read(path, |path| fs::read(path).map(|bytes| hash_of(&bytes)))
    }

    /// As [`Stamp::file`], of which `read` makes what stands for its content.
    fn read(&mut self, path: &Path, read: impl FnOnce(&Path) -> io::Result<Hash>) -> Option<bool> {
        let key = match stat(path) {
            Ok(stat) => Key::of(&stat),
            Err(Errno::NOENT | Errno::NOTDIR) => {
                self.bytes.push(0);
                return Some(true);
            }
            Err(_) => return None,
        };
        let is_settled = key.is_settled(self.now);
        // 0: there is no file; 1: its stat follows; 2: its stat and its content follow. So no two of them look alike.
        self.bytes.push(if is_settled { 1 } else { 2 });
        key.put(&mut self.bytes);
        if !is_settled {
            self.bytes.extend_from_slice(&read(path).ok()?);
        }
        Some(is_settled)
    }

    /// A short file by its content.
    fn text(&mut self, path: &Path) -> Option<()> {
        match read_line(path) {
            Ok(text) => {
                self.bytes.push(1);
                put_bytes(&mut self.bytes, &text);
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                self.bytes.push(0);
            }
            Err(_) => return None,
        }
        Some(())
    }

    /// Every ref below a directory that has a file of its own. Ours are not recorded, and nothing that is recorded may lead to them.
    fn refs(&mut self, directory: &Path, is_top: bool, left: &mut usize) -> Option<()> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(()),
            entries => entries.ok()?,
        };
        let mut entries = entries.collect::<Result<Vec<_>, _>>().ok()?;
        // A directory lists its names in no fixed order.
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, kind) = (entry.file_name(), entry.file_type().ok()?);
            if is_top && name == "ic" {
                continue;
            }
            *left = left.checked_sub(1)?;
            put_bytes(&mut self.bytes, name.as_encoded_bytes());
            if kind.is_dir() {
                self.bytes.push(b'/');
                self.refs(&entry.path(), false, left)?;
                // The end of a directory counts, too: `a/b` must not have the stamp of `a` beside `b`.
                self.bytes.push(b'.');
                continue;
            }
            // Git no longer makes refs that are links: git is asked about such an old form.
            if !kind.is_file() {
                return None;
            }
            let text = read_line(&entry.path()).ok()?;
            if text.starts_with(b"ref: refs/ic/") {
                return None;
            }
            put_bytes(&mut self.bytes, &text);
        }
        Some(())
    }
}

/// Whether an index was ever split here: the file that git replaces does not hold all of it then.
fn has_shared_index(git_dir: &Path) -> Option<bool> {
    let mut entries = fs::read_dir(git_dir).ok()?.map(|entry| entry.map(|entry| entry.file_name()));
    let found =
        entries.find(|name| name.as_ref().map_or(true, |name| name.as_encoded_bytes().starts_with(b"sharedindex.")));
    found.map_or(Some(false), |name| name.ok().map(|_| true))
}
