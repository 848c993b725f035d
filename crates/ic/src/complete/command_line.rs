//! Splits a line as typed into the words that a shell would make of it. Nothing is expanded, and nothing is run.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The quoting rules of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteRules {
    /// In single quotes, everything stands for itself.
    Posix,
    /// In single quotes, a backslash goes before a quote and a backslash.
    Fish,
}

/// The words before the cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    /// The words before the one at the cursor, without their quotes.
    pub(super) words: Vec<OsString>,
    /// The word at the cursor, without its quotes; empty after white space.
    pub(super) last: OsString,
    /// The word at the cursor exactly as it was typed.
    pub(super) raw: Vec<u8>,
    /// The quote that is still open at the cursor.
    pub(super) quote: Option<u8>,
}

impl Typed {
    /// The words of a line that ends at the cursor.
    pub(super) fn of(line: &[u8], rules: QuoteRules) -> Self {
        let mut typed = Self::default();
        let mut last = Vec::new();
        let mut bytes = line.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match typed.quote {
                None if byte.is_ascii_whitespace() => {
                    // What was typed decides: `''` is a word, though it is empty.
                    if !typed.raw.is_empty() {
                        typed.raw.clear();
                        typed.words.push(OsString::from_vec(std::mem::take(&mut last)));
                    }
                    continue;
                }
                None if matches!(byte, b'\'' | b'"') => typed.quote = Some(byte),
                Some(quote) if byte == quote => typed.quote = None,
                quote if byte == b'\\' && escapes(quote, bytes.peek().copied(), rules) => {
                    typed.raw.push(byte);
                    // At the cursor, a backslash escapes what is not typed yet.
                    let Some(next) = bytes.next() else { break };
                    last.push(next);
                    typed.raw.push(next);
                    continue;
                }
                _ => last.push(byte),
            }
            typed.raw.push(byte);
        }
        typed.last = OsString::from_vec(last);
        typed
    }
}

/// One word without its quotes.
pub(super) fn unquoted(word: &[u8], rules: QuoteRules) -> OsString {
    // An unquoted space does not end the word here: the caller has split the line already.
    let Typed { words, last, .. } = Typed::of(word, rules);
    if words.is_empty() { last } else { OsString::from_vec(word.to_vec()) }
}

/// Whether a backslash escapes what follows it, rather than standing for itself.
fn escapes(quote: Option<u8>, next: Option<u8>, rules: QuoteRules) -> bool {
    match (quote, rules) {
        (None, _) => true,
        (Some(b'\''), QuoteRules::Posix) => false,
        (Some(b'\''), QuoteRules::Fish) => matches!(next, Some(b'\'' | b'\\')),
        // In double quotes, only what is special there can be escaped.
        (Some(_), QuoteRules::Posix) => matches!(next, Some(b'"' | b'\\' | b'$' | b'`')),
        (Some(_), QuoteRules::Fish) => matches!(next, Some(b'"' | b'\\' | b'$')),
    }
}
