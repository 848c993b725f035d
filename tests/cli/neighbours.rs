//! An undo of an agent's work leaves everything else: branches, commits, the stash and files of a person and of other agents.

use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say};
use crate::blame::{after, before, prompt, read, stop, work_of};
use crate::support::Project;

fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words).trim().to_owned()
}

fn commits(project: &Project, session: &str, file: &str) {
    in_call(project, "claude-code", session, || {
        project.write(file, file);
        git(project, &["add", file]);
        git(project, &["commit", "-q", "-m", file]);
    });
}

fn ask(project: &Project, session: &str, text: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
}

#[test]
fn what_a_person_does_to_branches_and_stash_after_the_work_stays() {
    let project = in_git();
    ask(&project, "B", "B works");
    commits(&project, "B", "b.txt");
    stop(&project, "B");
    git(&project, &["branch", "mine"]);
    let plan = project.json("undo --dry-run");
    assert!(!plan["files"]["git"].to_string().contains("mine"), "{plan}");
    project.json("undo --yes");
    assert_eq!(git(&project, &["branch", "--list", "mine", "--format=%(refname:short)"]), "mine");
    assert!(!project.root().join("b.txt").exists());
    // And the redo leaves what came after the undo.
    git(&project, &["branch", "later"]);
    project.json("redo --yes");
    assert_eq!(git(&project, &["for-each-ref", "refs/heads/later", "--format=%(refname:short)"]), "later");
    assert!(project.root().join("b.txt").exists());
    // A commit of a person on the branch that goes back.
    project.write("own.txt", "mine");
    git(&project, &["add", "own.txt"]);
    git(&project, &["commit", "-q", "-m", "mine"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    project.json("undo --yes");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head, "no commit leaves");
    assert!(project.root().join("own.txt").exists() && !project.root().join("b.txt").exists());
    project.json("redo --yes");
    assert!(project.root().join("b.txt").exists());
    // The stash.
    git(&project, &["reset", "-q", "--hard", "HEAD~1"]);
    project.write("b.txt", "stashed");
    git(&project, &["stash"]);
    project.json("undo --yes");
    assert!(!project.root().join("b.txt").exists());
    assert_eq!(git(&project, &["stash", "list"]).lines().count(), 1);
}

#[test]
fn a_commit_of_a_person_is_asked_about_whatever_other_branch_has_it() {
    for at in ["HEAD", "HEAD~1", "HEAD~2"] {
        let project = in_git();
        ask(&project, "A", "the first");
        commits(&project, "A", "x.txt");
        stop(&project, "A");
        let first = work_of(&project, "A");
        project.write("own.txt", "mine");
        git(&project, &["add", "own.txt"]);
        git(&project, &["commit", "-q", "-m", "mine"]);
        ask(&project, "A", "the second");
        commits(&project, "A", "y.txt");
        stop(&project, "A");
        git(&project, &["branch", "keepme", at]);
        let head = git(&project, &["rev-parse", "HEAD"]);
        let undone = project.json(&format!("undo prompt:{first} --yes"));
        assert_eq!(git(&project, &["rev-parse", "HEAD"]), head, "{at}: the commits stay");
        let is_there = ["x.txt", "y.txt", "own.txt"].map(|file| project.root().join(file).exists());
        assert_eq!(is_there, [false, false, true], "{at}: {undone}");
        project.json("redo --yes");
        let plan = project.json(&format!("undo prompt:{first} --force-commits --keep-theirs --dry-run"));
        let leaving: Vec<&str> = plan["commits"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["subject"].as_str().expect("a subject"))
            .collect();
        assert_eq!(leaving, ["y.txt", "mine", "x.txt"], "{at}: {plan}");
    }
}

#[test]
fn a_commit_of_another_agent_made_meanwhile_is_its_own() {
    let project = in_git();
    ask(&project, "A", "A works");
    ask(&project, "B", "B works");
    commits(&project, "B", "b.txt");
    commits(&project, "A", "a.txt");
    stop(&project, "B");
    stop(&project, "A");
    let shown = |session: &str| {
        let id = work_of(&project, session);
        let commits = project.json(&format!("dispatch show {id}"))["commits"].clone();
        commits.as_array().expect("a list").len()
    };
    assert_eq!((shown("A"), shown("B")), (1, 1), "each has its own");
    let run = project.json("session show B")["run_id"].as_str().expect("a run").to_owned();
    for more in ["", " --keep-theirs"] {
        let undone = project.json(&format!("undo --run {run} --yes{more}"));
        let is_there = ["a.txt", "b.txt"].map(|file| project.root().join(file).exists());
        assert_eq!(is_there, [true, false], "{more}: {undone}");
        assert_eq!(git(&project, &["log", "--format=%s", "-1"]), "a.txt", "{more}: the commits stay");
        project.json(&format!("redo --run {run} --yes"));
    }
}

#[test]
fn what_a_switch_or_a_pull_brought_is_no_commit_of_the_prompt() {
    let project = in_git();
    git(&project, &["checkout", "-q", "-b", "feature"]);
    project.write("f1.txt", "old");
    git(&project, &["add", "f1.txt"]);
    git(&project, &["commit", "-q", "-m", "an old commit"]);
    git(&project, &["checkout", "-q", "-"]);
    ask(&project, "A", "look at the feature");
    in_call(&project, "claude-code", "A", || drop(git(&project, &["checkout", "-q", "feature"])));
    stop(&project, "A");
    let id = work_of(&project, "A");
    assert_eq!(project.json(&format!("dispatch show {id}"))["commits"], json!([]));
    let undone = project.run(&format!("undo --only {id} --yes --json"));
    assert_eq!(undone.code, Some(4), "the branch stays checked out: {undone:?}");
    assert!(undone.json()["warnings"].to_string().contains("git switch "), "{undone:?}");
    assert_eq!(read(&project, "f1.txt"), "old", "what commits of others brought stays");
}

#[test]
fn what_a_person_does_between_two_calls_stays_when_the_prompt_is_undone_alone() {
    let project = in_git();
    project.write("a.txt", "one\n");
    prompt(&project, "A", "A works");
    before(&project, "A", "a1", "Bash", json!({ "command": "make" }));
    project.write("made.txt", "made\n");
    after(&project, "A", "a1", "Bash");
    project.write("mine.txt", "by hand\n");
    project.write("a.txt", "edited\n");
    before(&project, "A", "a2", "Bash", json!({ "command": "make more" }));
    project.write("more.txt", "more\n");
    after(&project, "A", "a2", "Bash");
    stop(&project, "A");
    let report = project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
    let is_there = ["made.txt", "more.txt", "mine.txt"].map(|file| project.root().join(file).exists());
    assert_eq!(is_there, [false, false, true], "{report}");
    assert_eq!(read(&project, "a.txt"), "edited\n");
    assert!(report["files"]["skipped"].to_string().contains("mine.txt"), "it is named: {report}");
}

#[test]
fn an_interrupted_prompt_is_the_last_one_and_is_undone_alone() {
    let project = in_git();
    ask(&project, "A", "good");
    in_call(&project, "claude-code", "A", || project.write("good.txt", "good"));
    stop(&project, "A");
    ask(&project, "A", "bad");
    before(&project, "A", "a2", "Bash", json!({ "command": "make" }));
    project.write("bad.txt", "bad");
    // Interrupted: neither the end of the call nor a stop is told.
    let plan = project.json("undo --dry-run --force-files");
    assert_eq!(plan["counts"]["dispatches"], 1, "{plan}");
    project.json("undo --yes --force-files");
    assert!(project.root().join("good.txt").exists() && !project.root().join("bad.txt").exists());
    project.json("redo --yes");
    ask(&project, "A", "another");
    let prompts = project.json("session show A")["prompts"].clone();
    let bad = prompts[1]["id"].as_str().expect("an id");
    // A person may have changed something before they typed again: who undoes it decides.
    let refused = project.run(&format!("undo --only {bad} --yes"));
    assert_eq!(refused.error(), "file_conflict", "{refused:?}");
    let command = format!("undo --only {bad} --force-files --yes");
    assert!(refused.stderr.contains(&command), "{refused:?}");
    project.json(&command);
    assert!(project.root().join("good.txt").exists() && !project.root().join("bad.txt").exists());
    project.json("redo --yes");
    assert!(project.root().join("bad.txt").exists());
    project.json(&command);
    assert!(!project.root().join("bad.txt").exists());
}

#[test]
fn what_an_agent_does_after_it_stopped_is_a_continuation_and_refused_once_undone() {
    let project = in_git();
    ask(&project, "A", "begin a task");
    in_call(&project, "claude-code", "A", || project.write("first.txt", "1"));
    stop(&project, "A");
    // The client's own message that a task has ended: no person typed it.
    ask(&project, "A", "<task-notification>\n<task-id>1</task-id>");
    commits(&project, "A", "second.txt");
    stop(&project, "A");
    let shown = project.json("session show A");
    assert_eq!(shown["prompts"].as_array().expect("a list").len(), 1, "{shown}");
    let after = &shown["subagents"][0];
    assert_eq!((&after["status"], &after["agent_kind"]), (&json!("completed"), &json!("claude-code")), "{shown}");
    let commits_of = project.json(&format!("dispatch show {}", after["id"].as_str().expect("an id")));
    assert_eq!(commits_of["commits"].as_array().expect("a list").len(), 1);
    project.json("undo --yes");
    assert!(!project.root().join("first.txt").exists() && !project.root().join("second.txt").exists());
    ask(&project, "A", "<task-notification>\n<task-id>2</task-id>");
    let said = Said::new("claude-code", "A", "PreToolUse").with("tool_name", "Bash");
    assert_ne!(say(&project, &said), Value::Null, "it goes on in nothing that was undone");
}

#[test]
fn of_sessions_that_ended_the_newest_prompt_is_meant_and_a_redo_waits_for_nobody() {
    let project = in_git();
    let turn = |session: &str, file: &str| {
        ask(&project, session, file);
        in_call(&project, "claude-code", session, || project.write(file, file));
        stop(&project, session);
        say(&project, &Said::new("claude-code", session, "SessionEnd"));
    };
    for (session, file) in [("A", "a.txt"), ("B", "b.txt"), ("C", "c.txt")] {
        turn(session, file);
    }
    let is_there = || ["a.txt", "b.txt", "c.txt", "d.txt"].map(|file| project.root().join(file).exists());
    project.json("undo --yes");
    assert_eq!(is_there(), [true, true, false, false]);
    project.json("undo --yes");
    assert_eq!(is_there(), [true, false, false, false], "said again, it is the one before");
    turn("D", "d.txt");
    let log = project.json("log");
    assert_eq!(log[0]["title"], "d.txt", "{log}");
    assert!(log.as_array().expect("a list").iter().any(|one| one["title"] == "a.txt"), "{log}");
    project.json("undo --yes");
    assert_eq!(is_there(), [true, false, false, false]);
    project.json("redo --yes");
    assert_eq!(is_there(), [true, false, false, true]);
}

#[test]
fn a_redo_is_possible_after_the_client_was_closed() {
    let project = in_git();
    ask(&project, "A", "A works");
    commits(&project, "A", "a.txt");
    stop(&project, "A");
    project.json("undo --yes");
    say(&project, &Said::new("claude-code", "A", "SessionEnd"));
    project.json("redo --yes");
    assert!(project.root().join("a.txt").exists());
    assert_eq!(git(&project, &["log", "--format=%s", "-1"]), "a.txt");
}

#[test]
fn what_was_undone_alone_in_another_session_does_not_come_back_unasked() {
    let project = in_git();
    ask(&project, "A", "login");
    in_call(&project, "claude-code", "A", || project.write("login.txt", "login"));
    stop(&project, "A");
    ask(&project, "B", "B works");
    in_call(&project, "claude-code", "B", || project.write("b.txt", "b"));
    project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
    stop(&project, "B");
    let run = project.json("session show B")["run_id"].as_str().expect("a run").to_owned();
    project.json(&format!("undo --run {run} --yes"));
    assert!(!project.root().join("login.txt").exists() && !project.root().join("b.txt").exists());
}

#[test]
fn the_run_of_a_session_goes_back_to_before_all_of_it() {
    let project = in_git();
    let base = ic_testkit::tree(project.root());
    ask(&project, "A", "one");
    in_call(&project, "claude-code", "A", || project.write("a.txt", "a"));
    stop(&project, "A");
    let run = project.json("session show A")["run_id"].as_str().expect("a run").to_owned();
    project.json(&format!("undo created --run {run} --yes"));
    assert_eq!(ic_testkit::tree(project.root()), base);
}

#[test]
fn what_changed_after_the_end_is_not_counted_as_the_prompts() {
    let project = in_git();
    ask(&project, "A", "one");
    in_call(&project, "claude-code", "A", || project.write("a.txt", "a"));
    stop(&project, "A");
    project.write("mine.txt", "by hand");
    ask(&project, "A", "two");
    stop(&project, "A");
    let log = project.json("log");
    let counts = |title: &str| {
        let all = log.as_array().expect("a list");
        all.iter().find(|one| one["title"] == title).expect("a prompt")["file_counts"].clone()
    };
    assert_eq!(counts("one"), json!({ "created": 1, "modified": 0, "deleted": 0, "shared": 0, "directories": 0 }));
    assert_eq!(counts("two"), json!({ "created": 0, "modified": 0, "deleted": 0, "shared": 0, "directories": 0 }));
}

#[test]
fn what_was_typed_while_the_agent_worked_is_a_prompt_of_its_own() {
    let project = in_git();
    let tell = |event: &str, id: &str| {
        let said = Said::new("claude-code", "A", event).with("tool_name", "make").with("tool_use_id", id);
        said.prompt(id, "")
    };
    let work = |id: &str, file: &str| {
        assert_eq!(say(&project, &tell("PreToolUse", id)), Value::Null);
        project.write(file, file);
        say(&project, &tell("PostToolUse", id));
    };
    // As Claude Code tells it: with the name of the prompt that it still works on, and of none when its turn comes.
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-1", "first"));
    work("p-1", "first.txt");
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-1", "second"));
    work("p-1", "more.txt");
    say(&project, &tell("Stop", "p-1"));
    work("p-2", "second.txt");
    say(&project, &tell("Stop", "p-2"));
    let titles = || {
        let prompts = project.json("session show A")["prompts"].clone();
        let all =
            prompts.as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name").to_owned());
        all.collect::<Vec<_>>()
    };
    assert_eq!(titles(), ["first", "second"]);
    project.json("undo --yes");
    let is_there = ["first.txt", "more.txt", "second.txt"].map(|file| project.root().join(file).exists());
    assert_eq!(is_there, [true, true, false]);
    // What went into the turn before has none of its own.
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-3", "third"));
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-3", "and this"));
    work("p-3", "third.txt");
    say(&project, &tell("Stop", "p-3"));
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-4", "fourth"));
    work("p-4", "fourth.txt");
    assert_eq!(titles(), ["first", "second", "third", "fourth"]);
}

#[test]
fn what_a_person_changed_after_the_agent_had_stopped_stays() {
    let project = in_git();
    ask(&project, "A", "A works");
    in_call(&project, "claude-code", "A", || project.write("a.txt", "a"));
    stop(&project, "A");
    project.write("mine.txt", "by hand");
    project.json("undo --yes");
    assert!(project.root().join("mine.txt").exists() && !project.root().join("a.txt").exists());
    // While another agent works, it is not known whose a change is.
    ask(&project, "A", "A works again");
    ask(&project, "B", "B works");
    in_call(&project, "claude-code", "A", || project.write("a.txt", "a"));
    stop(&project, "A");
    let run = project.json("session show A")["run_id"].as_str().expect("a run").to_owned();
    project.json(&format!("undo --run {run} --yes"));
    assert!(!project.root().join("a.txt").exists());
}

/// What there is of git beside commits.
fn of_git(project: &Project) -> [String; 3] {
    [&["stash", "list"][..], &["branch", "--format=%(refname:short)"], &["diff", "--cached"]]
        .map(|words| git(project, words))
}

#[test]
fn what_a_person_did_to_git_between_two_prompts_stays() {
    let stash = |project: &Project| {
        project.write("README.md", "hours of work\n");
        git(project, &["stash"]);
    };
    let stage = |project: &Project| {
        project.write("README.md", "staged\n");
        git(project, &["add", "README.md"]);
        project.write("README.md", "read me\n");
    };
    let branch = |project: &Project| drop(git(project, &["branch", "mine"]));
    let deeds: [&dyn Fn(&Project); 3] = [&stash, &stage, &branch];
    for deed in deeds {
        let project = in_git();
        for (at, file) in ["first.txt", "second.txt"].into_iter().enumerate() {
            ask(&project, "A", file);
            in_call(&project, "claude-code", "A", || project.write(file, file));
            stop(&project, "A");
            if at == 0 {
                deed(&project);
            }
        }
        let theirs = of_git(&project);
        let first = project.json("log").as_array().expect("a list").last().expect("the first")["reference"].clone();
        let undo = format!("undo {} --yes", first.as_str().expect("a reference"));
        project.json(&undo);
        let is_there = ["first.txt", "second.txt"].map(|file| project.root().join(file).exists());
        assert_eq!(is_there, [false, false]);
        assert_eq!(of_git(&project), theirs);
    }
}

/// Something done to git with a file.
type OfAFile<'d> = &'d dyn Fn(&Project, &str);

#[test]
fn an_undo_of_one_prompt_after_another_is_no_work_of_others() {
    let commit = |project: &Project, file: &str| {
        project.write(file, file);
        git(project, &["add", file]);
        git(project, &["commit", "-q", "-m", file]);
    };
    let stage = |project: &Project, file: &str| {
        project.write(file, file);
        git(project, &["add", file]);
    };
    let stash = |project: &Project, file: &str| {
        project.write("README.md", file);
        git(project, &["stash", "push", "-q", "-m", file]);
    };
    let branch = |project: &Project, file: &str| drop(git(project, &["branch", file]));
    let there_and_gone = |project: &Project, _: &str| {
        let has = git(project, &["branch", "--list", "one"]) == "one";
        git(project, if has { &["branch", "-q", "-D", "one"] } else { &["branch", "one"] });
    };
    let deeds: [OfAFile<'_>; 5] = [&commit, &stage, &stash, &branch, &there_and_gone];
    for deed in deeds {
        let project = in_git();
        let whole = |project: &Project| (of_git(project), git(project, &["rev-parse", "HEAD"]));
        let mut states = vec![whole(&project)];
        for file in ["a.txt", "b.txt", "c.txt"] {
            ask(&project, "A", file);
            in_call(&project, "claude-code", "A", || deed(&project, file));
            stop(&project, "A");
            states.push(whole(&project));
        }
        for back in [2, 1] {
            project.json("undo --yes");
            assert_eq!(whole(&project), states[back]);
        }
        project.json("redo --yes");
        assert_eq!(whole(&project), states[2]);
        for back in [1, 0] {
            project.json("undo --yes");
            assert_eq!(whole(&project), states[back]);
        }
    }
}
