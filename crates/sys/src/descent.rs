//! The way from a directory to one below it: no link on it is followed, and nothing of it is left open.
//!
//! Linux walks as much of it in one call as a path may be long, so that a deep tree costs hardly more calls than a flat one.
//! Where it cannot (before Linux 5.6, where a sandbox forbids it, or on other systems), each directory is opened by itself.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Result, fcntl_dupfd_cloexec};

/// The longest path that a call takes is 4,095 bytes on Linux, and 1,023 on macOS, where each name is a call of its own.
const STRETCH: usize = 4000;

/// A handle that only names a directory needs no right to list it.
#[cfg(linux_ways)]
const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(linux_ways))]
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory at `path` below `root`; the empty path is the root itself.
///
/// The handle is for calls that take a directory and a name. It can be listed only after it is opened again, as `.`. Errors: `ELOOP` or
/// `ENOTDIR` for a link on the way.
pub fn open(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd> {
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
    #[cfg(linux_ways)]
    {
        use rustix::fs::{ResolveFlags, openat2};
        use rustix::io::Errno;
        // The tree may be hostile: no `..`, no link and none of `/proc`'s own links leads out of it.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        #[cfg(test)]
        tests::CALLS.set(tests::CALLS.get() + 1);
        match openat2(&from, stretch, FLAGS, Mode::empty(), resolve) {
            // A sandbox that does not know the call may say so in either way; if it was about the path, the next call says it again.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened,
        }
    }
    let mut names = stretch.split(|b| *b == b'/').filter(|name| !name.is_empty());
    let first = step(&from, names.next().unwrap_or(b"."))?;
    names.try_fold(first, |directory, name| step(&directory, name))
}

#[cfg(linux_ways)]
fn step(from: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    openat(from, name, FLAGS, Mode::empty())
}

/// A directory whose owner may not list it is opened to its owner for the moment of its opening.
#[cfg(not(linux_ways))]
fn step(from: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    match openat(&from, name, FLAGS, Mode::empty()) {
        Err(rustix::io::Errno::ACCESS) => crate::handle::by_name::open_up(from, name, FLAGS),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat};

    use super::{next_stretch, open};

    thread_local! {
        /// The calls that this thread made to open more than one directory.
        pub(super) static CALLS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_deep_way_costs_a_few_calls() {
        let place = tempfile::tempdir().unwrap();
        let root = openat(CWD, place.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let mut path = b"d".to_vec();
        mkdirat(&root, &*path, Mode::RWXU).unwrap();
        let mut directory = open(&root, &path).unwrap();
        for _ in 0..3_000 {
            mkdirat(&directory, "d", Mode::RWXU).unwrap();
            directory = open(&directory, b"d").unwrap();
            path.extend_from_slice(b"/d");
        }
        CALLS.set(0);
        let deepest = open(&root, &path).unwrap();
        assert!(CALLS.get() <= 2, "{} calls for {} bytes", CALLS.get(), path.len());
        assert!(super::super::handle::is_same(&deepest, &directory).unwrap());
        assert!(open(&directory, b"d").is_err());
        assert_eq!(FileType::from_raw_mode(fstat(&deepest).unwrap().st_mode), FileType::Directory);
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
