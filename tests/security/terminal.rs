//! Nothing from outside steers a terminal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ic_testkit::write_in;

use crate::project::project;

/// Begins a colour, ends a title, deletes, begins a command in one byte, turns the direction of writing.
const HOSTILE: &str = "a\u{1b}[31mb\u{7}c\u{7f}d\u{9b}2Je\u{202e}f";

fn assert_tame(what: &str, said: &str) {
    let is_wild = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!said.contains(is_wild), "{what}: {said:?}");
}

#[test]
fn names_from_the_tree_are_escaped_in_every_form() {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    write_in(cli.root(), HOSTILE, "one");
    cli.ok(["run", "artifact", "add", &run, "--path", HOSTILE]);
    let made = cli.ok(["checkpoint", "create"]);
    write_in(cli.root(), HOSTILE, "two");
    let dispatch = cli.ok(["dispatch", "create", &run]);
    cli.ok(["dispatch", "record", &dispatch, "--file", HOSTILE]);
    let calls: [&[&str]; 9] = [
        &["run", "artifact", "list", &run],
        &["checkpoint", "show", &made, "--files"],
        &["checkpoint", "diff", &made, "--name-status"],
        &["checkpoint", "restore", &made, "--dry-run"],
        &["events", "tail", "--all"],
        &["run", "rollback", &run, "--layer", "code"],
        &["dispatch", "show", &dispatch],
        &["run", "status", HOSTILE],
        &["workflow", "run", HOSTILE],
    ];
    for call in calls {
        for form in ["json", "jsonl", "text"] {
            let outcome = cli.run([call, &["--format", form]].concat());
            assert_tame(&format!("{call:?} {form}"), &outcome.stdout);
            assert_tame(&format!("{call:?} {form}"), &outcome.stderr);
            if form == "text" {
                assert!(!outcome.stdout.contains('\u{202e}') && !outcome.stderr.contains('\u{202e}'), "{call:?}");
            }
        }
    }
    let listed = cli.json(["run", "artifact", "list", &run, "--json"]);
    assert_eq!(listed[0]["path"], HOSTILE, "what is escaped is read back as it was");
}

#[test]
fn what_a_step_says_is_escaped_where_it_is_repeated() {
    let cli = project();
    let said = write_in(cli.home(), "said", HOSTILE);
    write_in(
        cli.root(),
        "w.yaml",
        format!("name: w\nsteps:\n  - id: a\n    phase: p\n    run: 'cat {}; exit 1'\n", said.display()),
    );
    for form in ["json", "text"] {
        let outcome = cli.run(["workflow", "run", "w.yaml", "--on-failure", "stop", "--format", form]);
        assert_eq!(outcome.code, Some(1));
        assert_tame(form, &outcome.stdout);
        assert_tame(form, &outcome.stderr);
        let shown = cli.run(["dispatch", "list", "--format", form]);
        assert_tame(form, &shown.stdout);
    }
}

#[test]
fn words_with_controls_are_refused() {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    for call in [&["run", "create", "--goal", HOSTILE][..], &["run", "skip", &run, "b", "--reason", HOSTILE]] {
        assert_eq!(cli.refused(call), (Some(3), "invalid_value".to_owned()));
    }
    let bytes = OsStr::from_bytes(b"\xff\x1b[31m");
    let refused = cli.run([OsStr::new("run"), OsStr::new("create"), OsStr::new("--goal"), bytes]);
    assert_eq!(refused.code, Some(3));
    assert_tame("an error", &refused.stderr);
}
