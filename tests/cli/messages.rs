//! The output of `status`, `log` and `undo` is true for a person who knows only prompts.

use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say};
use crate::blame::{after, before, prompt, stop, while_both_call, work_of};
use crate::support::Project;

/// A prompt that writes a file, from its beginning to its end.
fn turn(project: &Project, session: &str, file: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(file, file));
    in_call(project, "claude-code", session, || project.write(file, file));
    stop(project, session);
}

fn end(project: &Project, session: &str) {
    say(project, &Said::new("claude-code", session, "SessionEnd"));
}

fn entry(project: &Project, line: &str, title: &str) -> Value {
    let log = project.json(line);
    let found = log.as_array().expect("a list").iter().find(|one| one["title"] == title);
    found.unwrap_or_else(|| panic!("{title}: {log}")).clone()
}

/// The line of a text that has a word.
fn line_of(text: &str, word: &str) -> String {
    text.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {text}")).to_owned()
}

#[test]
fn after_the_undo_of_a_session_that_ended_status_says_which_prompt_stands_and_what_is_open() {
    let project = in_git();
    for session in ["A", "B"] {
        turn(&project, session, &format!("{session}.txt"));
        end(&project, session);
    }
    let undone = project.ok("undo --yes --format text");
    assert!(undone.contains("undone in"), "{undone}");
    let text = project.ok("status --format text");
    assert!(!text.contains("no run is open") && !text.contains("newest"), "{text}");
    assert!(line_of(&text, "prompt:").contains("A.txt"), "{text}");
    assert!(line_of(&text, "next").ends_with("ic log") && text.contains("ic undo --dry-run"), "{text}");
    assert_eq!(project.json("status")["next"], "ic log");
    project.json("undo --yes");
    let text = project.ok("status --format text");
    assert!(text.contains("none that stands") && !text.contains("ic undo"), "{text}");
}

#[test]
fn the_log_says_in_json_what_its_text_says_of_what_was_undone() {
    let project = in_git();
    for file in ["one.txt", "two.txt", "three.txt"] {
        turn(&project, "A", file);
    }
    let two = entry(&project, "log", "two.txt")["reference"].as_str().expect("a reference").to_owned();
    project.json(&format!("undo {two} --yes"));
    let undone = |title: &str| entry(&project, "log --all", title)["undone"].clone();
    assert_eq!(["one.txt", "two.txt", "three.txt"].map(undone), [json!(false), json!(true), json!(true)]);
    for line in ["log --format text", "log --all --format text"] {
        let text = project.ok(line);
        // The undo is an entry that names the first work that it took out.
        let (undos, works): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains("  undo  "));
        assert!(undos.len() == 1 && undos[0].contains("two.txt and a later one"), "{text}");
        let works = works.join("\n");
        for title in ["two.txt", "three.txt"] {
            if line.contains("--all") || title == "two.txt" {
                assert!(line_of(&works, title).contains("undone"), "{text}");
            }
        }
        assert!(!line_of(&works, "one.txt").contains("undone"), "{text}");
    }
    project.json("redo --yes");
    assert_eq!(["two.txt", "three.txt"].map(undone), [json!(false), json!(false)]);
    // A subagent goes with its prompt, also where that alone was undone.
    prompt(&project, "A", "with a subagent");
    let of_subagent =
        |event: &str| Said::new("claude-code", "A", event).with("agent_id", "s1").with("tool_name", "make");
    say(&project, &of_subagent("PreToolUse"));
    project.write("sub.txt", "sub");
    say(&project, &of_subagent("PostToolUse"));
    say(&project, &of_subagent("SubagentStop"));
    stop(&project, "A");
    project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
    let log = project.json("log");
    let below = log.as_array().expect("a list").iter().find(|one| one["parent_id"].is_string());
    assert_eq!(below.expect("the subagent")["undone"], true, "{log}");
}

