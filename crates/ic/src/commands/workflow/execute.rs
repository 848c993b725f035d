//! `ic workflow run` and `resume`

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use ic_base::Result;
use ic_journal::Force;
use ic_kernel::Kernel;
use ic_kernel::config::Config;
use ic_workflow::definition::{OnFailure, Strategy};
use ic_workflow::table::StepState;
use ic_workflow::{Definition, Overrides, Report, Setup, Status, Ui};
use ic_worktree::{Settings, Warning};

use super::watch::Watch;
use crate::commands::rolling::Forced;
use crate::exit::Exit;
use crate::json::{WorkflowJson, WorkflowPlanJson};
use crate::render;
use crate::session::Session;
use crate::signals;

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
pub(crate) struct Start {
    /// The workflow's file
    file: PathBuf,
    /// Show what would run, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    choices: Choices,
}

/// Resume a workflow after a stop, a crash, or an unfinished rollback.
///
/// Finished steps are kept. An interrupted or failed step runs again, with the same idempotency key. Strategy and jobs
/// stay as the workflow was started, unless given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow resume @
  ic workflow resume @ --on-failure rollback --yes    # roll back instead

Exit codes are those of ic workflow run. An unfinished rollback is finished first; it asks, unless --yes.")]
pub(crate) struct Resume {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    forced: Forced,
    /// Do not ask before resuming a rollback
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct Choices {
    /// After a failed step, without asking [default: the file's, else the configuration's]
    #[arg(long, value_enum, value_name = "WHAT")]
    on_failure: Option<OnFailureFlag>,
    /// What a rollback restores [default: the file's, else full]
    #[arg(long, value_enum, value_name = "S")]
    strategy: Option<StrategyFlag>,
    /// Steps that may run at once [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OnFailureFlag {
    /// Take the workflow back
    Rollback,
    /// Stop where it is
    Stop,
    /// Continue with what does not need the failed step
    Continue,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum StrategyFlag {
    /// Files and git's state, as before the first step
    Full,
    /// Only the failed step: its effects, and the tree as before it
    Partial,
    /// Files alone, as before the first step
    FilesOnly,
    /// Git's state alone, as before the first step
    GitOnly,
}

impl From<OnFailureFlag> for OnFailure {
    fn from(flag: OnFailureFlag) -> Self {
        match flag {
            OnFailureFlag::Rollback => Self::Rollback,
            OnFailureFlag::Stop => Self::Stop,
            OnFailureFlag::Continue => Self::Continue,
        }
    }
}

impl From<StrategyFlag> for Strategy {
    fn from(flag: StrategyFlag) -> Self {
        match flag {
            StrategyFlag::Full => Self::Full,
            StrategyFlag::Partial => Self::Partial,
            StrategyFlag::FilesOnly => Self::FilesOnly,
            StrategyFlag::GitOnly => Self::GitOnly,
        }
    }
}

impl Choices {
    fn overrides(&self, interrupted: Arc<AtomicBool>) -> Overrides {
        Overrides {
            on_failure: self.on_failure.map(OnFailure::from),
            strategy: self.strategy.map(Strategy::from),
            jobs: self.jobs.map(usize::from),
            force: Force::default(),
            to: None,
            interrupted,
            expect_plan: None,
        }
    }
}

impl Start {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let definition = Definition::load(&session.directory.join(&self.file))?;
        let coverage = ic_workflow::plan(&definition);
        let kernel = session.kernel()?;
        let config = session.config(&kernel.project.root)?.config;
        let settings = session.checkpoint_settings(&kernel)?;
        if self.dry_run {
            let overrides = self.choices.overrides(Arc::default());
            ic_workflow::require_startable(&kernel, &settings, &definition, &overrides)?;
            let record = WorkflowPlanJson::new(&definition, &coverage);
            session.output.record(&record, || render::workflow::plan(&definition, &coverage))?;
            return Ok(Exit::Done);
        }
        let setup = setup(&kernel, &settings, &config);
        let overrides = self.choices.overrides(signals::interrupted()?);
        // Before anything is printed: what is refused says nothing of what it would do.
        ic_workflow::require_startable(&kernel, &settings, &definition, &overrides)?;
        let mut watch = Watch::new(session);
        if !coverage.is_complete() {
            let message = render::workflow::undeclared(&coverage);
            watch.warn(&Warning { code: "undeclared_steps", message });
        }
        let report = ic_workflow::run(&setup, &definition, &overrides, &mut watch)?;
        finish(session, &report, &watch, Exit::No)
    }
}

impl Resume {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let report = ic_workflow::show(&kernel, &self.run)?;
        let question = if ic_workflow::is_rolling_back(&kernel, &self.run)? {
            Some("Resume the rollback?")
        } else if matches!(self.choices.on_failure, Some(OnFailureFlag::Rollback)) && has_failed(&report) {
            Some("Roll back instead of retrying?")
        } else {
            None
        };
        let look = format!("ic workflow show {}", report.run_id.short());
        if let Some(question) = question.filter(|_| !self.yes)
            && !is_confirmed(session, || Ok(render::workflow::state(&report)), &look, question)?
        {
            return Ok(Exit::No);
        }
        let overrides =
            Overrides { force: self.forced.decided(), ..self.choices.overrides(signals::interrupted()?) };
        go(session, &kernel, &self.run, &overrides, ic_workflow::resume, Exit::No)
    }
}

/// Whether a step failed, or was left in its middle.
fn has_failed(report: &Report) -> bool {
    let is_bad = |state| matches!(state, StepState::Failed | StepState::Interrupted | StepState::Running);
    report.steps.iter().any(|step| is_bad(step.state))
}

/// Shows `text` and asks. `look`: the command that only looks. Errors: `confirmation_required` where nobody can be asked.
pub(super) fn is_confirmed(
    session: &Session,
    text: impl FnOnce() -> Result<String>,
    look: &str,
    question: &str,
) -> Result<bool> {
    // What cannot be done at all is refused for its own reason: a yes would not help.
    let text = text()?;
    session.require_somebody(
        "A rollback runs undo commands and writes into the working tree",
        &format!("look first: {look}; then: --yes"),
    )?;
    Session::ask(&text, question)
}

type Deed = fn(&Setup<'_>, &str, &Overrides, &mut dyn Ui) -> Result<Report>;

fn setup<'k>(kernel: &'k Kernel, settings: &'k Settings, config: &'k Config) -> Setup<'k> {
    let checkpoints = config.enabled && config.checkpointing.auto;
    Setup { kernel, settings, checkpoints, configured: &config.on_failure }
}

pub(super) fn go(
    session: &mut Session,
    kernel: &Kernel,
    run: &str,
    overrides: &Overrides,
    deed: Deed,
    rolled_back: Exit,
) -> Result<Exit> {
    let config = session.config(&kernel.project.root)?.config;
    let settings = session.checkpoint_settings(kernel)?;
    let mut watch = Watch::new(session);
    let report = deed(&setup(kernel, &settings, &config), run, overrides, &mut watch)?;
    finish(session, &report, &watch, rolled_back)
}

fn finish(session: &mut Session, report: &Report, watch: &Watch, rolled_back: Exit) -> Result<Exit> {
    let record = WorkflowJson::new(report, watch.warnings());
    session.output.record(&record, || render::workflow::report(&watch.unsaid(report)))?;
    Ok(match report.status {
        Status::Completed => Exit::Done,
        Status::RolledBack => rolled_back,
        Status::RollingBack => Exit::Partly,
        Status::Failed | Status::Stopped | Status::Running | Status::Cancelled => Exit::No,
    })
}
