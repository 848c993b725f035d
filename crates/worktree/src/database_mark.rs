//! Where a state database is when a run moves: a mark, to which its rows can go back.

use std::path::PathBuf;

use ic_base::{Result, RunId, Seq};
use ic_ledger::Transaction;
use ic_rewind::{EngineOptions, RelationalRollbackEngine, RewindTarget, StateMark, state_marks};

use crate::workspace::{CaptureSettings, Warning};

/// Where a state database is now, to be recorded with a move.
pub struct Marked {
    found: Option<(PathBuf, StateMark)>,
    /// Why it could not be looked at.
    pub warning: Option<Warning>,
}

impl Marked {
    /// Nothing, because there is no state database.
    pub fn nothing() -> Self {
        Self { found: None, warning: None }
    }

    /// Looks at the configured state database. One that cannot be read costs a warning and does not stop the run.
    pub fn look(settings: &CaptureSettings) -> Self {
        let Some(target) = &settings.state else { return Self::nothing() };
        match open(target, settings).and_then(|engine| engine.mark()) {
            Ok(mark) => Self { found: Some((target.database.clone(), mark)), warning: None },
            Err(error) => {
                let message = format!("no mark of the state database was taken: {}", error.message());
                Self { found: None, warning: Some(Warning { code: "mark_failed", message }) }
            }
        }
    }

    /// Records it with the event that moved the run.
    pub fn record(&self, tx: &Transaction<'_>, seq: Seq, run: &RunId) -> Result<()> {
        match &self.found {
            Some((database, mark)) => state_marks::insert(tx, seq, run, database, mark),
            None => Ok(()),
        }
    }
}

/// Opens a state database.
pub fn open(target: &RewindTarget, settings: &CaptureSettings) -> Result<RelationalRollbackEngine> {
    RelationalRollbackEngine::open(target, EngineOptions { busy_timeout: settings.busy_timeout })
}
