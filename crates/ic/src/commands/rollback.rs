//! `ic rollback ...`

use clap::{Args, Subcommand};
use ic_base::{CheckpointId, Result};
use ic_journal::steps;
use ic_journal::table::{self, RollbackRecord};
use ic_kernel::Kernel;
use ic_rollback::{ResumeRequest, UndoRequest, Undone};
use ic_worktree::{Settings, Watch};

use crate::commands::input;
use crate::commands::rolling::Forced;
use crate::commands::workflow::Watch as Progress;
use crate::exit::Exit;
use crate::json::{RollbackRecordJson, RollbackShowJson, RollbackUndoneJson};
use crate::render::{self, shell_word};
use crate::session::Session;
use crate::signals;

/// A rollback is made by `ic run rollback`. ID is its id, or the end of one; or a run, for the newest rollback of it.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Show(Show),
    Resume(Resume),
    // The word of older versions, for one release.
    #[command(alias = "abandon")]
    Abort(Abort),
    Undo(Undo),
}

/// List rollbacks, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback list
  ic rollback list @ --json | jq -r '.[] | select(.status == \"stopped\").id'")]
pub(crate) struct List {
    /// Only those of this run: an id, the end of one, @, or scope:NAME
    run: Option<String>,
}

/// Show a rollback: its steps, how far each is, and its plan.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback show 3f9a12c4
  ic rollback show @                               # the newest of the run")]
pub(crate) struct Show {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    id: String,
}

/// Resume a rollback that stopped, or whose process died.
///
/// Finished steps are not run again. An undo or an abort that stopped is resumed as such. What can never succeed can
/// be skipped, and the decision is recorded: --skip-effect skips one outside effect, --skip-step the whole step that
/// failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback resume 3f9a12c4 --yes
  ic rollback resume @ --yes                       # the unfinished one
  ic rollback resume @ --skip-effect bill --reason 'refunded by hand' --yes
  ic rollback resume @ --skip-step --reason 'the file belongs to root' --yes

Exit 4 when a step fails again.")]
pub(crate) struct Resume {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    id: String,
    /// Skip the step that failed, and leave it as it is
    #[arg(long)]
    skip_step: bool,
    /// Skip the outside effect of this step; needs --reason. Repeatable
    #[arg(long, value_name = "STEP", requires = "reason")]
    skip_effect: Vec<String>,
    /// Why something is skipped
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    forced: Forced,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Abort an unfinished rollback: restore run, files, git's state and rows as before it.
///
/// Effects that were undone stay undone, and cancelled work stays cancelled: both are listed. Aborting the unfinished
/// undo of a rollback leaves that rollback in force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback abort 3f9a12c4 --dry-run
  ic rollback abort 3f9a12c4 --yes
  ic rollback abort 3f9a12c4 --reason 'the plan was right' --yes")]
pub(crate) struct Abort {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Show what would be restored or refused, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Undo a rollback: restore the run, its artifacts and skips, files, git's state and rows.
///
/// It is possible only while the run has no new work (reads and late reports do not count) and the tree is as the
/// rollback left it. No dispatch and no agent is revived. Meanwhile the run is closed; after a failure or a crash,
/// repeat the call or run ic rollback resume.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback undo 3f9a12c4 --dry-run
  ic rollback undo 3f9a12c4 --yes
  ic rollback undo @ --yes                             # the newest of the run
  ic rollback undo 3f9a12c4 --without-effects --yes   # undone effects stay undone

Exit 1 when something happened since: it is named, and nothing changes. Exit 4 when something could not be restored.")]
pub(crate) struct Undo {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    pub(crate) id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Undo the rest although undone effects are not made again
    #[arg(long)]
    pub(crate) without_effects: bool,
    /// Show what would be restored or refused, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::List(verb) => verb.run(session),
            Self::Show(verb) => verb.run(session),
            Self::Resume(verb) => verb.run(session),
            Self::Abort(verb) => verb.run(session),
            Self::Undo(verb) => verb.run(session),
        }
    }
}

impl List {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let all = kernel.read(|snapshot| match &self.run {
            Some(run) => table::of_run(snapshot, &kernel.run(snapshot, run)?.id),
            None => table::all(snapshot),
        })?;
        let records: Vec<RollbackRecordJson> = all.iter().map(RollbackRecordJson::from).collect();
        let now = kernel.context.now();
        session.output.list(&records, || render::rollback::list(&all, now))?;
        Ok(Exit::Done)
    }
}

impl Show {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let (remembered, steps) = ic_rollback::named(&kernel, &self.id)?;
        show(session, &kernel, &remembered, &steps, ic_rollback::is_at_work(&kernel, &remembered))?;
        Ok(Exit::Done)
    }
}

fn show(
    session: &mut Session,
    kernel: &Kernel,
    remembered: &RollbackRecord,
    steps: &[steps::Step],
    is_at_work: bool,
) -> Result<()> {
    let record = RollbackShowJson::new(remembered, steps, is_at_work);
    let files_alone = files_alone(session, kernel, remembered, steps);
    let text = || render::rollback::show(remembered, steps, is_at_work, files_alone.as_ref());
    session.output.record(&record, text).map(|_| ())
}

