//! `ic run rollback`

use clap::{Args, ValueEnum};
use ic_base::{Code, Diagnosis, Result};
use ic_ops::Kernel;
use ic_ops::checkpoint::{Warning, Watch};
use ic_ops::rollback::code::{self, Scope};
use ic_ops::rollback::{self, Request, To, Whole, WholeRequest, WholeStatus};

use crate::commands::input;
use crate::commands::workflow::Watch as Progress;
use crate::exit::Exit;
use crate::flags::Door;
use crate::json::{CodeJson, RollbackJson};
use crate::render;
use crate::session::Session;
use crate::signals;

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
when the run last left that phase; what somebody else changed is named and refused. `ic rollback undo` brings back what can be brought back.
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
    /// Take back what was done in that phase too
    #[arg(long, requires = "to_phase")]
    include_target: bool,
    /// Say what would be done, with the same plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Only if the plan is this one: the `plan_hash` of a dry run
    #[arg(long, value_name = "HASH")]
    expect_plan: Option<String>,
    /// What is taken back: workflow [default], with it effects, files, git and data, or all; or code to only ask
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    layer: Vec<Layer>,
    /// With --layer=code: only what dispatches of this phase left
    #[arg(long, value_name = "P", conflicts_with = "to_phase", requires = "layer")]
    phase: Option<String>,
    /// Replace what somebody else changed, take rows that another run may have written, and undo effects beyond what cannot be undone
    #[arg(long, requires = "layer")]
    force: bool,
    /// Leave what somebody else changed
    #[arg(long, requires = "layer", conflicts_with = "force")]
    keep_theirs: bool,
    /// Only files that this run recorded, whoever calls
    #[arg(long, requires = "layer")]
    mine: bool,
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
    /// Outside side effects
    Effects,
    /// The working tree
    Files,
    /// HEAD, branch, index, stash
    Git,
    /// Rows of the application's tables
    Data,
    /// Workflow, effects, files, git, and data where a state database is configured
    All,
}

impl Layer {
    /// What is taken back; `None` for a question.
    fn taken_back(self) -> Option<Vec<rollback::Layer>> {
        use rollback::Layer as L;
        Some(match self {
            Self::Workflow => vec![L::Workflow],
            Self::Effects => vec![L::Effects],
            Self::Files => vec![L::Files],
            Self::Git => vec![L::Git],
            Self::Data => vec![L::Data],
            Self::All => vec![L::Workflow, L::Effects, L::Files, L::Git],
            Self::Code => return None,
        })
    }
}

impl Rollback {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let layers: Vec<rollback::Layer> =
            self.layer.iter().filter_map(|layer| layer.taken_back()).flatten().collect();
        match (self.layer.contains(&Layer::Code), layers.is_empty()) {
            (true, false) => Err(usage("code is a question and cannot be combined with another layer.")),
            (true, true) => self.code(session),
            (false, _) if layers.iter().all(|layer| *layer == rollback::Layer::Workflow) => {
                self.workflow(session)
            }
            (false, _) => self.whole(session, &layers),
        }
    }

    /// Over several layers: shows the plan and asks on a terminal; elsewhere it needs `--yes`.
    fn whole(&self, session: &mut Session, layers: &[rollback::Layer]) -> Result<Exit> {
        let kernel = session.kernel_for(self.door.as_deref())?;
        let settings = session.settings_of_project(&kernel, &Session::project_of(&kernel, &self.run)?)?;
        let mut layers = layers.to_vec();
        if self.layer.contains(&Layer::All) && settings.state.is_some() {
            layers.push(rollback::Layer::Data);
        }
        let (watch, mut progress) = (Watch::default(), Progress::new(session));
        let request = WholeRequest {
            base: self.request()?,
            layers: &layers,
            force: self.force,
            keep_theirs: self.keep_theirs,
            mine: self.mine,
        };
        if !self.dry_run && !self.yes {
            // What cannot be done at all is refused for its own reason: a yes would not help.
            let dry = WholeRequest { base: Request { dry_run: true, ..request.base }, ..request.clone() };
            let preview = rollback::roll_back(&kernel, &settings, &dry, &mut progress, &watch)?;
            if preview.refusal.is_some() {
                return self.finish(session, &kernel, &preview);
            }
            session.require_somebody(
                "This rollback works outside of the ledger,",
                "look first: --dry-run; then: --yes",
            )?;
            if !Session::ask(&render::rollback::plan(&preview), "Roll back?")? {
                return Ok(Exit::No);
            }
            if let Some(warning) = self.left_rows(&kernel, &preview)? {
                session.output.warn(&warning.message);
            }
            let hash = preview.rollback.plan_hash.clone();
            let watch = Watch { interrupted: signals::interrupted()?, ..watch };
            let sure = WholeRequest { base: Request { expect_plan: Some(&hash), ..request.base }, ..request };
            let whole = rollback::roll_back(&kernel, &settings, &sure, &mut progress, &watch)?;
            return self.finish(session, &kernel, &whole);
        }
        let watch =
            if self.dry_run { watch } else { Watch { interrupted: signals::interrupted()?, ..watch } };
        let whole = rollback::roll_back(&kernel, &settings, &request, &mut progress, &watch)?;
        self.finish(session, &kernel, &whole)
    }

    /// What stays though everything was meant.
    fn left_rows(&self, kernel: &Kernel, whole: &Whole) -> Result<Option<Warning>> {
        if !self.layer.contains(&Layer::All) {
            return Ok(None);
        }
        rollback::rows_that_stay(kernel, &whole.layers, whole.rollback.plan.cut.seq)
    }

    /// Prints what is planned or done.
    fn finish(&self, session: &mut Session, kernel: &Kernel, whole: &Whole) -> Result<Exit> {
        let warning = self.left_rows(kernel, whole)?;
        if let Some(warning) = &warning {
            session.output.warn(&warning.message);
        }
        let record = RollbackJson::from(whole).warned(warning.as_ref());
        session.output.record(&record, || render::rollback::whole(whole))?;
        if let Some(refusal) = &whole.refusal {
            return Ok(Exit::from(refusal.kind()));
        }
        Ok(match whole.status {
            WholeStatus::Planned | WholeStatus::RolledBack => Exit::Done,
            WholeStatus::RollingBack => Exit::Partly,
        })
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
        let rollback = rollback::rollback(&kernel, &request)?;
        session.output.record(&RollbackJson::from(&rollback), || render::rollback::summary(&rollback))?;
        Ok(Exit::Done)
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
        session.output.record(&CodeJson::new(&run, &report), || render::rollback::code(&report))?;
        Ok(Exit::Done)
    }
}

fn usage(message: &str) -> Diagnosis {
    Diagnosis::new(Code::Usage, message).hint("see: ic run rollback --help")
}
