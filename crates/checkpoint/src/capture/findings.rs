//! What a walk found.

use ic_ledger::events::Hash;

use super::cache::{Cache, CacheRecord, CacheSeen, Maker};
use super::options::CaptureCounts;
use crate::tree::join;
use crate::tree::{Groups, Reason};

/// What a walk found so far.
pub(crate) struct WalkFindings {
    pub(crate) maker: Maker,
    pub(crate) counts: CaptureCounts,
    pub(crate) skipped: Vec<(Vec<u8>, Reason)>,
    pub(crate) nested_git: Vec<Vec<u8>>,
    /// Directories that are other work trees, by path.
    pub(crate) work_trees: Vec<Vec<u8>>,
    /// Files that changed whenever they were read.
    pub(crate) unsettled: Vec<Vec<u8>>,
    /// What is not in the tree, though git may track it.
    pub(crate) unseen: Vec<Vec<u8>>,
    /// Files, links and directories that were touched since [`super::CaptureOptions::since`].
    pub(crate) young: Vec<Vec<u8>>,
    since: i64,
    /// Files that have more than one name: device and inode, and one of them.
    pub(crate) names: Vec<((u64, u64), Vec<u8>)>,
}

impl WalkFindings {
    /// Nothing found yet; the new cache continues `base`.
    pub(crate) fn new(base: Option<&Cache>, since: Option<i64>) -> Self {
        Self {
            unseen: Vec::new(),
            young: Vec::new(),
            since: since.unwrap_or(i64::MAX),
            maker: Maker::new(base),
            counts: CaptureCounts::default(),
            skipped: Vec::new(),
            nested_git: Vec::new(),
            work_trees: Vec::new(),
            unsettled: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Counts a directory and the names in it, those of directories excepted.
    pub(crate) fn count(&mut self, path: &[u8], record: &CacheRecord<'_>) {
        self.counts.directories += 1;
        if record.key.is_since(self.since) {
            self.young.push(path.to_vec());
        }
        for line in &record.lines {
            if let CacheSeen::File { key, .. } | CacheSeen::Symlink { key, .. } = &line.seen
                && key.is_since(self.since)
            {
                self.young.push(join(path, line.name));
            }
            match line.seen {
                CacheSeen::File { ref key, size, .. } => {
                    if key.is_linked() {
                        self.names.push(((key.dev, key.ino), join(path, line.name)));
                    }
                    self.counts.files += 1;
                    self.counts.bytes += size;
                }
                CacheSeen::Symlink { .. } => self.counts.symlinks += 1,
                CacheSeen::Directory { .. } => {}
                CacheSeen::Passed(reason) => {
                    // The `.git` of the root is that of the project itself.
                    if reason == Reason::Git && !path.is_empty() {
                        self.nested_git.push(path.to_vec());
                    }
                    if reason == Reason::WorkTree {
                        self.work_trees.push(join(path, line.name));
                    }
                    // What git tracks is not ignored, and it tracks nothing inside of a git directory.
                    if !matches!(reason, Reason::Ignored | Reason::Git) {
                        self.unseen.push(join(path, line.name));
                    }
                    if reason.is_a_gap() {
                        self.skipped.push((join(path, line.name), reason));
                    }
                }
            }
        }
    }

    /// The groups of names that are one file, and the names of files that have others outside of the tree.
    pub(crate) fn links(&mut self) -> (Groups, Vec<Vec<u8>>) {
        self.names.sort_unstable();
        let (mut links, mut alone) = (Vec::new(), Vec::new());
        for group in self.names.chunk_by(|one, other| one.0 == other.0) {
            let names: Vec<Vec<u8>> = group.iter().map(|(_, path)| path.clone()).collect();
            // The other names of a file that is alone are outside of the tree, or left out of it.
            if names.len() > 1 { links.push(names) } else { alone.extend(names) }
        }
        // Up to here they are in the order of inodes, which a restore changes: the same tree must be the same object.
        links.sort_unstable();
        alone.sort_unstable();
        (links, alone)
    }

    /// Adds what was left as the last capture found it.
    pub(crate) fn merge(&mut self, mut left: Self) {
        // `leave` keeps records where they are and adds none: only their length counts.
        self.maker.living += left.maker.living;
        self.counts.files += left.counts.files;
        self.counts.directories += left.counts.directories;
        self.counts.symlinks += left.counts.symlinks;
        self.counts.bytes += left.counts.bytes;
        self.skipped.append(&mut left.skipped);
        self.nested_git.append(&mut left.nested_git);
        self.work_trees.append(&mut left.work_trees);
        self.unsettled.append(&mut left.unsettled);
        self.names.append(&mut left.names);
        self.unseen.append(&mut left.unseen);
        self.young.append(&mut left.young);
    }
}

/// Adds a directory and all below it to what was found, as a cache has them; `None` where a record is missing.
pub(crate) fn leave(cache: &Cache, path: &[u8], at: u64, found: &mut WalkFindings) -> Option<Hash> {
    let lying = cache.record(at)?;
    let old = lying.read()?;
    found.count(path, &old.record);
    found.maker.keep(&old);
    for line in &old.record.lines {
        if let CacheSeen::Directory { at, .. } = line.seen {
            // A record that is missing or damaged makes the caller walk the directory, without what is found here.
            leave(cache, &join(path, line.name), at, found)?;
        }
    }
    Some(old.record.hash)
}
