//! A file without a name, which goes with its last handle.

use std::fs::File;
use std::io;

/// Makes one: in memory where the system has such files, otherwise in the directory for temporary files.
pub fn create() -> io::Result<File> {
    #[cfg(linux_ways)]
    return Ok(rustix::fs::memfd_create("ic", rustix::fs::MemfdFlags::CLOEXEC)?.into());
    #[cfg(not(linux_ways))]
    tempfile::tempfile()
}
