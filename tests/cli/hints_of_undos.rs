//! Hints of refused undos and redos: their commands can be typed, and undo nothing that the refusal did not name.

use serde_json::{Value, json};

use crate::agents::{Said, in_git, say};
use crate::blame::{after, before, read, stop, work_of};
use crate::support::Project;

fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words).trim().to_owned()
}

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

/// Layers that only a rollback of the run has: with them an undo of a prompt is one.
const BY_RUN: &str = "--layer=workflow,effects,files,git";

/// A base with two files, and work of an agent that was undone: the run went back.
fn undone() -> Project {
    let project = in_git();
    project.write("a.txt", "a1\n");
    project.write("b.txt", "b1\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "files"]);
    works(&project, "s", || project.write("a.txt", "A1\n"));
    project.json(&format!("undo --yes {BY_RUN}"));
    assert_eq!(read(&project, "a.txt"), "a1\n");
    project
}

#[test]
fn the_hint_of_a_redo_restores_no_other_file_than_it_names() {
    let project = undone();
    project.write("a.txt", "a1\nhand\n");
    project.write("b.txt", "b1\nh2\n");
    project.write("mine.txt", "m\n");
    let refused = project.run("redo --yes --json");
    assert_eq!(refused.error(), "file_conflict", "{refused:?}");
    project.json(command(&refused.stderr, "ic checkpoint restore "));
    project.json(command(&refused.stderr, "ic redo "));
    assert_eq!(read(&project, "a.txt"), "A1\n");
    assert_eq!((read(&project, "b.txt"), read(&project, "mine.txt")), ("b1\nh2\n".into(), "m\n".into()));
}

#[test]
fn the_hint_of_a_redo_beside_a_commit_says_what_it_discards_and_how_not_to() {
    let project = undone();
    project.write("a.txt", "a1\nhand\n");
    project.write("b.txt", "b1\nh2\n");
    project.write("mine.txt", "m\n");
    git(&project, &["add", "mine.txt"]);
    git(&project, &["commit", "-qm", "mine"]);
    let mine = git(&project, &["rev-parse", "HEAD"]);
    let refused = project.run("redo --yes --json");
    assert_eq!(refused.error(), "file_conflict", "{refused:?}");
    let hint = &refused.stderr;
    assert!(hint.contains("takes 1 commit off its branch"), "{hint}");
    assert!(hint.contains("undoes what you changed in b.txt, mine.txt"), "{hint}");
    let begin = hint.find("to bring back these files alone").expect("the way that leaves commits");
    project.json(command(&hint[begin..], "ic checkpoint restore "));
    assert_eq!(read(&project, "a.txt"), "A1\n");
    assert_eq!((read(&project, "b.txt"), read(&project, "mine.txt")), ("b1\nh2\n".into(), "m\n".into()));
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), mine);
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
    let alone = format!("ic undo --only {id} --yes");
    let said = |outcome: &ic_testkit::CliOutcome| format!("{}{}", outcome.stdout, outcome.stderr);
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
        let refused = project.run(&format!("undo --only {id} --yes --json"));
        assert_eq!(refused.error(), "file_conflict", "{refused:?}");
        assert!(!refused.stderr.contains("undo first what stands in the way"), "{refused:?}");
        let kept = project.run(command(&refused.stderr, "ic undo --only "));
        assert_eq!(kept.code, Some(4), "what stays is said: {kept:?}");
        assert!(project.root().join("b.txt").exists() && !is_undone(&project, id));
    }
}

/// Work that leaves a merge in progress.
#[test]
fn the_undo_of_a_merge_in_progress_says_that_no_redo_brings_it_back() {
    let project = in_git();
    let commit = |text: &str| {
        project.write("a.txt", text);
        git(&project, &["add", "a.txt"]);
        git(&project, &["commit", "-qm", "text"]);
    };
    commit("base\n");
    let main = git(&project, &["branch", "--show-current"]);
    git(&project, &["checkout", "-qb", "side"]);
    commit("side\n");
    git(&project, &["checkout", "-q", &main]);
    commit("main\n");
    works(&project, "s", || {
        let merge = std::process::Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@x", "merge", "-q", "side"])
            .current_dir(project.root())
            .output()
            .expect("git");
        assert!(!merge.status.success(), "it conflicts");
    });
    let merged = read(&project, "a.txt");
    let warned = |report: &Value| {
        let all = report["files"]["warnings"].as_array().cloned().unwrap_or_default();
        all.iter().any(|one| one["code"] == "operation_ends")
    };
    assert!(warned(&project.json("undo --dry-run")));
    let said = project.run("undo --yes --format text");
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(!text.contains("to bring it back: ic redo"), "{text}");
    assert!(text.contains("the merge that was in progress cannot be restored"), "{text}");
    assert_eq!(read(&project, "a.txt"), "main\n");
    assert_eq!(project.run("redo --yes --json").error(), "git_in_progress");
    let log = project.json("rollback list");
    let id = log.as_array().and_then(|all| all.first()).expect("a rollback")["id"].clone();
    let shown = project.ok(&format!("rollback show {} --format text", id.as_str().expect("text")));
    assert!(!shown.contains("to bring it back: ic redo"), "{shown}");
    project.json(command(&text, "ic checkpoint restore "));
    assert_eq!(read(&project, "a.txt"), merged);
}

#[test]
fn after_a_submodule_went_the_commands_of_a_refused_undo_leave_a_clean_tree() {
    let project = in_git();
    project.write("sub/s", "s\n");
    let sub = project.root().join("sub");
    ic_testkit::git_in(&sub, &["init", "-q"]);
    ic_testkit::git_in(&sub, &["add", "."]);
    ic_testkit::git_in(&sub, &["commit", "-qm", "s"]);
    git(&project, &["add", "sub"]);
    git(&project, &["commit", "-qm", "with a submodule"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    works(&project, "s", || {
        git(&project, &["reset", "-q", "--hard", "HEAD~1"]);
    });
    let refused = project.run(&format!("undo --yes --json {BY_RUN}"));
    assert_eq!(refused.error(), "git_unsupported", "{refused:?}");
    let back = refused.stderr.split("this goes back to the commit: git ").nth(1).expect("a command");
    let back: Vec<&str> = back.split('.').next().expect("its end").split(' ').collect();
    project.run("undo --yes --layer=workflow,effects,files");
    git(&project, &back);
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
}
