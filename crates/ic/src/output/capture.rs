//! What a command says to who runs it in this process.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "mcp")]
use anstream::adapter::strip_str;

use crate::text::plain;

/// What a command says where it is no process of its own: nothing of it reaches standard output or standard error.
#[derive(Clone, Default)]
pub(crate) struct Capture(Arc<Mutex<Captured>>);

#[derive(Default)]
struct Captured {
    json: Vec<u8>,
    text: String,
    notes: Vec<String>,
}

impl Capture {
    /// What was said: the JSON, the same for people without colours, and the notes beside it.
    #[cfg(feature = "mcp")]
    pub(crate) fn take(&self) -> (String, String, Vec<String>) {
        let Captured { json, text, notes } = std::mem::take(&mut *self.held());
        (String::from_utf8_lossy(&json).into_owned(), strip_str(&text).to_string(), notes)
    }

    fn held(&self) -> MutexGuard<'_, Captured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for people.
    pub(super) fn keep(&self, text: String) {
        self.held().text = text;
    }

    /// A word beside it.
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
