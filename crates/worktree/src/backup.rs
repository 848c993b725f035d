//! A copy of the ledger, and of the content of its checkpoints, for another place.

use std::path::{Path, PathBuf};

use ic_base::Result;
use ic_checkpoint::lock::{self, LockMode};
use ic_kernel::Kernel;
use ic_ledger::{CopiedHead, OpenOptions, require_place_for_copy};

use super::store_location::{look, objects_path, store_of};

/// What is to be copied, and where to.
#[derive(Debug)]
pub struct BackupRequest<'a> {
    /// The file of the copy.
    pub to: &'a Path,
    /// A file that is already there is replaced.
    pub replaces: bool,
    /// The content of checkpoints is copied as well, to a file beside it.
    pub with_content: bool,
}

/// The copies that were made, each whole and under its own name.
#[derive(Debug)]
pub struct BackupResult {
    /// The copy's newest event.
    pub head: CopiedHead,
    /// The length of the ledger's copy.
    pub bytes: u64,
    /// The copy of the content and its length; `None`: none was asked for, or the ledger has none.
    pub content: Option<(PathBuf, u64)>,
}

/// Copies the ledger, while others work with it. Errors: `file_exists`, `invalid_value`, `busy`, `disk_full`: nothing was made.
pub fn make(kernel: &Kernel, request: &BackupRequest<'_>, options: OpenOptions) -> Result<BackupResult> {
    let BackupRequest { to, replaces, with_content } = *request;
    require_place_for_copy(&kernel.ledger, to, replaces)?;
    if !with_content {
        let (ledger, head) = kernel.ledger.copy_for(to, options.busy_timeout)?;
        return Ok(BackupResult { head, bytes: ledger.name()?, content: None });
    }
    let content_to = store_of(to);
    // Asked before the first byte is copied: a refusal leaves no half of a backup.
    require_place_for_copy(&kernel.ledger, &content_to, replaces)?;
    // No sweep runs during the copies. The ledger is copied first: content is stored before the row that names it, so the later copy of the
    // store has all that the copied rows name.
    let own = objects_path(kernel.ledger.path());
    let _lock = own.exists().then(|| lock::store(&own, LockMode::Shared, options.busy_timeout)).transpose()?;
    let objects = look(kernel, options)?;
    let (ledger, head) = kernel.ledger.copy_for(to, options.busy_timeout)?;
    let content = objects.map(|objects| objects.copy_for(&content_to)).transpose()?;
    // The content gets its name first: if this dies in between, no copy of the ledger is left without its content.
    let content = content.map(ic_ledger::Unnamed::name).transpose()?.map(|bytes| (content_to, bytes));
    Ok(BackupResult { head, bytes: ledger.name()?, content })
}
