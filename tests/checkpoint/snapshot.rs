//! A directory tree as it stands: everything that a checkpoint keeps, and what tells whether a file was touched.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What stands at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File { mode: u32, content: Vec<u8> },
    Symlink(Vec<u8>),
    Directory { mode: u32 },
    Special,
}

impl Node {
    fn describe(&self) -> String {
        match self {
            Self::File { mode, content } => {
                let head = String::from_utf8_lossy(&content[..content.len().min(24)]);
                format!("file {mode:04o} of {} bytes {head:?}", content.len())
            }
            Self::Symlink(target) => format!("link to {:?}", String::from_utf8_lossy(target)),
            Self::Directory { mode } => format!("directory {mode:04o}"),
            Self::Special => "something special".to_owned(),
        }
    }
}

/// What changes when a file is written, though its content may not: its inode, and when it was modified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    ino: u64,
    mtime: (i64, i64),
}

/// Every path below a directory, the directory itself (empty) included, the store at its top left out.
#[derive(Clone)]
pub(crate) struct Snapshot(BTreeMap<Vec<u8>, (Node, Stamp)>);

impl Snapshot {
    pub(crate) fn of(root: &Path) -> Self {
        let mut snapshot = Self(BTreeMap::new());
        snapshot.add(root, Vec::new());
        snapshot
    }

    pub(crate) fn get(&self, path: &[u8]) -> Option<&Node> {
        self.0.get(path).map(|(node, _)| node)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }

    fn add(&mut self, at: &Path, path: Vec<u8>) {
        let meta = std::fs::symlink_metadata(at).expect("look at a path");
        let stamp = Stamp { ino: meta.ino(), mtime: (meta.mtime(), meta.mtime_nsec()) };
        let mode = meta.mode() & 0o7777;
        let node = if meta.is_symlink() {
            let target = std::fs::read_link(at).expect("read a link");
            Node::Symlink(target.as_os_str().as_bytes().to_vec())
        } else if meta.is_dir() {
            Node::Directory { mode }
        } else if meta.is_file() {
            Node::File { mode, content: std::fs::read(at).expect("read a file") }
        } else {
            Node::Special
        };
        if meta.is_dir() {
            for entry in std::fs::read_dir(at).expect("list a directory") {
                let name = entry.expect("an entry").file_name();
                let mut below = path.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name.as_bytes());
                if below != b".ic" {
                    self.add(&at.join(&name), below);
                }
            }
        }
        self.0.insert(path, (node, stamp));
    }

    /// What differs, for people; empty when nothing does.
    pub(crate) fn differences(&self, wanted: &Self) -> String {
        let mut text = String::new();
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(wanted.0.keys()).collect();
        for path in paths {
            let (found, wanted) = (self.get(path), wanted.get(path));
            if found != wanted {
                let describe = |node: Option<&Node>| node.map_or("nothing".to_owned(), Node::describe);
                let shown = String::from_utf8_lossy(path);
                writeln!(text, "{shown:?}: {}, not {}", describe(found), describe(wanted)).expect("a line");
            }
        }
        text
    }

    /// Asserts that everything is as in `wanted`.
    pub(crate) fn assert_is(&self, wanted: &Self, when: &str) {
        let differences = self.differences(wanted);
        let first: Vec<_> = differences.lines().take(12).collect();
        assert!(first.is_empty(), "{when}: {} paths differ:\n{}", differences.lines().count(), first.join("\n"));
    }

    /// Asserts that files and links that are the same in both were not written in between.
    pub(crate) fn assert_untouched_since(&self, before: &Self, when: &str) {
        for (path, (node, stamp)) in &self.0 {
            if let Some((old, old_stamp)) = before.0.get(path)
                && node == old
            {
                let shown = String::from_utf8_lossy(path);
                // A directory's time changes with what is in it.
                let same = if matches!(node, Node::Directory { .. }) {
                    stamp.ino == old_stamp.ino
                } else {
                    stamp == old_stamp
                };
                assert!(same, "{when}: {shown:?} was touched: {stamp:?}, was {old_stamp:?}");
            }
        }
    }

    /// Asserts that no temporary file of a restore is left.
    pub(crate) fn assert_no_temporary(&self, when: &str) {
        let is_temporary = |path: &&[u8]| {
            let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
            name.starts_with(b".ic-restore-")
        };
        let left: Vec<_> = self.paths().filter(is_temporary).map(String::from_utf8_lossy).collect();
        assert!(left.is_empty(), "{when}: left behind: {left:?}");
    }
}

/// A path's bytes as a path.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
