//! `ic events cursor ...`

use clap::{Args, Subcommand};
use ic_base::{Label, Result};
use ic_events::cursor::{self, Cursor};
use ic_ops::consume::{self, Held};

use crate::exit::Exit;
use crate::json::CursorJson;
use crate::render;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Commit(Commit),
    Reset(Reset),
}

/// List the cursors, by name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor list")]
pub(crate) struct List {}

/// Move a cursor to the last event that you handled.
///
/// For consumers with their own loop, which read with: ic events tail --cursor NAME --peek. The first such read
/// creates the cursor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor commit notifier 42
  ic events cursor commit notifier 40 --back      # handle 41 and 42 again")]
pub(crate) struct Commit {
    /// The name
    name: String,
    /// The event
    #[arg(value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    seq: i64,
    /// The run that the cursor follows [default: all runs]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Let it move backwards
    #[arg(long)]
    back: bool,
}

/// Reset the cursors of a name to the beginning.
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
            Self::Commit(verb) => {
                let name = Label::parse("NAME", &verb.name)?;
                let run = verb.run.as_deref();
                let run_id = run.map(|run| kernel.read(|snapshot| kernel.run(snapshot, run))).transpose()?;
                let held = Held::take(&kernel, name, run_id.map(|run| run.id), session.busy_timeout())?;
                let moved = consume::commit(&kernel, &held, verb.seq, verb.back)?;
                session.output.record(&CursorJson::from(&moved), || {
                    render::event::cursors(std::slice::from_ref(&moved))
                })?;
                return Ok(Exit::Done);
            }
            Self::Reset(verb) => {
                let name = Label::parse("NAME", &verb.name)?;
                consume::reset(&kernel, &name, session.busy_timeout())?
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