#[test]
fn a_run_of_ones_own_hides_no_newer_prompt() {
    let project = in_git();
    project.ok("run create --goal mine --phases a,b");
    turn(&project, "A", "a.txt");
    let reference = entry(&project, "log --all", "mine")["kind"].clone();
    assert_eq!(reference, "created");
    let text = project.ok("log --format text");
    let listed = line_of(&text, "a.txt");
    let refused = project.run("undo --dry-run --format text");
    assert!(refused.stderr.contains("1 prompt outside this run: ic undo prompt:"), "{refused:?}");
    let name = listed.split_whitespace().next().expect("a name");
    assert!(project.ok(&format!("undo {name} --dry-run --format text")).contains("a.txt"));
    // Where the run has work of its own, it is meant, and the prompt is named.
    turn(&project, "A", "b.txt");
    let work = project.ok("dispatch create @ --name own");
    project.ok(&format!("dispatch start {work}"));
    project.write("own.txt", "own");
    project.ok(&format!("dispatch complete {work}"));
    let meant = project.run("undo --dry-run --format text");
    assert!(meant.stdout.contains("own") && !meant.stderr.contains("outside"), "{meant:?}");
    turn(&project, "A", "c.txt");
    let meant = project.run("undo --dry-run --format text");
    assert!(meant.stderr.contains("1 newer prompt outside this run"), "{meant:?}");
    // A question that was answered is nothing to undo.
    let before_it = project.run("undo --dry-run --format text");
    prompt(&project, "A", "what does it do?");
    before(&project, "A", "q1", "Bash", json!({ "command": "ls" }));
    after(&project, "A", "q1", "Bash");
    stop(&project, "A");
    let after_it = project.run("undo --dry-run --format text");
    assert_eq!(line_of(&after_it.stderr, "outside"), line_of(&before_it.stderr, "outside"));
}

#[test]
fn before_the_first_prompt_the_hint_is_for_who_knows_prompts() {
    let project = in_git();
    for line in ["log", "status"] {
        let refused = project.run(&format!("{line} --format text"));
        assert!(refused.stderr.contains("the first prompt of an agent"), "{refused:?}");
        assert!(refused.stderr.contains("ic hooks doctor"), "{refused:?}");
    }
}

#[test]
fn what_is_said_of_one_prompts_undo_fits_the_undo_and_the_redo() {
    let project = in_git();
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-1", "Add a login"));
    in_call(&project, "claude-code", "A", || {
        project.write("login.txt", "login");
        for words in [&["add", "login.txt"][..], &["commit", "-q", "-m", "login"]] {
            ic_testkit::git_in(project.root(), words);
        }
    });
    stop(&project, "A");
    let id = work_of(&project, "A");
    let plan = project.ok(&format!("undo --only {id} --dry-run --format text"));
    assert!(plan.contains("git revert --no-edit"), "{plan}");
    let done = project.ok(&format!("undo --only {id} --yes --format text"));
    assert!(!done.contains("git revert"), "git would refuse it now: {done}");
    let refused = say(&project, &Said::new("claude-code", "A", "PreToolUse").with("tool_name", "make")).to_string();
    assert_eq!(refused.matches("undone").count(), 1, "{refused}");
    assert!(refused.contains("Add a login") && refused.contains("1 file changed (which: ic "), "{refused}");
    let redone = project.ok("redo --yes --format text");
    assert!(redone.contains("with what it did again") && !redone.contains("without"), "{redone}");
    // Its agent hears who it was, and how to see the files.
    let undone = project.ok(&format!("undo prompt:{} --yes --format text", &id[28..]));
    assert!(undone.contains("login.txt"), "{undone}");
    let told = say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-2", "next")).to_string();
    assert!(told.contains("the person undid \\\"Add a login\\\"") && told.contains("1 file changed"), "{told}");
    let command = told.split_once("which: ic ").and_then(|(_, rest)| rest.split_once(')')).expect("a command").0;
    assert!(project.ok(&format!("{command} --format text")).contains("login.txt"));
}

