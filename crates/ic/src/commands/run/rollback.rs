//! `ic run rollback`

use ic_kernel::journal::PathDecisions;
use ic_undo::code::{self, CodeScope};
use ic_undo::{LayeredRequest, Layers, RollbackRequest, RollbackTarget};

use crate::commands::layered_rollback::{Forced, LayerArg, Rolling};
use crate::commands::prelude::*;
use crate::views::code::CodeJson;
use crate::views::rollback::RollbackJson;

/// Roll a run back to an earlier phase, or list the commits that came after it.
///
/// Records made after the run last left that phase, or labelled with a later phase, are marked as rolled back and
/// satisfy no gate any more. Unfinished dispatches are cancelled, active agents fail. Nothing is deleted. It is one
/// transaction, and a concurrent advance cannot make it fail. The workflow layer alone never asks for confirmation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run rollback @ --to-phase planned --dry-run
  ic run rollback @ --to-phase planned --reason 'the plan was wrong'
  ic run rollback @ --to-phase planned --expect-plan \"$hash\"   # as the dry run showed
  ic run rollback @ --to-phase executing --include-target   # redo this phase
  ic run rollback @ --layer=code --to-phase planned --json | jq -r '.revert_order[]' | xargs -rn1 git revert --no-edit
  ic run rollback @ --to-phase planned --layer=all --dry-run   # everything: one plan
  ic run rollback @ --to-phase planned --layer=all --yes

--layer=all undoes the run's outside effects and restores git's state, the files and the rows of the state database to
what they were when the run last left that phase. What others did to files stays, merged where both changed one. It is
refused where they changed the same lines, or where it is not known whose a change is, and names the paths. `ic redo`
restores what was rolled back, as far as possible. Exit 4 when a step failed: the run stays closed until
ic rollback resume or abort ends it. --dry-run exits as the real call with --yes and the same flags would; a plan that
would be refused names the reason.

--layer=code only reads: it lists commits and files by dispatch and phase, and never runs git. Revert before you
advance again: an advance past the phase moves the cut, and only the report of the whole run (--layer=code alone) then
has what came before it.")]
pub(crate) struct RunRollbackArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The phase to go back to
    #[arg(long, value_name = "P", required_unless_present_any = ["layer", "to"])]
    to_phase: Option<String>,
    /// The point to go back to: dispatch:ID, step:NAME, phase:P, checkpoint:ID or created
    #[arg(long, value_name = "POINT", conflicts_with = "to_phase")]
    to: Option<String>,
    /// The reason, recorded with the rollback
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Roll back what was done in that phase too
    #[arg(long, requires = "to_phase")]
    include_target: bool,
    #[command(flatten)]
    plan: PlanFlags,
    /// The layers to roll back, workflow among them; code only reads [default: workflow]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    layer: Vec<LayerArg>,
    /// With --layer=code: only work of this phase
    #[arg(long, value_name = "P", conflicts_with = "to_phase", requires = "layer")]
    phase: Option<String>,
    #[command(flatten)]
    forced: Forced,
    /// Keep what others changed
    #[arg(long, requires = "layer", conflicts_with_all = ["force", "force_files"])]
    keep_theirs: bool,
    /// Only files that this run, not the caller, recorded
    #[arg(long, requires = "layer")]
    mine: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunRollbackArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let asks_for_code = self.asks_for_code()?;
        // This also holds without --layer: `all` is true of an empty list.
        let is_of_record = asks_for_code || self.layer.iter().all(|layer| *layer == LayerArg::Workflow);
        self.forced.require_none_for_record(&self.layer, self.keep_theirs || self.mine)?;
        if asks_for_code {
            return self.code(session);
        }
        if is_of_record {
            return self.workflow(session);
        }
        let kernel = session.kernel_to_change(self.door.as_deref())?;
        // The configuration is that of the run's project, which may not be the one the caller stands in.
        let settings = session.settings_of_project(&kernel, &CliSession::project_of(&kernel, &self.run)?)?;
        let named = LayerArg::named(&self.layer)?;
        let request = LayeredRequest {
            base: self.request()?,
            layers: named.as_deref().map_or(Layers::All, Layers::Only),
            force: self.forced.decided(),
            keep_theirs: self.keep_theirs,
            decisions: PathDecisions::default(),
            mine: self.mine,
        };
        Rolling { request, yes: self.plan.yes }.go(session, &kernel, &settings)
    }

    /// Whether only the code report is asked for. Errors: `usage` if `code` is combined with another layer.
    fn asks_for_code(&self) -> Result<bool> {
        match self.layer.iter().filter(|layer| **layer == LayerArg::Code).count() {
            0 => Ok(false),
            asked if asked == self.layer.len() => Ok(true),
            _ => Err(usage("The layer code only reads, and cannot be combined with another layer.")),
        }
    }

    fn request(&self) -> Result<RollbackRequest<'_>> {
        let to = match (self.to_phase.as_deref(), self.to.as_deref()) {
            (Some(name), _) => RollbackTarget::Phase { name, include_target: self.include_target },
            (None, Some(point)) => RollbackTarget::Point(point),
            (None, None) => return Err(usage("--to or --to-phase is missing: the point to go back to.")),
        };
        Ok(RollbackRequest {
            run: &self.run,
            to,
            reason: input::optional_text("--reason", self.reason.as_deref())?,
            dry_run: self.plan.dry_run,
            expect_plan: self.plan.expect_plan.as_deref(),
        })
    }

    fn workflow(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let request = self.request()?;
        let kernel = session.kernel_to_change(self.door.as_deref())?;
        // If two callers ask at once, the second finds the run rolled back. The time distinguishes that from an earlier
        // rollback, which is an error.
        let asked_at = session.asked_at(&kernel);
        let rollback = ic_undo::rollback_asked_at(&kernel, &request, Some(asked_at))?;
        session.output.record(&RollbackJson::from(&rollback), || {
            views::rollback::summary(&rollback, kernel.ledger.is_of_one_host())
        })
    }

    fn code(&self, session: &mut CliSession) -> Result<ExitStatus> {
        if self.reason.is_some() || self.plan.dry_run || self.plan.expect_plan.is_some() || self.to.is_some() {
            return Err(usage(
                "--layer=code only reads: it cannot be combined with --to, --reason, --dry-run or --expect-plan.",
            ));
        }
        let scope = match (self.phase.as_deref(), self.to_phase.as_deref()) {
            (Some(phase), _) => CodeScope::Phase(phase),
            (None, Some(to_phase)) => CodeScope::After { to_phase, include_target: self.include_target },
            (None, None) => CodeScope::WholeRun,
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
