//! The contents of both sides of a difference, from the store or from the tree as it stands.

use std::io::{self, Read};

use ic_base::{Diagnose, Result};
use ic_checkpoint::diff::{DiffState, Difference};
use ic_checkpoint::objects::{Objects, hash_of};
use ic_checkpoint::rootfs::RootDir;
use ic_ledger::path_from_bytes;

/// Larger contents are not compared line by line.
pub const LONGEST: u64 = 16 << 20;

/// Where the contents of differences are read.
#[derive(Clone, Copy)]
pub struct Contents<'o> {
    /// The content of checkpoints.
    pub objects: &'o Objects,
    /// The newer side is this tree: what the store lacks of it is read where it stands.
    pub tree: Option<&'o RootDir>,
    /// Texts that neither has: what a plan merged.
    pub texts: &'o [Vec<u8>],
}

impl Contents<'_> {
    /// What stood there; `None`: nothing that has content.
    pub fn older(&self, difference: &Difference) -> Result<Option<Vec<u8>>> {
        self.of(difference.before.as_ref())
    }

    /// The newer content. A look stores nothing, so the content may be in the tree alone; then the file is read in its current state.
    pub fn newer(&self, difference: &Difference) -> Result<Option<Vec<u8>>> {
        if let (Some(root), Some(DiffState::File { hash, .. })) = (self.tree, &difference.after)
            && !self.objects.has(hash)?
        {
            let doing = || format!("reading {}", path_from_bytes(&difference.path).display());
            let file = match root.open_file(&difference.path) {
                // Removed since the look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => opened.while_doing(doing)?,
            };
            let mut content = Vec::new();
            // Bounded: the file may have grown since it was looked at.
            file.take(LONGEST).read_to_end(&mut content).while_doing(doing)?;
            return Ok(Some(content));
        }
        self.of(difference.after.as_ref())
    }

    /// The content of one side: a file's, or where a link points.
    pub fn of(&self, state: Option<&DiffState>) -> Result<Option<Vec<u8>>> {
        match state {
            Some(DiffState::File { hash, .. }) => match self.texts.iter().find(|text| hash_of(text) == *hash) {
                Some(text) => Ok(Some(text.clone())),
                None => self.objects.read(hash).map(Some),
            },
            Some(DiffState::Symlink(target)) => Ok(Some(target.clone())),
            _ => Ok(None),
        }
    }

    /// Whether a side has no content any more: that is no reason to show nothing of the others.
    pub fn is_gone(&self, difference: &Difference) -> Result<bool> {
        for state in [&difference.before, &difference.after].into_iter().flatten() {
            if let DiffState::File { hash, .. } = state
                && self.objects.is_purged(hash)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
