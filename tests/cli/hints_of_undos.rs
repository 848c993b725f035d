//! Hints of refused undos and redos: what they name can be typed, and takes nothing that the refusal did not name.

use serde_json::json;

use crate::agents::{Said, in_git, say};
use crate::blame::{after, before, stop, work_of};
use crate::support::Project;

/// A prompt with one call, in which something is done.
fn works(project: &Project, session: &str, deed: impl Fn()) {
    asks(project, session);
    before(project, session, "call", "Bash", json!({ "command": "make" }));
    deed();
    after(project, session, "call", "Bash");
    stop(project, session);
}

fn asks(project: &Project, session: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(session, "work"));
}

/// The command in a hint that begins so, up to its `--yes` or `--dry-run`, without `ic`.
fn command<'h>(hint: &'h str, begin: &str) -> &'h str {
    let from = hint.find(begin).unwrap_or_else(|| panic!("{begin} is in {hint}"));
    let rest = &hint[from..];
    let ends = ["--yes", "--dry-run"].iter().filter_map(|end| Some(rest.find(end)? + end.len()));
    &rest["ic ".len()..ends.min().expect("its last flag")]
}

fn is_undone(project: &Project, id: &str) -> bool {
    !project.json(&format!("dispatch show {id}"))["rolled_back_by"].is_null()
}

#[test]
fn work_that_is_undone_alone_already_is_hinted_at_in_no_preview() {
    let project = in_git();
    works(&project, "s1", || project.write("a.txt", "one\n"));
    works(&project, "s2", || project.write("b.txt", "two\n"));
    works(&project, "s1", || project.write("c.txt", "three\n"));
    let log = project.json("log");
    let first = log.as_array().and_then(|all| all.last()).expect("an entry")["reference"].clone();
    let id = first.as_str().and_then(|text| text.split_once(':')).expect("a kind").1.to_owned();
    let words = format!("undo dispatch:{id} --dry-run --format text");
    let alone = format!("ic undo --dispatch {id} --yes");
    let before = project.run(&words);
    let said = |outcome: &ic_testkit::Outcome| format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(before.code == Some(1) && said(&before).contains(&alone), "{before:?}");
    project.json(&alone["ic ".len()..]);
    let after = project.run(&words);
    assert!(!said(&after).contains(&alone), "{after:?}");
}

#[test]
fn of_two_that_worked_at_once_neither_undo_waits_for_the_other() {
    let project = in_git();
    for session in ["s1", "s2"] {
        asks(&project, session);
    }
    for session in ["s1", "s2"] {
        before(&project, session, "call", "Bash", json!({ "command": "make" }));
    }
    project.write("a.txt", "of one of them\n");
    project.write("b.txt", "of one of them\n");
    for session in ["s1", "s2"] {
        after(&project, session, "call", "Bash");
        stop(&project, session);
    }
    let ids = ["s1", "s2"].map(|session| work_of(&project, session));
    for id in &ids {
        let refused = project.run(&format!("undo --dispatch {id} --yes --json"));
        assert_eq!(refused.error(), "file_conflict", "{refused:?}");
        assert!(!refused.stderr.contains("undo first what stands in the way"), "{refused:?}");
        let kept = project.run(command(&refused.stderr, "ic undo --dispatch "));
        assert_eq!(kept.code, Some(4), "what stays is said: {kept:?}");
        assert!(project.root().join("b.txt").exists() && !is_undone(&project, id));
    }
}
