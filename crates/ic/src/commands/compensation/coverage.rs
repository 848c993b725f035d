//! `ic compensation coverage`

use ic_undo::compensation;

use crate::commands::prelude::*;
use crate::views::compensation::coverage::CoverageJson;

/// Show how much of a run can be undone: the steps with and without a compensation.
///
/// A step is a dispatch of the run, or a name with a compensation; rolled-back ones do not count. A step that is
/// declared to need no undo, or to have none, counts as declared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic compensation coverage @
  ic compensation coverage @ --json | jq -r '.undeclared[]'")]
pub(crate) struct CompensationCoverageArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl CompensationCoverageArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (run_id, report) = compensation::coverage(&kernel, &self.run)?;
        let record = CoverageJson::new(&run_id, &report);
        session.output.warn_all(&views::compensation::coverage::undeclared(&report));
        session.output.record(&record, || views::compensation::coverage::coverage(&run_id, &report))
    }
}
