//! `ic workflow run`

use std::path::PathBuf;
use std::sync::Arc;

use ic_workflow::{Definition, WorkflowUi};
use ic_worktree::Warning;

use super::watch::WorkflowWatch;
use super::{Choices, finish, setup};
use crate::commands::prelude::*;
use crate::signals;
use crate::views::workflow::plan::WorkflowPlanJson;

/// Run a workflow: a YAML file of steps, each with its undo.
///
/// Before each step, ic captures the tree and registers the step's undo. When a step fails, a terminal asks whether to
/// roll back: the effects of the steps are undone in reverse, files and git's state are restored, and the run is at
/// its first phase again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow run feature.yaml
  ic workflow run feature.yaml --on-failure rollback    # in scripts
  ic workflow run feature.yaml --dry-run                # what would run
  ic workflow run feature.yaml --jobs 4

Exit 0: completed. 1: a step failed, and the workflow stopped or was rolled back. 4: the rollback is not finished; ic
workflow resume RUN resumes it. docs/WORKFLOWS.md is a tutorial.")]
pub(crate) struct WorkflowRunArgs {
    /// The file that describes the workflow
    file: PathBuf,
    /// Show what would run, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    #[command(flatten)]
    choices: Choices,
}

impl WorkflowRunArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let definition = Definition::load(&session.directory.join(&self.file))?;
        let coverage = ic_workflow::plan(&definition);
        let kernel = session.kernel_to_change(None)?;
        let config = session.config(&kernel.project.root)?.config;
        let settings = session.checkpoint_settings(&kernel)?;
        if self.dry_run {
            // A dry run executes nothing, so Ctrl-C may end it at once.
            let overrides = self.choices.overrides(Arc::default());
            ic_workflow::require_startable(&kernel, &settings, &definition, &overrides)?;
            let record = WorkflowPlanJson::new(&definition, &coverage);
            return session.output.record(&record, || views::workflow::plan::plan(&definition, &coverage));
        }
        let setup = setup(&kernel, &settings, &config);
        let overrides = self.choices.overrides(signals::interrupted()?);
        // Before the warnings are printed: a workflow that is refused has none.
        ic_workflow::require_startable(&kernel, &settings, &definition, &overrides)?;
        let mut watch = WorkflowWatch::new(session);
        if !coverage.is_complete() {
            let message = views::workflow::plan::undeclared(&coverage);
            watch.warn(&Warning { code: "undeclared_steps", message });
        }
        let report = ic_workflow::run(&setup, &definition, &overrides, &mut watch)?;
        finish(session, &report, &watch, ExitStatus::No)
    }
}
