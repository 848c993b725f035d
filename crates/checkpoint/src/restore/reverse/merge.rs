//! The merge of two texts where both changed the same or neighbouring lines: one side decides about each such region, and everything outside
//! of them is merged as usual.

use std::collections::BTreeSet;

use diffy::{ConflictStyle, MergeOptions};

use crate::unified_diff::{merged_by_lines, removed_lines};

/// The largest text that is merged, in bytes: a merge is made in memory, and larger files are rarely written by hand.
pub const MOST_MERGED: u64 = 1 << 20;

/// What becomes of a region that both sides of a merge changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeSide {
    /// What stands there now.
    Ours,
    /// What the merge brings.
    Theirs,
    /// As `Ours`, with the other side's changes of neighbouring lines.
    OursByLines,
    /// As `Theirs`, with the other side's changes of neighbouring lines.
    TheirsByLines,
}

/// Two texts merged, and what our side has in each region that both had changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MergedText {
    pub(super) text: String,
    pub(super) regions: Vec<String>,
}

/// Merges two texts that were made of `base`. Regions that both changed are those of `side`.
pub(super) fn merge_taking(side: MergeSide, base: &str, ours: &str, theirs: &str) -> MergedText {
    // No text has a run of this length, so whatever looks like a marker is one.
    let length = [base, ours, theirs].into_iter().map(longest_run).max().unwrap_or_default().max(6) + 1;
    let mut options = MergeOptions::new();
    options.set_conflict_marker_length(length).set_conflict_style(ConflictStyle::Diff3);
    let marked = match options.merge(base, ours, theirs) {
        Ok(text) => return MergedText { text, regions: Vec::new() },
        Err(marked) => marked,
    };
    let line_of = |sign: &str, name: &str| format!("{}{name}\n", sign.repeat(length));
    let [begin, was, middle, end] =
        [line_of("<", " ours"), line_of("|", " original"), line_of("=", ""), line_of(">", " theirs")];
    let (mut text, mut regions, mut rest) = (String::with_capacity(ours.len()), Vec::new(), marked.as_str());
    // Each marker ends with its name, so it is found at its end where a last line without a newline stands right before it.
    while let Some((before, region)) = rest.split_once(&begin) {
        // Each region has all four markers, so the defaults are never used.
        let (of_ours, region) = region.split_once(&was).unwrap_or((region, ""));
        let (of_base, region) = region.split_once(&middle).unwrap_or((region, ""));
        let (of_theirs, after) = region.split_once(&end).unwrap_or((region, ""));
        text.push_str(before);
        text.push_str(&match side {
            MergeSide::Ours => of_ours.to_owned(),
            MergeSide::Theirs => of_theirs.to_owned(),
            MergeSide::OursByLines => merged_by_lines(of_base, of_ours, of_theirs),
            MergeSide::TheirsByLines => merged_by_lines(of_base, of_theirs, of_ours),
        });
        regions.push(of_ours.to_owned());
        rest = after;
    }
    text.push_str(rest);
    MergedText { text, regions }
}

/// Whether a text has the change from one text to another. Without a file: whether the change left none. `None`: it cannot be told, because
/// the text has a change of its own in the same lines, or is none that can be merged.
pub fn has_change(text: Option<&[u8]>, (before, after): (Option<&[u8]>, Option<&[u8]>)) -> Option<bool> {
    let (Some(text), Some(after)) = (text, after) else { return Some(text.is_none() == after.is_none()) };
    if text == after || Some(text) == before {
        return Some(text == after);
    }
    // Without the change it would be another text.
    merged(after, text, before.unwrap_or_default()).map(|without| without != text)
}

/// Two texts that were made of `base`, merged; `None`: they changed the same lines, or it is no text that can be merged.
pub fn merged(base: &[u8], one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let is_small = base.len().max(one.len()).max(other.len()) as u64 <= MOST_MERGED;
    match [base, one, other].map(std::str::from_utf8) {
        [Ok(base), Ok(one), Ok(other)] if is_small => diffy::merge(base, one, other).ok().map(String::into_bytes),
        _ => None,
    }
}

/// The length of the longest run of a character that markers are made of.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, b'\n');
    for byte in text.bytes() {
        run = if byte == last { run + 1 } else { 1 };
        last = byte;
        if matches!(byte, b'<' | b'|' | b'=' | b'>') {
            longest = longest.max(run);
        }
    }
    longest
}

