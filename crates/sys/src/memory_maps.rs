//! Files that processes have mapped into memory, by `/proc`.

use std::collections::HashSet;

/// Device and inode of every file that a process has mapped shared; `None` where no process can be looked into at all.
///
/// Maps that cannot be written now count too: they may have been, with their pages still writable in all but name. The maps of another
/// user's processes are not seen, unless root asks.
#[must_use]
pub fn shared_files() -> Option<HashSet<(u64, u64)>> {
    #[cfg(linux_ways)]
    return proc_maps::mapped(std::path::Path::new("/proc"));
    #[cfg(not(linux_ways))]
    None
}

#[cfg(linux_ways)]
mod proc_maps;
