//! The undo of running work: the work ends with it, and the real call decides as its preview did.

use serde_json::{Value, json};

use crate::agents::{Said, in_git, say};
use crate::blame::{after, before, prompt, read, stop, work_of};
use crate::support::Project;

fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words).trim().to_owned()
}

/// A repository with committed files, in which the first prompt has added to one of them.
fn after_one_prompt() -> Project {
    let project = in_git();
    for file in ["a.txt", "d/f1", "d/f2"] {
        project.write(file, "1\n2\n3\n");
    }
    commit(&project, "base");
    prompt(&project, "A", "first");
    calls(&project, "a1", || project.write("a.txt", "1\n2\n3\nfirst\n"));
    stop(&project, "A");
    project
}

fn commit(project: &Project, message: &str) {
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "-m", message]);
}

fn begins(project: &Project, text: &str) {
    say(project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt(text, text));
}

fn calls_make(project: &Project, call: &str) {
    before(project, "A", call, "Bash", json!({ "command": "make" }));
}

fn calls(project: &Project, call: &str, deed: impl FnOnce()) {
    calls_make(project, call);
    deed();
    after(project, "A", call, "Bash");
}

/// The paths that an undo would be refused for, sorted.
fn clashes(project: &Project, words: &str) -> Vec<String> {
    let plan: Value = serde_json::from_str(&project.run(&format!("{words} --dry-run --json")).stdout).expect("JSON");
    let all = plan["files"]["conflicts"].as_array().expect("a list").iter();
    all.map(|one| one["path"].as_str().expect("a path").to_owned()).collect()
}

/// Whether the call that ran as its work was undone tells its end, or never does.
const CALLS: [bool; 2] = [true, false];

#[test]
fn what_a_person_does_after_the_undo_of_running_work_stays_at_the_next_undo() {
    for (is_ended, looks) in CALLS.into_iter().flat_map(|ended| [(ended, false), (ended, true)]) {
        let which = format!("ended: {is_ended}, looks: {looks}");
        let project = after_one_prompt();
        begins(&project, "second");
        calls_make(&project, "a2");
        project.write("d/f2", "second\n");
        if is_ended {
            after(&project, "A", "a2", "Bash");
        }
        if !is_ended {
            assert_eq!(clashes(&project, "undo"), ["d/f2"], "{which}");
        }
        project.json(if is_ended { "undo --yes" } else { "undo --yes --force-files" });
        assert_eq!(read(&project, "d/f2"), "1\n2\n3\n", "{which}");
        project.write("d/f1", "mine\n");
        project.write("mine.txt", "mine\n");
        if looks {
            project.json("checkpoint create");
        }
        assert_eq!(clashes(&project, "undo"), Vec::<String>::new(), "{which}");
        project.json("undo --yes");
        let is = ["a.txt", "d/f1", "mine.txt"].map(|file| read(&project, file));
        assert_eq!(is, ["1\n2\n3\n", "mine\n", "mine\n"], "{which}");
    }
}

#[test]
fn what_a_person_does_after_the_undo_of_running_work_is_in_no_undo_of_one_dispatch() {
    let project = after_one_prompt();
    let first = work_of(&project, "A");
    begins(&project, "second");
    calls_make(&project, "a2");
    project.write("d/f2", "second\n");
    project.json("undo --yes --force-files");
    project.write("d/f1", "mine\n");
    project.write("a.txt", "mine\n1\n2\n3\nfirst\n");
    begins(&project, "third");
    calls(&project, "a3", || project.write("third.txt", "third\n"));
    stop(&project, "A");
    let third = work_of(&project, "A");
    for work in [third, first] {
        project.json(&format!("undo --only {work} --yes"));
    }
    let is = ["a.txt", "d/f1", "d/f2"].map(|file| read(&project, file));
    assert_eq!(is, ["mine\n1\n2\n3\n", "mine\n", "1\n2\n3\n"]);
    assert!(!project.root().join("third.txt").exists());
}

#[test]
fn a_commit_after_the_undo_of_running_work_is_no_commit_of_that_work() {
    let project = after_one_prompt();
    begins(&project, "second");
    calls_make(&project, "a2");
    project.write("d/f2", "second\n");
    project.json("undo --yes --force-files");
    project.write("d/f1", "mine\n");
    git(&project, &["add", "d/f1"]);
    git(&project, &["commit", "-q", "-m", "mine"]);
    let mine = git(&project, &["rev-parse", "HEAD"]);
    begins(&project, "third");
    stop(&project, "A");
    assert!(!project.ok("log").contains("\"commit_count\":1"), "it is recorded for no work");
    project.json("undo --force-files --yes");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), mine);
    assert_eq!(read(&project, "d/f1"), "mine\n");
}

