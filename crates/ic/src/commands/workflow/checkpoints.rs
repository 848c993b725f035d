//! `ic workflow checkpoints`

use ic_checkpoint::record::CheckpointFilter;
use ic_worktree::Workspace;

use crate::commands::prelude::*;

/// List the checkpoints of a workflow, oldest first: before each step, and around its end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow checkpoints                          # of the active run, else the last one
  ic workflow checkpoints 3f9a12c4 --json | jq -r '.[] | [.id, .step] | @tsv'
  ic workflow checkpoints --workflow feature-dev   # of all its runs here

`ic workflow rollback --id` accepts those from before a step that is not rolled back. ic checkpoint shows, restores,
makes and prunes checkpoints.")]
pub(crate) struct Checkpoints {
    /// The run [default: the active one here, else the workflow that was started last]
    #[arg(conflicts_with = "workflow")]
    run: Option<String>,
    /// Those of all runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Include pruned checkpoints, whose content is gone
    #[arg(long)]
    pruned: bool,
}

impl Checkpoints {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        input::optional_label("--workflow", self.workflow.as_deref())?;
        // These are verbs of `ic checkpoint`, and no run has such a name: the person looks for them in the wrong place.
        if let Some(verb) = self.run.as_deref().filter(|word| matches!(*word, "prune" | "list" | "create" | "info")) {
            let hint = if verb == "list" { "ic workflow checkpoints [RUN]" } else { &format!("ic checkpoint {verb}") };
            return Err(Diagnosis::new(
                Code::Usage,
                format!("{verb} is no run; checkpoints are made by more than workflows, and have verbs of their own."),
            )
            .hint(format!("did you mean {hint}?")));
        }
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        let run = match (&self.workflow, &self.run) {
            // A workflow is looked up by its name in all runs, so no run limits the list.
            (Some(_), _) => None,
            (None, Some(run)) => Some(ic_workflow::show(&kernel, run)?.run_id),
            (None, None) => Some(ic_workflow::show(&kernel, ic_workflow::last(&kernel)?.as_str())?.run_id),
        };
        let filter = CheckpointFilter {
            // The checkpoints of a run may be of another tree than the caller's.
            root: if run.is_some() { None } else { Some(&workspace.root) },
            run_id: run.as_ref(),
            workflow: self.workflow.as_deref(),
            pruned: self.pruned,
            ..CheckpointFilter::default()
        };
        let mut rows = views::checkpoint::CheckpointRows::new(kernel.context.now());
        let mut list = session.output.begin_list();
        ic_worktree::list(&workspace, filter, |shown| rows.push(&mut list, &shown))?;
        list.end_with(|| rows.render())
    }
}
