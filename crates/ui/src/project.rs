//! What the caller of this crate provides.

use std::path::Path;

use ic_base::Result;
use ic_kernel::Kernel;
use ic_ledger::{OpenOptions, Snapshot};
use ic_ops::status::UnfinishedWork;
use ic_phase::Run;
use ic_worktree::CaptureSettings;

/// The project that the page shows.
pub trait ShownProject: Send + Sync + 'static {
    /// Opens the ledger for one request, with no calling dispatch and no session, because a person asks. Errors: those of opening it.
    fn kernel(&self) -> Result<Kernel>;

    /// The settings for checkpoints in the project of a run. Errors: `invalid_config`.
    fn settings(&self, kernel: &Kernel, project_dir: &Path) -> Result<CaptureSettings>;

    /// The options with which the ledger and the object store are opened.
    fn options(&self) -> OpenOptions;

    /// What a workflow left unfinished in a run, with the command that ends it; `None`: nothing.
    fn unfinished_workflow(&self, snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<UnfinishedWork>>;
}
