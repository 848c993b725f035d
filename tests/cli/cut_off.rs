//! Hooks that are killed or cut off: the prompt is recorded before the tree is captured, and an untold change is added to no other prompt.

use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::agents::{Said, begin, captured, in_call, in_git, logged, say, say_with};
use crate::blame::read;
use crate::support::Project;

/// A limit that is over before the first file: the capture is cut off.
const CUT_OFF: (&str, &str) = ("IC_HOOK_LIMIT", "0");

fn asked(id: &str, text: &str) -> Said {
    Said::new("claude-code", "A", "UserPromptSubmit").prompt(id, text)
}

fn of_call(event: &str, prompt: &str, call: &str) -> Said {
    Said::new("claude-code", "A", event).prompt(prompt, "").with("tool_name", "Bash").with("tool_use_id", call)
}

/// A call for a prompt that writes a file of its name.
fn writes(project: &Project, prompt: &str, file: &str) {
    assert_eq!(say(project, &of_call("PreToolUse", prompt, file)), Value::Null);
    project.write(file, file);
    say(project, &of_call("PostToolUse", prompt, file));
}

fn stops(project: &Project, prompt: &str) {
    say(project, &Said::new("claude-code", "A", "Stop").prompt(prompt, ""));
}

fn prompts(project: &Project) -> Vec<(String, String)> {
    let shown = project.json("session show A")["prompts"].clone();
    let text = |one: &Value, key: &str| one[key].as_str().expect("a text").to_owned();
    shown.as_array().expect("a list").iter().map(|one| (text(one, "name"), text(one, "status"))).collect()
}

fn base() -> Project {
    let project = captured();
    project.write("README.md", "read me\n");
    project
}

/// How a process ended that was told to die before a statement.
fn died(child: Child) -> bool {
    !child.wait_with_output().expect("its end").status.success()
}

#[test]
fn a_prompt_whose_capture_is_cut_off_is_on_record_and_its_first_call_looks() {
    let project = base();
    let before = ic_testkit::tree(project.root());
    assert_eq!(say_with(&project, &asked("p-1", "Add it"), &[CUT_OFF]), Value::Null);
    assert_eq!(prompts(&project), [("Add it".to_owned(), "pending".to_owned())]);
    assert_eq!(project.json("log")[0]["checkpoint_id"], Value::Null);
    let failed = project.json("hooks doctor claude-code")[0]["failures"][0].clone();
    assert!(failed["message"].as_str().expect("a text").contains("timed_out"), "{failed}");
    // The same hook once more, as a client with two installations calls it: the look is made up for.
    writes(&project, "p-1", "made.txt");
    stops(&project, "p-1");
    assert_eq!(prompts(&project), [("Add it".to_owned(), "completed".to_owned())]);
    project.json("undo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
}

#[test]
fn a_repeated_hook_makes_up_for_the_look() {
    let project = base();
    say_with(&project, &asked("p-1", "Add it"), &[CUT_OFF]);
    say(&project, &asked("p-1", "Add it"));
    assert_eq!(prompts(&project), [("Add it".to_owned(), "running".to_owned())]);
    assert_ne!(project.json("log")[0]["checkpoint_id"], Value::Null);
}

#[test]
fn a_question_whose_look_was_cut_off_is_no_work_to_undo() {
    let project = base();
    say(&project, &asked("p-1", "Add it"));
    writes(&project, "p-1", "made.txt");
    stops(&project, "p-1");
    say_with(&project, &asked("p-2", "Why?"), &[CUT_OFF]);
    stops(&project, "p-2");
    project.json("undo --yes");
    assert!(!project.root().join("made.txt").exists(), "what was done before the question is meant");
}

#[test]
fn a_prompt_of_which_no_call_was_looked_at_is_unsure_and_is_not_undone_in_silence() {
    let project = base();
    say_with(&project, &asked("p-1", "Add it"), &[CUT_OFF]);
    say_with(&project, &of_call("PreToolUse", "p-1", "c1"), &[CUT_OFF]);
    project.write("made.txt", "made");
    say(&project, &of_call("PostToolUse", "p-1", "c1"));
    stops(&project, "p-1");
    let refused = project.run("undo --yes");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "no_checkpoint"), "{refused:?}");
    assert!(refused.stderr.contains("unsure"), "{refused:?}");
    assert!(project.root().join("made.txt").exists());
    assert!(project.ok("log --format text").contains("not captured"));
}

