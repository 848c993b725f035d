//! The changed lines of two contents, side by side or below each other.

use std::io;
use std::time::Duration;

use ic_checkpoint::unified_diff::{DiffSide, LineKind, unified_within};
use maud::{Markup, html};

use crate::text::{EMPTY, PageLine, counted};

/// A line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffRow {
    pub(crate) kind: LineKind,
    /// Its number in the older content; `None` for an added line.
    pub(crate) old: Option<usize>,
    /// Its number in the newer content; `None` for a removed line.
    pub(crate) new: Option<usize>,
    pub(crate) text: String,
}

/// The changed lines of two contents, up to a limit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) rows: Vec<DiffRow>,
    /// Whether more lines follow.
    pub(crate) is_cut: bool,
}

/// The most characters of a line that are shown: a line may have a megabyte.
const LONGEST: usize = 600;

/// The time for a precise comparison; after it, the result is coarser and still right. Hostile contents can take very long.
const DEADLINE: Duration = Duration::from_millis(40);

/// Compares two contents, and returns at most `at_most` lines.
pub(crate) fn compared(old: &[u8], new: &[u8], at_most: usize) -> Lines {
    let mut lines = Lines::default();
    let (mut at_old, mut at_new) = (0, 0);
    let side = |content| DiffSide { content: Some(content), mode: 0 };
    let mut take = |kind: LineKind, text: &[u8]| -> io::Result<()> {
        if kind == LineKind::Header {
            // The lines before the first hunk name the file, which the page does elsewhere.
            let Some((from, to)) = beginnings(text) else { return Ok(()) };
            (at_old, at_new) = (from, to);
        }
        if lines.rows.len() >= at_most {
            lines.is_cut = true;
            // The error only stops the comparison.
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        let is_note = text.starts_with(b"\\");
        let (old, new) = match kind {
            LineKind::Header => (None, None),
            _ if is_note => (None, None),
            LineKind::Context => (Some(at_old), Some(at_new)),
            LineKind::Removed => (Some(at_old), None),
            LineKind::Added => (None, Some(at_new)),
        };
        // Numbers count on within a hunk, and its head sets them anew.
        at_old += usize::from(old.is_some());
        at_new += usize::from(new.is_some());
        let text = if kind == LineKind::Header { text } else { &text[usize::from(!is_note)..] };
        lines.rows.push(DiffRow { kind, old, new, text: shown(text) });
        Ok(())
    };
    // The only possible error is the one above.
    let _ = unified_within(DEADLINE, b"", (side(old), side(new)), &mut take);
    lines
}

/// A line as text: bytes that are not UTF-8 are marked, and a carriage return at its end is removed.
fn shown(text: &[u8]) -> String {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    // A file with Windows line ends would show a mark at every line.
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    // A character has at most four bytes, so this is enough of a long line.
    let whole = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    let mut line: String = whole.chars().take(LONGEST).collect();
    if text.len() > line.len() && whole.chars().count() > LONGEST {
        line.push_str(&format!(" … ({} bytes)", text.len()));
    }
    line
}

/// The first lines of a hunk on both sides, if this is its head, such as `@@ -3,4 +5,6 @@`.
fn beginnings(head: &[u8]) -> Option<(usize, usize)> {
    let head = std::str::from_utf8(head).ok()?.strip_prefix("@@ -")?;
    let (old, rest) = head.split_once(" +")?;
    let first = |part: &str| {
        let (at, count) = part.split_once(',').unwrap_or((part, "1"));
        let at: usize = at.parse().ok()?;
        // A side without lines is given by the line before it.
        Some(if count == "0" { at + 1 } else { at })
    };
    Some((first(old)?, first(rest.split(' ').next()?)?))
}

/// The lines below each other.
pub(crate) fn unified(lines: &Lines) -> Markup {
    html! {
        div.diff tabindex="0" role="region" aria-label="Changed lines" {
            table {
                tbody {
                    @for row in &lines.rows {
                        @if row.kind == LineKind::Header { tr.hunk { td colspan="3" { (PageLine(&row.text)) } } }
                        @else {
                            tr.(class(row.kind)) {
                                td.n { (number(row.old)) } td.n { (number(row.new)) }
                                td.text { span.sign aria-hidden="true" { (sign(row.kind)) } (PageLine(&row.text)) }
                            }
                        }
                    }
                }
            }
        }
        (cut(lines))
    }
}

/// The old lines beside the new ones.
pub(crate) fn side_by_side(lines: &Lines) -> Markup {
    html! {
        div.diff.split tabindex="0" role="region" aria-label="Changed lines, the older beside the newer" {
            table {
                tbody {
                    @for pair in pairs(&lines.rows) {
                        @match pair {
                            Pair::Hunk(row) => { tr.hunk { td colspan="4" { (PageLine(&row.text)) } } }
                            Pair::Sides(old, new) => { tr { (half(old, true)) (half(new, false)) } }
                        }
                    }
                }
            }
        }
        (cut(lines))
    }
}

fn cut(lines: &Lines) -> Markup {
    if lines.is_cut {
        html! { p.cut { "Cut after " (counted(lines.rows.len(), "line")) "." } }
    } else {
        EMPTY
    }
}

fn half(row: Option<&DiffRow>, is_old: bool) -> Markup {
    let Some(row) = row else { return html! { td.n.none {} td.text.none {} } };
    let at = if is_old { row.old } else { row.new };
    html! {
        td.n.(class(row.kind)) { (number(at)) }
        td.text.(class(row.kind)) { (PageLine(&row.text)) }
    }
}

enum Pair<'r> {
    Hunk(&'r DiffRow),
    Sides(Option<&'r DiffRow>, Option<&'r DiffRow>),
}

/// Pairs removed lines with the lines that were added in their place.
fn pairs(rows: &[DiffRow]) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let length = |kind: LineKind, rows: &[DiffRow]| rows.iter().take_while(|row| row.kind == kind).count();
        match first.kind {
            LineKind::Header => {
                pairs.push(Pair::Hunk(first));
                rest = &rest[1..];
            }
            LineKind::Context => {
                pairs.push(Pair::Sides(Some(first), Some(first)));
                rest = &rest[1..];
            }
            // A unified diff lists the removed lines of a change before the added ones, so the two can be paired by number.
            LineKind::Removed | LineKind::Added => {
                let removed = length(LineKind::Removed, rest);
                let added = length(LineKind::Added, &rest[removed..]);
                let (old, new) = (&rest[..removed], &rest[removed..removed + added]);
                pairs.extend((0..removed.max(added)).map(|at| Pair::Sides(old.get(at), new.get(at))));
                rest = &rest[removed + added..];
            }
        }
    }
    pairs
}

