//! `ic checkpoint restore`, and what the undo and redo of a restore share with it.

use std::ops::ControlFlow;
use std::path::PathBuf;

use ic_base::RestoreId;
use ic_checkpoint::record::CheckpointFilter;
use ic_checkpoint::restore::Strategy;
use ic_kernel::Kernel;
use ic_kernel::journal::Force;
use ic_worktree::{CaptureSettings, RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch, Which, Workspace};

use crate::commands::prelude::*;
use crate::progress;
use crate::views::checkpoint::restore::RestoreJson;

/// Restore the working tree to a checkpoint.
///
/// A safety checkpoint is taken first, so that `ic redo` can restore what was there. Only files that differ
/// are written; ignored files, and what the checkpoint left out, are never touched. Content that no checkpoint can
/// hold (the `.git` of nested repositories) is listed as not kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint restore 3f9a12c4 --dry-run
  ic checkpoint restore 3f9a12c4 --yes
  ic checkpoint restore --latest --path src/main.rs --yes
  ic checkpoint restore --name before-refactor --strategy files-only --yes
  ic redo --yes                     # bring back what was there

Exit 1 when others changed a path that would be restored: nothing is written, unless --force restores it or
--keep-theirs leaves it. Exit 4 when some paths could not be restored: they are listed. Paths that cannot be compared,
because the checkpoint or the tree has no content of them, are listed too. --dry-run exits as the real call with --yes
and the same flags would.")]
pub(crate) struct CheckpointRestoreArgs {
    /// The checkpoint: an id, or the end of one
    ///
    /// Without it, --latest and --name, a terminal offers the newest to choose from.
    #[arg(conflicts_with_all = ["latest", "name"])]
    id: Option<String>,
    /// The newest one that no restore made
    #[arg(long, conflicts_with = "name")]
    latest: bool,
    /// The newest one with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What is restored [default: full if git's state was recorded, else files-only]
    #[arg(long, value_name = "S", value_parser = one_of(Strategy::as_str, STRATEGIES))]
    strategy: Option<Strategy>,
    /// Only this path and what is below it
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only what its run, or the calling dispatch, recorded
    #[arg(long)]
    mine: bool,
    /// Allow a checkpoint of another working tree
    #[arg(long)]
    into: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    plan: PlanFlags,
    /// Overwrite what others changed, even while workers run
    #[arg(long)]
    force: bool,
    /// Keep what others changed
    #[arg(long, conflicts_with = "force")]
    keep_theirs: bool,
    #[command(flatten)]
    door: ForceFlags,
}

const STRATEGIES: &[(Strategy, &str)] = &[
    (Strategy::Full, "Files, and git's branches, HEAD, index and stash"),
    (Strategy::Partial, "Only what the step after the checkpoint changed"),
    (Strategy::FilesOnly, "Files alone"),
    (Strategy::GitOnly, "Git's state alone"),
];

/// The flags of a restore that another verb carries out.
#[derive(Debug, Default)]
pub(crate) struct RestoreFlags {
    pub(crate) plan: PlanFlags,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) force: Force,
    /// Only these paths; empty: everything.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) keep_theirs: bool,
}

impl RestoreFlags {
    /// Restores the working tree to a checkpoint, by its id.
    pub(crate) fn restore(mut self, session: &mut CliSession, checkpoint: &str) -> Result<ExitStatus> {
        // These are moved out before `common` takes the rest, because the request borrows the paths as long as it lives.
        let (strategy, force, paths) = (self.strategy, self.force, std::mem::take(&mut self.paths));
        let common = self.common();
        let which = Which::Id(checkpoint);
        let request = RestoreRequest { which, strategy, force, paths: &paths, ..common.request() };
        common.run(session, &request, ic_worktree::restore).map_err(with_own_flag)
    }

    /// Undoes a restore, or the last one of the working tree if none is named.
    pub(crate) fn undo(self, session: &mut CliSession, restore: Option<&RestoreId>) -> Result<ExitStatus> {
        let force = self.force;
        let common = self.common();
        let request = RestoreRequest { force, ..common.request() };
        common.run(session, &request, |kernel, settings, request, watch| match restore {
            Some(id) => ic_worktree::undo_named(kernel, settings, id, request, watch),
            None => ic_worktree::undo(kernel, settings, request, watch),
        })
    }

    fn common(self) -> Common {
        // `force` is not used here, because it means all of `Force`: each caller puts the parts that it was given into
        // the request.
        Common { plan: self.plan, force: false, keep_theirs: self.keep_theirs, door: ForceFlags { dispatch: None } }
    }
}

