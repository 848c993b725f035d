//! `ic undo`

use std::path::{Path, PathBuf};

use ic_base::shell_word;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::journal::{Force, PathDecisions};
use ic_phase::Run;
use ic_undo::points::log::LogPage;
use ic_undo::points::{ListedPoint, UndoTarget, id_of_work};
use ic_undo::{JournalEntry, LayeredRequest, LayeredRollback, Layers, RollbackRequest, RollbackTarget};
use ic_worktree::{RestoreReport, RestoreRequest, RestoreWatch, Which};

use crate::commands::checkpoint::RestoreFlags;
use crate::commands::layered_rollback::{Forced, LayerArg, Rolling};
use crate::commands::prelude::*;
use crate::commands::redo::{EntryUndo, without_meaning};
use crate::commands::workflow::WorkflowWatch;

/// Undo the last prompt or dispatch: files, commits, outside effects, rows, and the record.
///
/// Without POINT it is the newest work that is not undone; a terminal offers a list. Asked by an agent, in its shell or over MCP, it is the
/// newest earlier prompt of its own session that changed something, and that one alone.
///
/// With the prompt of a session as POINT, it is undone with the later prompts of that session. What you and other agents did stays, also in
/// the same files. Any other POINT takes the run back to there, with everything that was recorded after it. It is the same as `ic run
/// rollback --to POINT --layer=all`. Where there is no run, the newest checkpoint that differs from the tree is restored.
///
/// The id of a rollback, restore or rewind as POINT undoes that, as `ic redo ID` does.
///
/// A checkpoint of the tree is taken first: `ic redo` brings everything back.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  ic undo                              # choose from a list, then confirm
  ic undo --dry-run                    # what an undo of the last work would do
  ic undo --yes
  ic undo 3f9a12c4 --yes               # that prompt, and the later ones of its session
  ic undo 3f9a12c4 --only --yes        # that prompt alone
  ic undo @~2 --dry-run                # the third newest, and what came after it
  ic undo --force-files --keep-theirs=notes.txt --yes   # that file is mine
  ic undo deploy --dry-run             # that step, or that checkpoint
  ic undo phase:planned --yes          # everything since phase planned
  ic undo created --run 7f3a9c21 --yes   # the whole run
  ic redo --yes                        # undo the undo

`ic log` lists the points. docs/UNDO.md says which command undoes what. Exit 1 when others changed what would be undone: the conflict is
named, and nothing changes. Exit 4 when a step failed: the run stays closed until ic rollback resume or abort ends it; and when something stays,
which is named: a file, then the work does not count as undone; or a tag, a branch, a stash entry, the rest of a later prompt.")]
pub(crate) struct UndoArgs {
    /// The work or the point, as ic log prints it: the end of an id, a name, @, @~2, phase:P, or created
    point: Option<String>,
    /// Undo that prompt or dispatch alone, and keep what came after it
    #[arg(long)]
    only: bool,
    /// The run [default: that of POINT, else @, else the newest here]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// The reason, recorded with the rollback
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The layers to roll back, workflow among them [default: all]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    layer: Vec<LayerArg>,
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten)]
    forced: Forced,
    /// Keep what others changed; with =PATH, at that path in conflict
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = ".")]
    keep_theirs: Vec<PathBuf>,
}

/// What an undo of the last work would do.
pub(crate) enum UndoPreview {
    /// The plan of a rollback of its run.
    Rollback(Box<LayeredRollback>),
    /// The plan of a restore, where there is no run.
    Restore(Box<RestoreReport>),
}