fn number(at: Option<usize>) -> Markup {
    html! { @if let Some(at) = at { (at) } }
}

fn class(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Header => "hunk",
        LineKind::Context => "same",
        LineKind::Added => "added",
        LineKind::Removed => "removed",
    }
}

fn sign(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Added => "+",
        LineKind::Removed => "−",
        LineKind::Header | LineKind::Context => " ",
    }
}

#[cfg(test)]
mod tests {
    use ic_checkpoint::unified_diff::LineKind;

    use super::{LONGEST, Pair, compared, pairs};

    #[test]
    fn lines_have_the_numbers_that_they_have_in_their_files() {
        let lines = compared(b"a\nb\nc\nd\n", b"a\nB\nc\nd\ne\n", 100);
        let shown: Vec<(Option<usize>, Option<usize>, &str)> = lines
            .rows
            .iter()
            .filter(|row| row.kind != LineKind::Header)
            .map(|row| (row.old, row.new, row.text.as_str()))
            .collect();
        let expected = [
            (Some(1), Some(1), "a"),
            (Some(2), None, "b"),
            (None, Some(2), "B"),
            (Some(3), Some(3), "c"),
            (Some(4), Some(4), "d"),
            (None, Some(5), "e"),
        ];
        assert_eq!(shown, expected);
        assert!(!lines.is_cut);
    }

    #[test]
    fn a_new_file_begins_at_its_first_line() {
        let lines = compared(b"", b"x\ny\n", 100);
        assert_eq!(lines.rows.iter().filter_map(|row| row.new).collect::<Vec<_>>(), [1, 2]);
        assert!(compared(b"same\n", b"same\n", 100).rows.is_empty());
    }

    #[test]
    fn what_is_cut_is_said_and_long_lines_are_short() {
        let many: Vec<u8> = (0..500).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let lines = compared(b"", &many, 20);
        assert!(lines.is_cut && lines.rows.len() == 20);
        let long = compared(b"", &vec![b'x'; 1 << 20], 20);
        assert!(long.rows.iter().all(|row| row.text.len() < LONGEST + 40), "{:?}", long.rows.len());
        assert!(long.rows.iter().any(|row| row.text.contains("1048576 bytes")));
    }

    #[test]
    fn what_was_removed_stands_beside_what_came_in_its_place() {
        let lines = compared(b"a\nb\nz\n", b"1\nz\n", 100);
        let sides: Vec<(Option<&str>, Option<&str>)> = pairs(&lines.rows)
            .into_iter()
            .filter_map(|pair| match pair {
                Pair::Sides(old, new) => Some((old.map(|row| row.text.as_str()), new.map(|row| row.text.as_str()))),
                Pair::Hunk(_) => None,
            })
            .collect();
        assert_eq!(sides, [(Some("a"), Some("1")), (Some("b"), None), (Some("z"), Some("z"))]);
    }
}
