//! Ids, clock and diagnoses: the vocabulary of every other crate.
//!
//! Nothing here reads the environment, a file or a database.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod clock;
mod code;
mod diagnosis;
pub mod display;
pub mod graph;
mod id;
pub mod mask;
mod text;
mod words;

pub use clock::{Clock, FixedClock, SystemClock, Timestamp};
pub use code::{Code, ErrorKind};
pub use diagnosis::{Diagnose, Diagnosis, Result};
pub use id::{
    AgentId, ArtifactId, CallId, CheckpointId, CompensationId, DispatchId, IdSource, LedgerId, RandomIds, RestoreId,
    RewindId, RollbackId, RunId, SeededIds, SessionId, reversed_digits,
};
pub use text::{Label, check_text, is_unsafe_to_show, shell_word, title};

/// True in builds made for tests: the environment may then fix the clock and ids and ask for crashes.
pub const TEST_HOOKS: bool = cfg!(feature = "test-hooks");

/// Where in the ledger's total order something stands: the `seq` of its event. Gapless from 1.
pub type Seq = i64;

/// The clock and the ids that one command uses.
///
/// They are injected so that tests can stop time and repeat ids.
pub struct Context {
    /// Gives the time of everything that is recorded.
    pub clock: Box<dyn Clock>,
    /// Gives the ids of everything that is created.
    pub ids: Box<dyn IdSource>,
}

impl Context {
    /// The machine's own clock and random ids.
    pub fn system() -> Self {
        Self { clock: Box::new(SystemClock), ids: Box::new(RandomIds) }
    }

    /// The time now, by this context's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time now in nanoseconds, by this context's clock: to compare moments of several processes.
    pub fn nanos(&self) -> i128 {
        self.clock.nanos()
    }

    /// A new id of the wanted kind, made from the clock's time.
    pub fn new_id<T: From<uuid::Uuid>>(&self) -> T {
        T::from(self.ids.next(self.now()))
    }

    /// A new id for a ledger.
    pub fn new_ledger_id(&self) -> LedgerId {
        // Nothing but chance: two ledgers that one script makes in one millisecond must not look related, and an id that says
        // when its ledger was migrated would differ between copies of one ledger for a reason that means nothing.
        LedgerId::from(self.ids.next(Timestamp(0)))
    }
}
