//! `ic events ...`

mod cursor;
mod redact;
mod tail;
mod verify;

use clap::Subcommand;
use ic_base::Result;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Tail(tail::Tail),
    /// Durable positions of consumers: list, commit, reset
    #[command(subcommand)]
    Cursor(cursor::Verb),
    Verify(verify::Verify),
    Redact(redact::Redact),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Tail(verb) => verb.run(session),
            Self::Cursor(verb) => verb.run(session),
            Self::Verify(verb) => verb.run(session),
            Self::Redact(verb) => verb.run(session),
        }
    }
}
