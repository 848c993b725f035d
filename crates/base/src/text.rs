//! Text that people and programs give: bounded, and free of what would break a terminal or a log.

use std::fmt;

use crate::code::Code;
use crate::diagnosis::{Diagnosis, Result};
use crate::mask::mask;

/// Checks free text: not blank, at most `max_bytes`, no control characters but newline and tab.
///
/// `what` names the value in the error (`"--goal"`). Errors: `invalid_value`.
pub fn check_text(what: &str, text: &str, max_bytes: usize) -> Result<()> {
    if text.trim().is_empty() {
        return Err(invalid(what, "must not be empty"));
    }
    if text.len() > max_bytes {
        return Err(invalid(what, &format!("is {} bytes long; at most {max_bytes} are allowed", text.len())));
    }
    match text.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t') {
        Some(c) => Err(invalid(what, &format!("contains the control character U+{:04X}", u32::from(c)))),
        None => Ok(()),
    }
}

fn invalid(what: &str, why: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{what} {why}.")).detail("value", what)
}

/// A short name on one line: a phase, an agent type, an artifact type, a cursor.
///
/// Any Unicode without control characters, not blank, no white space at its ends, at most 200 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

impl Label {
    /// The longest label, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 200;

    /// A checked label; `what` names the value in the error. Errors: `invalid_value`.
    pub fn parse(what: &str, text: &str) -> Result<Self> {
        check_text(what, text, Self::MAX_BYTES)?;
        if text.contains(['\n', '\t']) {
            return Err(invalid(what, "must stand on one line, without tabs"));
        }
        if text.trim() != text {
            return Err(invalid(what, "must not begin or end with white space"));
        }
        Ok(Self(text.to_owned()))
    }

    /// A label as it stands in the ledger, where only checked ones are written.
    pub fn from_ledger(text: String) -> Self {
        Self(text)
    }

    /// The text, as it was given to [`Label::parse`].
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a character would steer a terminal, or hide or reorder what stands around it: controls, and all of Unicode's format
/// characters that do so.
pub fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// A text of at most `max_bytes` unchanged; a longer one as its beginning, how much was left out, and its end.
///
/// An argument may have 130 kB and a file far more: a message that repeats it whole hides what it says.
pub(crate) fn shortened(text: &str, max_bytes: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max_bytes {
        return text.into();
    }
    // The end has the sentence's own words: what is allowed, what to do.
    let head = &text[..text.floor_char_boundary(max_bytes / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - max_bytes / 4)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head} [{left_out} bytes left out] {tail}").into()
}

/// The most characters of a title.
const LONGEST_TITLE: usize = 80;

/// What a prompt, a name or a command becomes where it is listed: masked, on one line of at most 80 characters, without what steers a
/// terminal or hides what stands around it. For people; never a path, and never matched against.
pub fn title(text: &str) -> String {
    // First what hides in a word and is not seen: it must not keep a secret from being recognised. The mask itself looks past escapes.
    let text: String = text.chars().filter(|c| !is_unsafe_to_show(*c) || c.is_control()).collect();
    let masked = mask(&text);
    let shown = masked.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let shown: String = shown.filter(|c| !is_unsafe_to_show(*c)).collect();
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_TITLE {
        return line;
    }
    let head: String = line.chars().take(LONGEST_TITLE - 1).collect();
    format!("{}…", head.trim_end())
}

/// A value as a shell takes it: in single quotes unless it is a plain word.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@');
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        // A quote ends the quoted text, stands outside of it with a backslash, and begins it again: `it'\''s`.
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_TITLE, Label, check_text, is_unsafe_to_show, shortened, title};

    #[test]
    fn a_title_is_one_short_line_that_shows_what_it_says() {
        assert_eq!(title("  add the\n\tlogin form \r\n"), "add the login form");
        assert_eq!(title("\u{1b}[31mred\u{202e}left\u{0}"), "[31mredleft");
        let long = title(&"wort ".repeat(100));
        assert!(long.chars().count() <= LONGEST_TITLE && long.ends_with('…'), "{long}");
        let secret = format!("push with ghp_{}", "a1B2c3D4e5F6".repeat(3));
        assert!(title(&secret).contains("[masked]"), "{}", title(&secret));
        for text in ["pass\u{200b}word=hunter2", "password=\u{1b}[1mhunter2\u{1b}[0m", "password=hun\u{ad}ter2"] {
            assert!(!title(text).contains("ter2"), "{}", title(text));
        }
        assert_eq!(title(&"é".repeat(LONGEST_TITLE)).chars().count(), LONGEST_TITLE);
    }

    #[test]
    fn what_steers_or_hides_is_not_shown() {
        let bad = "\u{0}\u{1b}\u{7f}\u{9b}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0041}";
        assert!(bad.chars().all(is_unsafe_to_show));
        assert!(!"a é 計 → 🙂".chars().any(is_unsafe_to_show));
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shortened("short", 10), "short");
        let long = format!("begin {} end", "é".repeat(100_000));
        let short = shortened(&long, 1000);
        assert!(short.len() < 1000 && short.starts_with("begin ") && short.ends_with(" end"), "{short}");
        assert!(short.contains("bytes left out"), "{short}");
    }

    #[test]
    fn labels_are_one_bounded_line() {
        for good in ["planned", "計劃", "a b", "x→y", "'; DROP TABLE runs; --"] {
            assert!(Label::parse("--phase", good).is_ok(), "{good}");
        }
        let long = "x".repeat(201);
        for bad in ["", " ", " a", "a\n", "a\tb", "a\u{1b}[31m", "a\u{7f}", &long] {
            assert!(Label::parse("--phase", bad).is_err(), "{bad:?}");
        }
        assert!(Label::parse("--phase", &"x".repeat(200)).is_ok());
    }

    #[test]
    fn text_may_have_lines() {
        assert!(check_text("--goal", "one\n\ttwo", 100).is_ok());
        assert!(check_text("--goal", "a\0b", 100).is_err());
        assert!(check_text("--goal", "abc", 2).is_err());
    }
}
