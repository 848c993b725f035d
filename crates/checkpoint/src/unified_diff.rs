//! Two contents compared line by line, in the form that `patch` and `git apply` read.
//!
//! Only a newline ends a line, as for those programs: a carriage return is content, before a newline or alone.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// Hostile inputs get a coarser diff, still a right one.
const DEADLINE: Duration = Duration::from_millis(500);

/// More lines than this, of both sides together, are not searched for what they have in common: numbering them alone
/// takes longer than the deadline, which does not cover it.
const MOST_LINES: usize = 2 << 20;

/// The mode that git gives a file of which it knows none.
const PLAIN: u32 = 0o100_644;

/// Lines around a change.
const CONTEXT: usize = 3;

/// A NUL in the first bytes makes a content binary, as for git.
const HEAD: usize = 8000;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Where a hunk begins, or what the patch is about.
    Header,
    /// The same on both sides.
    Context,
    /// Only in the newer.
    Added,
    /// Only in the older.
    Removed,
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffSide<'a> {
    /// The content; `None`: there is none.
    pub content: Option<&'a [u8]>,
    /// Permission bits, and whether it is a link.
    pub mode: u32,
}

/// Whether a content is not text.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(HEAD)].contains(&0)
}

/// How many lines were added and removed.
pub fn stat(old: &[u8], new: &[u8]) -> (usize, usize) {
    let changed = compare(&lines(old), &lines(new), DEADLINE).into_iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len()))
}

/// The lines of `old`, counted from zero, that are not in `new`.
pub(crate) fn removed_lines(old: &[u8], new: &[u8]) -> BTreeSet<usize> {
    let changed = compare(&lines(old), &lines(new), DEADLINE).into_iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.flat_map(|op| op.old_range()).collect()
}

/// The changes from `base` to `own`, and those to `others` of lines that `own` has not changed.
pub(crate) fn merged_by_lines(base: &str, own: &str, others: &str) -> String {
    let [base, own, others] = [base, own, others].map(|text| lines(text.as_bytes()));
    let (of_own, of_others) = (changes(&base, &own), changes(&base, &others));
    let meets = |(one, other): (&Range<usize>, &Range<usize>)| one.start < other.end && other.start < one.end;
    // An insertion between lines meets none of them.
    let is_apart = |old: &Range<usize>| old.is_empty() || !of_own.iter().any(|(own, _)| meets((own, old)));
    let apart = of_others.into_iter().filter(|(old, _)| is_apart(old)).map(|(old, new)| (old, &others[new]));
    let mut all: Vec<_> = of_own.iter().map(|(old, new)| (old.clone(), &own[new.clone()])).chain(apart).collect();
    all.sort_by_key(|(range, _)| range.start);
    let (mut merged, mut at) = (Vec::new(), 0);
    for (range, new) in all {
        merged.extend(base.get(at..range.start).unwrap_or_default().iter().chain(new).copied());
        at = at.max(range.end);
    }
    merged.extend(&base[at..]);
    // The last line of a text may have no newline, and need not be the last one of the merge.
    let mut text = String::new();
    for line in merged {
        let is_open = !text.is_empty() && !text.ends_with('\n');
        text.push_str(if is_open { "\n" } else { "" });
        text.push_str(&String::from_utf8_lossy(line));
    }
    text
}

/// Gives a patch of the file `path` to `line`, one line at a time, each with its newline.
///
/// That a last line has no newline is said by a line of its own, of that line's kind. Errors: those of `line`.
pub fn unified(
    path: &[u8],
    old: DiffSide<'_>,
    new: DiffSide<'_>,
    line: &mut dyn FnMut(LineKind, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    unified_within(DEADLINE, path, (old, new), line)
}

/// As [`unified`], coarser where that would take longer than `deadline`.
pub fn unified_within(
    deadline: Duration,
    path: &[u8],
    (old, new): (DiffSide<'_>, DiffSide<'_>),
    line: &mut dyn FnMut(LineKind, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (from, to) = (old.content.unwrap_or_default(), new.content.unwrap_or_default());
    // Where no `---` and `+++` follow, `patch` has the names from the first line alone, and cannot part them at spaces.
    let plain: &[u8] = if from == to { b"" } else { b" " };
    let (before, after) = (quoted(b"a/", path, plain), quoted(b"b/", path, plain));
    let mut header = |text: &[&[u8]]| line(LineKind::Header, &text.concat());
    let mode = |text: &str, side: DiffSide<'_>| format!("{text} mode {:o}\n", side.mode).into_bytes();
    header(&[b"diff --git ", &before, b" ", &after, b"\n"])?;
    match (old.content, new.content) {
        (None, Some(_)) => header(&[&mode("new file", new)])?,
        (Some(_), None) => {
            header(&[&mode("deleted file", old)])?;
            // git 2.44 to 2.49 makes a plain file of what `apply -R` brings back, unless the new side has a mode as well.
            if old.mode != PLAIN {
                header(&[&mode("new", old)])?;
            }
        }
        _ if old.mode != new.mode => {
            header(&[&mode("old", old)])?;
            header(&[&mode("new", new)])?;
        }
        _ => {}
    }
    if from == to {
        // `patch` removes an empty file only if it is told that this is what git calls one.
        return match (old.content, new.content) {
            (None, Some(_)) => header(&[b"index 0000000..e69de29\n"]),
            (Some(_), None) => header(&[b"index e69de29..0000000\n"]),
            _ => Ok(()),
        };
    }
    let name = |side: DiffSide<'_>, name: &[u8]| {
        if side.content.is_some() { name.to_vec() } else { b"/dev/null".to_vec() }
    };
    let (before, after) = (name(old, &before), name(new, &after));
    if is_binary(from) || is_binary(to) {
        // Without a header of this kind git takes the names of the next file for this one's, and calls the patch corrupt. Zeros stand
        // for hashes that are not known, as in git's raw format: <https://git-scm.com/docs/diff-format>.
        header(&[b"index 0000000..0000000\n"])?;
        return header(&[b"Binary files ", &before, b" and ", &after, b" differ\n"]);
    }
    header(&[b"--- ", &before, name_end(&before), b"\n"])?;
    header(&[b"+++ ", &after, name_end(&after), b"\n"])?;
    let (from, to) = (lines(from), lines(to));
    hunks(compare(&from, &to, deadline), (&from, &to), line)
}

/// Where two texts differ, as lines of the one and of the other. Of as many lines as before, each is a change of its own.
fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<(Range<usize>, Range<usize>)> {
    let changed = compare(old, new, DEADLINE).into_iter().filter(|op| op.tag() != DiffTag::Equal);
    let parts = |op: DiffOp| {
        let (old, new) = (op.old_range(), op.new_range());
        if old.len() != new.len() {
            return vec![(old, new)];
        }
        old.zip(new).map(|(old, new)| (old..old + 1, new..new + 1)).collect()
    };
    changed.flat_map(parts).collect()
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|b| *b == b'\n').collect()
}

