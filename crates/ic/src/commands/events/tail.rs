//! `ic events tail`

use std::time::Duration;

use clap::Args;
use ic_base::{Label, Result, RunId, Seq};
use ic_events::cursor;
use ic_ops::Kernel;

use crate::exit::Exit;
use crate::format::Format;
use crate::json::EventJson;
use crate::output::{List, Written};
use crate::render;
use crate::session::Session;

/// How often a follower looks for news.
const POLL: Duration = Duration::from_millis(100);
/// A follower prints and remembers its position in steps of so many events.
const STEP: i64 = 1_000;

/// Print events, oldest first: the newest ones, or what follows a position.
///
/// With --cursor the position is kept under a name: it moves only after what it covers was written, and never expires,
/// so that a consumer loses nothing (it may see something again after a crash).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events tail                                   # the newest 100 of all runs
  ic events tail @ --limit 20
  ic events tail --all --cursor notifier --format jsonl | ./notify.sh
  ic events tail @ --follow")]
pub(crate) struct Tail {
    /// The run [default: all runs]
    run: Option<String>,
    /// Events of all runs
    #[arg(long, conflicts_with = "run")]
    all: bool,
    /// What follows this event
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    since: Option<i64>,
    /// At most so many [default: 100, or all with --since or --cursor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    limit: Option<i64>,
    /// Go on printing as events happen
    #[arg(long)]
    follow: bool,
    /// What follows the position kept under this name
    #[arg(long, value_name = "NAME", conflicts_with = "since")]
    cursor: Option<String>,
}

impl Tail {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let cursor = self.cursor.as_deref().map(|name| Label::parse("--cursor", name)).transpose()?;
        let kernel = session.kernel()?;
        let run_id = match &self.run {
            Some(reference) => Some(kernel.read(|snapshot| kernel.run(snapshot, reference))?.id),
            None => None,
        };
        if self.follow && session.output.format == Format::Json {
            // A document that never ends is no document.
            session.output.format = Format::Jsonl;
        }
        let mut tail =
            Position { kernel: &kernel, run_id, cursor, left: self.limit.unwrap_or(i64::MAX), at: 0 };
        let mut list = session.output.begin_list();
        tail.at = kernel.read(|snapshot| match (&tail.cursor, self.since) {
            (Some(name), _) => cursor::position(snapshot, name, tail.run_id.as_ref()),
            (None, Some(since)) => Ok(since),
            (None, None) => {
                // The limit says where to begin; a follower then goes on without one.
                tail.left = i64::MAX;
                ic_events::before_newest(snapshot, tail.run_id.as_ref(), self.limit.unwrap_or(100))
            }
        })?;
        let mut open = tail.print_new(&mut list)?;
        let mut version = None;
        while self.follow && open && tail.left > 0 {
            let now = kernel.ledger.data_version()?;
            if version == Some(now) {
                std::thread::sleep(POLL);
                continue;
            }
            version = Some(now);
            open = tail.print_new(&mut list)?;
        }
        if !self.follow {
            list.end()?;
        }
        Ok(Exit::Done)
    }
}

/// How far a tail has printed.
struct Position<'k> {
    kernel: &'k Kernel,
    run_id: Option<RunId>,
    cursor: Option<Label>,
    left: i64,
    at: Seq,
}

impl Position<'_> {
    /// Prints what is new, step by step, and moves the cursor over what was written; false when the reader is gone.
    fn print_new(&mut self, list: &mut List<'_>) -> Result<bool> {
        loop {
            let wanted = self.left.min(STEP);
            let (mut printed, mut end) = (0, self.at);
            self.kernel.read(|snapshot| {
                ic_events::each_since(snapshot, self.run_id.as_ref(), self.at, wanted, |event| {
                    end = event.seq;
                    printed += 1;
                    list.push(&EventJson::new(&event, false), || render::event::line(&event, false))
                })
            })?;
            if list.flush()? == Written::Closed {
                return Ok(false);
            }
            if printed > 0 {
                self.at = end;
                self.left -= printed;
                self.keep()?;
            }
            if printed < wanted || self.left == 0 {
                return Ok(true);
            }
        }
    }

    fn keep(&self) -> Result<()> {
        let Some(name) = &self.cursor else { return Ok(()) };
        let now = self.kernel.context.now();
        self.kernel.ledger.write(|tx| cursor::advance_to(tx, now, name, self.run_id.as_ref(), self.at))
    }
}