#[test]
fn a_hook_that_dies_anywhere_loses_no_prompt_and_blocks_nothing() {
    let mut deaths = 0;
    for at in (1..).step_by(4) {
        let project = base();
        let before = ic_testkit::tree(project.root());
        let statement = at.to_string();
        let dying = begin(&project, &asked("p-1", "Add it"), &[("IC_TEST_ABORT_BEFORE", &statement)]);
        if !died(dying) {
            break;
        }
        deaths += 1;
        let doctor = project.json("hooks doctor claude-code");
        let failed = doctor[0]["failures"][0].clone();
        assert_eq!(failed["code"], "hook_cut_off", "{at}: {doctor}");
        assert_eq!(failed["event"], "UserPromptSubmit", "{at}: {doctor}");
        writes(&project, "p-1", "made.txt");
        assert!(logged(&project).iter().any(|line| line["code"] == "hook_cut_off"), "{at}: it is in the log now");
        stops(&project, "p-1");
        let named = prompts(&project);
        assert_eq!(named.len(), 1, "{at}: {named:?}");
        assert!(["Add it", "(prompt not seen)"].contains(&named[0].0.as_str()), "{at}: {named:?}");
        project.json("undo --yes");
        assert_eq!(ic_testkit::tree(project.root()), before, "{at}");
        assert!(project.run("status --format text").stderr.contains("did not end"), "{at}");
    }
    assert!(deaths > 3, "{deaths}");
}

#[test]
fn a_call_whose_hook_dies_leaves_no_look_that_comes_after_its_change() {
    let mut deaths = 0;
    for at in (1..).step_by(3) {
        let project = base();
        say_with(&project, &asked("p-1", "Add it"), &[CUT_OFF]);
        let statement = at.to_string();
        let dying = begin(&project, &of_call("PreToolUse", "p-1", "c1"), &[("IC_TEST_ABORT_BEFORE", &statement)]);
        let has_died = died(dying);
        deaths += usize::from(has_died);
        project.write("first.txt", "first");
        say(&project, &of_call("PostToolUse", "p-1", "c1"));
        writes(&project, "p-1", "second.txt");
        stops(&project, "p-1");
        let undone = project.run("undo --yes");
        let is_there = ["first.txt", "second.txt"].map(|file| project.root().join(file).exists());
        // Before anything of the call was recorded, ic cannot know of it; after that it is never half undone.
        let is_known = project.json("session show A --calls")["calls"].to_string().contains("first.txt")
            || project.json("session show A --calls")["calls"].as_array().is_some_and(|calls| calls.len() > 1);
        if is_known {
            assert!(
                (undone.code == Some(0) && is_there == [false, false])
                    || (undone.error() == "no_checkpoint" && is_there == [true, true]),
                "{at}: {undone:?} {is_there:?}"
            );
        }
        if !has_died {
            assert_eq!(undone.code, Some(0), "{undone:?}");
            break;
        }
    }
    assert!(deaths > 1, "{deaths}");
}

#[test]
fn a_prompt_that_nobody_told_is_a_prompt_of_its_own() {
    let project = base();
    say(&project, &asked("p-1", "Add it"));
    writes(&project, "p-1", "one.txt");
    stops(&project, "p-1");
    // The hook of the second one was killed before it recorded anything.
    writes(&project, "p-2", "two.txt");
    writes(&project, "p-2", "more.txt");
    stops(&project, "p-2");
    // Of the third one, too, and the stop before it.
    writes(&project, "p-3", "three.txt");
    writes(&project, "p-4", "four.txt");
    let names: Vec<String> = prompts(&project).into_iter().map(|(name, _)| name).collect();
    let unseen = "(prompt not seen)";
    assert_eq!(names, ["Add it", unseen, unseen, unseen]);
    let is_there =
        || ["one.txt", "two.txt", "more.txt", "three.txt", "four.txt"].map(|file| project.root().join(file).exists());
    stops(&project, "p-4");
    project.json("undo --yes");
    assert_eq!(is_there(), [true, true, true, true, false]);
    project.json("undo --yes");
    assert_eq!(is_there(), [true, true, true, false, false]);
    project.json("undo --yes");
    assert_eq!(is_there(), [true, false, false, false, false], "one undo takes one prompt");
}

