//! `ic events tail`

use std::io;
use std::time::Duration;

use ic_base::display::escape_controls;
use ic_base::{Diagnose, Label, RunId, Seq};
use ic_kernel::Kernel;
use ic_ledger::events::Event;
use ic_ledger::events::cursor::{self, CursorKey};
use ic_ledger::events::history::{self, HistoryPlace};
use ic_ops::consume::{self, Delivery, DeliveryEnd, HeldCursor};

use crate::commands::prelude::*;
use crate::format::OutputFormat;
use crate::output::{ListOutput, WriteOutcome};
use crate::signals;
use crate::views::event::EventJson;

/// How often `--follow` checks for new events.
const POLL: Duration = Duration::from_millis(100);
/// The most events that are printed from one snapshot; then the cursor moves, and the next snapshot is read.
const STEP: i64 = 1_000;

/// Print events, oldest first: the newest, or those after a position.
///
/// With --cursor the position is kept under a name, for ever. The cursor moves once the lines are printed: a reader that dies after that
/// has lost them. To lose no event, let --each run a command for each: the cursor moves past an event when its command exits with 0. A
/// failure ends with exit 1; --follow says each failure on standard error, and retries after 1 s, then 2 s, 4 s, up to a minute. Ctrl-C,
/// SIGTERM and a closed terminal wait for the running command and do not move past its event, so a command may see an event twice; a second
/// Ctrl-C ends ic at once and leaves the command running. Or read with --peek, and commit what you have handled: ic events cursor commit.
///
/// sh -c runs the command in the project, with the event as JSON on standard input, its number in `IC_EVENT_SEQ` and
/// its type in `IC_EVENT_TYPE`. A cursor has one consumer at a time; a second one gets `busy`. In a ledger on a server each clone has cursors of its own. A consumer that was
/// killed (SIGKILL) may leave its command running, and the next consumer runs the same event again beside it.
///
/// A cursor on @ belongs to the run that @ names at that time. When that run has ended, @ with the same cursor prints
/// first the rest of its events, then those of the run that is active now, if any; with --limit, one run per call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events tail                                   # the newest 100 of all runs
  ic events tail @ --limit 20
  ic events tail @ --follow
  ic events tail @ --cursor notifier --each ./notify.sh --follow
  ic events tail --cursor loop --peek --format jsonl   # then: cursor commit")]
pub(crate) struct Tail {
    /// The run [default: all runs]
    run: Option<String>,
    /// Events of all runs
    #[arg(long, conflicts_with = "run")]
    all: bool,
    /// Events after this one
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    since: Option<i64>,
    /// At most N [default: 100, or all with --since or --cursor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    limit: Option<i64>,
    /// Keep printing events as they happen
    #[arg(long)]
    follow: bool,
    /// Events after the position kept under this name
    #[arg(long, value_name = "NAME", conflicts_with = "since")]
    cursor: Option<String>,
    /// Run CMD for each event; move past it when CMD exits with 0
    #[arg(long, value_name = "CMD", requires = "cursor", conflicts_with = "peek")]
    each: Option<String>,
    /// Do not move the cursor; see: ic events cursor commit
    #[arg(long, requires = "cursor")]
    peek: bool,
}

