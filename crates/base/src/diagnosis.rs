//! The one error type: a stable code, a sentence, what to do next, and facts for a script.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use serde_json::{Map, Value};

use crate::code::{Code, ErrorKind};
use crate::mask::mask;
use crate::text::shortened;

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Diagnosis>;

/// Why something was refused or failed, for the person or script that must act on it.
///
/// It is one pointer wide, because every fallible function returns it.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct Diagnosis(Box<Inner>);

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Inner {
    code: Code,
    message: String,
    hint: Option<String>,
    details: Map<String, Value>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// No sentence of ours is longer than this, in bytes; it can be when it repeats an argument.
const MAX_TEXT: usize = 4 * 1024;
/// A script gets a path whole, whatever its name: Linux allows 4,096 bytes.
const MAX_DETAIL: usize = 8 * 1024;

/// A text that stands in an error: masked, since it ends in logs, and cut where what it repeats is too long.
fn bounded(text: String, max_bytes: usize) -> String {
    // Masked before it is cut: half a token may no longer be recognised as one.
    let text = match mask(&text) {
        Cow::Owned(masked) => masked,
        Cow::Borrowed(_) => text,
    };
    match shortened(&text, max_bytes) {
        Cow::Owned(short) => short,
        Cow::Borrowed(_) => text,
    }
}

impl Diagnosis {
    /// A diagnosis with its code and a sentence that says what was asked and what is so.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = bounded(message.into(), MAX_TEXT);
        Self(Box::new(Inner { code, message, hint: None, details: Map::new(), source: None }))
    }

    /// Adds what to do next: a sentence or a command.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(bounded(hint.into(), MAX_TEXT));
        self
    }

    /// Adds a sentence about what was done although the call failed.
    #[must_use]
    pub fn but(mut self, done: &str) -> Self {
        self.0.message = bounded(format!("{} But {done}.", self.0.message), MAX_TEXT);
        self
    }

    /// Adds a fact under a stable key, for scripts; secrets in it are masked.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::String(text) => Value::String(bounded(text, MAX_DETAIL)),
            other => other,
        };
        self.0.details.insert(key.to_owned(), value);
        self
    }

    /// Keeps the error that led here.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The stable code that scripts match on; each has a page in `docs/errors/`.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What the code means to the caller.
    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind()
    }

    /// The sentence for the person who must act.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next, when there is something to say.
    pub fn get_hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Facts for scripts, by stable key.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }
}

impl fmt::Debug for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.message)?;
        if let Some(source) = &self.0.source {
            write!(f, " ({source})")?;
        }
        Ok(())
    }
}

/// Turns an I/O error into a diagnosis that says what was being done.
pub trait Diagnose<T> {
    /// `doing` completes "while ...": `"reading /x/.git"`. Full disks and missing rights get codes of their own.
    fn while_doing(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Diagnose<T> for std::io::Result<T> {
    fn while_doing(self, doing: impl FnOnce() -> String) -> Result<T> {
        use std::io::ErrorKind as E;
        self.map_err(|error| {
            let code = match error.kind() {
                // A quota that is used up and a full disk are the same to the person: space has to be freed.
                E::StorageFull | E::QuotaExceeded => Code::DiskFull,
                E::PermissionDenied | E::ReadOnlyFilesystem => Code::PermissionDenied,
                _ => Code::Io,
            };
            Diagnosis::new(code, format!("{}: {error}", doing())).caused_by(error)
        })
    }
}
