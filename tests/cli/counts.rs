//! The numbers of a prompt's files: only files are counted as files, and an interrupted prompt has its numbers, too.

use ic_testkit::git_in;
use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say};
use crate::blame::{after, before, prompt, read, stop};
use crate::support::Project;

/// What `ic log` counts of the prompt with this title.
fn counts(project: &Project, title: &str) -> Value {
    let log = project.json("log --all");
    let found = log.as_array().expect("a list").iter().find(|one| one["title"] == title);
    found.unwrap_or_else(|| panic!("{title}: {log}"))["file_counts"].clone()
}

fn created(files: usize) -> Value {
    json!({ "created": files, "modified": 0, "deleted": 0, "shared": 0, "directories": 0 })
}

#[test]
fn a_directory_is_counted_as_no_file() {
    let project = in_git();
    prompt(&project, "A", "make room");
    in_call(&project, "claude-code", "A", || {
        project.write("room/table.txt", "oak\n");
        std::fs::create_dir_all(project.root().join("empty")).expect("an empty directory");
    });
    stop(&project, "A");
    assert_eq!(
        counts(&project, "make room"),
        json!({ "created": 1, "modified": 0, "deleted": 0, "shared": 0, "directories": 1 })
    );
    let log = project.ok("log --format text");
    assert!(log.contains("make room  +1, 1 directory"), "{log}");
    let plan = project.ok("undo --dry-run --format text");
    assert!(plan.contains("has them: 1 deleted, 2 directories deleted"), "{plan}");
    project.json("undo --yes");
    let next = Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-2", "next");
    let told = say(&project, &next).to_string();
    assert!(told.contains("1 file and 2 directories changed (which: ic checkpoint diff"), "{told}");
}

/// A prompt that is interrupted in its second call: neither its end nor a stop is told.
fn cut_off() -> Project {
    let project = in_git();
    prompt(&project, "A", "begin");
    before(&project, "A", "a1", "Bash", json!({ "command": "make one" }));
    project.write("one.txt", "1");
    after(&project, "A", "a1", "Bash");
    before(&project, "A", "a2", "Bash", json!({ "command": "make two" }));
    project.write("two.txt", "2");
    project
}

fn ask(project: &Project, session: &str, text: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
}

#[test]
fn of_a_prompt_that_was_interrupted_is_counted_what_was_seen() {
    let project = cut_off();
    assert_eq!(counts(&project, "begin"), created(1), "what its first call is known to have done");
    // The next look sees the rest: the next prompt of the session, or another session's.
    for session in ["A", "B"] {
        let project = cut_off();
        ask(&project, session, "next");
        assert_eq!((counts(&project, "begin"), counts(&project, "next")), (created(2), created(0)), "{session}");
        let text = project.ok("log --format text");
        assert!(text.lines().any(|line| line.ends_with("begin  +2")), "{text}");
        in_call(&project, "claude-code", session, || project.write("three.txt", "3"));
        stop(&project, session);
        if session == "A" {
            assert_eq!((counts(&project, "begin"), counts(&project, "next")), (created(2), created(1)));
        }
    }
    let ended = cut_off();
    say(&ended, &Said::new("claude-code", "A", "SessionEnd"));
    assert_eq!(counts(&ended, "begin"), created(2));
}

#[test]
fn the_counts_of_an_interrupted_prompt_stay_when_it_is_undone_and_comes_back() {
    let project = cut_off();
    project.json("undo --yes --force-files");
    assert_eq!(counts(&project, "begin"), created(2));
    project.json("redo --yes");
    assert_eq!(counts(&project, "begin"), created(2));
    // The ids of a test follow the number of calls, and a redo took more than its share.
    project.json("status");
    ask(&project, "A", "next");
    assert_eq!((counts(&project, "begin"), counts(&project, "next")), (created(2), created(0)));
}

