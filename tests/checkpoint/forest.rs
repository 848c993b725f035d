//! Generated trees and edits: whatever a file system allows and a project may hold.
//!
//! Edits do not care whether they succeed: what counts is the tree that they leave.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ic_testkit::Random;

use crate::snapshot::path_of;

const FILE_MODES: [u32; 6] = [0o644, 0o755, 0o600, 0o444, 0o4755, 0o2640];
const DIRECTORY_MODES: [u32; 6] = [0o755, 0o755, 0o700, 0o555, 0o1777, 0o2775];
const PIECE: usize = 1 << 20;

/// A project's directory that is edited at random.
pub(crate) struct Forest<'f> {
    root: &'f Path,
    random: &'f mut Random,
    names: Vec<Vec<u8>>,
}

impl<'f> Forest<'f> {
    pub(crate) fn new(root: &'f Path, random: &'f mut Random) -> Self {
        let names: [&[u8]; 22] = [
            b"a", b"b", b"a.b", b"a!b", b"a-wal", b"b-journal", b"new\nline", b"with space", b" ", b"-rf", b"--help",
            b"\xff\xfe.bin", b"caf\xc3\xa9", b"cafe\xcc\x81", b".hidden", b"..x", b"*", b"\\", b"\"quoted\"", b"#hash",
            b"\x01\x7f", b".gitkeep",
        ];
        let mut names: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
        names.push(vec![b'l'; 200]);
        names.push(vec![b'm'; 255]);
        Self { root, random, names }
    }

    /// Plants a tree.
    pub(crate) fn plant(&mut self) {
        for _ in 0..4 + self.random.below(12) {
            let directory = self.directory();
            let path = self.name_in(&directory);
            let _ = fs::create_dir(&path);
        }
        for _ in 0..5 + self.random.below(25) {
            self.add();
        }
    }

    /// Changes something, `times` times.
    pub(crate) fn edit(&mut self, times: u64) {
        for _ in 0..times {
            match self.random.below(12) {
                0..=2 => self.add(),
                3 | 4 => self.rewrite(),
                5 => self.append(),
                6 => self.chmod(),
                7 | 8 => self.remove(),
                9 | 10 => self.swap(),
                _ => self.rename(),
            }
        }
    }

    /// Any directory, the root included.
    fn directory(&mut self) -> PathBuf {
        let mut directories = self.all();
        directories.retain(|path| is_directory(path));
        directories.push(self.root.to_owned());
        let at = self.random.place_in(directories.len());
        directories.swap_remove(at)
    }

    fn any(&mut self) -> Option<PathBuf> {
        let mut all = self.all();
        let at = self.random.place_in(all.len());
        (!all.is_empty()).then(|| all.swap_remove(at))
    }

    fn any_file(&mut self) -> Option<PathBuf> {
        let mut all = self.all();
        all.retain(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()));
        let at = self.random.place_in(all.len());
        (!all.is_empty()).then(|| all.swap_remove(at))
    }

    /// Everything below the root, in byte order, so that a seed repeats a history.
    fn all(&self) -> Vec<PathBuf> {
        let (mut found, mut open) = (Vec::new(), vec![self.root.to_owned()]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if path == self.root.join(".ic") {
                    continue;
                }
                if is_directory(&path) {
                    open.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        found
    }

    fn name_in(&mut self, directory: &Path) -> PathBuf {
        let at = self.random.place_in(self.names.len());
        directory.join(path_of(&self.names[at]))
    }

    fn add(&mut self) {
        let directory = self.directory();
        let path = self.name_in(&directory);
        self.make(&path);
    }

    /// Makes something where nothing is.
    fn make(&mut self, path: &Path) {
        if fs::symlink_metadata(path).is_ok() {
            return;
        }
        match self.random.below(10) {
            0..=5 => self.write_new(path),
            6 | 7 => {
                let targets: [&[u8]; 8] =
                    [b"a", b"../a", b"/etc/hostname", b"..", b"nowhere/at/all", b".", b"/tmp", b"\xff x\n"];
                let at = self.random.place_in(targets.len());
                let _ = symlink(path_of(targets[at]), path);
            }
            _ => {
                let _ = fs::create_dir(path);
                let at = self.random.place_in(DIRECTORY_MODES.len());
                if self.random.below(2) == 0 {
                    let inside = self.name_in(path);
                    self.write_new(&inside);
                }
                set_mode(path, DIRECTORY_MODES[at]);
            }
        }
    }

    fn write_new(&mut self, path: &Path) {
        let content = self.content();
        let _ = fs::write(path, content);
        if self.random.below(10) == 0 {
            make_sparse(path);
        }
        let at = self.random.place_in(FILE_MODES.len());
        set_mode(path, FILE_MODES[at]);
    }

    fn content(&mut self) -> Vec<u8> {
        let length = match self.random.below(40) {
            0 => PIECE + 1,
            1 => PIECE,
            2 => PIECE - 1,
            3 => 2 * PIECE + self.random.place_in(PIECE),
            4..=6 => 0,
            7..=12 => self.random.place_in(8),
            _ => self.random.place_in(5000),
        };
        // Few kinds of content, so that files share objects and come back to what they were.
        let kind = self.random.below(4);
        let salt = u8::try_from(self.random.below(6)).expect("a small number");
        (0..length)
            .map(|i| match kind {
                0 => b"line of text\n"[i % 13] ^ salt,
                1 => 0,
                _ => u8::try_from((i * 31 + i / 251) % 256).expect("a byte") ^ salt,
            })
            .collect()
    }

    fn rewrite(&mut self) {
        let Some(path) = self.any_file() else { return };
        let same_size = self.random.below(2) == 0;
        let mut content = self.content();
        if same_size {
            content.resize(fs::metadata(&path).map_or(0, |meta| usize::try_from(meta.len()).unwrap_or(0)), 7);
        }
        let _ = fs::write(&path, content);
    }

    fn append(&mut self) {
        let Some(path) = self.any_file() else { return };
        let _ = fs::File::options().append(true).open(&path).and_then(|mut file| file.write_all(b"more\n"));
    }

    fn chmod(&mut self) {
        let Some(path) = self.any() else { return };
        let Ok(meta) = fs::symlink_metadata(&path) else { return };
        let modes = if meta.is_dir() { DIRECTORY_MODES } else { FILE_MODES };
        let at = self.random.place_in(modes.len());
        // The target of a link may lie anywhere.
        if !meta.is_symlink() {
            set_mode(&path, modes[at]);
        }
    }

    fn remove(&mut self) {
        let Some(path) = self.any() else { return };
        remove(&path);
    }

    /// Puts something of another kind in place of something.
    fn swap(&mut self) {
        let Some(path) = self.any() else { return };
        remove(&path);
        self.make(&path);
    }

    fn rename(&mut self) {
        let Some(path) = self.any() else { return };
        let directory = self.directory();
        let to = self.name_in(&directory);
        let _ = fs::rename(path, to);
    }
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

pub(crate) fn remove(path: &Path) {
    let _ = if is_directory(path) { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
}

/// A hole of more than a piece, and a few bytes after it.
fn make_sparse(path: &Path) {
    let _ = fs::File::options().write(true).open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(1_300_000))?;
        file.write_all(b"after the hole")
    });
}
