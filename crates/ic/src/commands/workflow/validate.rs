//! `ic workflow validate`

use std::path::PathBuf;

use ic_workflow::Definition;

use crate::commands::prelude::*;
use crate::views::workflow::plan::WorkflowPlanJson;

/// Check a workflow's file, and show what it would run. Needs no ledger.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow validate feature.yaml
  ic workflow validate feature.yaml --json | jq .undeclared

Exit 3 when the file is not valid: the error names line and column.")]
pub(crate) struct Validate {
    /// The file that describes the workflow
    file: PathBuf,
}

impl Validate {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let definition = Definition::load(&session.directory.join(&self.file))?;
        let coverage = ic_workflow::plan(&definition);
        let record = WorkflowPlanJson::new(&definition, &coverage);
        session.output.record(&record, || views::workflow::plan::plan(&definition, &coverage))
    }
}
