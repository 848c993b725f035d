//! Agents of a run: adding them and ending their work.

use ic_base::Result;
use ic_dispatch::dispatch;
use ic_phase::run;
use ic_runtrack::agent::{self, Agent, AgentStatus, NewAgent};

use ic_kernel::Kernel;

/// Adds an active agent to a run, in its current phase. Errors: `run_not_active`, `rolling_back`, `stale_dispatch`.
pub fn add(kernel: &Kernel, reference: &str, kind: &str, name: Option<&str>) -> Result<Agent> {
    let id: ic_base::AgentId = kernel.context.new_id();
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        run.require_active()?;
        let dispatch_id = kernel.dispatch_in(tx, &run.id)?;
        let new = NewAgent {
            id: id.clone(),
            run_id: &run.id,
            epoch: run.epoch,
            phase: &run.phase,
            kind,
            name,
            dispatch_id: dispatch_id.as_ref(),
        };
        agent::add(tx, now, &new)
    })
}

/// Ends the work of an agent. Errors: `agent_finished`, `stale_dispatch`, `rolling_back`.
pub fn finish(kernel: &Kernel, reference: &str, status: AgentStatus) -> Result<Agent> {
    kernel.write(|tx, now| {
        let agent = agent::resolve(tx, reference)?;
        let run = run::get(tx, &agent.run_id)?;
        // Settled is enough: an agent may end after its run was completed.
        run.require_settled()?;
        // `Kernel::write` checks the dispatch that calls. The one that added the agent may be another, and may be undone.
        if let Some(dispatch) = &agent.dispatch_id {
            dispatch::get(tx, dispatch)?.require_current()?;
        }
        agent::finish(tx, now, &agent, run.epoch, status)
    })
}
