//! What a caller asks of a rollback.

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::reverse::LineDecision;
use ic_kernel::journal::{Force, LayerName, PathDecisions};
use ic_worktree::{CaptureSettings, Conflict};

/// The target of a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackTarget<'a> {
    /// To where the run last left this phase.
    Phase {
        /// A phase of the run's chain.
        name: &'a str,
        /// Whether what was done in it is rolled back too.
        include_target: bool,
    },
    /// To a point, by its reference (`ic_ops::point`).
    Point(&'a str),
    /// For a point before a prompt that, or its thread: which of the other targets is decided by what others and a person did since.
    Thread(&'a str),
    /// Only what this dispatch did is undone, with the work that it began, and the run does not move.
    Only(&'a str),
    /// What this dispatch did is undone, and what came after it in its thread; the run does not move.
    Since(&'a str),
    /// As [`RollbackTarget::Since`], and the tree and git go back to what they were before it, exactly. No other work was done since.
    Exactly(&'a str),
}

impl<'a> RollbackTarget<'a> {
    /// The words after `ic` for this target, where only work is undone and no run moves. A flag says how it goes on.
    pub(crate) fn words(self) -> Option<String> {
        let id = |dispatch: &str| {
            // The caller may have named the work by its point (`prompt:3f9a12c4`); `ic undo` takes the bare id of
            // both kinds.
            let named = ["dispatch:", "prompt:"].iter().find_map(|kind| dispatch.strip_prefix(kind));
            shell_word(named.unwrap_or(dispatch))
        };
        match self {
            Self::Only(dispatch) => Some(format!("undo --only {}", id(dispatch))),
            Self::Since(dispatch) | Self::Exactly(dispatch) => Some(format!("undo {}", id(dispatch))),
            Self::Phase { .. } | Self::Point(_) | Self::Thread(_) => None,
        }
    }

    /// The dispatch that names the work, where only work is undone and no run moves.
    pub(crate) fn of_works(self) -> Option<&'a str> {
        match self {
            Self::Only(dispatch) | Self::Since(dispatch) | Self::Exactly(dispatch) => Some(dispatch),
            Self::Phase { .. } | Self::Point(_) | Self::Thread(_) => None,
        }
    }
}

/// The point before a dispatch, for a command.
pub(crate) fn before(dispatch: &str) -> String {
    let id = dispatch.split_once(':').map_or(dispatch, |(_, id)| id);
    shell_word(&format!("dispatch:{id}"))
}

/// A rollback of the record, as the caller asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RollbackRequest<'a> {
    /// A reference to the run, as a person types it.
    pub run: &'a str,
    /// The target of the rollback.
    pub to: RollbackTarget<'a>,
    /// The caller's reason, for the record.
    pub reason: Option<&'a str>,
    /// Only plan; write nothing.
    pub dry_run: bool,
    /// The hash of the plan that the caller approved.
    pub expect_plan: Option<&'a str>,
}

/// The layers that are rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layers<'a> {
    /// All that apply: rows only where a state database is configured; of one dispatch alone its record, effects and files.
    All,
    /// Exactly these layers, in any order.
    Only(&'a [LayerName]),
}

impl Layers<'_> {
    /// The layers of a rollback to there.
    ///
    /// Errors: `usage` for git and data of one dispatch alone: it moves no branch, and whose rows are whose is not known; `no_checkpoint` for
    /// git where checkpoints do not have its state.
    pub(crate) fn of(self, to: RollbackTarget<'_>, settings: &CaptureSettings) -> Result<Vec<LayerName>> {
        // Whether the tree goes to what work left of it, and not to what it was at a point.
        let is_merged = matches!(to, RollbackTarget::Only(_) | RollbackTarget::Since(_));
        let goes = |layer: &LayerName| match layer {
            LayerName::Workflow | LayerName::Effects | LayerName::Files => true,
            // Git's state is included only where checkpoints have it.
            LayerName::Git => !is_merged && settings.checkpointing.include_git,
            LayerName::Data => to.of_works().is_none() && settings.state.is_some(),
        };
        let chosen = match self {
            Self::All => return Ok(LayerName::ALL.into_iter().filter(goes).collect()),
            Self::Only(chosen) => chosen,
        };
        if let Some(dispatch) = to.of_works().filter(|_| is_merged)
            && chosen.iter().any(|layer| matches!(layer, LayerName::Git | LayerName::Data))
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
        if chosen.contains(&LayerName::Git) && !settings.checkpointing.include_git {
            return Err(Diagnosis::new(
                Code::NoCheckpoint,
                "The state of git is in no checkpoint here: include-git is false in the configuration.",
            )
            .hint(format!(
                "keep it unchanged: --layer={}",
                ic_kernel::journal::layer::all_but(chosen, LayerName::Git)
            )));
        }
        ic_kernel::journal::layer::checked(chosen)
    }

    /// The strategy of a restore where no run goes back, so that there is no record and no effect: files and git's state. `None`: what it
    /// restores without a choice.
    ///
    /// Errors: `usage` where neither is named, and for rows, which it does not restore.
    pub fn of_restore(self) -> Result<Option<Strategy>> {
        let Self::Only(chosen) = self else { return Ok(None) };
        let no_run = "No run is rolled back here, only a checkpoint restored";
        if chosen.contains(&LayerName::Data) {
            return Err(Diagnosis::new(Code::Usage, format!("{no_run}: that restores no rows."))
                .hint("leave the layer data out; rows alone: ic rewind to TASK --yes"));
        }
        match (chosen.contains(&LayerName::Files), chosen.contains(&LayerName::Git)) {
            (true, true) => Ok(None),
            (true, false) => Ok(Some(Strategy::FilesOnly)),
            (false, true) => Ok(Some(Strategy::GitOnly)),
            (false, false) => Err(Diagnosis::new(Code::Usage, format!("{no_run}: it has files and git alone."))
                .hint("name one of them: --layer=files")),
        }
    }

    /// Whether everything is to go back: then what stays is warned about.
    pub(crate) fn is_everything(self, to: RollbackTarget<'_>) -> bool {
        self == Self::All && to.of_works().is_none()
    }
}

/// A rollback over several layers, as the caller asks for it.
#[derive(Debug, Clone)]
pub struct LayeredRequest<'a> {
    /// The run, the phase, and what the caller expects.
    pub base: RollbackRequest<'a>,
    /// The layers that are rolled back.
    pub layers: Layers<'a>,
    /// The refusals that the caller has decided to pass.
    pub force: Force,
    /// Whether files that others changed too stay unchanged.
    pub keep_theirs: bool,
    /// What is decided about single paths in conflict of an undo of works, whatever the flags decide about the others.
    pub decisions: PathDecisions,
    /// Whether only files that this run recorded are restored.
    pub mine: bool,
}

