//! `ic dispatch ...`

mod create;
mod finish;
mod list;
mod record;
mod show;
mod start;
mod tokens;
mod wait;

use std::path::PathBuf;

use clap::Subcommand;
use ic_base::Result;
use ic_kernel::Kernel;
use ic_worktree::{Settings, Warning};

use crate::background;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Create(create::Create),
    Start(start::Start),
    Complete(finish::Complete),
    Fail(finish::Fail),
    Cancel(finish::Cancel),
    Record(record::Record),
    Tokens(tokens::Tokens),
    Show(show::Show),
    Wait(wait::Wait),
    List(list::List),
}

/// How the tree is kept around the work of a dispatch; `None`: it is not.
struct Kept {
    settings: Option<Settings>,
    project: PathBuf,
}

/// What is kept of the tree around the work of a dispatch, as its run's project says, and that project.
fn kept(session: &Session, kernel: &Kernel, id: &str, wanted: bool) -> Result<Kept> {
    let project = kernel.read(|snapshot| {
        let dispatch = ic_dispatch::dispatch::resolve(snapshot, id)?;
        ic_phase::run::get(snapshot, &dispatch.run_id).map(|run| run.project_dir)
    })?;
    Ok(Kept { settings: session.kept_along_the_way(kernel, &project, wanted)?, project })
}

/// Begins the sweep of old content after a capture, and says what went less well.
fn captured(session: &mut Session, kernel: &Kernel, kept: &Kept, warnings: &[Warning]) {
    if let Some(settings) = &kept.settings {
        background::sweep(session, kernel, settings, &kept.project);
    }
    for warning in warnings {
        session.output.warn(&warning.message);
    }
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Create(verb) => verb.run(session),
            Self::Start(verb) => verb.run(session),
            Self::Complete(verb) => verb.run(session),
            Self::Fail(verb) => verb.run(session),
            Self::Cancel(verb) => verb.run(session),
            Self::Record(verb) => verb.run(session),
            Self::Tokens(verb) => verb.run(session),
            Self::Show(verb) => verb.run(session),
            Self::Wait(verb) => verb.run(session),
            Self::List(verb) => verb.run(session),
        }
    }
}