#[test]
fn the_log_counts_what_a_prompt_changed_itself_and_names_what_is_shared() {
    let project = in_git();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    in_call(&project, "claude-code", "A", || {
        project.write("a.txt", "a");
        project.write("README.md", "A was here\n");
    });
    in_call(&project, "claude-code", "B", || {
        for file in ["b1.txt", "b2.txt", "b3.txt", "b4.txt"] {
            project.write(file, "b");
        }
    });
    // Both are in a call, and none of them names the file.
    while_both_call(&project, "2", || project.write("whose.txt", "?"));
    stop(&project, "A");
    stop(&project, "B");
    let counts = |title: &str| {
        let found = entry(&project, "log", title)["file_counts"].clone();
        ["created", "modified", "deleted", "shared"].map(|key| found[key].as_i64().unwrap_or(-1))
    };
    assert_eq!((counts("A works"), counts("B works")), ([1, 1, 0, 1], [4, 0, 0, 1]));
    let text = project.ok("log --format text");
    assert!(line_of(&text, "A works").ends_with("+1 ~1, 1 shared"), "{text}");
    // Who was alone has all.
    turn(&project, "A", "alone.txt");
    assert_eq!(counts("alone.txt"), [1, 0, 0, 0]);
}

#[test]
fn status_names_the_prompts_that_agents_work_on_beside_the_run() {
    let project = in_git();
    prompt(&project, "A", "A works");
    let of_session = project.json("session show A")["run_id"].clone();
    let own = project.ok("run create --goal mine --phases x,y");
    let seen = project.json("status");
    assert_eq!((&seen["run"]["id"], &seen["working"]), (&json!(own.trim()), &json!([])));
    assert_eq!((&seen["elsewhere"][0]["name"], &seen["elsewhere"][0]["run_id"]), (&json!("A works"), &of_session));
    let text = project.ok("status --format text");
    assert!(line_of(&text, "elsewhere").contains("A works, begun"), "{text}");
    // In the view of its own run it is a worker of that.
    let seen = project.json(&format!("status {}", of_session.as_str().expect("a run")));
    assert_eq!((&seen["working"][0]["name"], &seen["elsewhere"]), (&json!("A works"), &json!([])));
    stop(&project, "A");
    assert_eq!(project.json("status")["elsewhere"], json!([]));
}

#[test]
fn status_names_a_prompt_at_work_after_many_newer_ones() {
    let project = in_git();
    prompt(&project, "A", "A works");
    for n in 0..21 {
        let said = Said::new("claude-code", "B", "UserPromptSubmit");
        say(&project, &said.prompt(&format!("p-{n}"), "B works"));
        stop(&project, "B");
    }
    project.ok("run create --goal mine --phases x,y");
    assert_eq!(project.json("status")["elsewhere"][0]["name"], "A works");
}

#[test]
fn at_a_terminal_lines_break_at_spaces() {
    let project = in_git();
    turn(&project, "A", "a.txt");
    let log = project.command(["log"]);
    let mut shell = std::process::Command::new("/bin/sh");
    shell.arg("-c").arg(format!("stty cols 80 rows 24; exec {} log", log.get_program().display()));
    shell.envs(log.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Some(terminal) = ic_testkit::Terminal::open(&shell, project.root()) else { return };
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(lines.iter().any(|line| line.ends_with("ic undo ID --only")), "{shown}");
}

#[test]
fn a_person_who_types_ic_hook_is_told_of_ic_hooks() {
    let project = in_git();
    let call = project.command(["hook", "install", "claude-code"]);
    let Some(terminal) = ic_testkit::Terminal::open(&call, project.root()) else { return };
    let (code, shown) = terminal.ends();
    assert!(code == Some(3) && shown.contains("ic hooks install CLIENT"), "{code:?}: {shown}");
}
