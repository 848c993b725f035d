//! What the page must be told of the project that it shows.

use std::path::Path;

use ic_base::Result;
use ic_kernel::Kernel;
use ic_ops::status::Unfinished;
use ic_phase::Run;
use ic_store::{OpenOptions, Snapshot};
use ic_worktree::Settings;

/// A project, as whoever starts the page opens it.
pub trait Project: Send + Sync + 'static {
    /// The ledger, opened for one request, on behalf of no dispatch and of no session: a person asks. Errors: those of opening it.
    fn kernel(&self) -> Result<Kernel>;

    /// How checkpoints are taken in the project of a run. Errors: `invalid_config`.
    fn settings(&self, kernel: &Kernel, project_dir: &Path) -> Result<Settings>;

    /// How ledger and content are opened.
    fn options(&self) -> OpenOptions;

    /// What a workflow left unfinished in a run, with the command that ends it; `None`: nothing.
    fn unfinished_workflow(&self, snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<Unfinished>>;
}
