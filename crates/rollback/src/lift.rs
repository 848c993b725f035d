//! What one dispatch did was undone, and then the run goes back to before that undo: the dispatch's work stands again there. The undo is lifted
//! as the run goes back, and made again if that itself is undone.

use ic_base::{Result, RollbackId, Timestamp};
use ic_dispatch::{cancel_by_phases, dispatch};
use ic_journal::table::{self, RollbackStatus};
use ic_runtrack::{agent, artifact, cancel_agents_by_phases, mark_artifacts_rolled_back};
use ic_saga::compensation as effects;
use ic_store::Transaction;

use super::back::unmark;
use super::carry::{cut_of, marked_dispatches};

/// Lifts the undos of one dispatch each. The effects that they undid stay undone: nobody can make them again.
pub(super) fn off(tx: &Transaction<'_>, now: Timestamp, ids: &[RollbackId]) -> Result<()> {
    for id in ids {
        unmark(tx, now, &table::get(tx, id)?)?;
        table::set_status(tx, now, id, RollbackStatus::Undone)?;
    }
    Ok(())
}

/// Makes them again: what they had marked is marked.
pub(super) fn on(tx: &Transaction<'_>, now: Timestamp, ids: &[RollbackId]) -> Result<()> {
    for id in ids {
        let remembered = table::get(tx, id)?;
        let cut = cut_of(&remembered)?;
        let dispatches = marked_dispatches(&remembered);
        let marked: Vec<_> =
            dispatches.iter().map(|id| dispatch::resolve(tx, id.as_str())).collect::<Result<_>>()?;
        cancel_by_phases(tx, now, &marked, (id, None))?;
        mark_artifacts_rolled_back(tx, &artifact::taken_back(tx, &cut)?, id)?;
        let agents = agent::taken_back(tx, &cut, &dispatches.iter().collect())?;
        cancel_agents_by_phases(tx, now, &agents, remembered.epoch, id)?;
        effects::mark(tx, &effects::taken_back(tx, &cut)?, id)?;
        table::set_status(tx, now, id, RollbackStatus::Done)?;
    }
    Ok(())
}