impl LayeredRequest<'_> {
    /// What is decided about a path in conflict; `None`: nothing.
    fn decision(&self, path: &[u8]) -> Option<LineDecision> {
        self.decisions.about_or(path, (self.keep_theirs, self.force.files))
    }

    /// The conflicts that nothing decides.
    pub fn undecided<'c>(&self, conflicts: &'c [Conflict]) -> Vec<&'c Conflict> {
        conflicts.iter().filter(|one| self.decision(&one.path.0).is_none()).collect()
    }
}

/// The resuming of a rollback, as the caller asks for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResumeRequest<'a> {
    /// The rollback, or its run.
    pub rollback: &'a str,
    /// Whether the step that failed is skipped.
    pub skip_step: bool,
    /// The steps whose effects are left.
    pub skip_effects: &'a [String],
    /// Why they are left.
    pub reason: Option<&'a str>,
    /// The refusals that the caller passes, in addition to those that were passed when the rollback began.
    pub force: Force,
}

/// The undo of a rollback, as the caller asks for it.
#[derive(Debug, Clone, Copy)]
pub struct UndoRequest<'a> {
    /// The rollback, or its run: then its newest rollback.
    pub rollback: &'a str,
    /// Whether the rest is undone though effects that the rollback undid cannot be made again.
    pub without_effects: bool,
    /// The caller's reason, for the record.
    pub reason: Option<&'a str>,
    /// The hash of the plan that the caller approved.
    pub expect_plan: Option<&'a str>,
}
