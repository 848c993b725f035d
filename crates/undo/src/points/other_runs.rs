//! Work in this project outside of the run that is shown: a person who knows only prompts looks for theirs.

use ic_base::{DispatchId, Result, Seq};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::{Run, run};

use super::idle_prompts::is_idle;
use super::undo_target::open_runs;

/// Prompts of agents that belong to another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRuns {
    /// How many there are; counting ends at a bound.
    pub count: usize,
    /// The dispatch of the newest of them.
    pub newest: DispatchId,
}

impl OtherRuns {
    /// The command that shows what an undo of the newest would do.
    pub fn command(&self) -> String {
        format!("ic undo prompt:{} --dry-run", self.newest.short())
    }
}

/// The prompts of this project that stand, changed something, are newer than an event and belong to another run. `None` where there are
/// none, or where an agent's session calls, which must not undo the prompts of others.
pub fn prompts_outside(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, since: Seq) -> Result<Option<OtherRuns>> {
    /// The most prompts that are examined: a greater number would tell no more.
    const MOST: i64 = 50;
    if kernel.own_run.is_some() || ic_session::is_own_run(snapshot, &run.id)? {
        return Ok(None);
    }
    let mut found: Option<OtherRuns> = None;
    for prompt in ic_session::standing(snapshot, &kernel.project.root, MOST)? {
        if prompt.seq <= since {
            break;
        }
        let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
        if work.run_id == run.id || is_idle(snapshot, &run::get(snapshot, &work.run_id)?, &work)? {
            continue;
        }
        found = Some(match found {
            Some(known) => OtherRuns { count: known.count + 1, ..known },
            None => OtherRuns { count: 1, newest: work.id },
        });
    }
    Ok(found)
}

/// The newest open runs of this project except this one, up to `most`.
pub fn others_open(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, most: usize) -> Result<Vec<Run>> {
    // One more is read, because this run may be among them.
    let mut open = open_runs(kernel, snapshot, most + 1)?;
    open.retain(|other| other.id != run.id);
    open.truncate(most);
    Ok(open)
}
