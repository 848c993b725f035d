//! A request, as the functions that make pages see it.

use ic_base::{Result, Timestamp};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::Run;

use crate::app::PageApp;
use crate::params::Params;

/// A request that may read the ledger.
pub(crate) struct Ask<'a> {
    /// The state that all requests share.
    pub(crate) app: &'a PageApp,
    /// The ledger, opened for this request.
    pub(crate) kernel: &'a Kernel,
    /// The parts of the path, between its slashes.
    pub(crate) path: &'a [String],
    /// The query of the address, or the form.
    pub(crate) params: &'a Params,
    /// The present, from which ages are counted.
    pub(crate) now: Timestamp,
}

impl Ask<'_> {
    /// Whether an undo is offered. It would be refused for a ledger that several machines may share.
    pub(crate) fn can_undo(&self) -> bool {
        self.kernel.ledger.is_of_one_host()
    }

    /// The second part of the path: the id of the thing that is asked for.
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