/// As [`ic_rollback::files_alone`]. What keeps that from an answer is told by the way back itself, and no reason not to show a rollback.
fn files_alone(
    session: &Session,
    kernel: &Kernel,
    remembered: &RollbackRecord,
    steps: &[steps::Step],
) -> Option<CheckpointId> {
    let settings = settings(session, kernel, remembered.id.as_str()).ok()?;
    ic_rollback::files_alone(kernel, &settings, (remembered, steps)).ok()?
}

impl Resume {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let skip_effects = input::labels("--skip-effect", &self.skip_effect)?;
        let look = format!("ic rollback show {}", shell_word(&self.id));
        if !confirm(session, self.yes, "Resume it?", &look, || shown(session, &self.id))? {
            return Ok(Exit::No);
        }
        let kernel = session.kernel()?;
        let settings = settings(session, &kernel, &self.id)?;
        let mut progress = Progress::new(session);
        let request = ResumeRequest {
            rollback: &self.id,
            skip_step: self.skip_step,
            skip_effects: &skip_effects,
            reason,
            force: self.forced.decided(),
        };
        let outcome = ic_rollback::resume(&kernel, &settings, &request, &mut progress, &watch()?)?;
        show(session, &kernel, &outcome.remembered, &outcome.steps, false)?;
        Ok(if outcome.remembered.status.is_over() { Exit::Done } else { Exit::Partly })
    }
}

impl Abort {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let preview = || {
            let kernel = session.kernel()?;
            let settings = settings(session, &kernel, &self.id)?;
            ic_rollback::preview_abort(&kernel, &settings, &self.id, &watch()?)
        };
        if self.dry_run {
            return show_preview(session, &preview()?);
        }
        let look = format!("ic rollback abort {} --dry-run", shell_word(&self.id));
        // What cannot be looked at may still be aborted: a restore that was interrupted is finished first, and steps fail one by one.
        let text = || match preview() {
            Ok(preview) => Ok(render::rollback::undone(&preview, None)),
            Err(error) => Ok(shown(session, &self.id)? + "\n" + &render::rollback::in_the_way(&error)),
        };
        if !confirm(session, self.yes, "Abort it?", &look, text)? {
            return Ok(Exit::No);
        }
        let kernel = session.kernel()?;
        let settings = settings(session, &kernel, &self.id)?;
        let mut progress = Progress::new(session);
        let undone = ic_rollback::abort(&kernel, &settings, (&self.id, reason), &mut progress, &watch()?)?;
        finish(session, &kernel, &undone)
    }
}

impl Undo {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let request = UndoRequest { rollback: &self.id, without_effects: self.without_effects, reason };
        let preview = || {
            let kernel = session.kernel()?;
            let settings = settings(session, &kernel, &self.id)?;
            ic_rollback::preview_undo(&kernel, &settings, &request, &watch()?)
        };
        if self.dry_run {
            return show_preview(session, &preview()?);
        }
        let look = format!("ic rollback undo {} --dry-run", shell_word(&self.id));
        let text = || preview().map(|preview| render::rollback::undone(&preview, None));
        if !confirm(session, self.yes, "Undo this rollback?", &look, text)? {
            return Ok(Exit::No);
        }
        let kernel = session.kernel()?;
        let settings = settings(session, &kernel, &self.id)?;
        let undone = ic_rollback::undo(&kernel, &settings, &request, &watch()?)?;
        finish(session, &kernel, &undone)
    }
}

fn watch() -> Result<Watch> {
    Ok(Watch { interrupted: signals::interrupted()?, ..Watch::default() })
}

/// How checkpoints are taken in the project of the run, and where its state database is.
fn settings(session: &Session, kernel: &Kernel, reference: &str) -> Result<Settings> {
    session.settings_of_project(kernel, &ic_rollback::run_of(kernel, reference)?.project_dir)
}

fn show_preview(session: &mut Session, preview: &Undone) -> Result<Exit> {
    let record = RollbackUndoneJson::from(preview);
    session.output.record(&record, || render::rollback::undone(preview, None) + &render::to_do_it())?;
    Ok(Exit::Done)
}

fn finish(session: &mut Session, kernel: &Kernel, undone: &Undone) -> Result<Exit> {
    let files_alone = files_alone(session, kernel, &undone.remembered, &undone.steps);
    let text = || render::rollback::undone(undone, files_alone.as_ref());
    session.output.record(&RollbackUndoneJson::from(undone), text)?;
    Ok(if undone.seq.is_some() { Exit::Done } else { Exit::Partly })
}

/// Shows `text` and asks on a terminal. `look`: the command that only looks. Errors: `confirmation_required` where nobody can be asked.
fn confirm(
    session: &Session,
    yes: bool,
    question: &str,
    look: &str,
    text: impl FnOnce() -> Result<String>,
) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    // What cannot be done at all is refused for its own reason: a yes would not help.
    let text = text()? + "\n";
    session
        .require_somebody("This changes more than the ledger", &format!("look first: {look}; then: --yes"))?;
    Session::ask(&text, question)
}

/// A rollback as it is.
fn shown(session: &Session, reference: &str) -> Result<String> {
    let kernel = session.kernel()?;
    let (remembered, steps) = ic_rollback::named(&kernel, reference)?;
    let files_alone = files_alone(session, &kernel, &remembered, &steps);
    Ok(render::rollback::show(&remembered, &steps, false, files_alone.as_ref()))
}