impl UndoPreview {
    /// The plan of `ic undo` without a point, as its dry run makes it.
    pub(crate) fn of_last(session: &mut CliSession, kernel: &Kernel) -> Result<Self> {
        ic_undo::require_whole(kernel)?;
        let undo = UndoArgs { plan: PlanFlags { dry_run: true, ..PlanFlags::default() }, ..UndoArgs::default() };
        let earlier = undo.earlier(session, kernel)?;
        let run = match ic_undo::points::meant(kernel, None, earlier.as_deref())? {
            // An agent means its own prompt, in whichever run that is.
            UndoTarget::Run(run) if earlier.is_some() => *run,
            UndoTarget::Run(run) => undo.or_ended(session, kernel, *run)?,
            UndoTarget::Checkpoint(_) | UndoTarget::Tree => {
                let settings = session.checkpoint_settings(kernel)?;
                let watch = RestoreWatch::default();
                let newest = ic_worktree::newest_other(kernel, &settings, &watch)?;
                let which = Which::Id(newest.as_str());
                let request = RestoreRequest { which, dry_run: true, ..RestoreRequest::default() };
                return ic_worktree::restore(kernel, &settings, &request, &watch).map(|it| Self::Restore(Box::new(it)));
            }
        };
        let settings = session.settings_of_project(kernel, &run.project_dir)?;
        let chosen = if earlier.is_none() { undo.choose(session, kernel, &run)? } else { None };
        let to = match (&earlier, &chosen) {
            (Some(id), _) => RollbackTarget::Only(id),
            (None, Some(point)) => RollbackTarget::Thread(point),
            // This is not reached: a dry run asks no question, so `choose` returns a point or an error.
            (None, None) => RollbackTarget::Point("created"),
        };
        let base = RollbackRequest { run: run.id.as_str(), to, reason: None, dry_run: true, expect_plan: None };
        let (force, layers) = (Force::default(), Layers::All);
        let request = LayeredRequest {
            base,
            layers,
            force,
            keep_theirs: false,
            decisions: PathDecisions::default(),
            mine: false,
        };
        let mut progress = WorkflowWatch::new(session);
        let whole = ic_undo::roll_back(kernel, &settings, &request, &mut progress, &RestoreWatch::default())?;
        Ok(Self::Rollback(Box::new(whole)))
    }
}

