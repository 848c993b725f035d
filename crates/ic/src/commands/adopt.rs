//! `ic adopt`

use ic_checkpoint::restore::reverse::LineDecision;
use ic_dispatch::dispatch::DispatchWork;
use ic_ops::exec::{self, ExecOutput, ExecRequest};
use ic_worktree::Workspace;
use ic_worktree::forks::{self, Adoption, Fork};

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
  ic adopt try --ours            # keep what is here where both changed the same lines
  ic undo                        # take it out again

Exit 1 where both changed the same lines and neither --ours nor --theirs says whose stay: nothing is written. Exit 4 when a path
could not be changed, or stays by --ours: it is named.")]
pub(crate) struct AdoptArgs {
    /// The fork: its name or its directory
    fork: String,
    /// Keep what is here where both changed the same lines
    #[arg(long, conflicts_with = "theirs")]
    ours: bool,
    /// Take what the fork has where both changed the same lines
    #[arg(long)]
    theirs: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The run that the work belongs to [default: one of its own]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

impl AdoptArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let fork = forks::find(&kernel, &self.fork)?;
        let theirs = session.within(&fork.root, |session| {
            let kernel = session.kernel()?;
            let settings = session.checkpoint_settings(&kernel)?;
            Workspace::here(&kernel, &settings)?.record_look(None)
        })?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        let decision = match (self.ours, self.theirs) {
            (true, _) => Some(LineDecision::Leave),
            (_, true) => Some(LineDecision::Take),
            _ => None,
        };
        let adopted = |dry_run| workspace.adopt(&fork, &theirs.tree, decision, dry_run);
        // First as a dry run: a refusal leaves no work on record, and neither does a fork that has nothing new.
        let planned = adopted(true)?;
        if self.dry_run || planned.plan.steps.is_empty() {
            return report(session, &fork, &planned, None, self.dry_run);
        }
        let name = format!("adopt {}", fork.name);
        let argv = ["ic", "adopt", &fork.name].map(std::ffi::OsString::from);
        let directory = session.directory.clone();
        let request = ExecRequest {
            run: self.run.as_deref(),
            phase: None,
            work: DispatchWork { name: input::cut_label(Some(&name)), ..DispatchWork::default() },
            argv: &argv,
            directory: &directory,
            timeout: None,
            retries: 0,
            backoff: std::time::Duration::ZERO,
            output: ExecOutput::Nowhere,
            kept: Some(&settings),
        };
        let (adoption, work) = exec::deed(&kernel, &request, || adopted(false))?;
        report(session, &fork, &adoption, Some(work.id.as_str()), false)
    }
}

fn report(
    session: &mut CliSession,
    fork: &Fork,
    adoption: &Adoption,
    work: Option<&str>,
    dry_run: bool,
) -> Result<ExitStatus> {
    let record = AdoptJson::new(fork, adoption, work, dry_run);
    session.output.record(&record, || views::fork::adopted(fork, adoption, work, dry_run))?;
    Ok(if adoption.left.is_empty() { ExitStatus::Done } else { ExitStatus::Partly })
}
