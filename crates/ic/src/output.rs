//! Standard output: one document, or records one by one. A write that fails is an error. A reader that closes the pipe has seen enough,
//! which is no failure.

mod capture;
mod list;
mod warnings;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use ic_base::display::escape_controls;
use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::WHEN_BEHIND;
use ic_worktree::Warning;
use serde::Serialize;

pub(crate) use capture::Capture;
pub(crate) use list::ListOutput;
use warnings::print_warning;

use crate::exit::ExitStatus;
use crate::format::{FormatChoice, OutputFormat};
use crate::text::{error_screen, path_text, plain, screen, style, wrapped};

/// Standard output in the form that was asked for.
pub(crate) struct CliOutput {
    /// The form in which everything is printed.
    pub(crate) format: OutputFormat,
    /// Whether a flag of this call asked for JSON; `IC_FORMAT` and a pipe do not count.
    json_asked: bool,
    pretty: bool,
    quiet: bool,
    closed: bool,
    /// Whether a terminal was closed: unlike behind a pipe, no script waits there for an answer.
    hung_up: bool,
    /// A warning that follows the answer, in whatever form.
    reservation: RefCell<Option<(Code, String)>>,
    scratch: Vec<u8>,
    writer: Box<dyn Write + Send>,
    /// Where everything goes instead of standard output and standard error, if the command runs within a server.
    capture: Option<Capture>,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Everything was handed to the operating system.
    Whole,
    /// The reader closed the pipe.
    Closed,
}

impl CliOutput {
    pub(crate) fn new(choice: &FormatChoice, pretty: bool, quiet: bool) -> Self {
        let format = choice.resolve();
        let writer: Box<dyn Write + Send> = match (format, io::stdout().as_fd().try_clone_to_owned()) {
            // Rust's own stdout is flushed at every line, which is too slow for a hundred thousand records.
            (OutputFormat::Json | OutputFormat::Jsonl, Ok(fd)) => {
                Box::new(BufWriter::with_capacity(64 * 1024, File::from(fd)))
            }
            _ => Box::new(BufWriter::new(AutoStream::auto(io::stdout()))),
        };
        Self { pretty, quiet, ..Self::to(writer, format, choice.json_was_asked_for()) }
    }

    /// Output as JSON into a capture, for a command that runs in this process.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only the server runs commands"))]
    pub(crate) fn captured(capture: &Capture) -> Self {
        Self { capture: Some(capture.clone()), ..Self::to(Box::new(capture.clone()), OutputFormat::Json, true) }
    }

    fn to(writer: Box<dyn Write + Send>, format: OutputFormat, json_asked: bool) -> Self {
        Self {
            format,
            json_asked,
            pretty: false,
            quiet: false,
            closed: false,
            hung_up: false,
            reservation: RefCell::default(),
            scratch: Vec::new(),
            writer,
            capture: None,
        }
    }

    /// Prints a record as JSON, or `text` for people.
    pub(crate) fn record(&mut self, record: &impl Serialize, text: impl FnOnce() -> String) -> Result<ExitStatus> {
        if self.format == OutputFormat::Text {
            self.text(text())?;
            return self.done_whole();
        }
        self.json(record)?;
        self.require_reader()?;
        self.keep(text)
    }

    /// Prints a list: an array as JSON, a line each as JSON Lines, or `text` for people.
    pub(crate) fn list<T: Serialize>(&mut self, records: &[T], text: impl FnOnce() -> String) -> Result<ExitStatus> {
        match self.format {
            OutputFormat::Json => self.json(&records)?,
            OutputFormat::Jsonl => {
                for record in records {
                    self.json(record)?;
                }
            }
            OutputFormat::Text => {
                self.text(text())?;
                return self.done();
            }
        }
        self.keep(text)
    }

    /// Ends what was printed as JSON. A capture gets the text for people, too.
    fn keep(&mut self, text: impl FnOnce() -> String) -> Result<ExitStatus> {
        if let Some(capture) = &self.capture {
            capture.keep(text());
        }
        self.done()
    }

    /// Prints just a value, or its record if JSON was asked for.
    pub(crate) fn scalar(&mut self, value: &str, record: &impl Serialize) -> Result<ExitStatus> {
        // `format` does not decide: in a pipe it is JSON without a flag, and `id=$(ic run create ...)` needs the bare
        // value.
        if self.json_asked {
            self.json(record)?;
        } else {
            self.raw(format!("{value}\n").as_bytes())?;
        }
        self.done_whole()
    }

