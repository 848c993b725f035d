//! What git tracks in a work tree, from its top.

use std::path::Path;

use crate::git::index;
use crate::git::program::Git;

/// The paths that git tracks. `None` when its index cannot be read, and git cannot be asked: the ignore rules then stand alone.
pub(crate) fn tracked(root: &Path) -> Option<Vec<Vec<u8>>> {
    index::tracked(&Git::new(root))
}

/// Those of them that a rule ignores, as git says; `None` when it cannot be asked.
pub(crate) fn tracked_though_ignored(root: &Path) -> Option<Vec<Vec<u8>>> {
    let listed = Git::new(root).ask(&["ls-files", "-z", "-c", "-i", "--exclude-standard"]).ok()??;
    Some(listed.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}