impl CheckpointRestoreArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        // `chosen` is declared here, because `which` borrows it.
        let chosen;
        let which = match (&self.id, &self.name) {
            (Some(id), _) => {
                chosen = ic_undo::points::checkpoint_meant(&session.kernel()?, None, id)?.to_string();
                Which::Id(&chosen)
            }
            (None, Some(name)) => Which::Named(name),
            (None, None) if self.latest => Which::Latest,
            (None, None) => match choose(session)? {
                Some(id) => {
                    chosen = id;
                    Which::Id(&chosen)
                }
                None => return Ok(ExitStatus::No),
            },
        };
        let request = RestoreRequest {
            which,
            strategy: self.strategy,
            paths: &self.paths,
            mine: self.mine,
            into: self.into,
            compares_all: false,
            beside_others: false,
            ..self.common.request()
        };
        self.common.run(session, &request, ic_worktree::restore)
    }
}

/// Names the flag of a restore where a hint names that of a rollback.
fn with_own_flag(error: Diagnosis) -> Diagnosis {
    match error.get_hint().map(|hint| hint.replace("--force-workers", "--force")) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

impl Common {
    fn request(&self) -> RestoreRequest<'_> {
        RestoreRequest {
            which: Which::Latest,
            strategy: None,
            paths: &[],
            mine: false,
            dry_run: self.plan.dry_run,
            force: Force::all_if(self.force),
            keep_theirs: self.keep_theirs,
            decisions: None,
            into: false,
            compares_all: false,
            beside_others: false,
            expect_plan: self.plan.expect_plan.as_deref(),
        }
    }

    /// Carries out a restore, or the undo of one. Without `--yes` it first shows the plan and asks; without a terminal it is refused.
    fn run(
        &self,
        session: &mut CliSession,
        request: &RestoreRequest<'_>,
        deed: impl Fn(&Kernel, &CaptureSettings, &RestoreRequest<'_>, &RestoreWatch) -> Result<RestoreReport>,
    ) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(self.door.as_deref())?;
        let settings = session.checkpoint_settings(&kernel)?;
        let watch = RestoreWatch::default();
        let shows = session.shows_progress();
        let deed = |request: &RestoreRequest<'_>| {
            let describe = || views::checkpoint::restore::restoring(&watch);
            progress::shown(shows, describe, || deed(&kernel, &settings, request, &watch))
        };
        if self.plan.dry_run || self.plan.yes {
            let report = deed(request)?;
            return finish(session, &report);
        }
        // The preview comes before the question: what would be refused is refused for its own reason, because a yes would not help.
        let preview = deed(&RestoreRequest { dry_run: true, ..*request })?;
        let moves_git = preview.git.as_ref().is_some_and(|git| !git.plan.is_empty());
        // An empty plan needs no question, and reports that nothing differs.
        let nothing = preview.plan.steps.is_empty() && !moves_git;
        if preview.refusal.is_some() {
            return finish(session, &preview);
        }
        let question =
            Question { does: "A restore writes into the working tree", look: Some("--dry-run"), asks: "Restore?" };
        let text = if nothing { String::new() } else { views::checkpoint::restore::report(&preview) };
        // A plan without steps is asked about, too: in a pipe the call is refused without --yes, whatever the state of
        // the tree is.
        if !session.confirm(false, &question, || Ok(text))? {
            return Ok(ExitStatus::No);
        }
        if nothing {
            return finish(session, &preview);
        }
        // The plan was shown; a plan that has changed since is refused.
        let hash = preview.plan_hash.as_str();
        let report = deed(&RestoreRequest { expect_plan: Some(hash), ..*request })?;
        finish(session, &report)
    }
}

/// Offers the newest checkpoints on a terminal; `None` if the person chose none.
fn choose(session: &mut CliSession) -> Result<Option<String>> {
    const OFFERED: usize = 20;
    if !session.can_ask() {
        return Err(Diagnosis::new(Code::Usage, "No checkpoint was named: give its id, --latest or --name.")
            .hint("see: ic checkpoint list"));
    }
    let kernel = session.kernel()?;
    let settings = session.checkpoint_settings(&kernel)?;
    let workspace = Workspace::here(&kernel, &settings)?;
    let mut all = Vec::new();
    ic_worktree::list(
        &workspace,
        CheckpointFilter { root: Some(&workspace.root), ..CheckpointFilter::default() },
        |shown| {
            all.push(shown);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    // The list comes oldest first, and the newest are offered.
    all.reverse();
    all.truncate(OFFERED);
    let number = CliSession::choose(&views::checkpoint::choice(&all), "Restore which checkpoint? [number]")?;
    Ok(number.and_then(|n| all.get(n.checked_sub(1)?)).map(|shown| shown.checkpoint.id.to_string()))
}

fn finish(session: &mut CliSession, report: &RestoreReport) -> Result<ExitStatus> {
    session.output.warn_all(&report.warnings);
    session.output.record(&RestoreJson::from(report), || views::checkpoint::restore::report(report))?;
    if let Some(refusal) = &report.refusal {
        return Ok(ExitStatus::from(refusal.kind()));
    }
    // A dry run ends with the exit of the real call.
    let is_partial = report.status == RestoreStatus::Partial || (report.dry_run && report.leaves_any());
    Ok(if is_partial { ExitStatus::Partly } else { ExitStatus::Done })
}