    /// Prints just a path, or its record if JSON was asked for. A script gets the exact bytes of the name, a person what is safe to show.
    pub(crate) fn path(&mut self, path: &Path, record: &impl Serialize) -> Result<ExitStatus> {
        if self.json_asked || Self::is_terminal() {
            return self.scalar(&path_text(path), record);
        }
        let line = [ic_ledger::path_bytes(path), b"\n"].concat();
        // The writer for text replaces bytes that are not UTF-8.
        self.exact(|writer| writer.write_all(&line).while_doing(|| "writing to standard output".to_owned()))
    }

    /// Begins a list whose records come one by one; memory stays flat.
    pub(crate) fn begin_list(&mut self) -> ListOutput<'_> {
        ListOutput::new(self)
    }

    /// Lets `write` print exact bytes, in every form. Nothing is escaped, even on a terminal.
    pub(crate) fn exact(&mut self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<ExitStatus> {
        if let (None, Ok(fd)) = (&self.capture, io::stdout().as_fd().try_clone_to_owned()) {
            self.writer = Box::new(BufWriter::with_capacity(64 * 1024, File::from(fd)));
        }
        let mut sink = Exact { output: self, failed: None };
        let result = write(&mut sink);
        match sink.failed.take() {
            // The error of the writer itself would only say that its sink failed.
            Some(error) => Err(error),
            None if self.closed => Ok(ExitStatus::Done),
            None => result.and_then(|()| self.done()),
        }
    }

    /// Whether hints and warnings are unwanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a terminal shows what is printed.
    pub(crate) fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Whether what is printed may carry colours.
    pub(crate) fn has_colours() -> bool {
        AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    /// Whether JSON was asked for in this very call.
    pub(crate) fn json_was_asked_for(&self) -> bool {
        self.json_asked
    }

    /// Prints warnings on stderr, as [`Self::warn`] does.
    pub(crate) fn warn_all<'w>(&self, warnings: impl IntoIterator<Item = &'w Warning>) {
        warnings.into_iter().for_each(|warning| self.warn(&warning.message));
    }

    /// Prints a warning on stderr, for people; in JSON the record has it.
    pub(crate) fn warn(&self, message: &str) {
        if self.format == OutputFormat::Text {
            self.warn_beside_text(message);
        }
    }

    /// As [`Self::warn`], for a verb that prints text even in the JSON form, so that no record could have the warning.
    pub(crate) fn warn_beside_text(&self, message: &str) {
        if let Some(capture) = &self.capture {
            capture.note(message);
        } else if !self.quiet {
            let (warn, reset) = (style::WARN.render(), style::WARN.render_reset());
            // With stderr closed the warning reaches no person, and the call still succeeds.
            let text = format!("{warn}warning{reset}: {}", plain(message));
            let _ = writeln!(anstream::stderr().lock(), "{}", wrapped(text, error_screen()));
        }
    }

    /// Prints a warning on stderr at once, in JSON as `{"warning": {"code", "message"}}`. For a call that may wait for ever.
    pub(crate) fn warn_now(&self, code: Code, message: &str) {
        if self.format == OutputFormat::Text || self.capture.is_some() {
            return self.warn_beside_text(message);
        }
        if !self.quiet {
            print_warning(code.as_str(), message);
        }
    }

    /// Prints the warnings of a verb that prints just a value. Only the record has them, and that is printed only on request.
    pub(crate) fn warn_beside_value(&self, warnings: &[Warning]) {
        self.warn_all(warnings);
        let is_said = self.format == OutputFormat::Text || self.json_asked || self.quiet;
        let unsaid = if is_said { &[] } else { warnings };
        unsaid.iter().map(|w| (w.code, &w.message)).for_each(|(code, message)| print_warning(code, message));
    }

    /// Prints a warning after the answer; in JSON as a line on stderr: `{"warning": {"code", "message"}}`. If the call fails, the error has
    /// it instead: [`Self::with_reservation`].
    pub(crate) fn warn_after(&self, code: Code, message: String) {
        self.reservation.replace(Some((code, message)));
    }

    /// Puts the warning that would follow the answer into the hint of a failure: what was not found may be among the events that are
    /// missing.
    pub(crate) fn with_reservation(&self, failure: Diagnosis) -> Diagnosis {
        // An error with the same code has said it.
        let Some((code, message)) = self.reservation.take().filter(|(code, _)| *code != failure.code()) else {
            return failure;
        };
        let first = format!("{}: {WHEN_BEHIND}", message.trim_end_matches('.'));
        let hint = failure.get_hint().map_or_else(|| first.clone(), |hint| format!("{first}; {hint}"));
        failure.hint(hint).detail(code.as_str(), true)
    }

    fn say_reservation(&self) {
        let Some((code, message)) = self.reservation.take().filter(|_| !self.quiet) else { return };
        if let Some(capture) = &self.capture {
            return capture.note(&message);
        }
        if self.format == OutputFormat::Text {
            return self.warn(&message);
        }
        print_warning(code.as_str(), &message);
    }

    fn json(&mut self, record: &impl Serialize) -> Result<()> {
        self.encode(record, self.pretty && self.format == OutputFormat::Json)?;
        self.scratch.push(b'\n');
        self.write_scratch()
    }

    /// Encodes a record in memory, which is many times faster than writing it piece by piece.
    fn encode(&mut self, record: &impl Serialize, pretty: bool) -> Result<()> {
        self.scratch.clear();
        let result = if pretty {
            serde_json::to_writer_pretty(&mut self.scratch, record)
        } else {
            serde_json::to_writer(&mut self.scratch, record)
        };
        // In every form of JSON, because a person may read it on a terminal.
        escape_controls(&mut self.scratch);
        self.note(result.map_err(io::Error::from))
    }

    /// Indents the encoded record by one more level. No text in JSON contains a line break, so every line can be indented.
    fn indent(&mut self) {
        let lines = self.scratch.split(|byte| *byte == b'\n');
        self.scratch = lines.map(|line| [b"  ", line].concat()).collect::<Vec<_>>().join(&b'\n');
    }

    fn write_scratch(&mut self) -> Result<()> {
        let result = if self.closed { Ok(()) } else { self.writer.write_all(&self.scratch) };
        self.note(result)
    }

    /// A text for people, whose lines fit a terminal that shows it.
    fn text(&mut self, text: String) -> Result<()> {
        self.raw(wrapped(text, screen()).as_bytes())
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        let result = if self.closed { Ok(()) } else { self.writer.write_all(bytes) };
        self.note(result)
    }

    /// Ends a list: a reader that closed the pipe has seen enough, which is no failure.
    fn done(&mut self) -> Result<ExitStatus> {
        self.flush().map(|_| ExitStatus::Done).map_err(lost)
    }

    /// Ends one record: see [`Self::require_reader`].
    fn done_whole(&mut self) -> Result<ExitStatus> {
        self.require_reader()?;
        self.done()
    }

    /// Errors: `io_error` if the call wrote to the ledger and no reader took its answer. The answer has the id of what was made, and a
    /// script would continue without it.
    fn require_reader(&mut self) -> Result<()> {
        // A capture is in the memory of this process: nothing closes it.
        if !ic_ledger::has_written() || self.capture.is_some() {
            return Ok(());
        }
        // Only a flush shows whether the reader is there: until then the answer may be in the buffer.
        self.flush().map_err(lost)?;
        // A call that was started with standard output closed counts as one whose reader has gone.
        if self.hung_up || !self.closed && !ic_sys::closed_streams::had_no_output() {
            return Ok(());
        }
        let closed = Err(io::Error::from(ErrorKind::BrokenPipe));
        closed.while_doing(|| "writing to standard output".to_owned()).map_err(lost)
    }

    fn flush(&mut self) -> Result<WriteOutcome> {
        let result = if self.closed { Ok(()) } else { self.writer.flush() };
        self.note(result)?;
        // An error above returns first, and takes the warning into its hint: see `with_reservation`.
        self.say_reservation();
        Ok(if self.closed { WriteOutcome::Closed } else { WriteOutcome::Whole })
    }

    /// Notes a closed pipe or terminal, which is no failure; any other error is one.
    fn note(&mut self, result: io::Result<()>) -> Result<()> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe || is_of_closed_terminal(&error) => {
                self.closed = true;
                self.hung_up = error.kind() != ErrorKind::BrokenPipe;
                Ok(())
            }
            other => other.while_doing(|| "writing to standard output".to_owned()),
        }
    }
}

/// An error after the work: the hint says so, because a second call would do it twice.
fn lost(error: Diagnosis) -> Diagnosis {
    error.hint("only its output is lost, and what it did is done: see ic status")
}

/// Whether standard output is a terminal that was closed. Its writes fail with EIO, and it no longer says that it is a terminal. A file is
/// no device, so that its EIO stays a failure.
fn is_of_closed_terminal(error: &io::Error) -> bool {
    let is_device = || {
        let output = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        output.and_then(|output| output.metadata()).is_ok_and(|found| found.file_type().is_char_device())
    };
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) && is_device()
}

/// A sink for exact bytes. A closed reader ends the writing, and is no failure.
struct Exact<'o> {
    output: &'o mut CliOutput,
    failed: Option<ic_base::Diagnosis>,
}

impl Write for Exact<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.output.raw(bytes) {
            Ok(()) if self.output.closed => Err(ErrorKind::BrokenPipe.into()),
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.failed = Some(error);
                Err(ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
