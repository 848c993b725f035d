//! What is asked of a rollback.

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_checkpoint::restore::Strategy;
use ic_journal::{Force, Layer};
use ic_worktree::Settings;

/// Where a rollback goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To<'a> {
    /// To where the run last left this phase.
    Phase {
        /// The phase.
        name: &'a str,
        /// Whether what was done in it is rolled back too.
        include_target: bool,
    },
    /// To a point, by its reference (`ic_ops::point`).
    Point(&'a str),
    /// Nowhere: only what this dispatch did goes, whatever was done since.
    Without(&'a str),
}

/// The point before a dispatch, for a command.
pub(crate) fn before(dispatch: &str) -> String {
    let id = dispatch.strip_prefix("dispatch:").unwrap_or(dispatch);
    shell_word(&format!("dispatch:{id}"))
}

/// What is to be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The run.
    pub run: &'a str,
    /// Where it goes.
    pub to: To<'a>,
    /// Why.
    pub reason: Option<&'a str>,
    /// Plan only; write nothing.
    pub dry_run: bool,
    /// The hash of the plan that the caller approved.
    pub expect_plan: Option<&'a str>,
}

/// Which layers go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layers<'a> {
    /// All that mean anything: rows only where a state database is configured; of one dispatch alone its record, effects and files.
    All,
    /// These.
    Only(&'a [Layer]),
}

impl Layers<'_> {
    /// The layers of a rollback to there.
    ///
    /// Errors: `usage` for git and data of one dispatch alone: it moves no branch, and whose rows are whose is not known; `no_checkpoint` for
    /// git where checkpoints do not have its state.
    pub(crate) fn of(self, to: To<'_>, settings: &Settings) -> Result<Vec<Layer>> {
        let is_of_one = matches!(to, To::Without(_));
        let goes = |layer: &Layer| match layer {
            Layer::Workflow | Layer::Effects | Layer::Files => true,
            // What no checkpoint has is not claimed to go back.
            Layer::Git => !is_of_one && settings.checkpointing.include_git,
            Layer::Data => !is_of_one && settings.state.is_some(),
        };
        let chosen = match self {
            Self::All => return Ok(Layer::ALL.into_iter().filter(goes).collect()),
            Self::Only(chosen) => chosen,
        };
        if let To::Without(dispatch) = to
            && chosen.iter().any(|layer| matches!(layer, Layer::Git | Layer::Data))
        {
            return Err(Diagnosis::new(
                Code::Usage,
                "Only the record, effects and files of one dispatch can be undone: it moves no branch, and no rows.",
            )
            .hint(format!(
                "leave --layer out; with branches and rows, but with all that came after it: ic undo {} --yes",
                before(dispatch)
            )));
        }
        if chosen.contains(&Layer::Git) && !settings.checkpointing.include_git {
            return Err(Diagnosis::new(
                Code::NoCheckpoint,
                "The state of git is in no checkpoint here: include-git is false in the configuration.",
            )
            .hint(format!("leave it as it is: --layer={}", ic_journal::layer::all_but(chosen, Layer::Git))));
        }
        ic_journal::layer::checked(chosen)
    }

    /// What a restore restores where no run goes back, so that there is no record and no effect: files and git's state. `None`: what it
    /// restores by itself.
    ///
    /// Errors: `usage` where neither is named, and for rows, which it does not restore.
    pub fn of_restore(self) -> Result<Option<Strategy>> {
        let Self::Only(chosen) = self else { return Ok(None) };
        let no_run = "No run is rolled back here, only a checkpoint restored";
        if chosen.contains(&Layer::Data) {
            return Err(Diagnosis::new(Code::Usage, format!("{no_run}: that restores no rows."))
                .hint("leave the layer data out; rows alone: ic rewind to TASK --yes"));
        }
        match (chosen.contains(&Layer::Files), chosen.contains(&Layer::Git)) {
            (true, true) => Ok(None),
            (true, false) => Ok(Some(Strategy::FilesOnly)),
            (false, true) => Ok(Some(Strategy::GitOnly)),
            (false, false) => {
                Err(Diagnosis::new(Code::Usage, format!("{no_run}: it has files and git alone."))
                    .hint("name one of them: --layer=files"))
            }
        }
    }

    /// Whether the run goes back with everything: what stays all the same is said then.
    pub(crate) fn is_everything(self, to: To<'_>) -> bool {
        self == Self::All && !matches!(to, To::Without(_))
    }
}

/// What is to be taken back, and how.
#[derive(Debug, Clone)]
pub struct LayeredRequest<'a> {
    /// The run, the phase, and what the caller expects.
    pub base: Request<'a>,
    /// Which layers.
    pub layers: Layers<'a>,
    /// Which refusals the caller has decided to pass.
    pub force: Force,
    /// Conflicts stay as they are.
    pub keep_theirs: bool,
    /// Only files that this run recorded.
    pub mine: bool,
    /// What another run that was at work here meanwhile may have changed is asked for too, though nobody recorded whose it is.
    pub beside_runs: bool,
}

/// What is to be gone on with, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResumeRequest<'a> {
    /// The rollback, or its run.
    pub rollback: &'a str,
    /// The step that failed is passed over.
    pub skip_step: bool,
    /// The effects of these steps stay as they are.
    pub skip_effects: &'a [String],
    /// Why they are left.
    pub reason: Option<&'a str>,
    /// Which refusals the caller has decided to pass, beside those decided when it was begun.
    pub force: Force,
}

/// What is to be undone, and how.
#[derive(Debug, Clone, Copy)]
pub struct UndoRequest<'a> {
    /// The rollback, or its run: then the newest of it.
    pub rollback: &'a str,
    /// Everything else is taken back, though effects that it undid cannot be made again.
    pub without_effects: bool,
    /// Why.
    pub reason: Option<&'a str>,
    /// The hash of the plan that the caller approved.
    pub expect_plan: Option<&'a str>,
}
