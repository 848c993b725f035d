//! An agent's conversation goes on from before a prompt: the copy of the client's own record, and its command.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say};
use crate::support::Project;

/// A project of a person with a home directory, in which clients keep their records.
fn with_home() -> Project {
    let mut project = in_git();
    let home = project.cli.beside("home");
    std::fs::create_dir_all(&home).expect("a directory");
    project.cli = project.cli.with_env("HOME", home);
    project
}

fn below_home(project: &Project, path: &str) -> PathBuf {
    project.cli.beside("home").join(path)
}

/// Appends lines to a record.
fn note(file: &Path, lines: &[Value]) {
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
    let before = std::fs::read_to_string(file).unwrap_or_default();
    let more: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file, before + &more).expect("write a record");
}

/// A prompt that makes a file of its name, with what the client notes of it after the hook.
fn prompt(project: &Project, client: &str, said: Said, name: &str, record: &Path, lines: &[Value]) {
    let session = said.payload["session_id"].as_str().expect("a session").to_owned();
    say(project, &said.prompt(name, name));
    note(record, lines);
    in_call(project, client, &session, || project.write(name, "text\n"));
    let stop = if client == "gemini" { "AfterAgent" } else { "Stop" };
    say(project, &Said::new(client, &session, stop));
}

fn dispatch_of(project: &Project, name: &str) -> String {
    let log = project.json("log");
    let entry = log.as_array().expect("a list").iter().find(|entry| entry["title"] == name).expect("the prompt");
    entry["reference"].as_str().expect("a reference").trim_start_matches("prompt:").to_owned()
}

fn argv(project: &Project, line: &str) -> Vec<String> {
    let record = project.json(line);
    record["argv"].as_array().expect("words").iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
}

/// What Claude Code notes of a prompt and its answer, after the line with this id.
fn exchange(name: &str, after: Option<&str>) -> [Value; 2] {
    [
        json!({ "type": "user", "uuid": format!("u-{name}"), "parentUuid": after, "promptId": name }),
        json!({ "type": "assistant", "uuid": format!("a-{name}"), "parentUuid": format!("u-{name}") }),
    ]
}

/// A session of Claude Code with three prompts, and its record.
fn of_claude() -> (Project, PathBuf) {
    let project = with_home();
    let record = below_home(&project, ".claude/projects/shop/s-1.jsonl");
    for (name, after) in [("one", None), ("two", Some("a-one")), ("three", Some("a-two"))] {
        let said = Said::new("claude-code", "s-1", "UserPromptSubmit");
        let said = said.with("transcript_path", record.to_str().expect("a path"));
        prompt(&project, "claude-code", said, name, &record, &exchange(name, after));
    }
    (project, record)
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).expect("a copy").lines().map(str::to_owned).collect()
}

#[test]
fn a_copy_ends_before_the_prompt_and_the_session_stays() {
    let (project, record) = of_claude();
    let (two, whole) = (dispatch_of(&project, "two"), lines(&record));
    let undone = project.json(&format!("undo {two} --yes"));
    assert_eq!(undone["conversations"][0]["command"], format!("ic session continue {two}"), "{undone}");
    let words = argv(&project, &format!("session continue {two} --print"));
    assert_eq!(words[..2], ["claude", "--resume"]);
    let copy = record.with_file_name(format!("{}.jsonl", words[2]));
    assert_eq!(lines(&copy), whole[..2]);
    assert_eq!(lines(&record), whole, "the session itself is not changed");
    // Each call makes a copy of its own.
    assert_ne!(argv(&project, &format!("session continue {two} --print"))[2], words[2]);
    let line = project.run(&format!("session continue {two} --print --format text")).stdout;
    assert!(line.starts_with("cd ") && line.contains(" && claude --resume "), "{line}");
}

#[test]
fn a_branch_that_was_left_does_not_come_back() {
    let (project, record) = of_claude();
    // The person went back to the first answer, and typed something else.
    let said = Said::new("claude-code", "s-1", "UserPromptSubmit");
    let said = said.with("transcript_path", record.to_str().expect("a path"));
    prompt(&project, "claude-code", said, "other", &record, &exchange("other", Some("a-one")));
    let words = argv(&project, &format!("session continue {} --print", dispatch_of(&project, "other")));
    let copy = lines(&record.with_file_name(format!("{}.jsonl", words[2])));
    assert!(copy.len() == 2 && copy[1].contains("a-one"), "{copy:?}");
}

