//! `ic config ...`

mod show;

use clap::Subcommand;
use ic_base::Result;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Show(show::Show),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Show(show::Show {}) => show::Show::run(session),
        }
    }
}
