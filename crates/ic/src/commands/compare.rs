//! `ic compare`

use ic_ops::forks;

use crate::commands::prelude::*;
use crate::views::fork::CompareJson;

/// Compare the forks of this work tree: what each became, how its newest work ended, and its tokens.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic compare
  ic compare 1 3
  ic compare --json | jq -r '.[] | select(.status == \"completed\") | .name'
  git diff --no-index ../shop.forks/1 ../shop.forks/2    # two of them, line by line")]
pub(crate) struct CompareArgs {
    /// The forks: their names or directories [default: all]
    forks: Vec<String>,
}

impl CompareArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let compared = forks::compare(&kernel, &settings, &self.forks)?;
        let records: Vec<CompareJson> = compared.iter().map(CompareJson::from).collect();
        session.output.list(&records, || views::fork::compared(&compared))
    }
}
