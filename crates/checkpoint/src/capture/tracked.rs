//! What git tracks, asked of the `git` program.

use std::path::Path;

use crate::git::program::Git;

/// The paths that git tracks in a work tree, from its top; `only` narrows it down (`-i --exclude-standard`).
///
/// `None` when git cannot be asked: the ignore rules then stand alone.
pub(crate) fn tracked(root: &Path, only: &[&str]) -> Option<Vec<Vec<u8>>> {
    let listed = Git::new(root).ask(&[&["ls-files", "-z", "-c"], only].concat()).ok()??;
    Some(listed.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}
