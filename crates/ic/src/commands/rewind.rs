//! `ic rewind ...`

mod init;
mod inspect;
mod resume;
mod show;
mod targets;
mod to;
mod undo;

use clap::Subcommand;
use ic_base::Result;
use ic_kernel::Kernel;
use ic_rewind::journal::{Entry, Status};
use ic_rows::Watch;
use ic_worktree::{Settings, Warning};

use crate::exit::Exit;
use crate::json::RewindJson;
use crate::render;
use crate::session::Session;
use crate::signals;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Init(init::Init),
    Inspect(inspect::Inspect),
    Targets(targets::Targets),
    To(to::To),
    Resume(resume::Resume),
    Status(show::Status),
    List(show::List),
    Undo(undo::Undo),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Init(verb) => verb.run(session),
            Self::Inspect(verb) => verb.run(session),
            Self::Targets(verb) => verb.run(session),
            Self::To(verb) => verb.run(session),
            Self::Resume(verb) => verb.run(session),
            Self::Status(verb) => verb.run(session),
            Self::List(verb) => verb.run(session),
            Self::Undo(verb) => verb.run(session),
        }
    }
}

/// Whether it is to be done: by `--yes`, or by the answer to `text` on a terminal. `look`: the command that only looks.
///
/// Errors: `confirmation_required` where nobody can be asked.
fn is_wanted(
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
    let text = text()?;
    session.require_somebody(
        "A rewind writes into the application's database and the working tree",
        &format!("look first: {look}; then: --yes"),
    )?;
    Session::ask(&text, question)
}

fn watch() -> Result<Watch> {
    Ok(Watch { interrupted: signals::interrupted()? })
}

/// Prints what became of a rewind; exit 4 if something is left. One that is done gives up archives that are not kept any more.
fn finish(
    session: &mut Session,
    kernel: &Kernel,
    settings: &Settings,
    entry: &Entry,
    warning: Option<Warning>,
) -> Result<Exit> {
    let is_done = entry.status == Status::Done;
    let untidy = if is_done { ic_rows::tidy(kernel, settings) } else { None };
    if let Some(untidy) = &untidy {
        session.output.warn(&untidy.message);
    }
    let warnings: Vec<Warning> = warning.into_iter().chain(untidy).collect();
    let record = RewindJson::from(entry).with_warnings(&warnings);
    session.output.record(&record, || render::rewind::entry(entry))?;
    Ok(if is_done { Exit::Done } else { Exit::Partly })
}
