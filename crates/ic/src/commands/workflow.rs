//! `ic workflow ...`

mod checkpoints;
mod execute;
mod rollback;
mod show;
mod validate;
mod watch;

pub(crate) use watch::Watch;

use clap::Subcommand;
use ic_base::Result;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(execute::Start),
    Resume(execute::Resume),
    Rollback(rollback::Rollback),
    Validate(validate::Validate),
    Show(show::Show),
    Checkpoints(checkpoints::Checkpoints),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Run(verb) => verb.run(session),
            Self::Resume(verb) => verb.run(session),
            Self::Rollback(verb) => verb.run(session),
            Self::Validate(verb) => verb.run(session),
            Self::Show(verb) => verb.run(session),
            Self::Checkpoints(verb) => verb.run(session),
        }
    }
}
