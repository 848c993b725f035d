//! A file in memory, for tests: stores that no handle shows and that move no times.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A shared map of the beginning of a file. It lives on after every handle of the file was closed.
#[derive(Debug)]
pub struct SharedMap {
    start: NonNull<libc::c_void>,
    length: usize,
}

/// What a map allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads. The handle that it is made from may allow more.
    Read,
    /// Reads and stores. The handle that it is made from must allow both.
    Write,
}

impl SharedMap {
    /// Maps the first `length` bytes, which the file must have for as long as they are used.
    #[allow(unsafe_code, reason = "memory is mapped")]
    pub fn new(file: &File, length: usize, access: Access) -> io::Result<Self> {
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: the kernel chooses a place that nothing else uses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(Self { start, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Stores a byte; the map must allow it.
    ///
    /// # Panics
    /// Where it is outside of the map.
    #[allow(unsafe_code, reason = "memory is mapped")]
    pub fn store(&self, at: usize, byte: u8) {
        assert!(at < self.length, "{at} is outside of {} bytes", self.length);
        // SAFETY: it lies in the map, which lives as long as `self`; nothing refers to its bytes.
        unsafe { self.start.cast::<u8>().add(at).as_ptr().write_volatile(byte) }
    }
}

impl Drop for SharedMap {
    #[allow(unsafe_code, reason = "memory is mapped")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it.
        unsafe { libc::munmap(self.start.as_ptr(), self.length) };
    }
}