impl Tail {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let cursor = self.cursor.as_deref().map(|name| Label::parse("--cursor", name)).transpose()?;
        let kernel = session.kernel()?;
        let (runs, follows) = self.runs(&kernel, cursor.as_ref())?;
        if let (Some(name), Some(command)) = (&cursor, &self.each) {
            return self.deliver_all(session, &kernel, name, runs, follows, command);
        }
        if self.follow && session.output.format == OutputFormat::Json {
            // An array would never end, so events are printed as JSON Lines.
            session.output.format = OutputFormat::Jsonl;
        }
        let timeout = session.busy_timeout();
        let mut list = session.output.begin_list();
        // This is not below zero: `runs` is never empty.
        let newest = runs.len() - 1;
        // This is a closure, so that an error within it still reaches the end of the list below.
        let print = |list: &mut ListOutput<'_>| {
            for (at, run_id) in runs.into_iter().enumerate() {
                let tail = self.begin(&kernel, cursor.as_ref(), run_id, timeout)?;
                let is_open = tail.print(list, follows && at == newest)?;
                // The limit counts for one call, and each run has a position of its own.
                if !is_open || self.limit.is_some() {
                    break;
                }
            }
            Ok(())
        };
        let printed = print(&mut list);
        // After a failure the array is still closed: the cursor may have moved over what was printed.
        if !self.follow && (printed.is_ok() || list.has_begun()) {
            list.end()?;
        }
        printed.map(|()| ExitStatus::Done)
    }

    /// The runs whose events are printed, and whether the last one is followed. With a cursor, `@` begins with the unread rest of the runs
    /// that were `@` before and have ended.
    fn runs(&self, kernel: &Kernel, cursor: Option<&Label>) -> Result<(Vec<Option<RunId>>, bool)> {
        let Some(reference) = &self.run else { return Ok((vec![None], self.follow)) };
        let named = kernel.read(|snapshot| kernel.run(snapshot, reference)).map(|run| run.id);
        // These are looked up before the error of `@` is judged: without an open run, the rest of the ended runs decides.
        let left = match cursor {
            Some(name) if reference == "@" => consume::left_behind(kernel, name)?,
            _ => Vec::new(),
        };
        let mut runs: Vec<_> = left.into_iter().map(Some).collect();
        match named {
            // No run is active now, and the rest of the earlier ones is still to be read.
            Err(error) if error.code() == Code::RunNotFound && !runs.is_empty() => Ok((runs, false)),
            named => {
                runs.push(Some(named?));
                Ok((runs, self.follow))
            }
        }
    }

    /// Finds the event to begin after, in one run or in all.
    fn begin<'k>(
        &self,
        kernel: &'k Kernel,
        cursor: Option<&Label>,
        run_id: Option<RunId>,
        timeout: Duration,
    ) -> Result<Position<'k>> {
        let held = match cursor {
            Some(name) if self.peek => {
                consume::register(kernel, name, run_id.as_ref())?;
                consume::require_history(kernel, name, run_id.as_ref())?;
                None
            }
            Some(name) => {
                let held = HeldCursor::take(kernel, name.clone(), run_id.clone(), timeout)?;
                held.require_history(kernel)?;
                Some(held)
            }
            None => None,
        };
        let mut tail = Position { kernel, run_id, held, left: self.limit.unwrap_or(i64::MAX), at: 0, last: None };
        tail.at = kernel.read(|snapshot| match (cursor, self.since) {
            (Some(name), _) => {
                let (seat, run_id) = (kernel.cursor_seat(), tail.run_id.as_ref());
                cursor::position(snapshot, CursorKey { name, seat, run_id })
            }
            (None, Some(since)) => Ok(since),
            (None, None) => {
                // Without a position, the limit says where to begin, and then counts no more.
                tail.left = i64::MAX;
                ic_ledger::events::before_newest(snapshot, tail.run_id.as_ref(), self.limit.unwrap_or(100))
            }
        })?;
        // The position itself may have been printed by an earlier call. Its hash tells whether it is still the same
        // event.
        if self.follow && tail.at > 0 {
            tail.last = kernel.read(|snapshot| history::place(snapshot, tail.at))?;
        }
        Ok(tail)
    }

    fn deliver_all(
        &self,
        session: &CliSession,
        kernel: &Kernel,
        name: &Label,
        runs: Vec<Option<RunId>>,
        follows: bool,
        command: &str,
    ) -> Result<ExitStatus> {
        let newest = runs.len() - 1;
        for (at, run_id) in runs.into_iter().enumerate() {
            let exit = self.deliver(session, kernel, name.clone(), run_id, command, follows && at == newest)?;
            // The limit counts for one call, and each run has a position of its own.
            if exit != ExitStatus::Done || self.limit.is_some() {
                return Ok(exit);
            }
        }
        Ok(ExitStatus::Done)
    }

    /// Runs the command for each event. Standard output is left to the command.
    fn deliver(
        &self,
        session: &CliSession,
        kernel: &Kernel,
        name: Label,
        run_id: Option<RunId>,
        command: &str,
        follow: bool,
    ) -> Result<ExitStatus> {
        let command = input::text("--each", command)?;
        let held = HeldCursor::take(kernel, name, run_id, session.busy_timeout())?;
        // Signals are caught only from here on: while another consumer holds the cursor, Ctrl-C ends the wait at once.
        let interrupted = signals::interrupted()?;
        let delivery = Delivery { command, limit: self.limit, follow, interrupted };
        let end = consume::deliver(kernel, &held, &delivery, encode, |failure, delay| {
            let delay = humantime::format_duration(delay);
            session.output.warn_now(failure.code(), &format!("{} Retrying in {delay}.", failure.message()));
        })?;
        Ok(match end {
            DeliveryEnd::Done => ExitStatus::Done,
            DeliveryEnd::Interrupted => ExitStatus::Interrupted,
        })
    }
}