#[test]
fn before_the_first_prompt_the_client_begins_anew() {
    let (project, _record) = of_claude();
    let first = dispatch_of(&project, "one");
    assert_eq!(argv(&project, &format!("session continue {first} --print")), ["claude"]);
}

#[test]
fn an_undo_in_the_middle_names_no_conversation() {
    let (project, _record) = of_claude();
    let two = dispatch_of(&project, "two");
    let undone = project.json(&format!("undo --only {two} --yes"));
    assert_eq!(undone["conversations"], Value::Null, "{undone}");
    let planned = project.json("undo --dry-run");
    assert_eq!(planned["conversations"], Value::Null, "a preview changes nothing: {planned}");
}

#[test]
fn a_fork_of_a_prompt_has_its_conversation() {
    let (project, record) = of_claude();
    let two = dispatch_of(&project, "two");
    let fork = project.json(&format!("fork {two} --json"));
    let place = fork["path"].as_str().expect("a directory");
    assert_eq!(fork["continuation"]["path"], fork["path"], "{fork}");
    let copy = fork["continuation"]["argv"][2].as_str().expect("an id");
    assert_eq!(lines(&record.with_file_name(format!("{copy}.jsonl"))).len(), 2);
    assert!(Path::new(place).join("one").exists() && !Path::new(place).join("two").exists());
    let tools = project.root().join("tools");
    project.write("tools/claude", "#!/bin/sh\necho \"$PWD $*\" > ran\n");
    std::process::Command::new("chmod").arg("+x").arg(tools.join("claude")).status().expect("chmod");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("PATH"));
    let ran = project.run_with("PATH", path, &format!("fork {two} --name runs --continue -- -p more"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let there = Path::new(place).with_file_name("runs");
    let said = std::fs::read_to_string(there.join("ran")).expect("it ran there");
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!((Path::new(words[0]), words[1], &words[3..]), (there.as_path(), "--resume", &["-p", "more"][..]));
}

#[test]
fn a_record_that_is_gone_is_said_and_leaves_no_fork() {
    let (project, record) = of_claude();
    let two = dispatch_of(&project, "two");
    std::fs::remove_file(&record).expect("remove it");
    for line in [format!("session continue {two} --json"), format!("fork {two} --name none --continue --json")] {
        let refused = project.run(&line);
        assert_eq!((refused.code, refused.error()), (Some(1), "no_conversation".to_owned()), "{line}");
    }
    assert_eq!(project.json("compare"), json!([]), "no fork is left");
    let work = project.ok("exec --detach -- true");
    let of_no_agent = project.run(&format!("session continue {work} --json"));
    assert_eq!((of_no_agent.code, of_no_agent.error()), (Some(1), "no_conversation".to_owned()));
}

#[test]
fn codex_gets_a_copy_under_a_name_of_its_own() {
    let project = with_home();
    let id = "01999999-0000-7000-8000-000000000001";
    let record = below_home(&project, &format!(".codex/sessions/2026/11/28/rollout-2026-11-28-{id}.jsonl"));
    note(&record, &[json!({ "type": "session_meta", "payload": { "id": id } })]);
    for name in ["one", "two"] {
        let said = Said::new("codex", id, "UserPromptSubmit").with("transcript_path", record.to_str().expect("a path"));
        let begun = json!({ "payload": { "type": "task_started", "turn_id": name } });
        let typed = json!({ "payload": { "type": "message", "role": "user", "content": id } });
        prompt(&project, "codex", said, name, &record, &[begun, typed]);
    }
    let words = argv(&project, &format!("session continue {} --print", dispatch_of(&project, "two")));
    assert_eq!(words[..2], ["codex", "resume"]);
    let copy = lines(&record.with_file_name(format!("rollout-2026-11-28-{}.jsonl", words[2])));
    assert!(copy.len() == 3 && copy[0].contains(&words[2]) && !copy[0].contains(id), "{copy:?}");
    assert!(copy[2].contains(id), "only the first line names the session: {copy:?}");
    assert_eq!(argv(&project, &format!("session continue {} --print", dispatch_of(&project, "one"))), ["codex"]);
}

#[test]
fn copilot_and_gemini_are_cut_where_the_prompt_was_given() {
    let project = with_home();
    let record = below_home(&project, ".copilot/session-state/s-2/events.jsonl");
    let told = |name: &str| json!({ "type": "user.message", "data": { "content": name } });
    note(&record, &[json!({ "type": "session.start", "id": "s-2" })]);
    for name in ["one", "two"] {
        // Copilot names no record.
        let mut said = Said::new("copilot", "s-2", "UserPromptSubmit");
        said.payload.as_object_mut().expect("an object").remove("transcript_path");
        prompt(&project, "copilot", said, name, &record, &[told(name)]);
    }
    let words = argv(&project, &format!("session continue {} --print", dispatch_of(&project, "two")));
    let id = words[1].strip_prefix("--resume=").expect("an id");
    let copy = lines(&below_home(&project, &format!(".copilot/session-state/{id}/events.jsonl")));
    assert!(copy.len() == 2 && copy[0].contains(id) && copy[1].contains("one"), "{copy:?}");
    let record = below_home(&project, ".gemini/tmp/shop/chats/session-1-s3.jsonl");
    note(&record, &[json!({ "sessionId": "s-3" })]);
    for name in ["red", "blue"] {
        let said = Said::new("gemini", "s-3", "BeforeAgent").with("transcript_path", record.to_str().expect("a path"));
        prompt(&project, "gemini", said, name, &record, &[json!({ "type": "user", "content": name })]);
    }
    let words = argv(&project, &format!("session continue {} --print", dispatch_of(&project, "blue")));
    assert_eq!(words[..2], ["gemini", "--session-file"]);
    assert_eq!(lines(Path::new(&words[2])).len(), 2, "{words:?}");
}

#[test]
fn a_prompt_in_another_work_tree_continues_the_clients_own_session() {
    let project = with_home();
    let id = "01999999-0000-7000-8000-000000000002";
    let record = below_home(&project, &format!(".codex/sessions/2026/11/28/rollout-2026-11-28-{id}.jsonl"));
    let there = project.root().join(".claude/worktrees/there");
    ic_testkit::git_in(project.root(), &["worktree", "add", "-q", "-b", "there", there.to_str().expect("text")]);
    note(&record, &[json!({ "type": "session_meta", "payload": { "id": id } })]);
    for (name, place) in [("one", project.root()), ("two", &there)] {
        let said = |event: &str| {
            let said = Said::new("codex", id, event).prompt(name, name).with("cwd", place.to_str().expect("text"));
            said.with("transcript_path", record.to_str().expect("a path")).with("turn_id", name)
        };
        say(&project, &said("UserPromptSubmit"));
        note(&record, &[json!({ "payload": { "type": "task_started", "turn_id": name } })]);
        let call = said("PreToolUse").with("tool_name", "Bash").with("tool_use_id", name);
        say(&project, &call);
        std::fs::write(place.join(name), "text\n").expect("a file");
        say(&project, &said("PostToolUse").with("tool_name", "Bash").with("tool_use_id", name));
        say(&project, &said("Stop"));
    }
    let at = there.to_str().expect("text");
    let log = project.json(&format!("-C {at} log"));
    let two = log[0]["reference"].as_str().expect("a reference").trim_start_matches("prompt:");
    let words = argv(&project, &format!("-C {at} session continue {two} --print"));
    assert_eq!(words[..2], ["codex", "resume"]);
    let copy = lines(&record.with_file_name(format!("rollout-2026-11-28-{}.jsonl", words[2])));
    assert!(copy.len() == 2 && copy[0].contains(&words[2]), "{copy:?}");
    let shown = project.json(&format!("-C {at} session list"));
    let names: Vec<&Value> = shown.as_array().expect("a list").iter().map(|one| &one["client_session_id"]).collect();
    assert!(names.len() > 1 && names.iter().all(|name| **name == id), "{names:?}");
}
