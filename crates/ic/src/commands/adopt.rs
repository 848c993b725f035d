//! `ic adopt`

use ic_checkpoint::restore::reverse::LineDecision;
use ic_ops::forks::{self, AdoptRequest};

use super::exec::if_killed;
use crate::commands::prelude::*;
use crate::views::fork::AdoptJson;

/// Merge what a fork became into this work tree, as one piece of work.
///
/// A file that is here as the fork began with it becomes that of the fork. Text that both changed is merged; where both changed the same
/// lines, nothing is done until you say whose they are to be. Content comes, and no commits; nothing is staged. `ic undo` takes it out
/// again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic adopt 2 --dry-run
  ic adopt 2
  ic adopt try --ours            # keep what is here where both changed the same
  ic undo                        # take it out again

Exit 1 where both changed the same and neither --ours nor --theirs says what stays: nothing is written. Exit 4 when something of
the fork is not here: a path that could not be changed, that stays by --ours, or that no checkpoint holds. It is named.")]
pub(crate) struct AdoptArgs {
    /// The fork: its name or its directory
    fork: String,
    /// Keep what is here where both changed the same
    #[arg(long, conflicts_with = "theirs")]
    ours: bool,
    /// Take what the fork has where both changed the same
    #[arg(long)]
    theirs: bool,
    /// Show what would change, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// The run that the work belongs to [default: one of its own]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

impl AdoptArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let settings = session.checkpoint_settings(&kernel)?;
        let directory = session.directory.clone();
        let request = AdoptRequest {
            fork: &self.fork,
            run: self.run.as_deref(),
            // clap refuses both flags together.
            decision: match (self.ours, self.theirs) {
                (true, _) => Some(LineDecision::Leave),
                (_, true) => Some(LineDecision::Take),
                _ => None,
            },
            dry_run: self.dry_run,
            if_killed: &|work| if_killed(&directory, work),
        };
        let adopted = forks::adopt(&kernel, &settings, &request)?;
        session.output.warn_all(&adopted.warnings);
        let record = AdoptJson::new(&adopted, self.dry_run);
        session.output.record(&record, || views::fork::adopted(&adopted, self.dry_run))?;
        Ok(if adopted.adoption.left.is_empty() { ExitStatus::Done } else { ExitStatus::Partly })
    }
}
