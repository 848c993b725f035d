//! `ic run rollback`

use ic_rollback::code::{self, Scope};
use ic_rollback::{LayeredRequest, Layers, Request, To};

use crate::commands::prelude::*;
use crate::commands::rolling::{Forced, Layer, Rolling};
use crate::views::code::CodeJson;
use crate::views::rollback::RollbackJson;

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
  ic run rollback @ --to-phase planned --layer=all --dry-run     # state, effects, git, files and rows: one plan
  ic run rollback @ --to-phase planned --layer=all --yes

--layer=all restores git's state, files and rows of the state database, and undoes the run's outside effects, each to what it was
when the run last left that phase; what others changed is named and refused. `ic rollback undo` brings back what can be brought back.
Exit 4 when a step failed: the run stays closed, and ic rollback resume resumes it. --dry-run ends as the real call with --yes
would be refused or accepted, with the same flags; a plan that would be refused names why.

--layer=code only reads: it answers which commits and files came from where. git is never run. Revert before you
advance again: an advance past the phase moves the cut, and what came before it then stands only in the report of the
whole run (--layer=code alone).")]
pub(crate) struct Rollback {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The phase to go back to
    #[arg(long, value_name = "P", required_unless_present_any = ["layer", "to"])]
    to_phase: Option<String>,
    /// The point to go back to: dispatch:ID, step:NAME, phase:P, checkpoint:ID or created
    #[arg(long, value_name = "POINT", conflicts_with = "to_phase")]
    to: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Roll back what was done in that phase too
    #[arg(long, requires = "to_phase")]
    include_target: bool,
    /// Say what would be done, with the same plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Only if the plan is this one: the `plan_hash` of a dry run
    #[arg(long, value_name = "HASH", value_parser = crate::flags::plan_hash)]
    expect_plan: Option<String>,
    /// What goes back: workflow [default], with it effects, files, git and data, or all; or code to only ask
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    layer: Vec<Layer>,
    /// With --layer=code: only what dispatches of this phase left
    #[arg(long, value_name = "P", conflicts_with = "to_phase", requires = "layer")]
    phase: Option<String>,
    #[command(flatten)]
    forced: Forced,
    /// Leave what others changed
    #[arg(long, requires = "layer", conflicts_with_all = ["force", "force_files"])]
    keep_theirs: bool,
    /// Only files that this run recorded, not those of a dispatch that calls
    #[arg(long, requires = "layer")]
    mine: bool,
    /// Do not ask; the workflow layer alone never asks
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    door: Door,
}

impl Rollback {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        if self.forced.is_any() && self.layer.is_empty() {
            return Err(usage(
                "the record alone meets nothing that would have to be forced; --layer says what goes back.",
            ));
        }
        if self.asks_for_code()? {
            return self.code(session);
        }
        if self.layer.iter().all(|layer| *layer == Layer::Workflow) {
            return self.workflow(session);
        }
        let kernel = session.kernel_for(self.door.as_deref())?;
        let settings = session.settings_of_project(&kernel, &Session::project_of(&kernel, &self.run)?)?;
        let named = Layer::named(&self.layer)?;
        let request = LayeredRequest {
            base: self.request()?,
            layers: named.as_deref().map_or(Layers::All, Layers::Only),
            force: self.forced.decided(),
            keep_theirs: self.keep_theirs,
            mine: self.mine,
            beside_runs: false,
        };
        Rolling { request, yes: self.yes }.go(session, &kernel, &settings)
    }

    /// Whether it only asks. Errors: `usage` where it is asked and told at once.
    fn asks_for_code(&self) -> Result<bool> {
        match self.layer.iter().filter(|layer| **layer == Layer::Code).count() {
            0 => Ok(false),
            asked if asked == self.layer.len() => Ok(true),
            _ => Err(usage("code is a question and cannot be combined with another layer.")),
        }
    }

    fn request(&self) -> Result<Request<'_>> {
        let to = match (self.to_phase.as_deref(), self.to.as_deref()) {
            (Some(name), _) => To::Phase { name, include_target: self.include_target },
            (None, Some(point)) => To::Point(point),
            (None, None) => return Err(usage("--to or --to-phase is missing: where to go back to.")),
        };
        Ok(Request {
            run: &self.run,
            to,
            reason: input::optional_text("--reason", self.reason.as_deref())?,
            dry_run: self.dry_run,
            expect_plan: self.expect_plan.as_deref(),
        })
    }

    fn workflow(&self, session: &mut Session) -> Result<Exit> {
        let request = self.request()?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let rollback = ic_rollback::rollback(&kernel, &request)?;
        session.output.record(&RollbackJson::from(&rollback), || views::rollback::summary(&rollback))
    }

    fn code(&self, session: &mut Session) -> Result<Exit> {
        if self.reason.is_some() || self.dry_run || self.expect_plan.is_some() || self.to.is_some() {
            return Err(usage(
                "--layer=code only reads; --to, --reason, --dry-run and --expect-plan do not go with it.",
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
        session.output.record(&CodeJson::new(&run, &report), || views::code::code(&report))
    }
}

fn usage(message: &str) -> Diagnosis {
    Diagnosis::new(Code::Usage, message).hint("see: ic run rollback --help")
}
