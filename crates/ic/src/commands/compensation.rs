//! `ic compensation ...`

mod add;
mod coverage;
mod list;
mod run;

use clap::Subcommand;
use ic_base::Result;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Add(add::Add),
    List(list::List),
    Run(run::Undo),
    Coverage(coverage::Coverage),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Add(verb) => verb.run(session),
            Self::List(verb) => verb.run(session),
            Self::Run(verb) => verb.run(session),
            Self::Coverage(verb) => verb.run(session),
        }
    }
}
