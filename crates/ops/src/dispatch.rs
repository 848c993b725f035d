//! Handing work out, and what it reports.

use ic_base::{DispatchId, Result};
use ic_dispatch::code::{self, Recorded};
use ic_dispatch::dispatch::{self, Dispatch, Ending, Tokens, Work};
use ic_dispatch::report::Report;
use ic_phase::run;
use ic_store::Transaction;

use crate::Kernel;

/// Hands work out in a phase of a run (`None`: the current one).
///
/// Errors: `unknown_phase`, `run_not_active`, `rolling_back`, `stale_dispatch`.
pub fn create(kernel: &Kernel, reference: &str, phase: Option<&str>, work: &Work) -> Result<Dispatch> {
    let id: DispatchId = kernel.context.new_id();
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        run.require_active()?;
        let phase = run.phase_or_current(phase)?;
        dispatch::create(tx, now, &id, (&run.id, run.epoch), &phase, work)
    })
}

/// Marks work as begun. Errors: `stale_dispatch`, `dispatch_running`, `dispatch_finished`, `rolling_back`.
pub fn start(kernel: &Kernel, reference: &str, pid: Option<i64>) -> Result<Dispatch> {
    kernel.write(|tx, now| dispatch::start(tx, now, &settled(tx, reference)?, pid))
}

/// Ends work. Errors: `stale_dispatch`, `dispatch_finished`, `rolling_back`.
pub fn finish(kernel: &Kernel, reference: &str, ending: &Ending<'_>) -> Result<Dispatch> {
    kernel.write(|tx, now| dispatch::finish(tx, now, &settled(tx, reference)?, ending))
}

/// Records commits and files; from rolled-back work too, marked late.
pub fn record(kernel: &Kernel, reference: &str, report: &Report) -> Result<(Dispatch, Recorded)> {
    kernel.write_late_too(|tx, now| {
        let dispatch = dispatch::resolve(tx, reference)?;
        let recorded = code::record(tx, now, &dispatch, report)?;
        Ok((dispatch, recorded))
    })
}

/// Records the tokens used so far; from rolled-back work too.
pub fn record_tokens(kernel: &Kernel, reference: &str, tokens: Tokens) -> Result<Dispatch> {
    kernel.write_late_too(|tx, now| {
        dispatch::record_tokens(tx, now, &dispatch::resolve(tx, reference)?, tokens)
    })
}

/// The dispatch that a reference names, if it was not rolled back and its run is not in the middle of a rollback.
fn settled(tx: &Transaction<'_>, reference: &str) -> Result<Dispatch> {
    let dispatch = dispatch::resolve(tx, reference)?;
    dispatch.require_current()?;
    run::get(tx, &dispatch.run_id)?.require_settled()?;
    Ok(dispatch)
}
