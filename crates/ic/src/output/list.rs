//! A list on standard output.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::{mem, thread};

use ic_base::Result;
use serde::Serialize;

use super::{CliOutput, WriteOutcome};
use crate::exit::ExitStatus;
use crate::format::OutputFormat;

/// The number of records in a batch, and of batches that may wait for the printer.
const BATCH: usize = 256;
const BATCHES: usize = 4;

/// A list whose records come one by one.
pub(crate) struct ListOutput<'o> {
    output: &'o mut CliOutput,
    empty: bool,
}

impl<'o> ListOutput<'o> {
    pub(super) fn new(output: &'o mut CliOutput) -> Self {
        Self { output, empty: true }
    }

    /// Prints one record; breaks when the reader is gone.
    pub(crate) fn push(&mut self, record: &impl Serialize, text: impl FnOnce() -> String) -> Result<ControlFlow<()>> {
        match self.output.format {
            OutputFormat::Text => self.output.text(text())?,
            OutputFormat::Jsonl => self.output.json(record)?,
            OutputFormat::Json => {
                // The first record opens the array, each other one ends the line before it. `end` closes the array.
                self.output.raw(match (self.empty, self.output.pretty) {
                    (true, false) => b"[",
                    (true, true) => b"[\n",
                    (false, _) => b",\n",
                })?;
                self.output.encode(record, self.output.pretty)?;
                if self.output.pretty {
                    self.output.indent();
                }
                self.output.write_scratch()?;
            }
        }
        self.empty = false;
        Ok(if self.output.closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Whether anything was pushed.
    pub(crate) fn has_begun(&self) -> bool {
        !self.empty
    }

    /// Hands what was pushed so far to the operating system.
    pub(crate) fn flush(&mut self) -> Result<WriteOutcome> {
        self.output.flush()
    }

    /// As [`ListOutput::end`], with a table for people at the end: its columns depend on every row.
    pub(crate) fn end_with(self, text: impl FnOnce() -> String) -> Result<ExitStatus> {
        if self.output.format == OutputFormat::Text {
            self.output.text(text())?;
        }
        self.end()
    }

    /// Ends the list and hands it to the operating system.
    pub(crate) fn end(self) -> Result<ExitStatus> {
        if self.output.format == OutputFormat::Json {
            self.output.raw(match (self.empty, self.output.pretty) {
                (true, _) => b"[]\n",
                (false, false) => b"]\n",
                (false, true) => b"\n]\n",
            })?;
        }
        self.output.done()
    }

    /// Prints with `print` what `read` finds. Both work at the same time, so that a long list takes as long as the slower one. Records that
    /// were found before `read` failed are printed.
    pub(crate) fn print_as_read<T: Send>(
        &mut self,
        read: impl FnOnce(&mut dyn FnMut(T) -> Result<ControlFlow<()>>) -> Result<()>,
        print: impl FnMut(&mut Self, T) -> Result<ControlFlow<()>> + Send,
    ) -> Result<()> {
        thread::scope(|scope| {
            // Bounded, so that a fast reader does not fill the memory while a pipe is slow.
            let (sender, batches) = mpsc::sync_channel::<Vec<T>>(BATCHES);
            let print_all = move || {
                let mut print = print;
                for one in batches.into_iter().flatten() {
                    if print(self, one)?.is_break() {
                        break;
                    }
                }
                Ok(())
            };
            let (mut waiting, mut beside) = (Some(print_all), None);
            let mut batch = Vec::new();
            let found = read(&mut |one| {
                batch.push(one);
                if batch.len() < BATCH {
                    return Ok(ControlFlow::Continue(()));
                }
                if let Some(print_all) = waiting.take() {
                    beside = Some(scope.spawn(print_all));
                }
                let is_wanted = sender.send(mem::take(&mut batch)).is_ok();
                Ok(if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            });
            // Without a thread nothing reads yet, but the channel has room for one batch.
            // If the printer has stopped, it returns the reason itself.
            let _ = sender.send(batch);
            drop(sender);
            let printed = match beside {
                // A panic of the printer is raised as one of this call.
                Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // A list of less than one batch is printed on this thread.
                None => waiting.map_or(Ok(()), |print_all| print_all()),
            };
            // The printer's error is the cause: `read` only learned that no more is wanted.
            printed.and(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use ic_base::{Code, Diagnosis, Result};

    use super::{BATCH, BATCHES};
    use crate::output::{Capture, CliOutput};

    /// Prints a list of this many numbers, of which reading the last one fails, or printing one. Returns the output, and how many were
    /// read.
    fn printed(count: usize, is_read: bool, until: usize, fails: bool) -> (String, usize, Option<String>) {
        let capture = Capture::default();
        let mut output = CliOutput::captured(&capture);
        let mut list = output.begin_list();
        let mut read = 0;
        let failed = |what: &str| Diagnosis::new(Code::Io, what);
        let result: Result<()> = list.print_as_read(
            |found| {
                for one in 0..count {
                    read += 1;
                    if found(one)?.is_break() {
                        return Ok(());
                    }
                }
                if is_read { Ok(()) } else { Err(failed("reading")) }
            },
            |list, one: usize| match one < until {
                true => list.push(&one, String::new),
                false if fails => Err(failed("printing")),
                false => Ok(ControlFlow::Break(())),
            },
        );
        let error = result.err().map(|error| error.message().to_owned());
        list.end().expect("captured");
        (capture.take().0, read, error)
    }

    fn numbers(count: usize) -> String {
        let numbers: Vec<String> = (0..count).map(|one| one.to_string()).collect();
        format!("[{}]\n", numbers.join(",\n"))
    }

    #[test]
    fn a_list_is_printed_whole_and_in_order_however_long_it_is() {
        for count in [0, 1, BATCH - 1, BATCH, BATCH + 1, 20 * BATCH + 3] {
            assert_eq!(printed(count, true, usize::MAX, false), (numbers(count), count, None));
            // What was read before a failure is printed.
            assert_eq!(printed(count, false, usize::MAX, false), (numbers(count), count, Some("reading".to_owned())));
        }
    }

    #[test]
    fn reading_ends_soon_after_printing_did() {
        let many = 100 * BATCHES * BATCH;
        for fails in [false, true] {
            let (text, read, error) = printed(many, true, BATCH + 7, fails);
            assert_eq!(text, numbers(BATCH + 7));
            assert!(read < many, "all of it was read");
            assert_eq!(error.as_deref(), fails.then_some("printing"));
        }
    }
}
