//! The way from the root to a directory: no link on it is followed, and nothing of it is left open.
//!
//! The kernel walks as much of it in one call as a path may be long, so that a deep tree costs hardly more calls than a flat one.
//! Where it cannot (before Linux 5.6, or where a sandbox forbids it), each directory is opened by itself.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec};

use super::HANDLE;

/// The longest path that a call takes is 4,095 bytes.
const STRETCH: usize = 4000;

/// Opens the directory at `path` below `root`; the empty path is the root itself.
pub(super) fn walk(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd> {
    // It begins with a duplicate: the caller gets a handle of its own, even for the empty path.
    let mut directory = fcntl_dupfd_cloexec(root, 0)?;
    let mut rest = path;
    while !rest.is_empty() {
        let (stretch, further) = next_stretch(rest);
        directory = along(&directory, stretch)?;
        rest = further;
    }
    Ok(directory)
}

/// The part of a path that one call takes, whole names all of it, and what is left.
fn next_stretch(path: &[u8]) -> (&[u8], &[u8]) {
    if path.len() <= STRETCH {
        return (path, b"");
    }
    // A name is no longer than 255 bytes, so there is a border within.
    let end = path[..STRETCH].iter().rposition(|b| *b == b'/').unwrap_or(path.len());
    (&path[..end], path.get(end + 1..).unwrap_or_default())
}

fn along(from: impl AsFd, stretch: &[u8]) -> Result<OwnedFd> {
    const FLAGS: OFlags = HANDLE.union(OFlags::DIRECTORY);
    // The tree may be hostile: no `..`, no link and none of `/proc`'s own links leads out of it.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    #[cfg(test)]
    tests::count();
    match openat2(&from, stretch, FLAGS, Mode::empty(), resolve) {
        // A sandbox that does not know the call may say so in either way; if it was about the path, the next call says it again.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return opened,
    }
    let mut names = stretch.split(|b| *b == b'/').filter(|name| !name.is_empty());
    let first = openat(&from, names.next().unwrap_or(b"."), FLAGS, Mode::empty())?;
    names.try_fold(first, |directory, name| {
        #[cfg(test)]
        tests::count();
        openat(&directory, name, FLAGS, Mode::empty())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::next_stretch;

    thread_local! {
        static WALKED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        WALKED.set(WALKED.get() + 1);
    }

    /// How many stretches of ways this thread walked.
    pub(crate) fn walked() -> usize {
        WALKED.get()
    }

    #[test]
    fn a_way_is_cut_between_names() {
        for path in [&b"a"[..], b"a/b", &[b'x'; 255], &[&[b'x'; 255][..], b"/y"].concat().repeat(40)] {
            let (mut rest, mut again) = (path, Vec::new());
            while !rest.is_empty() {
                let (stretch, further) = next_stretch(rest);
                assert!(!stretch.is_empty() && stretch.len() <= 4095);
                again.push(stretch);
                rest = further;
            }
            assert_eq!(again.join(&b'/'), path);
        }
    }
}
