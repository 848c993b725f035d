//! `ic compensation coverage`

use clap::Args;
use ic_base::Result;
use ic_rollback::compensation;

use crate::exit::Exit;
use crate::json::CoverageJson;
use crate::render;
use crate::session::Session;

/// Show how much of a run can be undone: the steps with and without a compensation.
///
/// A step is a dispatch of the run, or a name with a compensation; rolled-back ones do not count. A step that is
/// declared to need no undo, or to have none, counts as declared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic compensation coverage @
  ic compensation coverage @ --json | jq -r '.undeclared[]'")]
pub(crate) struct Coverage {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl Coverage {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let (run_id, report) = compensation::coverage(&kernel, &self.run)?;
        let record = CoverageJson::new(&run_id, &report);
        if let Some(warning) = record.warning() {
            session.output.warn(warning);
        }
        session.output.record(&record, || render::compensation::coverage(&run_id, &report))?;
        Ok(Exit::Done)
    }
}
