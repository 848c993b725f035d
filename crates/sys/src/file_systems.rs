//! What a file system is, and when it writes to its disk.

mod file_status;
#[cfg(linux_ways)]
mod mount_table;

use std::path::Path;

use rustix::fd::AsFd;

/// The type of the file system that holds a path, in the words of the system; `None` where it does not say. No link is resolved.
#[must_use]
pub fn type_name(path: &Path) -> Option<String> {
    #[cfg(linux_ways)]
    if let Some(name) = mount_table::type_name(path) {
        return Some(name);
    }
    file_status::type_name(path)
}

/// Waits until everything that was written to the file system of this file is on its disk.
pub fn flush(file: impl AsFd) -> rustix::io::Result<()> {
    #[cfg(linux_ways)]
    return rustix::fs::syncfs(file);
    #[cfg(not(linux_ways))]
    {
        // Of every file system, because there is no call for one.
        rustix::fs::sync();
        // On macOS a disk may keep in its own cache what was written, unless it is asked.
        #[cfg(target_vendor = "apple")]
        return rustix::fs::fcntl_fullfsync(file);
        #[cfg(not(target_vendor = "apple"))]
        rustix::fs::fsync(file)
    }
}

/// Whether the first store through a new memory map always moves a file's times, as on ext4, XFS, Btrfs and F2FS.
///
/// On others (tmpfs is one) a page that was read through the map first may be stored to without any trace. Where the system does not name
/// its file systems by number, it is not known.
#[must_use]
pub fn notices_mapped_stores(file: impl AsFd) -> bool {
    #[cfg(linux_ways)]
    return {
        const NOTICING: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];
        let kind = rustix::fs::fstatfs(file).ok().and_then(|found| u64::try_from(found.f_type).ok());
        kind.is_some_and(|kind| NOTICING.contains(&kind))
    };
    #[cfg(not(linux_ways))]
    {
        let _ = file;
        false
    }
}
