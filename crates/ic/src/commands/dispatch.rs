//! `ic dispatch ...`

mod create;
mod finish;
mod list;
mod record;
mod show;
mod start;
mod tokens;
mod wait;

use clap::Subcommand;
use ic_base::Result;

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
