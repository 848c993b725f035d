//! Bash also splits words at `=`, `:` and `@`, and replaces only the part behind the last of them. It quotes nothing by itself, and shows
//! a description only if the candidate contains it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::command_line::{QuoteRules, Typed, unquoted};
use super::{Candidate, candidates};
use crate::environment::CliEnvironment;

/// The elements of COMPREPLY, one a line.
///
/// `arguments`: `COMP_TYPE`, `COLUMNS`, what bash would replace, and the line up to the cursor.
pub(super) fn answer(arguments: &[OsString], environment: &CliEnvironment) -> Option<Vec<u8>> {
    let [kind, columns, replaced, line] = arguments else { return None };
    let typed = Typed::of(line.as_bytes(), QuoteRules::Posix);
    // The first word is the program.
    let words = typed.words.get(1..)?;
    let found = candidates(words, &typed.last, environment);
    let kept = kept(&typed, replaced);
    let mut replies: Vec<Vec<u8>> = found.iter().map(|c| quoted(c, kept, &typed)).collect();
    // Bash inserts a single candidate, and would insert a description with it.
    if replies.len() > 1 && is_list(kind) {
        // Without a usable COLUMNS, the usual width of a terminal.
        let columns = columns.to_str().and_then(|text| text.parse().ok()).filter(|n| *n > 0).unwrap_or(80);
        describe(&mut replies, &found, columns);
    }
    Some(replies.into_iter().flat_map(|reply| [reply, b"\n".to_vec()].concat()).collect())
}

/// How many bytes of the word stay on the line, before what bash replaces.
fn kept(typed: &Typed, replaced: &OsStr) -> usize {
    let head = typed.raw.strip_suffix(replaced.as_bytes()).unwrap_or_default();
    // Quotes do not count: a candidate has none, and is cut by its own bytes. One may still be open here.
    unquoted(head, QuoteRules::Posix).len()
}

/// What replaces the end of the word: quoted as the word was begun, else by backslashes.
fn quoted(candidate: &Candidate, kept: usize, typed: &Typed) -> Vec<u8> {
    let value = candidate.value.as_bytes();
    // Bash expands a tilde only if it is not quoted, so it stays outside of what is quoted below.
    let home: &[u8] = if typed.raw.starts_with(b"~/") && kept == 0 { b"~/" } else { b"" };
    let rest = value.get(kept..).unwrap_or_default();
    let rest = rest.strip_prefix(home).unwrap_or(rest);
    let mut reply = home.to_vec();
    for byte in rest {
        let needs_backslash = match typed.quote {
            Some(b'\'') => {
                if *byte == b'\'' {
                    // Ends the quotes, adds one quote, and begins them again.
                    reply.extend_from_slice(br"'\'");
                }
                false
            }
            Some(_) => matches!(byte, b'"' | b'\\' | b'$' | b'`'),
            // Bytes of characters beyond ASCII are never special.
            None => byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"-_.,/:=@+%^".contains(byte),
        };
        if needs_backslash {
            reply.push(b'\\');
        }
        reply.push(*byte);
    }
    reply
}

/// Whether bash lists the candidates this time, and inserts at most what they have in common.
fn is_list(kind: &OsStr) -> bool {
    // The codes of `?`, `!` and `@`.
    ["63", "33", "64"].iter().any(|code| kind == *code)
}

/// Adds the description to each candidate, in columns.
fn describe(replies: &mut [Vec<u8>], found: &[Candidate], columns: usize) {
    let width = |reply: &[u8]| String::from_utf8_lossy(reply).width();
    let widest = replies.iter().map(|reply| width(reply)).max().unwrap_or(0);
    for (reply, candidate) in replies.iter_mut().zip(found) {
        let padding = widest - width(reply) + 2;
        // Bash would break a longer line in the middle of a word.
        let about = fitting(&candidate.about, columns.saturating_sub(widest + 5));
        if !about.is_empty() {
            reply.extend(std::iter::repeat_n(b' ', padding));
            reply.extend_from_slice(format!("({about})").as_bytes());
        }
    }
}

/// The beginning of a text that fits into `columns` columns, with an ellipsis if it is cut.
fn fitting(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut cut = String::new();
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        cut.push(c);
    }
    if cut.is_empty() { cut } else { cut + "…" }
}
