//! `ic run status`

use ic_dispatch::token_totals;
use ic_phase::skip;

use crate::commands::prelude::*;
use crate::views::run::RunStatusJson;

/// Show the status of a run, and the tokens that its work used.
///
/// Tokens are summed over the dispatches; JSON has them by phase. Tokens of rolled-back work were used, too: they are
/// included, and shown apart.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run status @
  ic run status scope:sprint-12
  ic run status 7f3a9c --json | jq -r .phase
  ic run status @ --json | jq .tokens.rolled_back")]
pub(crate) struct RunStatusArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl RunStatusArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (run, skipped, mut spent) = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            let skipped = skip::skipped_phases(snapshot, &run.id)?;
            let spent = token_totals::of_run(snapshot, &run.id)?;
            Ok((run, skipped, spent))
        })?;
        // The query has them in no order, and people read them along the chain.
        spent.sort_by_key(|phase| run.chain.index_of(&phase.phase));
        session.output.record(&RunStatusJson::new(&run, &spent), || views::run::card(&run, &skipped, &spent))
    }
}