#[test]
fn what_a_person_does_after_a_run_was_cancelled_stays() {
    let project = after_one_prompt();
    begins(&project, "second");
    calls_make(&project, "a2");
    project.write("d/f2", "second\n");
    let run = project.json("log")[0]["run_id"].as_str().expect("an id").to_owned();
    project.json(&format!("run cancel {run} --reason over"));
    project.json(&format!("run reopen {run} --reason on"));
    project.json("checkpoint create");
    project.write("mine.txt", "mine\n");
    // The call whose end was not told is asked about, and nothing of the person's.
    assert_eq!(clashes(&project, "undo"), ["d/f2"]);
    project.json("undo --force-files --yes");
    assert_eq!((read(&project, "mine.txt"), read(&project, "d/f2")), ("mine\n".to_owned(), "1\n2\n3\n".to_owned()));
}

/// What is committed while work runs, and whether an undo of that work takes it off its branch.
#[test]
fn the_undo_of_running_work_that_committed_decides_as_its_preview() {
    for (what, is_its) in [("an ended call", true), ("a call without an end", true), ("by hand", false)] {
        let project = in_git();
        project.write("a.txt", "1\n");
        commit(&project, "base");
        let base = git(&project, &["rev-parse", "HEAD"]);
        begins(&project, "first");
        calls_make(&project, "a1");
        project.write("a.txt", "1\nfirst\n");
        if what != "by hand" {
            commit(&project, "work");
        }
        if what != "a call without an end" {
            after(&project, "A", "a1", "Bash");
        }
        if what == "by hand" {
            commit(&project, "mine");
        }
        let head = git(&project, &["rev-parse", "HEAD"]);
        let forced = if what == "a call without an end" { " --force-files" } else { "" };
        let plan = project.run(&format!("undo --dry-run{forced} --json"));
        let said: Value = serde_json::from_str(&plan.stdout).expect("JSON");
        assert_eq!(plan.code, Some(0), "{what}: {plan:?}");
        if is_its {
            let hash = said["plan_hash"].as_str().expect("a hash");
            let done = project.json(&format!("undo --yes{forced} --expect-plan {hash}"));
            assert_eq!(done["status"], "rolled_back", "{what}: {done}");
            // A commit after a call was stopped may be a person's.
            let stays = if forced.is_empty() { &base } else { &head };
            assert_eq!(&git(&project, &["rev-parse", "HEAD"]), stays, "{what}");
            assert_eq!(read(&project, "a.txt"), "1\n", "{what}");
            continue;
        }
        project.json("undo --yes");
        assert_eq!(git(&project, &["rev-parse", "HEAD"]), head, "{what}: a person's commit stays");
        assert_eq!(read(&project, "a.txt"), "1\n", "{what}");
        let status = project.json("session show A")["prompts"][0]["status"].clone();
        assert_eq!(status, "cancelled", "{what}");
    }
}

#[test]
fn a_commit_of_a_call_marks_no_work_that_had_ended() {
    let project = in_git();
    prompt(&project, "A", "A works");
    let run = project.json("session show A")["run_id"].as_str().expect("its run").to_owned();
    let [idle, later] = ["idle", "later"].map(|name| {
        let id = project.ok(&format!("dispatch create {run} --name {name}")).trim().to_owned();
        project.ok(&format!("dispatch start {id}"));
        id
    });
    before(&project, "A", "a1", "Bash", json!({ "command": "make" }));
    project.write("made", "made\n");
    after(&project, "A", "a1", "Bash");
    project.ok(&format!("dispatch complete {idle}"));
    before(&project, "A", "a2", "Bash", json!({ "command": "git commit" }));
    commit(&project, "made");
    let undo = format!("run rollback {run} --to dispatch:{later} --layer=workflow,git --yes");
    let done = project.json(&undo);
    let by = |id: &str| project.json(&format!("dispatch show {id}"))["rolled_back_by"].clone();
    assert_eq!(by(&work_of(&project, "A")), done["rollback_id"], "{done}");
    assert_eq!(by(&idle), Value::Null, "{done}");
}

#[test]
fn what_git_keeps_of_a_running_prompt_is_named_by_preview_and_undo() {
    // The words of git, and what the undo names of them; empty: the index goes back with the file.
    for (words, named) in [
        ("tag t", "git tag -d t"),
        ("branch b", "git branch -D b"),
        ("branch -D old", "git branch old "),
        ("add second.txt", ""),
    ] {
        let project = after_one_prompt();
        git(&project, &["branch", "old"]);
        begins(&project, "second");
        calls(&project, "a2", || {
            project.write("second.txt", "second\n");
            git(&project, &words.split(' ').collect::<Vec<_>>());
        });
        project.write("mine.txt", "mine\n");
        let [preview, undone] = ["--dry-run", "--yes"].map(|flag| project.run(&format!("undo {flag} --json")));
        let remains = |said: &str| {
            let said: Value = serde_json::from_str(said).expect("JSON");
            said["warnings"].to_string()
        };
        let said = remains(&undone.stdout);
        assert_eq!((preview.code, remains(&preview.stdout)), (undone.code, said.clone()), "{words}");
        let expected = if named.is_empty() { (Some(0), said == "null") } else { (Some(4), said.contains(named)) };
        assert_eq!((undone.code, true), expected, "{words}: {said}");
        assert_eq!(git(&project, &["status", "--short"]), "M a.txt\n?? mine.txt", "{words}");
    }
}
