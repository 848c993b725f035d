//! Two contents compared line by line, in the form that `patch` and `git apply` read.

use std::io::{self, Write};
use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Hostile inputs get a coarser diff, still a right one.
const DEADLINE: Duration = Duration::from_millis(500);

/// A NUL in the first bytes makes a content binary, as for git.
const HEAD: usize = 8000;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
pub struct Side<'a> {
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
    let diff = compare(old, new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// Gives a patch of the file `path` to `line`, one line at a time, each with its newline.
pub fn unified(
    path: &[u8],
    old: Side<'_>,
    new: Side<'_>,
    line: &mut dyn FnMut(Kind, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (before, after) = (quoted(b"a/", path), quoted(b"b/", path));
    let mut header = |text: Vec<u8>| line(Kind::Header, &text);
    header([b"diff --git ", &before[..], b" ", &after, b"\n"].concat())?;
    match (old.content, new.content) {
        (None, Some(_)) => header(format!("new file mode {:o}\n", new.mode).into_bytes())?,
        (Some(_), None) => header(format!("deleted file mode {:o}\n", old.mode).into_bytes())?,
        _ if old.mode != new.mode => {
            header(format!("old mode {:o}\nnew mode {:o}\n", old.mode, new.mode).into_bytes())?;
        }
        _ => {}
    }
    let (from, to) = (old.content.unwrap_or_default(), new.content.unwrap_or_default());
    if from == to {
        return Ok(());
    }
    let name = |side: Side<'_>, name: &[u8]| {
        if side.content.is_some() { name.to_vec() } else { b"/dev/null".to_vec() }
    };
    let (before, after) = (name(old, &before), name(new, &after));
    if is_binary(from) || is_binary(to) {
        return header([b"Binary files ", &before[..], b" and ", &after, b" differ\n"].concat());
    }
    header([b"--- ", &before[..], b"\n+++ ", &after, b"\n"].concat())?;
    hunks(from, to, line)
}

fn compare<'t>(old: &'t [u8], new: &'t [u8]) -> TextDiff<'t, 't, [u8]> {
    TextDiff::configure().algorithm(Algorithm::Myers).timeout(DEADLINE).diff_lines(old, new)
}

fn hunks(old: &[u8], new: &[u8], line: &mut dyn FnMut(Kind, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let diff = compare(old, new);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        line(Kind::Header, format!("{}\n", hunk.header()).as_bytes())?;
        for change in hunk.iter_changes() {
            let (kind, sign) = match change.tag() {
                ChangeTag::Equal => (Kind::Context, b' '),
                ChangeTag::Insert => (Kind::Added, b'+'),
                ChangeTag::Delete => (Kind::Removed, b'-'),
            };
            let mut text = vec![sign];
            text.extend_from_slice(change.value());
            if !text.ends_with(b"\n") {
                text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
            line(kind, &text)?;
        }
    }
    Ok(())
}

/// A name as git writes it: quoted like a C string if it holds more than plain characters.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let name = [prefix, path].concat();
    if name.iter().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\')) {
        // A space at the end of a name could not be told from the line's own end.
        return if name.contains(&b' ') {
            [&name[..], b"\t"].concat().trim_ascii_end().to_vec()
        } else {
            name
        };
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::{Side, stat, unified};

    fn patch(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        let side = |content| Side { content, mode: 0o100_644 };
        unified(path, side(old), side(new), &mut |_, line| out.write_all(line)).unwrap();
        out
    }

    /// Applies a patch with git to a directory that holds `old`, and returns what it then holds.
    fn apply(name: &str, old: Option<&[u8]>, patch: &[u8]) -> Option<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        if let Some(old) = old {
            std::fs::write(&file, old).unwrap();
        }
        let mut git = Command::new("git")
            .args(["apply", "--whitespace=nowarn", "-"])
            .current_dir(dir.path())
            .env("GIT_CEILING_DIRECTORIES", "/")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        git.stdin.take().unwrap().write_all(patch).unwrap();
        assert!(git.wait().unwrap().success(), "{}", String::from_utf8_lossy(patch));
        std::fs::read(&file).ok()
    }

    #[test]
    fn git_applies_what_is_written() {
        type Content = Option<&'static [u8]>;
        let cases: [(Content, Content); 7] = [
            (Some(b"a\nb\nc\n"), Some(b"a\nB\nc\n")),
            (Some(b"a\nb"), Some(b"a\nb\n")),
            (Some(b"a\nb\n"), Some(b"a\nb")),
            (None, Some(b"new\n")),
            (Some(b"old\n"), None),
            (Some(b"a\r\nb\r\n"), Some(b"a\r\nc\r\n")),
            (Some(b"\xff\xfe one\n"), Some(b"\xff\xfe two\n")),
        ];
        for name in ["plain.txt", "a b.txt", "new\nline \"q\" \\.txt", "計劃.md"] {
            for (old, new) in cases {
                let patch = patch(name.as_bytes(), old, new);
                assert_eq!(apply(name, old, &patch).as_deref(), new, "{name} {old:?} {new:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn git_applies_patches_of_any_text(
            old in prop::collection::vec("[ab]{0,2}", 1..30),
            new in prop::collection::vec("[ab]{0,2}", 1..30),
        ) {
            let (old, new) = (old.join("\n"), new.join("\n"));
            prop_assume!(old != new && !old.is_empty() && !new.is_empty());
            let patch = patch(b"f", Some(old.as_bytes()), Some(new.as_bytes()));
            prop_assert_eq!(apply("f", Some(old.as_bytes()), &patch).unwrap(), new.as_bytes());
        }
    }

    #[test]
    fn binary_is_said_so() {
        let text = patch(b"logo.png", Some(b"a\0b"), Some(b"a\0c"));
        assert!(text.ends_with(b"Binary files a/logo.png and b/logo.png differ\n"));
    }

    #[test]
    fn hostile_contents_take_no_longer_than_they_may() {
        let lines = |step: usize| -> Vec<u8> {
            (0..200_000_usize)
                .flat_map(|i| format!("{}\n", i.wrapping_mul(step) % 1009).into_bytes())
                .collect()
        };
        let started = std::time::Instant::now();
        let (added, removed) = stat(&lines(7), &lines(11));
        assert!(added > 0 && removed > 0);
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }
}
