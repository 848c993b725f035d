//! Giving a file or directory its owner and extended attributes.
//!
//! An owner or attribute that the caller may not set, or the file system does not take, is no failure: the content is worth more. A
//! restore compares what it left with what it should have left, and names what is missing.

use std::ffi::CString;

use ic_sys::handle::Handle;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::io::Result;
use rustix::process::geteuid;

use super::RootDir;
use crate::attributes::{Attributes, CAPABILITY, Extended, FileOwner, gather, unusual};

/// What a path is to look like beside its content.
#[derive(Debug, Clone, Copy)]
pub struct FileAttributes<'a> {
    /// Its permission bits (07777), before those that may not be lent are removed.
    pub mode: u32,
    /// What it has beside; `None`: what it has already.
    pub attributes: Option<&'a Attributes>,
}

impl From<u32> for FileAttributes<'static> {
    fn from(mode: u32) -> Self {
        Self { mode, attributes: None }
    }
}

/// The extended attributes of what a handle stands for.
fn extended(handle: &Handle) -> Extended {
    gather(|names| handle.attribute_names(names), |name, value| handle.attribute(name, value))
}

impl RootDir {
    /// What the handle's file has beside content and permission bits.
    pub(super) fn attributes_of(&self, file: &Handle) -> Result<Attributes> {
        let owner = FileOwner::of(&file.stat()?);
        Ok(Attributes { owner: unusual(owner, self.owner), extended: extended(file) })
    }

    /// Gives a file its owner and extended attributes, and takes others away.
    pub(super) fn give(&self, file: &Handle, attributes: &Attributes) {
        let wanted = attributes.owner.unwrap_or(self.owner);
        // Changing the owner takes file capabilities away, so it comes first.
        if file.stat().is_ok_and(|stat| FileOwner::of(&stat) != wanted) {
            let (user, group) = (Uid::from_raw(wanted.user), Gid::from_raw(wanted.group));
            // Who is not root may still choose among the own groups.
            let _ = file.set_owner(Some(user), group).or_else(|_| file.set_owner(None, group));
        }
        // This is read after the owner was changed: a capability that the change removed is set again below.
        let has = extended(file);
        for (name, _) in has.iter().filter(|(name, _)| attributes.get(name).is_none()) {
            let Ok(name) = CString::new(name.as_slice()) else { continue };
            let _ = file.set_attribute(&name, None);
        }
        for wanted in attributes.extended.iter().filter(|wanted| !has.contains(wanted)) {
            let (name, value) = wanted;
            // Only in a tree of root's own: in another user's tree, that user may have written the checkpoint, and would get root's rights.
            if name == CAPABILITY && !self.is_roots_own() {
                continue;
            }
            let Ok(name) = CString::new(name.as_slice()) else { continue };
            let _ = file.set_attribute(&name, Some(value));
        }
    }

    fn is_roots_own(&self) -> bool {
        geteuid().is_root() && self.owner.user == 0
    }

    /// The permission bits that a file of this owner gets in a directory of that one.
    ///
    /// With setuid and setgid bits a file lends its owner's rights, and the checkpoint may say what another user wants: who owns the
    /// tree, or the directory. So they come back as they were where tree and directory are the caller's own. Elsewhere a
    /// file keeps setuid if it is that one's, who could have set it; setgid never, for a group may be one that that one is not in.
    pub(super) fn lendable(&self, mode: u32, file: FileOwner, directory: FileOwner) -> u32 {
        let caller = geteuid().as_raw();
        let other = if self.owner.user == caller { directory.user } else { self.owner.user };
        // 0o5777 is all but setgid, 0o1777 all but setuid and setgid.
        match (other == caller, other == file.user) {
            (true, _) => mode,
            (false, true) => mode & 0o5777,
            (false, false) => mode & 0o1777,
        }
    }

    /// A new link belongs to whom the tree belongs, where the caller may say so.
    pub(super) fn give_link(&self, directory: impl AsFd, name: &[u8]) {
        if geteuid().is_root() {
            let (user, group) = (Uid::from_raw(self.owner.user), Gid::from_raw(self.owner.group));
            let _ = chownat(directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
        }
    }
}
