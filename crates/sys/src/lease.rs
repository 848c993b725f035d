//! Whether anything has a file open for writing, or mapped so: the kernel answers that when it is asked for a read lease.
//!
//! A map keeps the open file that it was made from, long after its handle was closed. The kernel counts open files that may write, of
//! every process, user and container, and refuses a read lease while there is one (`EAGAIN`). So one lease, taken and released at
//! once, replaces a look at the maps of every process, which would show no process of another user.
//!
//! While a lease is held, two things could disturb others, so it is released at once:
//! - A process that opens the file for writing waits for the release (for microseconds), or fails if it asked not to wait (`O_NONBLOCK`).
//! - The kernel signals the holder: with SIGIO, which ends a process. Here it is told to use SIGURG, which every process ignores
//!   unless it says otherwise. A setting for the whole process would pass to its children.

use std::os::fd::BorrowedFd;

/// Whether a file may be written to through what is open now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Nothing has it open or mapped for writing: who writes to it opens it first.
    None,
    /// Something has it open for writing, or mapped from such a handle.
    Some,
    /// The kernel does not say: the file is another user's, or its file system or system knows no leases.
    Unknown,
}

/// Asks about a file that is open for reading alone.
#[must_use]
pub fn writers_of(file: BorrowedFd<'_>) -> Writers {
    #[cfg(linux_ways)]
    return match linux::Lease::take(file) {
        Ok(_lease) => Writers::None,
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Writers::Some,
        Err(_) => Writers::Unknown,
    };
    #[cfg(not(linux_ways))]
    {
        // Other systems have no leases.
        let _ = file;
        Writers::Unknown
    }
}

#[cfg(linux_ways)]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};

    /// From `linux/fcntl.h`, the same on every processor that is built for; the crate of constants lacks it.
    const F_SETSIG: libc::c_int = 10;

    /// A read lease, released when it is dropped.
    pub(super) struct Lease<'f>(BorrowedFd<'f>);

    impl<'f> Lease<'f> {
        pub(super) fn take(file: BorrowedFd<'f>) -> io::Result<Self> {
            // Before the lease: from then on the signal may come.
            call(file, F_SETSIG, libc::SIGURG)?;
            call(file, libc::F_SETLEASE, libc::F_RDLCK)?;
            Ok(Self(file))
        }
    }

    impl Drop for Lease<'_> {
        fn drop(&mut self) {
            // If this fails, the kernel has revoked the lease already.
            let _ = call(self.0, libc::F_SETLEASE, libc::F_UNLCK);
        }
    }

    #[allow(unsafe_code, reason = "rustix has no leases")]
    fn call(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: both commands take a number and touch no memory; the handle is open while it is borrowed.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Maps of files, for tests.
#[cfg(any(test, feature = "map"))]
pub mod map;
#[cfg(all(test, linux_ways))]
mod tests;
