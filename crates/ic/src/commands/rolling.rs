//! A rollback over several layers, shown and asked about: what `run rollback` and `undo` share.

use clap::{Args, ValueEnum};
use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_journal::Force;
use ic_kernel::Kernel;
use ic_rollback::{LayeredRequest, LayeredRollback, LayeredStatus, Request};
use ic_worktree::{Settings, Warning, Watch};

use crate::commands::workflow::Watch as Progress;
use crate::exit::Exit;
use crate::json::RollbackJson;
use crate::render;
use crate::session::Session;
use crate::signals;

/// A layer, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layer {
    /// Phase pointer, skips, artifacts, dispatches, agents
    Workflow,
    /// Only list commits and files, by dispatch: rolls nothing back
    Code,
    /// Outside effects
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
    /// What goes back of what one dispatch did: it moves no branch, and whose rows are whose is not known.
    ///
    /// Errors: `usage` for git and data.
    pub(crate) fn chosen_of_one(typed: &[Self], settings: &Settings) -> Result<Vec<ic_rollback::Layer>> {
        use ic_rollback::Layer as L;
        if typed.is_empty() || typed.contains(&Self::All) {
            return Ok(vec![L::Workflow, L::Effects, L::Files]);
        }
        let (chosen, _) = Self::chosen(typed, settings)?;
        if chosen.iter().any(|layer| matches!(layer, L::Git | L::Data)) {
            return Err(Diagnosis::new(
                Code::Usage,
                "Of one dispatch, only the record, effects and files can be undone, not branches and rows.",
            )
            .hint("leave --layer out; with branches and rows, but with all that came after it: ic undo dispatch:ID --yes"));
        }
        Ok(chosen)
    }

    /// What goes back, and whether that is everything; nothing typed is everything.
    ///
    /// Errors: `usage` for code, which only asks.
    pub(crate) fn chosen(typed: &[Self], settings: &Settings) -> Result<(Vec<ic_rollback::Layer>, bool)> {
        use ic_rollback::Layer as L;
        if typed.is_empty() || typed.contains(&Self::All) {
            return Ok((ic_rollback::all_layers(settings), true));
        }
        let one = |layer: &Self| match layer {
            Self::Workflow => Ok(L::Workflow),
            Self::Effects => Ok(L::Effects),
            Self::Files => Ok(L::Files),
            Self::Git => Ok(L::Git),
            Self::Data => Ok(L::Data),
            Self::Code | Self::All => {
                Err(Diagnosis::new(Code::Usage, "The layer code only reads: it cannot be rolled back.")
                    .hint("to read it: ic run rollback RUN --layer=code"))
            }
        };
        Ok((typed.iter().map(one).collect::<Result<_>>()?, false))
    }
}

/// What a person decides before it is refused.
#[derive(Debug, Clone, Copy, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Forced {
    /// The four flags that follow, together
    #[arg(long)]
    force: bool,
    /// Replace files and rows that others may have changed
    #[arg(long)]
    force_files: bool,
    /// Take pushed commits, and others', off their branches
    #[arg(long)]
    force_commits: bool,
    /// Go ahead while workers still run
    #[arg(long)]
    force_workers: bool,
    /// Undo effects before one that has no undo (a pivot)
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
    /// Everything is meant: what stays although it was recorded is said.
    pub(crate) is_all: bool,
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
                return self.finish(session, kernel, settings, &preview);
            }
            session.require_somebody(
                "This rollback changes more than the ledger",
                "look first: --dry-run; then: --yes",
            )?;
            if !Session::ask(&render::rollback::plan(&preview), "Roll back?")? {
                return Ok(Exit::No);
            }
            if let Some(warning) = self.left_rows(kernel, &preview)? {
                session.output.warn(&warning.message);
            }
            let hash = preview.rollback.plan_hash.clone();
            let watch = Watch { interrupted: signals::interrupted()?, ..watch };
            let base = Request { expect_plan: Some(&hash), ..request.base };
            let sure = LayeredRequest { base, ..request.clone() };
            let whole = ic_rollback::roll_back(kernel, settings, &sure, &mut progress, &watch)?;
            return self.finish(session, kernel, settings, &whole);
        }
        let watch = if is_dry { watch } else { Watch { interrupted: signals::interrupted()?, ..watch } };
        let whole = ic_rollback::roll_back(kernel, settings, request, &mut progress, &watch)?;
        self.finish(session, kernel, settings, &whole)
    }

    /// What stays though everything was meant.
    fn left_rows(&self, kernel: &Kernel, whole: &LayeredRollback) -> Result<Option<Warning>> {
        if !self.is_all {
            return Ok(None);
        }
        ic_rollback::rows_that_stay(kernel, &whole.layers, whole.rollback.plan.cut.seq)
    }

    /// Prints what is planned or done.
    fn finish(
        &self,
        session: &mut Session,
        kernel: &Kernel,
        settings: &Settings,
        whole: &LayeredRollback,
    ) -> Result<Exit> {
        let warning = self.left_rows(kernel, whole)?;
        if let Some(warning) = &warning {
            session.output.warn(&warning.message);
        }
        let record = RollbackJson::from(whole).warned(warning.as_ref());
        let files_alone = files_alone(kernel, settings, whole);
        session.output.record(&record, || render::rollback::layered(whole, files_alone.as_ref()))?;
        if let Some(refusal) = whole.refusals.first() {
            return Ok(Exit::from(refusal.error.kind()));
        }
        Ok(match whole.status {
            LayeredStatus::Planned | LayeredStatus::RolledBack => Exit::Done,
            LayeredStatus::RollingBack => Exit::Partly,
        })
    }
}

/// As [`ic_rollback::files_alone`], of what was rolled back. What keeps that from an answer is told by the way back itself.
fn files_alone(kernel: &Kernel, settings: &Settings, whole: &LayeredRollback) -> Option<CheckpointId> {
    let (id, _) = whole.rollback.done.as_ref()?;
    let (remembered, steps) = ic_rollback::named(kernel, id.as_str()).ok()?;
    ic_rollback::files_alone(kernel, settings, (&remembered, &steps)).ok()?
}
