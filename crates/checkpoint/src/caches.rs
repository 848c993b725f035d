//! Where the caches and locks of roots lie: beside the object store, each under the key of its root.

use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Result};
use ic_ledger::private;

/// How long [`root_key`] is.
pub(crate) const ROOT_KEY: usize = 32;

/// The name under which the store keeps what belongs to a root.
pub fn root_key(root: &Path) -> String {
    // The name is a hash, because a path has slashes and may be longer than the name of a file can be.
    ic_ledger::events::hex(&crate::objects::hash_of(ic_ledger::path_bytes(root)))[..ROOT_KEY].to_owned()
}

/// The directory beside the object store for what belongs to roots: stat caches and locks.
pub(crate) fn cache_directory(objects: &Path) -> Result<PathBuf> {
    let directory = objects.with_extension("cache");
    private::directory(&directory).while_doing(|| format!("making {}", directory.display()))?;
    Ok(directory)
}
