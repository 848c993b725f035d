//! A rollback over several layers, shown and asked about: what `run rollback` and `undo` share.

use clap::ValueEnum;
use ic_base::CheckpointId;
use ic_journal::Force;
use ic_kernel::Kernel;
use ic_rollback::{LayeredRequest, LayeredRollback, LayeredStatus, Request};
use ic_worktree::{Settings, Watch};

use crate::commands::prelude::*;
use crate::commands::workflow::Watch as Progress;
use crate::signals;
use crate::views::rollback::RollbackJson;

/// A layer, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layer {
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
    /// The layers that are named; `None`: all of them, as where nothing is typed.
    ///
    /// Errors: `usage` for code, which only asks.
    pub(crate) fn named(typed: &[Self]) -> Result<Option<Vec<ic_rollback::Layer>>> {
        use ic_rollback::Layer as L;
        if typed.is_empty() || typed.contains(&Self::All) {
            return Ok(None);
        }
        let one = |layer: &Self| match layer {
            Self::Workflow => Ok(L::Workflow),
            Self::Effects => Ok(L::Effects),
            Self::Files => Ok(L::Files),
            Self::Git => Ok(L::Git),
            Self::Data => Ok(L::Data),
            Self::Code | Self::All => {
                Err(Diagnosis::new(Code::Usage, "code is a question, and no layer that goes back.")
                    .hint("ask: ic run rollback RUN --layer=code"))
            }
        };
        typed.iter().map(one).collect::<Result<_>>().map(Some)
    }
}

/// What a person decides before it is refused.
#[derive(Debug, Clone, Copy, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Forced {
    /// All of the following
    #[arg(long)]
    force: bool,
    /// Replace files that others changed, and take rows that another run may have written
    #[arg(long)]
    force_files: bool,
    /// Take commits off their branches that other runs recorded, or that a remote has
    #[arg(long)]
    force_commits: bool,
    /// Do it beside workers that live, and may write into what goes back
    #[arg(long)]
    force_workers: bool,
    /// Undo effects before one that cannot be undone
    #[arg(long)]
    past_pivot: bool,
}

impl Forced {
    pub(crate) fn decided(self) -> Force {
        let each = Force {
            files: self.force_files,
            commits: self.force_commits,
            workers: self.force_workers,
            past_pivot: self.past_pivot,
        };
        each.or(Force::all_if(self.force))
    }

    /// Whether anything is decided.
    pub(crate) fn is_any(self) -> bool {
        self.decided() != Force::default()
    }
}

/// A rollback that a person asks for.
pub(crate) struct Rolling<'a> {
    /// What is rolled back, and how.
    pub(crate) request: LayeredRequest<'a>,
    /// Nobody is asked.
    pub(crate) yes: bool,
}

impl Rolling<'_> {
    /// Shows the plan and asks on a terminal; elsewhere it needs `--yes`.
    pub(crate) fn go(&self, session: &mut Session, kernel: &Kernel, settings: &Settings) -> Result<Exit> {
        let (watch, mut progress) = (Watch::default(), Progress::new(session));
        let request = &self.request;
        let is_dry = request.base.dry_run;
        if !is_dry && !self.yes {
            // What cannot be done at all is refused for its own reason: a yes would not help.
            let dry = LayeredRequest { base: Request { dry_run: true, ..request.base }, ..request.clone() };
            let preview = ic_rollback::roll_back(kernel, settings, &dry, &mut progress, &watch)?;
            if !preview.refusals.is_empty() {
                return finish(session, kernel, settings, &preview);
            }
            let question = Question {
                does: "This rollback works outside of the ledger,",
                look: Some("--dry-run"),
                asks: "Roll back?",
            };
            if !session.confirm(false, &question, || Ok(views::rollback::layered::plan(&preview)))? {
                return Ok(Exit::No);
            }
            warn_of_rows(session, &preview);
            let hash = preview.rollback.plan_hash.clone();
            let watch = Watch { interrupted: signals::interrupted()?, ..watch };
            let base = Request { expect_plan: Some(&hash), ..request.base };
            let sure = LayeredRequest { base, ..request.clone() };
            let whole = ic_rollback::roll_back(kernel, settings, &sure, &mut progress, &watch)?;
            return finish(session, kernel, settings, &whole);
        }
        let watch = if is_dry { watch } else { Watch { interrupted: signals::interrupted()?, ..watch } };
        let whole = ic_rollback::roll_back(kernel, settings, request, &mut progress, &watch)?;
        finish(session, kernel, settings, &whole)
    }
}

/// Prints what is planned or done.
fn finish(
    session: &mut Session,
    kernel: &Kernel,
    settings: &Settings,
    whole: &LayeredRollback,
) -> Result<Exit> {
    warn_of_rows(session, whole);
    let record = RollbackJson::from(whole);
    let files_alone = files_alone(kernel, settings, whole);
    session.output.record(&record, || views::rollback::layered::layered(whole, files_alone.as_ref()))?;
    if let Some(refusal) = whole.refusals.first() {
        return Ok(Exit::from(refusal.error.kind()));
    }
    Ok(match whole.status {
        LayeredStatus::Planned | LayeredStatus::RolledBack => Exit::Done,
        LayeredStatus::RollingBack => Exit::Partly,
    })
}

/// Says that rows stay, where everything was meant.
fn warn_of_rows(session: &Session, whole: &LayeredRollback) {
    if let Some(warning) = &whole.rows_stay {
        session.output.warn(&warning.message);
    }
}

/// As [`ic_rollback::files_alone`], of what was rolled back. What keeps that from an answer is told by the way back itself.
fn files_alone(kernel: &Kernel, settings: &Settings, whole: &LayeredRollback) -> Option<CheckpointId> {
    let (id, _) = whole.rollback.done.as_ref()?;
    let (remembered, steps) = ic_rollback::named(kernel, id.as_str()).ok()?;
    ic_rollback::files_alone(kernel, settings, (&remembered, &steps)).ok()?
}