#[test]
fn without_names_of_prompts_a_stop_ends_one() {
    for (client, prompt, stop) in
        [("gemini", "BeforeAgent", "AfterAgent"), ("opencode", "chat.message", "session.idle")]
    {
        let project = base();
        // The very first prompt's hook never came.
        in_call(&project, client, "A", || project.write("one.txt", "1"));
        in_call(&project, client, "A", || project.write("more.txt", "1"));
        say(&project, &Said::new(client, "A", stop));
        in_call(&project, client, "A", || project.write("two.txt", "2"));
        say(&project, &Said::new(client, "A", stop));
        assert_eq!(prompts(&project).len(), 2, "{client}");
        project.json("undo --yes");
        let is_there = ["one.txt", "more.txt", "two.txt"].map(|file| project.root().join(file).exists());
        assert_eq!(is_there, [true, true, false], "{client}");
        say(&project, &Said::new(client, "A", prompt).prompt("p", "Typed"));
        assert_eq!(prompts(&project)[2].0, "Typed", "{client}");
    }
}

#[test]
fn a_hook_that_is_asked_to_end_records_its_prompt() {
    let project = base();
    let mut command = project.command(["hook", "claude-code", "UserPromptSubmit"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start ic");
    let payload = json!({ "session_id": "A", "prompt": "Add it", "prompt_id": "p-1", "cwd": project.root() });
    child.stdin.take().expect("its input").write_all(payload.to_string().as_bytes()).expect("tell it");
    // Whenever the signal comes: it is on record, or nothing is half recorded, and the next call goes on.
    let pid = child.id().to_string();
    let _ = std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
    child.wait().expect("its end");
    writes(&project, "p-1", "made.txt");
    stops(&project, "p-1");
    project.json("undo --yes");
    assert!(!project.root().join("made.txt").exists());
}

#[test]
fn an_agent_that_asks_for_an_undo_means_what_it_did_before() {
    let project = base();
    for (id, file) in [("p-1", "one.txt"), ("p-2", "two.txt")] {
        say(&project, &asked(id, file));
        writes(&project, id, file);
        stops(&project, id);
    }
    say(&project, &asked("p-3", "What is in here?"));
    stops(&project, "p-3");
    // Newer work of another session is not meant.
    say(&project, &Said::new("codex", "C", "UserPromptSubmit").prompt("q", "Other"));
    in_call(&project, "codex", "C", || project.write("other.txt", "other"));
    say(&project, &Said::new("codex", "C", "Stop"));
    say(&project, &asked("p-4", "undo my last prompt"));
    writes(&project, "p-4", "own.txt");
    let undo = || project.run_with("CLAUDE_CODE_SESSION_ID", "A", "undo --yes --json");
    let is_there = || ["one.txt", "two.txt", "other.txt", "own.txt"].map(|file| project.root().join(file).exists());
    assert_eq!(undo().code, Some(0));
    assert_eq!(is_there(), [true, false, true, true]);
    assert_eq!(say(&project, &of_call("PreToolUse", "p-4", "next")), Value::Null, "the agent that asked goes on");
    say(&project, &of_call("PostToolUse", "p-4", "next"));
    assert_eq!(undo().code, Some(0));
    assert_eq!(is_there(), [false, false, true, true]);
    let nothing = undo();
    assert_eq!((nothing.code, nothing.error().as_str()), (Some(1), "nothing_to_undo"), "{nothing:?}");
    assert_eq!(is_there(), [false, false, true, true]);
    assert_eq!(prompts(&project)[3].1, "running");
}

#[test]
fn right_after_the_installation_the_log_waits() {
    let project = captured();
    assert_eq!(project.run("log").error(), "run_not_found", "nothing is to come");
    project.ok("hooks install claude-code");
    assert_eq!(project.json("log"), json!([]));
    let text = project.ok("log --format text");
    assert!(text.contains("waits for the first prompt") && text.contains("claude-code"), "{text}");
}

#[test]
fn what_hooks_take_says_for_which_session_and_prompt() {
    let project = base();
    say(&project, &asked("p-1", "Add it"));
    writes(&project, "p-1", "one.txt");
    stops(&project, "p-1");
    project.ok("checkpoint create --name mine");
    let shown = project.json("session show A");
    let (session, prompt) = (shown["id"].clone(), shown["prompts"][0]["id"].clone());
    let all = project.json("checkpoint list --calls");
    let all = all.as_array().expect("a list");
    let (mine, of_hooks): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|one| one["name"] == "mine");
    assert!(of_hooks.len() >= 3, "before it, around its call, at its end: {all:?}");
    for one in of_hooks {
        assert_eq!((&one["session_id"], &one["prompt_id"]), (&session, &prompt), "{one}");
        let id = one["id"].as_str().expect("an id");
        assert_eq!(project.json(&format!("checkpoint show {id}"))["prompt_id"], prompt);
        let short = &prompt.as_str().expect("an id")[28..];
        let text = project.ok(&format!("checkpoint show {id} --format text"));
        assert!(text.contains("session") && text.contains(short), "{text}");
        assert!(project.ok("checkpoint list --format text").contains(&format!("prompt:{short}")));
    }
    assert_eq!((&mine[0]["session_id"], &mine[0]["prompt_id"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_git_that_hangs_ends_with_the_capture_that_asked_it() {
    let project = crate::agents::in_git();
    let (pid, bin) = (project.cli.home().join("pid"), project.cli.home().join("bin"));
    let usual = std::env::var("PATH").expect("a path");
    let script = format!(
        "#!/bin/sh\nPATH='{usual}'\ncase \" $* \" in *' status '*) sleep 3600 & echo $! >'{}'; wait;; esac\nexec git \"$@\"\n",
        pid.display()
    );
    let git = ic_testkit::write_in(&bin, "git", script);
    std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it runs");
    let path = format!("{}:{usual}", bin.display());
    let hang = [("PATH", path.as_str()), ("IC_HOOK_LIMIT", "1")];
    assert_eq!(say_with(&project, &asked("p-1", "Add it"), &hang), Value::Null);
    assert_eq!(prompts(&project), [("Add it".to_owned(), "pending".to_owned())], "its look was cut off");
    let pid = std::fs::read_to_string(&pid).expect("git was asked");
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let is_alive = !state.is_empty() && !state.contains(") Z ");
    assert!(!is_alive, "git's own child has ended, too: {state}");
    // The next call looks, where git answers.
    writes(&project, "p-1", "made");
    stops(&project, "p-1");
    project.json("undo --yes");
    assert!(!project.root().join("made").exists());
}

#[test]
fn a_call_without_an_end_is_over_when_a_person_types_again() {
    let project = in_git();
    project.write("work.txt", "before\n");
    say(&project, &asked("first", "first"));
    stops(&project, "first");
    // What the agent does after it has stopped, and whose end no hook told.
    say(&project, &of_call("PreToolUse", "first", "late"));
    say(&project, &asked("last", "last"));
    project.write("work.txt", "last\n");
    stops(&project, "last");
    let run = project.json("session list")[0]["run_id"].as_str().expect("a run").to_owned();
    let list = project.json(&format!("dispatch list {run}"));
    let late = list
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"].as_str().is_some_and(|name| name.starts_with("after its end")))
        .cloned();
    assert_eq!(late.unwrap_or_else(|| panic!("{list}"))["status"], "cancelled");
    project.json("undo --yes");
    assert_eq!(read(&project, "work.txt"), "before\n");
}