/// An event for a command's standard input: one line, as `--format jsonl` prints it.
fn encode(event: &Event) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&EventJson::new(event, None))
        .map_err(io::Error::from)
        .while_doing(|| format!("writing event {} as JSON", event.seq))?;
    escape_controls(&mut line);
    line.push(b'\n');
    Ok(line)
}

/// The progress of a tail in one run, or in all.
struct Position<'k> {
    kernel: &'k Kernel,
    run_id: Option<RunId>,
    /// The lock that allows moving the cursor; `None`: the cursor stays where it is.
    held: Option<HeldCursor>,
    left: i64,
    at: Seq,
    /// The newest event that was printed or skipped, to notice that the ledger was replaced by an older one.
    last: Option<HistoryPlace>,
}

impl Position<'_> {
    /// Prints the events, and new ones if it `follows`; false if the reader has gone.
    fn print(mut self, list: &mut ListOutput<'_>, follows: bool) -> Result<bool> {
        let mut open = self.print_new(list)?;
        let mut version = None;
        while follows && open && self.left > 0 {
            // The version is read before the events: an event that is recorded in between changes it again, and the
            // next turn finds that event.
            let now = self.kernel.ledger.data_version()?;
            if version == Some(now) {
                std::thread::sleep(POLL);
                continue;
            }
            // A number that is cheap to read, and that changes when the ledger is written to.
            version = Some(now);
            if let Some(last) = self.last {
                self.kernel.read(|snapshot| history::require(snapshot, last))?;
            }
            open = self.print_new(list)?;
        }
        Ok(open)
    }

    /// Prints what is new, step by step, and moves the cursor over what was written; false if the reader has gone.
    fn print_new(&mut self, list: &mut ListOutput<'_>) -> Result<bool> {
        loop {
            let wanted = self.left.min(STEP);
            let (mut printed, mut newest) = (0, None);
            self.kernel.read(|snapshot| {
                ic_ledger::events::each_since(snapshot, self.run_id.as_ref(), self.at, wanted, |event| {
                    newest = Some(HistoryPlace { seq: event.seq, hash: event.hash });
                    printed += 1;
                    list.push(&EventJson::new(&event, None), || views::event::line(&event, false))
                })
            })?;
            // Flushed before the cursor moves: what a reader that has gone did not get must be printed again.
            if list.flush()? == WriteOutcome::Closed {
                return Ok(false);
            }
            if let Some(read) = newest {
                (self.at, self.last) = (read.seq, newest);
                self.left -= printed;
                self.keep(read)?;
            }
            // After a full step there may be more; after a shorter one there is none.
            if printed < wanted || self.left == 0 {
                return Ok(true);
            }
        }
    }

    fn keep(&self, read: HistoryPlace) -> Result<()> {
        self.held.as_ref().map_or(Ok(()), |held| held.advance_to(self.kernel, read))
    }
}
