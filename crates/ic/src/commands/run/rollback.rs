//! `ic run rollback`

use clap::{Args, ValueEnum};
use ic_base::{Code, Diagnosis, Result};
use ic_ops::rollback::code::{self, Scope};
use ic_ops::rollback::{self, Request};

use crate::commands::input;
use crate::exit::Exit;
use crate::flags::Door;
use crate::json::{CodeJson, RollbackJson};
use crate::render;
use crate::session::Session;

/// Take a run back to an earlier phase, or ask which commits came after it.
///
/// What was recorded after the run last left that phase, or is labelled with a later one, is marked as rolled back
/// and satisfies no gate any more; unfinished dispatches are cancelled, active agents fail. Nothing is deleted. It is
/// one transaction, and it never loses to an advance.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run rollback @ --to-phase planned --dry-run
  ic run rollback @ --to-phase planned --reason 'the plan was wrong'
  ic run rollback @ --to-phase planned --expect-plan \"$hash\"     # exactly what the dry run showed
  ic run rollback @ --to-phase executing --include-target        # redo the current phase
  ic run rollback @ --layer=code --to-phase planned --json | jq -r '.revert_order[]' | xargs -rn1 git revert --no-edit

--layer=code only reads: it answers which commits and files came from where. git is never run. Revert before you
advance again: an advance past the phase moves the cut, and what came before it then stands only in the report of the
whole run (--layer=code alone).")]
pub(crate) struct Rollback {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The phase to go back to
    #[arg(long, value_name = "P", required_unless_present = "layer")]
    to_phase: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Take back what was done in that phase too
    #[arg(long, requires = "to_phase")]
    include_target: bool,
    /// Say what would be done, with the same plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Only if the plan is this one: the `plan_hash` of a dry run
    #[arg(long, value_name = "HASH")]
    expect_plan: Option<String>,
    /// What is taken back: workflow [default], or code to only ask
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    layer: Vec<Layer>,
    /// With --layer=code: only what dispatches of this phase left
    #[arg(long, value_name = "P", conflicts_with = "to_phase", requires = "layer")]
    phase: Option<String>,
    /// Do not ask; the workflow layer alone never asks
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    door: Door,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layer {
    /// Phase pointer, skips, artifacts, dispatches, agents
    Workflow,
    /// Ask which commits and files came from where
    Code,
    /// Outside side effects (not available yet)
    Effects,
    /// The working tree (not available yet)
    Files,
    /// HEAD, branch, index, stash (not available yet)
    Git,
    /// Rows of the application's tables (not available yet)
    Data,
    /// Every layer (not available yet)
    All,
}

impl Layer {
    fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Code => "code",
            Self::Effects => "effects",
            Self::Files => "files",
            Self::Git => "git",
            Self::Data => "data",
            Self::All => "all",
        }
    }
}

impl Rollback {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        if let Some(layer) = self.layer.iter().find(|l| !matches!(l, Layer::Workflow | Layer::Code)) {
            return Err(Diagnosis::new(
                Code::LayerNotAvailable,
                format!("The layer {} is not available yet; workflow and code are.", layer.as_str()),
            )
            .detail("layer", layer.as_str()));
        }
        match (self.layer.contains(&Layer::Code), self.layer.contains(&Layer::Workflow)) {
            (true, true) => Err(usage("code is a question and cannot be combined with another layer.")),
            (true, false) => self.code(session),
            (false, _) => self.workflow(session),
        }
    }

    fn workflow(&self, session: &mut Session) -> Result<Exit> {
        let Some(to_phase) = self.to_phase.as_deref() else {
            return Err(usage("--to-phase is missing: the phase to go back to."));
        };
        let request = Request {
            run: &self.run,
            to_phase,
            include_target: self.include_target,
            reason: input::optional_text("--reason", self.reason.as_deref())?,
            dry_run: self.dry_run,
            expect_plan: self.expect_plan.as_deref(),
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let rollback = rollback::rollback(&kernel, &request)?;
        session.output.record(&RollbackJson::from(&rollback), || render::rollback::summary(&rollback))?;
        Ok(Exit::Done)
    }

    fn code(&self, session: &mut Session) -> Result<Exit> {
        if self.reason.is_some() || self.dry_run || self.expect_plan.is_some() {
            return Err(usage(
                "--layer=code only reads; --reason, --dry-run and --expect-plan do not go with it.",
            ));
        }
        let scope = match (self.phase.as_deref(), self.to_phase.as_deref()) {
            (Some(phase), _) => Scope::Phase(phase),
            (None, Some(to_phase)) => Scope::After { to_phase, include_target: self.include_target },
            (None, None) => Scope::WholeRun,
        };
        let kernel = session.kernel()?;
        let (run, report) = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            let report = code::report(snapshot, &run, scope)?;
            Ok((run, report))
        })?;
        session.output.record(&CodeJson::new(&run, &report), || render::rollback::code(&report))?;
        Ok(Exit::Done)
    }
}

fn usage(message: &str) -> Diagnosis {
    Diagnosis::new(Code::Usage, message).hint("see: ic run rollback --help")
}
