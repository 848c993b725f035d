//! What a path holds, compared with what a plan found or leaves there.

use std::io::Read;

use ic_base::{Diagnose, Result};
use ic_ledger::events::Hash;
use sha2::{Digest, Sha256};

use super::super::plan::RestoreNode;
use crate::rootfs::{EntryState, FileAttributes, RootDir, Stat};

/// What the owner of a file needs to read it.
const READ: u32 = 0o400;

/// How a file or directory is to look; `None` for links.
pub(super) fn looks_of(node: &RestoreNode) -> Option<FileAttributes<'_>> {
    match node {
        RestoreNode::File { mode, attributes, .. } | RestoreNode::Directory { mode, attributes } => {
            Some(FileAttributes { mode: *mode, attributes: Some(attributes) })
        }
        RestoreNode::Symlink(_) => None,
    }
}

impl RootDir {
    /// Whether a file has the attributes that it should have.
    pub(super) fn is_dressed(&self, path: &[u8], node: &RestoreNode) -> bool {
        node.attributes().is_none_or(|wanted| self.attributes(path).is_ok_and(|has| has == *wanted))
    }

    /// What a path holds. Errors: those of reading, with the path.
    pub(super) fn look_at(&self, path: &[u8]) -> Result<EntryState> {
        self.state(path).while_doing(|| format!("looking at {}", String::from_utf8_lossy(path)))
    }

    /// Whether a path holds exactly this.
    pub(super) fn has(&self, path: &[u8], found: &EntryState, node: &RestoreNode) -> bool {
        self.has_plainly(path, found, node)
            && (matches!(node, RestoreNode::Directory { .. }) || self.is_dressed(path, node))
    }

    /// Whether a path holds this content with these permission bits.
    pub(super) fn has_plainly(&self, path: &[u8], found: &EntryState, node: &RestoreNode) -> bool {
        match (found, node) {
            (EntryState::File(stat), RestoreNode::File { hash, size, mode, .. }) => {
                // The file is read only if size and mode agree, which cost nothing.
                stat.size == *size && stat.mode == *mode && self.hash(path).is_some_and(|found| found == *hash)
            }
            // A link has no looks of its own, and is compared by its target.
            (EntryState::Symlink(_, target), RestoreNode::Symlink(expected)) => *target == expected.0,
            (EntryState::Directory(_), RestoreNode::Directory { .. }) => true,
            _ => false,
        }
    }

    fn hash(&self, path: &[u8]) -> Option<Hash> {
        // What cannot be read is not known to be the same, so it is left alone.
        let mut file = self.open_file(path).ok()?;
        let mut digest = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer).ok()? {
                0 => return Some(digest.finalize().into()),
                count => digest.update(&buffer[..count]),
            }
        }
    }
}

/// Whether a path is as it was found a moment ago.
pub(super) fn same(now: &EntryState, before: &EntryState) -> bool {
    match (now, before) {
        // To read what its owner has closed to himself changes its inode.
        (EntryState::File(now), EntryState::File(before)) if before.mode & READ == 0 => {
            *now == Stat { ctime: now.ctime, ..*before }
        }
        _ => now == before,
    }
}