#[test]
fn a_prompt_whose_files_were_not_captured_says_so() {
    let project = in_git();
    project.write(".ic.yaml", "rollback: {checkpointing: {auto: false}}\n");
    ask(&project, "A", "unseen");
    stop(&project, "A");
    assert_eq!(counts(&project, "unseen"), Value::Null);
    let text = project.ok("log --format text");
    assert!(text.lines().any(|line| line.ends_with("unseen  not captured")), "{text}");
}

/// A person interrupts an agent, works, and types again: what they did from the last call on is theirs.
#[test]
fn what_a_person_does_after_an_interruption_is_no_prompts_work() {
    let commands: [&[&str]; 5] = [&[], &["ls"], &["checkout -q -b other"], &["commit"], &["echo it >> its", "ls"]];
    for calls in commands {
        let project = in_git();
        project.write("base.txt", "base\n");
        prompt(&project, "A", "typo");
        for (at, command) in calls.iter().enumerate() {
            let id = format!("a{at}");
            before(&project, "A", &id, "Bash", json!({ "command": command }));
            let words = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
            match *command {
                "ls" => {}
                "echo it >> its" => project.write("its", "it\n"),
                "commit" => {
                    project.write("its", "it\n");
                    git_in(project.root(), &["add", "its"]);
                    git_in(project.root(), &[&words[..], &["commit", "-q", "-m", "its"]].concat());
                }
                other => drop(git_in(project.root(), &other.split(' ').collect::<Vec<_>>())),
            }
            after(&project, "A", &id, "Bash");
        }
        project.write("mine.txt", "two hours\n");
        project.write("base.txt", "mine\n");
        ask(&project, "A", "again");
        stop(&project, "A");
        let its = usize::from(calls.iter().any(|command| *command != "ls" && !command.contains("checkout")));
        assert_eq!(counts(&project, "typo"), created(its), "{calls:?}");
        let blame = project.json("blame mine.txt");
        assert!(!blame.to_string().contains("typo"), "{calls:?}: {blame}");
        let (preview, undo) = (project.run("undo --dry-run --format text").stdout, project.run("undo --yes"));
        assert!(!preview.contains("mine.txt") && !preview.contains("base.txt"), "{calls:?}: {preview}");
        // Another branch that was checked out stays, and is named.
        assert_eq!(undo.code, Some(if calls.iter().any(|call| call.contains("checkout")) { 4 } else { 0 }), "{undo:?}");
        assert_eq!(
            (read(&project, "mine.txt"), read(&project, "base.txt")),
            ("two hours\n".to_owned(), "mine\n".to_owned())
        );
        assert!(!project.root().join("its").exists(), "{calls:?}");
    }
}

#[test]
fn dispatches_side_by_side_are_counted_by_what_they_recorded() {
    let project = in_git();
    let run = project.ok("run create --goal g --phases a,b");
    let begin = |name: &str| {
        let id = project.ok(&format!("dispatch create {run} --name {name}"));
        project.ok(&format!("dispatch start {id}"));
        id
    };
    let (form, api) = (begin("form"), begin("api"));
    for (id, path) in [(&form, "form.c"), (&api, "api.c")] {
        project.write(path, "1\n");
        project.ok(&format!("dispatch record {id} --file {path}"));
    }
    project.ok(&format!("dispatch complete {form}"));
    project.ok(&format!("dispatch complete {api}"));
    assert_eq!((counts(&project, "form"), counts(&project, "api")), (created(1), created(1)));
}

#[test]
fn a_log_of_what_is_no_run_says_how_to_see_it() {
    let project = in_git();
    let run = project.ok("run create --goal g --phases a,b");
    let id = project.ok(&format!("dispatch create {run} --name form"));
    let refused = project.run(&format!("log dispatch:{id} --json"));
    assert_eq!(refused.error(), "invalid_reference", "{refused:?}");
    assert!(refused.stderr.contains(&format!("ic show dispatch:{id}")), "{refused:?}");
}
