//! Captures the output of a command that runs in this process.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "mcp")]
use anstream::adapter::strip_str;

use crate::text::plain;

/// The output of a command that runs within a server: nothing of it reaches standard output or standard error.
#[derive(Clone, Default)]
pub(crate) struct Capture(Arc<Mutex<Captured>>);

#[derive(Default)]
struct Captured {
    json: Vec<u8>,
    text: String,
    notes: Vec<String>,
}

impl Capture {
    /// Returns and empties the output: the JSON, the text for people without colours, and the warnings.
    #[cfg(feature = "mcp")]
    pub(crate) fn take(&self) -> (String, String, Vec<String>) {
        let Captured { json, text, notes } = std::mem::take(&mut *self.held());
        // The views write styles into every text. Standard output removes them where it is not a terminal.
        // A capture has no such stream.
        (String::from_utf8_lossy(&json).into_owned(), strip_str(&text).to_string(), notes)
    }

    fn held(&self) -> MutexGuard<'_, Captured> {
        // The state that a panicked thread left can be used: no field depends on another.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the text for people, in place of an earlier one.
    pub(super) fn keep(&self, text: String) {
        self.held().text = text;
    }

    /// Adds a warning, as one plain line.
    pub(super) fn note(&self, message: &str) {
        self.held().notes.push(plain(message));
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held().json.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
