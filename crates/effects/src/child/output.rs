//! What a command writes: read as it comes, masked, never waited for beyond the command's end.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::mask::Masker;
use ic_base::{Code, Diagnose, Diagnosis, Result};
use rustix::fs::{OFlags, fcntl_setfl};

use super::log::CommandLog;

// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;
/// The number of bytes of the end that are kept in memory.
const TAIL: usize = 4096;
/// How long processes that the command left may still write after its end.
const DRAIN: Duration = Duration::from_millis(200);
/// The number of bytes that are read after the end, if they are there: what the command wrote fits in its pipe, and this is the largest
/// pipe that a user may make.
const LARGEST_PIPE: u64 = 1024 * 1024;
// The pause between two reads of an empty pipe: short while output flows, so that it is shown at once, longer in silence.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// What a command wrote to its pipe.
pub(super) struct WrittenOutput {
    /// The number of bytes, before they were masked.
    pub(super) bytes: u64,
    /// The last 4 KiB, masked.
    pub(super) tail: Vec<u8>,
    /// Why it was not passed on; `None`: it was, or its reader had seen enough.
    pub(super) lost: Option<Diagnosis>,
}

/// A pipe whose reader never waits. Its writers do, as in every pipe.
pub(super) fn pipe() -> Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = std::io::pipe().while_doing(|| "making a pipe".to_owned())?;
    // The flag belongs to this end alone. The two ends are two open files, so a write of the command still waits.
    fcntl_setfl(&reader, OFlags::NONBLOCK)
        .map_err(|error| Diagnosis::new(Code::Io, format!("setting up a pipe: {error}")).caused_by(error))?;
    Ok((reader, writer))
}

/// Copies all output to the log and to `live`, until every writer closed the pipe, or a little after the command is `over`. Tokens are
/// masked before any of it is written or shown; a part that may be the beginning of a token is kept until more comes.
///
/// The thread that sets `over` unparks this one.
pub(super) fn copy(
    reader: PipeReader,
    log: &mut CommandLog,
    live: &mut (dyn FnMut(&[u8]) + Send),
    over: &OnceLock<Instant>,
) -> WrittenOutput {
    written(
        reader,
        over,
        |_| Ok(()),
        |masked| {
            log.append(masked);
            live(masked);
        },
    )
}

/// As [`copy`], of one of the command's two streams: the caller's own stream gets every byte unchanged, the log both streams as they come.
/// When the caller's stream is closed, the command finds its own closed.
pub(super) fn relay(
    reader: PipeReader,
    log: &Mutex<CommandLog>,
    to: &mut (dyn Write + Send),
    over: &OnceLock<Instant>,
) -> WrittenOutput {
    let pass = |bytes: &[u8]| to.write_all(bytes).and_then(|()| to.flush());
    // The other reader may have panicked with the lock. The caller meets that panic when it joins the thread.
    written(reader, over, pass, |masked| log.lock().unwrap_or_else(PoisonError::into_inner).append(masked))
}

/// Reads all output. `pass` gets every byte unchanged, until it fails; `keep` gets it masked.
fn written(
    reader: PipeReader,
    over: &OnceLock<Instant>,
    mut pass: impl FnMut(&[u8]) -> io::Result<()>,
    mut keep: impl FnMut(&[u8]),
) -> WrittenOutput {
    let mut written = WrittenOutput::new();
    let mut masker = Masker::new();
    let mut tell = |written: &mut WrittenOutput, masked: &[u8]| {
        if !masked.is_empty() {
            keep(masked);
            written.add(masked);
        }
    };
    read_all(reader, over, |bytes| {
        written.bytes += bytes.len() as u64;
        tell(&mut written, masker.push(bytes));
        let passed = pass(bytes);
        let is_whole = passed.is_ok();
        // A reader that left has seen enough.
        if passed.as_ref().is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
            written.lost = passed.while_doing(|| "passing on the command's output".to_owned()).err();
        }
        is_whole
    });
    tell(&mut written, masker.finish());
    written.cut();
    written
}

/// Reads until every writer closed the pipe, `take` wants no more, or a little after the command is `over`.
fn read_all(mut reader: PipeReader, over: &OnceLock<Instant>, mut take: impl FnMut(&[u8]) -> bool) {
    let mut chunk = vec![0; CHUNK];
    let mut late = 0;
    let mut pause = FIRST_PAUSE;
    loop {
        // This is asked before the read: what is in the pipe when the time ends is still taken.
        let drained = over.get().is_some_and(|over| over.elapsed() >= DRAIN);
        match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                if !take(&chunk[..count]) {
                    break;
                }
                if over.get().is_some() {
                    late += count as u64;
                }
                // What the command wrote fits in its pipe. More comes from a process that it left, which may never end.
                if drained && late >= LARGEST_PIPE {
                    break;
                }
                pause = FIRST_PAUSE;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && !drained => {
                thread::park_timeout(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The pipe is empty and the time is over, or it cannot be read any more.
            Err(_) => break,
        }
    }
}

impl WrittenOutput {
    fn new() -> Self {
        Self { bytes: 0, tail: Vec::with_capacity(2 * TAIL), lost: None }
    }

    fn add(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL)..];
        // It is not cut at each piece: to drop a few bytes from the front, all the others are moved.
        if self.tail.len() + last.len() > 2 * TAIL {
            self.cut();
        }
        self.tail.extend_from_slice(last);
    }

    fn cut(&mut self) {
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }
}
