mod large;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use proptest::prelude::*;

use super::{DiffSide, LineKind, stat, unified};

type Content = Option<&'static [u8]>;

/// The programs that must read what is written here.
#[derive(Debug, Clone, Copy)]
enum Program {
    GitApply,
    Patch,
}

const PROGRAMS: [Program; 2] = [Program::GitApply, Program::Patch];

fn lines(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<(LineKind, Vec<u8>)> {
    let mut out = Vec::new();
    let side = |content| DiffSide { content, mode: 0o100_644 };
    unified(path, side(old), side(new), &mut |kind, line| {
        out.push((kind, line.to_vec()));
        Ok(())
    })
    .unwrap();
    out
}

fn patch(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<u8> {
    lines(path, old, new).into_iter().flat_map(|(_, line)| line).collect()
}

fn run(program: Program, directory: &Path, patch: &[u8]) -> Output {
    let mut command = match program {
        Program::GitApply => {
            let mut git = Command::new("git");
            git.args(["apply", "--whitespace=nowarn", "-"]);
            git
        }
        Program::Patch => {
            let mut gnu = Command::new("patch");
            // `--binary`: carriage returns are content.
            gnu.args(["--binary", "--batch", "--no-backup-if-mismatch", "-p1"]);
            gnu
        }
    };
    let mut child = command
        .current_dir(directory)
        .env("GIT_CEILING_DIRECTORIES", "/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(patch).unwrap();
    child.wait_with_output().unwrap()
}

/// Applies a patch to a directory that holds `old` at `name`, and returns what is there then.
fn apply(program: Program, name: &[u8], old: Option<&[u8]>, patch: &[u8]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(OsStr::from_bytes(name));
    if let Some(old) = old {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, old).unwrap();
    }
    let output = run(program, directory.path(), patch);
    assert!(
        output.status.success(),
        "{program:?}: {}{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(patch)
    );
    fs::read(&file).ok()
}

fn assert_applies(name: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) {
    let patch = patch(name, old, new);
    for program in PROGRAMS {
        let result = apply(program, name, old, &patch);
        assert!(
            result.as_deref() == new,
            "{program:?} {name:?}: {old:?} became {result:?}, not {new:?}, by\n{}",
            String::from_utf8_lossy(&patch)
        );
    }
}

fn is_one_line(text: &[u8]) -> bool {
    text.strip_suffix(b"\n").is_some_and(|line| !line.contains(&b'\n'))
}

#[test]
fn every_kind_of_text_is_applied() {
    let cases: [(Content, Content); 18] = [
        (Some(b"a\nb\nc\n"), Some(b"a\nB\nc\n")),
        (Some(b"a\nb"), Some(b"a\nb\n")),
        (Some(b"a\nb\n"), Some(b"a\nb")),
        (Some(b"a\nb"), Some(b"a\nc")),
        (Some(b"a\nb"), Some(b"A\nb")),
        (Some(b"a"), Some(b"a\nb\nc\nd\ne")),
        (None, Some(b"new\n")),
        (None, Some(b"new")),
        (None, Some(b"")),
        (Some(b"old\n"), None),
        (Some(b"old"), None),
        (Some(b""), None),
        (Some(b""), Some(b"x\n")),
        (Some(b"x\n"), Some(b"")),
        (Some(b"a\r\nb\r\n"), Some(b"a\r\nc\r\n")),
        (Some(b"a\r\nb\r\n"), Some(b"a\nb\r\n")),
        (Some(b"\xff\xfe one\n"), Some(b"\xff\xfe two\n")),
        (Some(b"\n\n\n"), Some(b"\n\n")),
    ];
    for (old, new) in cases {
        assert_applies(b"f.txt", old, new);
    }
}

#[test]
fn a_lone_carriage_return_ends_no_line() {
    assert_applies(b"f", Some(b"one\rtwo\rthree\n"), Some(b"one\rTWO\rthree\n"));
    assert_applies(b"f", Some(b"a\rb"), Some(b"a\rc"));
    assert_applies(b"f", Some(b"a\r"), Some(b"a\r\n"));
    assert_eq!(stat(b"a\rb\rc\n", b"a\rB\rc\n"), (1, 1));
}

#[test]
fn every_name_is_applied() {
    let names: [&[u8]; 13] = [
        b"plain.txt",
        b"a b.txt",
        b" leading",
        b"trailing ",
        b"a  b/c d .txt",
        b"tab\there",
        b"new\nline \"q\" \\.txt",
        b"bell\x07 delete\x7f",
        b"carriage\rreturn",
        "計劃.md".as_bytes(),
        b"latin1 \xe9\xff.txt",
        b"-rf",
        b"sub/dir/file",
    ];
    for name in names {
        assert_applies(name, Some(b"a\nb\n"), Some(b"a\nc\n"));
        assert_applies(name, None, Some(b"new\n"));
        assert_applies(name, Some(b"old\n"), None);
        assert_applies(name, None, Some(b""));
        assert_applies(name, Some(b""), None);
    }
}

#[test]
fn names_are_written_as_git_does() {
    let header = |name: &[u8]| {
        let patch = patch(name, Some(b"a\n"), Some(b"b\n"));
        patch.split_inclusive(|b| *b == b'\n').take(3).collect::<Vec<_>>().concat()
    };
    let cases: [(&[u8], &str); 3] = [
        (b"a b", "diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n"),
        (b"na\nme", "diff --git \"a/na\\nme\" \"b/na\\nme\"\n--- \"a/na\\nme\"\n+++ \"b/na\\nme\"\n"),
        (b"\xe9", "diff --git \"a/\\351\" \"b/\\351\"\n--- \"a/\\351\"\n+++ \"b/\\351\"\n"),
    ];
    for (name, expected) in cases {
        assert_eq!(String::from_utf8(header(name)).unwrap(), expected);
    }
}

#[test]
fn a_mode_alone_is_applied() {
    use std::os::unix::fs::PermissionsExt;
    let mut out = Vec::new();
    let side = |mode| DiffSide { content: Some(b"x\n"), mode };
    unified(b"a b", side(0o100_644), side(0o100_755), &mut |kind, line| {
        assert_eq!(kind, LineKind::Header);
        assert!(is_one_line(line), "{}", String::from_utf8_lossy(line));
        out.write_all(line)
    })
    .unwrap();
    for program in PROGRAMS {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a b");
        fs::write(&file, "x\n").unwrap();
        assert!(run(program, directory.path(), &out).status.success(), "{program:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o111, 0o111, "{program:?}");
    }
}

#[test]
fn a_removal_of_a_link_or_a_program_is_applied_and_reversed() {
    use std::os::unix::fs::PermissionsExt;
    let none = DiffSide { content: None, mode: 0 };
    for (mode, content) in [(0o100_755, &b"#!/bin/sh\n"[..]), (0o120_000, b"target"), (0o100_755, b"")] {
        let mut out = Vec::new();
        let old = DiffSide { content: Some(content), mode };
        unified(b"f", old, none, &mut |_, line| out.write_all(line)).unwrap();
        for program in PROGRAMS {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("f");
            if mode == 0o120_000 {
                std::os::unix::fs::symlink("target", &file).unwrap();
            } else {
                fs::write(&file, content).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let output = run(program, directory.path(), &out);
            assert!(output.status.success(), "{program:?}: {output:?}");
            assert!(file.symlink_metadata().is_err(), "{program:?} left {mode:o}");
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        let patch = directory.path().join("patch");
        fs::write(&patch, &out).unwrap();
        let output = Command::new("git")
            .args(["apply", "-R", "patch"])
            .current_dir(directory.path())
            .env("GIT_CEILING_DIRECTORIES", "/")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = file.symlink_metadata().unwrap();
        assert_eq!(found.is_symlink(), mode == 0o120_000);
        assert_eq!(found.permissions().mode() & 0o100, 0o100);
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => Just(&b"a\n"[..]),
        4 => Just(&b"b\n"[..]),
        2 => Just(&b"\n"[..]),
        1 => Just(&b"c\r\n"[..]),
        1 => Just(&b"d\re\n"[..]),
        1 => Just(&b"\xff\xc3\n"[..]),
        1 => Just(&b"-- x\n"[..]),
        1 => Just(&b"++ y\n"[..]),
        1 => Just(&b"@@ -1 +1 @@\n"[..]),
        1 => Just(&b"\\ No newline at end of file\n"[..]),
        1 => Just(&b"tail"[..]),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ic_testkit::cases(150, 3_000)))]

    #[test]
    fn any_text_is_applied(old in text(), new in text()) {
        prop_assume!(old != new);
        assert_applies(b"f", Some(&old), Some(&new));
    }

    #[test]
    fn any_edit_of_a_long_text_is_applied(
        length in 20_usize..200,
        edits in prop::collection::vec((0_usize..200, 0_u8..3), 1..8),
    ) {
        let old: Vec<String> = (0..length).map(|i| format!("{}\n", i / 2)).collect();
        let mut new = old.clone();
        for (at, what) in edits {
            let at = at % new.len().max(1);
            match what {
                0 => new.insert(at, "added\n".to_owned()),
                1 if !new.is_empty() => drop(new.remove(at)),
                _ if !new.is_empty() => "changed\n".clone_into(&mut new[at]),
                _ => {}
            }
        }
        prop_assume!(old != new);
        assert_applies(b"f", Some(old.concat().as_bytes()), Some(new.concat().as_bytes()));
    }

    #[test]
    fn the_statistics_count_what_is_written(old in text(), new in text()) {
        let written = lines(b"f", Some(&old), Some(&new));
        let count = |wanted, sign| {
            written.iter().filter(|(kind, line)| *kind == wanted && line.first() == Some(&sign)).count()
        };
        prop_assert_eq!(stat(&old, &new), (count(LineKind::Added, b'+'), count(LineKind::Removed, b'-')));
    }
}

#[test]
fn every_call_gives_one_line() {
    let written = lines(b"f", Some(b"a\nb"), Some(b"a\nc"));
    for (_, line) in &written {
        assert!(is_one_line(line), "{line:?}");
    }
    let end: &[u8] = b"\\ No newline at end of file\n";
    let kinds: Vec<LineKind> = written.iter().filter(|(_, line)| line == end).map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [LineKind::Removed, LineKind::Added]);
}

#[test]
fn equal_contents_have_no_hunks() {
    assert_eq!(patch(b"f", Some(b"a\n"), Some(b"a\n")), b"diff --git a/f b/f\n");
    assert_eq!(stat(b"a\n", b"a\n"), (0, 0));
    assert_eq!(stat(b"", b""), (0, 0));
}

#[test]
fn binary_is_said_so() {
    let text = patch(b"logo.png", Some(b"a\0b"), Some(b"a\0c"));
    assert!(text.ends_with(b"Binary files a/logo.png and b/logo.png differ\n"));
    let text = patch(b"logo.png", None, Some(b"a\0c"));
    assert!(text.ends_with(b"Binary files /dev/null and b/logo.png differ\n"));
    let late = [&vec![b'x'; 8000][..], b"\0\n"].concat();
    assert!(!super::is_binary(&late) && super::is_binary(&late[1..]));
}

/// Git cannot apply what is binary; it says so, and applies the rest when it is told to.
#[test]
fn a_patch_with_a_binary_file_is_none_that_git_calls_corrupt() {
    let cases: [(Content, Content); 3] = [(Some(b"a\0b"), Some(b"a\0c")), (None, Some(b"a\0c")), (Some(b"a\0b"), None)];
    for (old, new) in cases {
        let text = [patch(b"bin", old, new), patch(b"txt", Some(b"t\n"), Some(b"u\n"))].concat();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("txt"), "t\n").unwrap();
        if let Some(old) = old {
            fs::write(directory.path().join("bin"), old).unwrap();
        }
        let refused = run(Program::GitApply, directory.path(), &text);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("cannot apply binary patch to 'bin'"), "{said}");
        let patch = directory.path().join("patch");
        fs::write(&patch, &text).unwrap();
        let rest = Command::new("git")
            .args(["apply", "--exclude=bin", "patch"])
            .current_dir(directory.path())
            .env("GIT_CEILING_DIRECTORIES", "/")
            .output()
            .unwrap();
        assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
        assert_eq!(fs::read(directory.path().join("txt")).unwrap(), b"u\n");
    }
}
