//! `ic workflow ...`

mod checkpoints;
mod resume;
mod rollback;
mod run;
mod show;
mod validate;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_kernel::Kernel;
use ic_kernel::config::Config;
use ic_kernel::journal::Force;
use ic_workflow::definition::{StepFailurePolicy, Strategy};
use ic_workflow::{Overrides, WorkflowRunReport, WorkflowSetup, WorkflowStatus, WorkflowUi};
use ic_worktree::CaptureSettings;
pub(crate) use watch::WorkflowWatch;

use crate::commands::prelude::*;
use crate::views::workflow::WorkflowJson;

verbs! {
    pub(crate) enum WorkflowVerb {
        Run(run::WorkflowRunArgs),
        Resume(resume::WorkflowResumeArgs),
        Rollback(rollback::WorkflowRollbackArgs),
        Validate(validate::Validate),
        Show(show::WorkflowShowArgs),
        Checkpoints(checkpoints::Checkpoints),
    }
}

#[derive(Debug, Args)]
struct Choices {
    /// After a failed step, without asking [default: the file's, else the configuration's]
    #[arg(long, value_name = "WHAT", value_parser = one_of(StepFailurePolicy::as_str, ON_FAILURE))]
    on_failure: Option<StepFailurePolicy>,
    /// What a rollback restores [default: the file's, else full]
    #[arg(long, value_name = "S", value_parser = one_of(Strategy::as_str, STRATEGIES))]
    strategy: Option<Strategy>,
    /// Steps that may run at once [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

const ON_FAILURE: &[(StepFailurePolicy, &str)] = &[
    (StepFailurePolicy::Rollback, "Take the workflow back"),
    (StepFailurePolicy::Stop, "Stop where it is"),
    (StepFailurePolicy::Continue, "Continue with what does not need the failed step"),
];

const STRATEGIES: &[(Strategy, &str)] = &[
    (Strategy::Full, "Files and git's state, as before the first step"),
    (Strategy::Partial, "Only the failed step: its effects, and the tree as before it"),
    (Strategy::FilesOnly, "Files alone, as before the first step"),
    (Strategy::GitOnly, "Git's state alone, as before the first step"),
];

impl Choices {
    fn overrides(&self, interrupted: Arc<AtomicBool>) -> Overrides {
        Overrides {
            on_failure: self.on_failure,
            strategy: self.strategy,
            jobs: self.jobs.map(usize::from),
            force: Force::default(),
            to: None,
            interrupted,
            expect_plan: None,
        }
    }
}

/// The beginning of the question, and of the refusal without a terminal.
const DOES: &str = "A rollback runs undo commands and writes into the working tree";

type Deed = fn(&WorkflowSetup<'_>, &str, &Overrides, &mut dyn WorkflowUi) -> Result<WorkflowRunReport>;

fn setup<'k>(kernel: &'k Kernel, settings: &'k CaptureSettings, config: &'k Config) -> WorkflowSetup<'k> {
    let checkpoints = config.enabled && config.checkpointing.auto;
    WorkflowSetup { kernel, settings, checkpoints, configured: &config.on_failure }
}

fn go(
    session: &mut CliSession,
    kernel: &Kernel,
    run: &str,
    overrides: &Overrides,
    deed: Deed,
    rolled_back: ExitStatus,
) -> Result<ExitStatus> {
    let config = session.config(&kernel.project.root)?.config;
    let settings = session.checkpoint_settings(kernel)?;
    let mut watch = WorkflowWatch::new(session);
    let report = deed(&setup(kernel, &settings, &config), run, overrides, &mut watch)?;
    // `rolled_back`: a rollback that was asked for is a success, and one after a failed step is a failure.
    finish(session, &report, &watch, rolled_back)
}

fn finish(
    session: &mut CliSession,
    report: &WorkflowRunReport,
    watch: &WorkflowWatch,
    rolled_back: ExitStatus,
) -> Result<ExitStatus> {
    let record = WorkflowJson::new(report, watch.warnings());
    session.output.record(&record, || views::workflow::report(&watch.unsaid(report)))?;
    Ok(match report.status {
        WorkflowStatus::Completed => ExitStatus::Done,
        WorkflowStatus::RolledBack => rolled_back,
        // After a failed step the exit says that the workflow failed, whatever the rollback left.
        WorkflowStatus::RolledBackInPart if rolled_back == ExitStatus::No => ExitStatus::No,
        WorkflowStatus::RollingBack | WorkflowStatus::RolledBackInPart => ExitStatus::Partly,
        WorkflowStatus::Failed | WorkflowStatus::Stopped | WorkflowStatus::Running | WorkflowStatus::Cancelled => {
            ExitStatus::No
        }
    })
}
