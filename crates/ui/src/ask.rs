//! One request, as a page reads it.

use ic_base::{Result, Timestamp};
use ic_kernel::Kernel;
use ic_phase::Run;
use ic_store::Snapshot;

use crate::app::App;
use crate::params::Params;

/// A request that may read the ledger.
pub(crate) struct Ask<'a> {
    /// What all requests share.
    pub(crate) app: &'a App,
    /// The ledger, opened for this request.
    pub(crate) kernel: &'a Kernel,
    /// The parts of the path.
    pub(crate) path: &'a [String],
    /// The query, or the form.
    pub(crate) params: &'a Params,
    /// The time that ages are counted to.
    pub(crate) now: Timestamp,
}

impl Ask<'_> {
    /// Whether an undo is offered: of a ledger that several machines may share it is refused.
    pub(crate) fn can_undo(&self) -> bool {
        self.kernel.ledger.is_of_one_host()
    }

    /// The second part of the path: which thing is asked for.
    pub(crate) fn id(&self) -> &str {
        self.path.get(1).map_or("", String::as_str)
    }

    /// The run that the path names. Errors: those of a lookup of a run.
    pub(crate) fn run(&self) -> Result<Run> {
        self.read(|snapshot| self.kernel.run(snapshot, self.id()))
    }

    /// Reads over one consistent view.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.kernel.read(read)
    }
}
