//! `ic rewind to`

use ic_undo::app_rewind::{FoundRewind, RewindOutcome, RewindRequest};

use super::{DOES, finish, watch};
use crate::commands::prelude::*;
use crate::views::rewind::RewindJson;
use crate::views::rewind::preview::RewindPreviewJson;

/// Rewind the application to the moment when a task was recorded.
///
/// Git moves to the task's commit; rows newer than the task are archived and deleted in one transaction; then vectors
/// are pruned. A rewind removes rows; it does not restore rows that were updated since.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind to T-12 --dry-run
  ic rewind to T-12 --yes
  ic rewind to T-12 --no-git --yes              # the tree stays
  ic rewind to $checkpoint --scope thread_id=42 --yes
  ic undo 3f9a12c4 --yes                        # undo that rewind: the rows are restored exactly

Exit 4 when a stage failed after an earlier one: ic rewind resume does the rest. docs/REWIND.md lists what is guaranteed.")]
pub(crate) struct RewindToArgs {
    /// The task: its key in the anchor table
    task: String,
    /// The value of a scope column, if several scopes have the key; repeatable
    #[arg(long = "scope", value_name = "K=V", value_parser = pair)]
    scope: Vec<(String, String)>,
    /// Show the plan and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Leave the tree unchanged, even if the task has a commit
    #[arg(long)]
    no_git: bool,
    /// Overwrite local changes; a checkpoint keeps them
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    door: ForceFlags,
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it must be COLUMN=VALUE".to_owned()),
    }
}

impl RewindToArgs {
    /// Rewinds. Without `--yes` it first shows the plan and asks; without a terminal it is refused.
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(self.door.as_deref())?;
        let config = session.config(&kernel.project.root)?.config;
        let FoundRewind { setup, warning } = ic_undo::app_rewind::setup(&kernel, &config)?;
        session.output.warn_all(&warning);
        let settings = session.checkpoint_settings(&kernel)?;
        let request = RewindRequest {
            task: input::text("TASK", &self.task)?,
            scope: &self.scope,
            no_git: self.no_git,
            force: self.force,
        };
        if self.dry_run {
            let preview = ic_undo::app_rewind::preview(&kernel, &settings, &setup, &request)?;
            return session.output.record(&RewindPreviewJson::new(&preview, warning.as_ref()), || {
                views::rewind::preview::preview(&preview)
            });
        }
        // The preview is made only if a person is asked: with --yes the rewind makes a plan of its own.
        let text = || {
            ic_undo::app_rewind::preview(&kernel, &settings, &setup, &request)
                .map(|preview| views::rewind::preview::preview(&preview))
        };
        let question = Question { does: DOES, look: Some("ic rewind to TASK --dry-run"), asks: "Rewind?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(ExitStatus::No);
        }
        match ic_undo::app_rewind::rewind(&kernel, &settings, &setup, &request, &watch()?)? {
            RewindOutcome::Begun(entry) => finish(session, &kernel, &settings, &entry, warning),
            RewindOutcome::NothingToDo(preview) => {
                session.output.record(&RewindJson::nothing_to_do(&preview, warning.as_ref()), || {
                    views::rewind::preview::nothing_to_do(&preview)
                })
            }
        }
    }
}