/// The lines of `now` that one result removes and the other one keeps, as people count them: `3-4, 9`. Empty if there are none.
pub(super) fn lines_between(now: &str, removed: &str, kept: &str) -> String {
    let leave_anyway = removed_lines(now.as_bytes(), kept.as_bytes());
    let go = removed_lines(now.as_bytes(), removed.as_bytes());
    let go: BTreeSet<usize> = go.difference(&leave_anyway).map(|at| at + 1).collect();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for line in go {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => runs.push((line, line)),
        }
    }
    let shown =
        runs.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{MergeSide, has_change, lines_between, merge_taking};

    fn merged(side: MergeSide, base: &str, ours: &str, theirs: &str) -> String {
        merge_taking(side, base, ours, theirs).text
    }

    const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";

    #[test]
    fn regions_of_both_are_of_one_side_and_the_rest_of_both() {
        let ours = "ONE\ntwo\nthree\nFOUR\nfive\nsix\n";
        let theirs = "one\ntwo\nthree\n4\nfive\nSIX\n";
        assert_eq!(merged(MergeSide::Ours, BASE, ours, theirs), "ONE\ntwo\nthree\nFOUR\nfive\nSIX\n");
        assert_eq!(merged(MergeSide::Theirs, BASE, ours, theirs), "ONE\ntwo\nthree\n4\nfive\nSIX\n");
        assert_eq!(merge_taking(MergeSide::Ours, BASE, ours, theirs).regions, ["FOUR\n"]);
    }

    #[test]
    fn neighbouring_lines_of_the_other_side_stay_and_the_same_lines_do_not() {
        let ours = "one\nTWO\nthree\nfour\nfive\nsix\n";
        let by_lines = |theirs: &str| merged(MergeSide::OursByLines, BASE, ours, theirs);
        for two in ["two", "2"] {
            let theirs = format!("one\n{two}\n3\nfour\nfive\nsix\n");
            assert_eq!(by_lines(&theirs), "one\nTWO\n3\nfour\nfive\nsix\n");
        }
        // What was added right below lines that go stays.
        let added = format!("{BASE}of others");
        assert_eq!(merged(MergeSide::TheirsByLines, BASE, &added, "one\ntwo\nthree\n"), "one\ntwo\nthree\nof others");
        let open = "one\ntwo\nthree\nfour\nfive\nsix";
        assert_eq!(merged(MergeSide::OursByLines, BASE, open, &added), format!("{BASE}of others"));
    }

    #[test]
    fn change_is_found_beside_others_and_not_where_it_was_reverted() {
        let has = |text: Option<&str>, before: Option<&str>, after: Option<&str>| {
            has_change(text.map(str::as_bytes), (before.map(str::as_bytes), after.map(str::as_bytes))).unwrap_or(true)
        };
        let after = BASE.replace("two", "2");
        for (text, expected) in
            [(BASE, false), (&after, true), (&BASE.replace("six", "6"), false), (&after.replace("six", "6"), true)]
        {
            assert_eq!(has(Some(text), Some(BASE), Some(&after)), expected, "{text}");
        }
        assert!(has(Some("new\n"), None, Some("new\n")) && !has(None, None, Some("new\n")));
        assert!(has(None, Some(BASE), None) && !has(Some(BASE), Some(BASE), None));
    }

    #[test]
    fn lines_that_look_like_markers_are_text() {
        let base = "<<<<<<< ours\n=======\n>>>>>>> theirs\nx\n========\n";
        let (ours, theirs) = (base.replace('x', "<<<<<<<<"), base.replace('x', "========="));
        assert_eq!(merged(MergeSide::Ours, base, &ours, &theirs), ours);
        assert_eq!(merged(MergeSide::Theirs, base, &ours, &theirs), theirs);
    }

    #[test]
    fn a_last_line_without_a_newline_stays_without_one() {
        for (ours, theirs) in [("a\nb=", "a\nc="), ("a\nb", "a\nc\n"), ("a\n<", "a\n>"), ("", "a\nc")] {
            assert_eq!(merged(MergeSide::Ours, "a\nx", ours, theirs), ours);
            assert_eq!(merged(MergeSide::Theirs, "a\nx", ours, theirs), theirs);
        }
    }

    #[test]
    fn lines_that_go_are_counted_from_one() {
        assert_eq!(lines_between("a\nB\nC\nd\nE\n", "a\nb\nc\nd\ne\n", "a\nB\nC\nd\ne\n"), "2-3");
        assert_eq!(lines_between("a\nB\nC\nd\nE\n", "a\nb\nC\nd\ne\n", "a\nB\nC\nd\nE\n"), "2, 5");
        assert_eq!(lines_between("a\n", "a\nb\n", "a\n"), "");
    }
}
