//! Secrets in text that is written down: tokens of well-known shapes are cut down to what says their kind, visibly
//! (`ghp_…[masked]`), and so are the values of names that people give to secrets.
//!
//! Escapes of a terminal are ignored in the search: a program that colours its output splits a name or a value with them. They stay in
//! the text that is shown.
//!
//! The work is linear in the text, whatever it is, and takes a few hundred bytes of memory beside it: a token that comes in
//! pieces is found as if it came in one. What looks like no token of a known kind stays, so this saves from accidents and
//! proves nothing: `docs/SECURITY.md`.

mod engine;
mod escape;
mod option;
mod preceding_bytes;
mod shape;
#[cfg(test)]
mod tests;
mod token;
mod verdict;

use std::borrow::Cow;

use engine::Engine;
use escape::{EscapePart, Splitter};

/// What stands in place of the hidden part.
pub const MARK: &str = "…[masked]";

/// The text with the tokens in it masked; the text itself if there are none.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masker = Masker::new();
    let mut shown = masker.push(text.as_bytes()).to_vec();
    shown.extend_from_slice(masker.finish());
    if shown == text.as_bytes() {
        // Most texts hold no secret: no copy of them is kept.
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&shown).into_owned())
}

/// [`mask`] of a text that may be left out.
pub fn mask_optional(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(mask)
}

/// Masks a stream of bytes, which need be no text, piece by piece.
#[derive(Default)]
pub struct Masker {
    splitter: Splitter,
    engine: Engine,
}

impl Masker {
    /// A masker at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes, and returns what can be written by now.
    pub fn push<'m>(&'m mut self, bytes: &'m [u8]) -> &'m [u8] {
        self.engine.out.clear();
        // If no token can begin in this piece, and nothing of the last one waits, it is returned without a copy.
        if self.splitter.is_needed(bytes) {
            self.split(bytes, false);
        } else if self.engine.passes(bytes) {
            return bytes;
        } else {
            self.engine.push(bytes);
        }
        &self.engine.out
    }

    /// Returns the bytes that waited for a decision. To be called once, at the end of the stream.
    pub fn finish(&mut self) -> &[u8] {
        self.engine.out.clear();
        // The splitter finishes first: half an escape becomes text, and the engine judges that as well.
        self.split(b"", true);
        self.engine.finish();
        &self.engine.out
    }

    fn split(&mut self, bytes: &[u8], at_end: bool) {
        let engine = &mut self.engine;
        self.splitter.split(bytes, at_end, &mut |part| match part {
            EscapePart::Plain(bytes) => engine.push(bytes),
            EscapePart::Escape(bytes) => engine.escape(bytes),
            // The address of a link is text too.
            EscapePart::Text(bytes) => {
                // This text has an engine of its own: the text before the escape continues after the escape, as if it were not there.
                let mut inner = Engine::default();
                inner.push(bytes);
                inner.finish();
                engine.escape(&inner.out);
            }
        });
    }
}