impl UndoArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        // With a run or --only, it can only be a point.
        let point = self.point.as_deref().filter(|_| self.run.is_none() && !self.only);
        if let Some(entry) = point.map(|point| ic_undo::entry_of_journal(&kernel, point)).transpose()?.flatten() {
            return self.of_entry(session, &entry);
        }
        self.undo(session, &kernel).map_err(|error| match &self.point {
            Some(point) => ic_undo::points::unless_of_git(&kernel.project.root, point, error),
            None => error,
        })
    }

    fn undo(&self, session: &mut CliSession, kernel: &Kernel) -> Result<ExitStatus> {
        // The first of these that applies is meant:
        //
        //     POINT or --run      that run, or a checkpoint that belongs to no run
        //     an agent asks       its newest earlier prompt that changed something, alone
        //     a run is here       its last work; if it has none, that of a run that has ended since
        //     no run is here      the newest checkpoint that differs from the tree
        ic_undo::require_whole(kernel)?;
        // `@~2` is not an id: it is counted below, and fails there if it leads too far.
        if let Some(id) = self.alone().filter(|id| ic_undo::points::steps_back(id).is_none()) {
            // Looked up first: an unknown dispatch is refused, and must not lead to a restore of a checkpoint.
            kernel.read(|snapshot| {
                ic_undo::points::require_work(snapshot, &kernel.project.root, id)?;
                dispatch::resolve(snapshot, id)
            })?;
        }
        let earlier = self.earlier(session, kernel)?;
        let only = earlier.as_deref().or_else(|| self.alone());
        match ic_undo::points::meant(kernel, self.run.as_deref(), only.or(self.point.as_deref()))? {
            UndoTarget::Run(run) => {
                // A work that is named belongs to one run, so no other is looked for.
                let run = if only.is_none() { self.or_ended(session, kernel, *run)? } else { *run };
                self.roll_back(session, kernel, &run, only)
            }
            UndoTarget::Checkpoint(id) => self.restore(session, id.as_str()),
            UndoTarget::Tree => {
                // A POINT that belongs to no run can only be a checkpoint.
                if let Some(point) = &self.point {
                    return self.restore(session, point.strip_prefix("checkpoint:").unwrap_or(point));
                }
                let settings = session.checkpoint_settings(kernel)?;
                // A checkpoint that equals the tree would restore nothing.
                let newest = ic_worktree::newest_other(kernel, &settings, &RestoreWatch::default());
                let newest = newest.or_else(|error| {
                    // These are looked up only after the failure: each would explain why nothing is here, and most
                    // calls find something.
                    let moved = kernel.read(ic_undo::points::moved_from)?;
                    match moved.or(kernel.read(|snapshot| ic_undo::points::elsewhere(kernel, snapshot))?) {
                        Some(hint) => Err(error.hint(hint)),
                        None => Err(error),
                    }
                })?;
                self.restore(session, newest.as_str())
            }
        }
    }

    /// Undoes a rollback, a restore or a rewind.
    fn of_entry(&self, session: &mut CliSession, entry: &JournalEntry) -> Result<ExitStatus> {
        if !self.layer.is_empty() {
            return Err(without_meaning("--layer", "a rollback, restore or rewind"));
        }
        self.require_no_names("for the undo of a rollback, restore or rewind")?;
        let undo = EntryUndo {
            reason: input::optional_text("--reason", self.reason.as_deref())?,
            without_effects: None,
            plan: &self.plan,
            force: self.forced.decided(),
            keep_theirs: self.keeps_all()?,
        };
        undo.run(session, entry)
    }

    /// The work of an agent that asks: undoing its current prompt would undo the very turn that asks, so it means the newest earlier one
    /// that changed something. `None`: a point is named, or a person asks.
    fn earlier(&self, session: &CliSession, kernel: &Kernel) -> Result<Option<String>> {
        let asking = if self.run.is_some() || self.point.is_some() { None } else { session.asking(kernel)? };
        let earlier = asking.map(|asking| kernel.read(|snapshot| ic_undo::points::earlier(snapshot, &asking)));
        Ok(earlier.transpose()?.map(|id| id.to_string()))
    }

    /// The run that is meant if none was named. If the open run has no work to undo, and a run that has ended since did the last work, the
    /// person means that one.
    fn or_ended(&self, session: &CliSession, kernel: &Kernel, run: Run) -> Result<Run> {
        // A caller that names a run or a point means no other.
        if self.run.is_some() || self.point.is_some() {
            return Ok(run);
        }
        let beside = kernel.read(|snapshot| match ic_undo::points::last(snapshot, &run) {
            Err(error) if error.code() == Code::NothingToUndo => {
                ic_undo::points::beside(kernel, snapshot, &run, 0).map(|beside| beside.ended)
            }
            _ => Ok(None),
        })?;
        let Some((ended, point)) = beside else { return Ok(run) };
        session.output.warn(&format!(
            "the open run {} has no work to undo: this is {} of the run {}, which has ended",
            run.id.short(),
            point.reference,
            ended.id.short()
        ));
        Ok(ended)
    }

    /// The work that the caller named to be undone alone, as an id or the end of one.
    fn alone(&self) -> Option<&str> {
        self.point.as_deref().filter(|_| self.only).map(|point| id_of_work(point).unwrap_or(point))
    }

    /// `one`: the work that alone is undone.
    fn roll_back(&self, session: &mut CliSession, kernel: &Kernel, run: &Run, one: Option<&str>) -> Result<ExitStatus> {
        let settings = session.settings_of_project(kernel, &run.project_dir)?;
        let chosen;
        let to = match (one, &self.point) {
            (Some(id), _) => RollbackTarget::Only(id),
            (None, Some(point)) => RollbackTarget::Thread(point),
            (None, None) => match self.choose(session, kernel, run)? {
                Some(point) => {
                    // The list has phases and checkpoints as well, and --only takes works alone.
                    chosen = point;
                    if self.only { RollbackTarget::Only(work_named(&chosen)?) } else { RollbackTarget::Thread(&chosen) }
                }
                None => return Ok(ExitStatus::No),
            },
        };
        let named = LayerArg::named(&self.layer)?;
        if named.is_some() {
            self.forced.require_none_for_record(&self.layer, !self.keep_theirs.is_empty())?;
        }
        let layers = named.as_deref().map_or(Layers::All, Layers::Only);
        let base = RollbackRequest {
            run: run.id.as_str(),
            to,
            reason: input::optional_text("--reason", self.reason.as_deref())?,
            dry_run: self.plan.dry_run,
            expect_plan: self.plan.expect_plan.as_deref(),
        };
        let force = self.forced.decided();
        let decisions = PathDecisions::default();
        let mut request = LayeredRequest { base, layers, force, keep_theirs: false, decisions, mine: false };
        if !self.keep_theirs.is_empty() {
            request.keep_theirs = self.keeps_all()?;
            let kept: Vec<PathBuf> = self.kept_names().cloned().collect();
            let (mut progress, watch) = (WorkflowWatch::new(session), RestoreWatch::default());
            let kept = ic_undo::kept_paths(kernel, &settings, (&request, &kept), &mut progress, &watch)?;
            request.decisions.leave = kept;
        }
        // The workflow layer changes only the record, which needs no confirmation anywhere.
        let yes = self.plan.yes || layers == Layers::Only(&[ic_undo::LayerName::Workflow]);
        Rolling { request, yes }.go(session, kernel, &settings)
    }

    /// The single paths at which what others changed stays: `.` stands for all of them.
    fn kept_names(&self) -> impl Iterator<Item = &PathBuf> {
        self.keep_theirs.iter().filter(|path| *path != Path::new("."))
    }

    /// Errors: `usage` where single paths are to stay in what knows no such decision.
    fn require_no_names(&self, place: &str) -> Result<()> {
        let error = || {
            Diagnosis::new(Code::Usage, format!("--keep-theirs=PATH means nothing {place}."))
                .hint("keep all that others changed: --keep-theirs; --dry-run shows the plan")
        };
        self.kept_names().next().map_or(Ok(()), |_| Err(error()))
    }

    /// Whether what others changed stays at every path. Errors: `usage` where `--force-files` says otherwise.
    fn keeps_all(&self) -> Result<bool> {
        let is_all = self.kept_names().count() < self.keep_theirs.len();
        if is_all && self.forced.decided().files {
            return Err(Diagnosis::new(Code::Usage, "--keep-theirs and --force-files say the opposite.")
                .hint("keep single paths, and replace the others: --force-files --keep-theirs=PATH"));
        }
        Ok(is_all)
    }

    /// The point that a person picks, or the last one if no question is asked. `None`: the person picked none.
    fn choose(&self, session: &CliSession, kernel: &Kernel, run: &Run) -> Result<Option<String>> {
        const OFFERED: usize = 20;
        let last = kernel.read(|snapshot| {
            let last = ic_undo::points::last(snapshot, run);
            // The result is kept, and is not an error yet: in a run without work a person can still pick a point of the list.
            Ok(last.map_err(|error| ic_kernel::closed_run::explained(kernel, snapshot, error)))
        })?;
        let last = self.beside_prompts(session, kernel, run, last)?;
        // A script must mean the same each time, so it gets the last point and no list.
        if self.plan.yes || self.plan.dry_run || !session.can_ask() {
            return Ok(Some(last?.reference));
        }
        let page = LogPage { all: false, before: None, at_most: OFFERED };
        let log = ic_undo::points::log::log(kernel, session.options(), run, page)?;
        let (references, lines) = views::log::offered(&log, kernel.context.now());
        // The list begins at what a bare undo means, which need not be the newest point.
        let begin = last.ok().and_then(|last| references.iter().position(|one| *one == last.reference));
        let picked = CliSession::pick("Go back to before which point?", &lines, begin.unwrap_or(0))?;
        Ok(picked.and_then(|at| references.get(at).cloned()))
    }

    /// Adds to the last point of a run a warning about newer prompts that do not belong to the run: the person may mean those.
    fn beside_prompts(
        &self,
        session: &CliSession,
        kernel: &Kernel,
        run: &Run,
        last: Result<ListedPoint>,
    ) -> Result<Result<ListedPoint>> {
        let since = match &last {
            // Who names a run has not forgotten newer prompts elsewhere.
            _ if self.run.is_some() => return Ok(last),
            Ok(last) => last.seq,
            Err(error) if error.code() == Code::NothingToUndo => 0,
            Err(_) => return Ok(last),
        };
        let outside = kernel.read(|snapshot| ic_undo::points::prompts_outside(kernel, snapshot, run, since))?;
        let Some(outside) = outside else {
            let said = kernel.read(|snapshot| ic_undo::points::beside(kernel, snapshot, run, since))?.said();
            return Ok(match (last, said) {
                (Ok(last), Some(said)) => {
                    session.output.warn(&said);
                    Ok(last)
                }
                (Err(error), Some(said)) => {
                    Err(error.hint(format!("{said}; points of this run: ic log {}", run.id.short())))
                }
                (last, None) => last,
            });
        };
        Ok(match last {
            Ok(last) => {
                session.output.warn(&views::log::prompts_outside(&outside, "newer prompt"));
                Ok(last)
            }
            Err(error) => {
                let of_run = format!("points of this run: ic log {}", run.id.short());
                Err(error.hint(format!("{}; {of_run}", views::log::prompts_outside(&outside, "prompt"))))
            }
        })
    }

    /// Restores a checkpoint that belongs to no run.
    fn restore(&self, session: &mut CliSession, checkpoint: &str) -> Result<ExitStatus> {
        if self.reason.is_some() {
            return Err(Diagnosis::new(Code::Usage, "--reason means nothing where a checkpoint is restored.")
                .hint("leave it out: only a rollback is recorded with a reason"));
        }
        self.require_no_names("where a checkpoint is restored")?;
        let named = LayerArg::named(&self.layer)?;
        let flags = RestoreFlags {
            plan: self.plan.clone(),
            strategy: named.as_deref().map_or(Layers::All, Layers::Only).of_restore()?,
            force: self.forced.decided(),
            keep_theirs: self.keeps_all()?,
            ..RestoreFlags::default()
        };
        flags.restore(session, checkpoint)
    }
}

/// The id of the work before which a point lies. Errors: `usage` for any other point.
fn work_named(point: &str) -> Result<&str> {
    id_of_work(point).ok_or_else(|| {
        let message = format!("{point} is no prompt and no dispatch, so it cannot be undone alone.");
        Diagnosis::new(Code::Usage, message).hint(format!("with everything after it: ic undo {}", shell_word(point)))
    })
}
