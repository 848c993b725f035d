//! `ic gate ...`

mod check;
mod r#override;
mod rules;

use clap::Subcommand;
use ic_base::Result;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Check(check::Check),
    Override(r#override::Override),
    Rules(rules::Rules),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Check(verb) => verb.run(session),
            Self::Override(verb) => verb.run(session),
            Self::Rules(verb) => verb.run(session),
        }
    }
}
