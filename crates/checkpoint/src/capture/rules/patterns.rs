//! The lines of a file with ignore rules, as git reads them: as bytes, the last line that matches decides.

use super::wildmatch::Wild;

/// The patterns of one file.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    is_negated: bool,
    only_directories: bool,
    /// It is compared with the last name of a path, because no slash stands within it.
    of_names: bool,
    /// What a match begins with, without wildcards.
    prefix: Vec<u8>,
    rest: Rest,
    fold: bool,
}

/// What stands behind the part without wildcards.
#[derive(Debug)]
enum Rest {
    Nothing,
    /// A star and this text: the path must end so.
    Ending(Vec<u8>),
    Wild(Wild),
}

/// Git's mark for a text in UTF-8. It stands before the first pattern, and is no part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Patterns {
    /// The patterns of a text; with `fold`, capital and small letters are equal (`core.ignoreCase`).
    pub(crate) fn parse(text: &[u8], fold: bool) -> Self {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !matches!(line.first(), None | Some(b'#')));
        Self(lines.filter_map(|line| Pattern::parse(pattern_in(line), fold)).collect())
    }

    /// Whether the file ignores a path; `None` if it says nothing. The path is from the directory of the file.
    pub(crate) fn verdict(&self, path: &[u8], is_directory: bool) -> Option<bool> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let decides = |pattern: &&Pattern| {
            (is_directory || !pattern.only_directories) && pattern.matches(if pattern.of_names { name } else { path })
        };
        self.0.iter().rev().find(decides).map(|pattern| !pattern.is_negated)
    }

    /// Whether a line is a pattern that can match nothing, because its wildcards are malformed.
    pub(super) fn is_malformed(line: &[u8]) -> bool {
        let patterns = Self::parse(line, false);
        patterns.0.iter().any(|pattern| matches!(&pattern.rest, Rest::Wild(wild) if wild.is_malformed()))
    }
}

/// The pattern on a line, which no byte 0 is part of: without the end of a line of Windows, and without spaces at its end but for an
/// escaped one. A tab is no space.
fn pattern_in(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.split(|byte| *byte == 0).next().unwrap_or(line);
    let mut end = 0;
    let mut bytes = line.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b' ' => {}
            b'\\' => end = bytes.next().map_or(line.len(), |(escaped, _)| escaped + 1),
            _ => end = at + 1,
        }
    }
    &line[..end]
}

impl Pattern {
    /// `None` if nothing can match it.
    fn parse(text: &[u8], fold: bool) -> Option<Self> {
        let (is_negated, text) = text.strip_prefix(b"!").map_or((false, text), |rest| (true, rest));
        let (only_directories, text) = text.strip_suffix(b"/").map_or((false, text), |rest| (true, rest));
        // This is asked before the first slash is cut off: `/foo` is a path and not a name, although no slash is left in it.
        let of_names = !text.contains(&b'/');
        let text = text.strip_prefix(b"/").unwrap_or(text);
        if text.is_empty() {
            return None;
        }
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let wild = text.iter().position(is_special).unwrap_or(text.len());
        // The part without wildcards is cut off first: `a**/b` then begins with stars, and git takes them for a whole name.
        let (prefix, rest) = text.split_at(wild);
        let rest = match rest {
            [] => Rest::Nothing,
            // `*.log`, the usual form, needs no matcher.
            [b'*', ending @ ..] if of_names && !ending.iter().any(is_special) => Rest::Ending(ending.to_vec()),
            rest => Rest::Wild(Wild::new(rest, !of_names, fold)),
        };
        Some(Self { is_negated, only_directories, of_names, prefix: prefix.to_vec(), rest, fold })
    }

    fn matches(&self, text: &[u8]) -> bool {
        let is_equal = |a: &[u8], b: &[u8]| if self.fold { a.eq_ignore_ascii_case(b) } else { a == b };
        let Some((start, rest)) = text.split_at_checked(self.prefix.len()) else { return false };
        is_equal(start, &self.prefix)
            && match &self.rest {
                Rest::Nothing => rest.is_empty(),
                Rest::Ending(ending) => {
                    rest.len() >= ending.len() && is_equal(&rest[rest.len() - ending.len()..], ending)
                }
                Rest::Wild(wild) => wild.matches(rest),
            }
    }
}