/// What is equal, removed and added, in order, in whole lines.
fn compare(old: &[&[u8]], new: &[&[u8]], deadline: Duration) -> Vec<DiffOp> {
    if old.len() + new.len() <= MOST_LINES {
        return capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(Instant::now() + deadline));
    }
    // These are too many lines to search: the common beginning and end are equal, and all between is one replacement.
    let common = |(a, b): &(&&[u8], &&[u8])| a == b;
    let head = old.iter().zip(new).take_while(common).count();
    // The tail is looked for in what is left: no line may count for both ends.
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(common).count();
    let (old_len, new_len) = (old_rest.len() - tail, new_rest.len() - tail);
    let equal = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    let ops = [
        equal(0, 0, head),
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        equal(head + old_len, head + new_len, tail),
    ];
    // Two texts with another first or last line have no head or tail: an operation without lines is left out.
    ops.into_iter().filter(|op| !(op.old_range().is_empty() && op.new_range().is_empty())).collect()
}

fn hunks(
    ops: Vec<DiffOp>,
    (old, new): (&[&[u8]], &[&[u8]]),
    line: &mut dyn FnMut(LineKind, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    for ops in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else { continue };
        let from = first.old_range().start..last.old_range().end;
        let to = first.new_range().start..last.new_range().end;
        line(LineKind::Header, format!("@@ -{} +{} @@\n", place(&from), place(&to)).as_bytes())?;
        for op in ops {
            if op.tag() == DiffTag::Equal {
                side(LineKind::Context, b' ', &old[op.old_range()], line)?;
            } else {
                side(LineKind::Removed, b'-', &old[op.old_range()], line)?;
                side(LineKind::Added, b'+', &new[op.new_range()], line)?;
            }
        }
    }
    Ok(())
}

fn side(
    kind: LineKind,
    sign: u8,
    lines: &[&[u8]],
    line: &mut dyn FnMut(LineKind, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut text = Vec::new();
    for content in lines {
        text.clear();
        text.push(sign);
        text.extend_from_slice(content);
        let is_ended = content.ends_with(b"\n");
        if !is_ended {
            text.push(b'\n');
        }
        line(kind, &text)?;
        if !is_ended {
            line(kind, b"\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

/// Where a hunk lies: its first line and how many there are; where there are none, the line before it.
fn place(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

/// A name as git writes it: quoted like a C string if it holds more than printable ASCII; and, which git does not do, if
/// it ends with a space, which `patch` would take for the end of the line, or holds one where `plain` is without.
fn quoted(prefix: &[u8], path: &[u8], plain: &[u8]) -> Vec<u8> {
    let name = [prefix, path].concat();
    let is_plain = |b: &u8| plain.contains(b) || (matches!(b, b'!'..=b'~') && !matches!(b, b'"' | b'\\'));
    if name.iter().all(is_plain) && !name.ends_with(b" ") {
        return name;
    }
    let mut out = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b' '..=b'~' => out.push(byte),
            _ => {
                // Writing into memory does not fail.
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push(b'"');
    out
}

/// What follows a name after `---` and `+++`: without the tab, `patch` reads a name only up to its first space.
fn name_end(name: &[u8]) -> &'static [u8] {
    if name.contains(&b' ') && !name.starts_with(b"\"") { b"\t" } else { b"" }
}

#[cfg(test)]
mod tests;
