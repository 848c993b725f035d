//! `ic events cursor ...`

use clap::{Args, Subcommand};
use ic_base::{Label, Result};
use ic_events::cursor::{self, Cursor};

use crate::exit::Exit;
use crate::json::CursorJson;
use crate::render;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Reset(Reset),
}

/// List the cursors, by name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor list")]
pub(crate) struct List {}

/// Put the cursors of a name back before the first event.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor reset notifier")]
pub(crate) struct Reset {
    /// The name
    name: String,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let cursors = match self {
            Self::List(_) => kernel.read(cursor::list)?,
            Self::Reset(verb) => {
                let name = Label::parse("NAME", &verb.name)?;
                kernel.write(|tx, now| cursor::reset(tx, now, &name))?
            }
        };
        print(session, &cursors)
    }
}

fn print(session: &mut Session, cursors: &[Cursor]) -> Result<Exit> {
    let records: Vec<CursorJson> = cursors.iter().map(CursorJson::from).collect();
    session.output.list(&records, || render::event::cursors(cursors))?;
    Ok(Exit::Done)
}
