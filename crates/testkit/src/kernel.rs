//! A kernel over a ledger in memory.

use std::path::PathBuf;

use ic_base::{Context, FixedClock, SeededIds, Timestamp};
use ic_kernel::Kernel;
use ic_ledger::Ledger;
use ic_phase::Chain;
use ic_phase::gate::Gates;
use ic_phase::run::NewRun;
use ic_phase::run_reference::ProjectScope;

/// A kernel over an empty ledger in memory, with a clock that stands still (so that nothing can be ordered by it)
/// and ids that repeat.
///
/// # Panics
/// If the ledger cannot be made.
pub fn kernel() -> Kernel {
    let context = Context {
        clock: Box::new(FixedClock(Timestamp(1_700_000_000_000))),
        ids: Box::new(SeededIds::new(0x0010_0000)),
    };
    let project = ProjectScope { directory: PathBuf::from("/project"), root: PathBuf::from("/project") };
    Kernel::new(Ledger::in_memory().expect("a ledger in memory"), context, project)
}

/// What a run on this chain (`a,b,c`) is made of, without gates.
///
/// # Panics
/// If it is not a chain.
pub fn new_run(chain: &str) -> NewRun {
    NewRun {
        goal: "a goal".to_owned(),
        chain: Chain::parse(chain).expect("a chain"),
        project_dir: PathBuf::from("/project"),
        complexity: None,
        auto_advance: true,
        gates: Gates::default(),
        scope_id: None,
        metadata: "{}".to_owned(),
    }
}
