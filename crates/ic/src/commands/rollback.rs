//! `ic rollback ...`

use clap::{Args, Subcommand};
use ic_base::{Code, Diagnosis, Result};
use ic_ops::checkpoint::Watch;
use ic_ops::rollback::table::{self, Remembered, RollbackStatus};
use ic_ops::rollback::{self, Undone, steps};

use crate::commands::workflow::Watch as Progress;
use crate::exit::Exit;
use crate::json::{RememberedJson, RollbackShowJson, RollbackUndoneJson};
use crate::render;
use crate::session::Session;

/// A rollback is made by `ic run rollback`. ID is its id, or the end of one.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Show(Show),
    Resume(Resume),
    Abandon(Abandon),
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
  ic rollback show 3f9a12c4")]
pub(crate) struct Show {
    /// The rollback
    id: String,
}

/// Go on with a rollback that stopped, or whose process died.
///
/// What is done is not done again. It ends as a rollback that nothing disturbed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback resume 3f9a12c4 --yes
  ic rollback resume @ --yes                       # the unfinished one of the run
  ic rollback resume 3f9a12c4 --skip-step --yes    # leave what failed as it is

Exit 4 when a step fails again.")]
pub(crate) struct Resume {
    /// The rollback, or its run
    id: String,
    /// Pass over the step that failed, and leave it as it is
    #[arg(long)]
    skip_step: bool,
    /// Replace what somebody else changed, and undo effects beyond what cannot be undone
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Give an unfinished rollback up: the run is where it was, files and git's state too.
///
/// Effects that were undone stay undone, and cancelled work stays cancelled: both are named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback abandon 3f9a12c4 --yes")]
pub(crate) struct Abandon {
    /// The rollback, or its run
    id: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Take a rollback back: the run, its artifacts and skips, files and git's state are as they were.
///
/// Only when nothing but reads and late reports happened in the run since, and the tree is as the rollback left it. No dispatch
/// and no agent is revived.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback undo 3f9a12c4 --yes
  ic rollback undo 3f9a12c4 --without-effects --yes    # effects that it undid are not made again

Exit 1 when something happened since: it is named, and nothing is changed.")]
pub(crate) struct Undo {
    /// The rollback
    id: String,
    /// Take everything else back, though effects that it undid cannot be made again
    #[arg(long)]
    without_effects: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::List(verb) => verb.run(session),
            Self::Show(verb) => verb.run(session),
            Self::Resume(verb) => verb.run(session),
            Self::Abandon(verb) => verb.run(session),
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
        let records: Vec<RememberedJson> = all.iter().map(RememberedJson::from).collect();
        session.output.list(&records, || render::rollback::list(&all))?;
        Ok(Exit::Done)
    }
}

impl Show {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let (remembered, steps) = kernel.read(|snapshot| {
            let remembered = table::resolve(snapshot, &self.id)?;
            let steps = steps::of_rollback(snapshot, &remembered.id)?;
            Ok((remembered, steps))
        })?;
        show(session, &remembered, &steps)?;
        Ok(Exit::Done)
    }
}

fn show(session: &mut Session, remembered: &Remembered, steps: &[steps::Step]) -> Result<()> {
    let record = RollbackShowJson::new(remembered, steps);
    session.output.record(&record, || render::rollback::show(remembered, steps)).map(|_| ())
}

impl Resume {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        confirm(session, self.yes, "Go on rolling back?")?.then_some(()).map_or(Ok(Exit::No), |()| {
            let kernel = session.kernel()?;
            let settings = session.checkpoint_settings(&kernel)?;
            let mut progress = Progress::new(session);
            let how = (self.skip_step, self.force);
            let outcome =
                rollback::resume(&kernel, &settings, &self.id, how, &mut progress, &Watch::default())?;
            show(session, &outcome.remembered, &outcome.steps)?;
            Ok(match outcome.remembered.status {
                RollbackStatus::Done => Exit::Done,
                _ => Exit::Partly,
            })
        })
    }
}

impl Abandon {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        if !confirm(session, self.yes, "Give the rollback up?")? {
            return Ok(Exit::No);
        }
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let undone = rollback::abandon(&kernel, &settings, &self.id, &Watch::default())?;
        finish(session, &undone)
    }
}

impl Undo {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        if !confirm(session, self.yes, "Take the rollback back?")? {
            return Ok(Exit::No);
        }
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let undone = rollback::undo(&kernel, &settings, &self.id, self.without_effects, &Watch::default())?;
        finish(session, &undone)
    }
}

fn finish(session: &mut Session, undone: &Undone) -> Result<Exit> {
    session.output.record(&RollbackUndoneJson::from(undone), || render::rollback::undone(undone))?;
    Ok(if undone.seq.is_some() { Exit::Done } else { Exit::Partly })
}

/// Asks on a terminal. Errors: `confirmation_required` where nobody can be asked.
fn confirm(session: &Session, yes: bool, question: &str) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if session.can_ask() {
        return Session::ask("", question);
    }
    Err(Diagnosis::new(
        Code::ConfirmationRequired,
        "This works outside of the ledger, and nobody is here to be asked.",
    )
    .hint("look first: ic rollback show ID; then: --yes"))
}
