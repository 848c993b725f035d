//! Subagents: their work is a dispatch of its own, a child of the prompt's.

use serde_json::{Value, json};

use crate::agents::{in_git, say};
use crate::blame::{after, before, blamed, call, prompt, read, stop, told, work_of};
use crate::stop_gate::created;
use crate::support::Project;

/// What a subagent of session A says of a call.
fn by(agent: &str, event: &str, id: &str, input: &Value) -> crate::agents::Said {
    call("A", event, id, "Bash", input.clone()).with("agent_id", agent).with("agent_type", "helper")
}

/// A call of a subagent that writes a file.
fn writes(project: &Project, agent: &str, id: &str, file: &str, text: &str) {
    let input = json!({ "command": format!("echo {}", text.trim()) });
    assert_eq!(say(project, &by(agent, "PreToolUse", id, &input)), Value::Null, "{id} is let through");
    project.write(file, text);
    assert_eq!(say(project, &by(agent, "PostToolUse", id, &input)), Value::Null);
}

fn stops(project: &Project, agent: &str) {
    assert_eq!(say(project, &by(agent, "SubagentStop", "", &Value::Null)), Value::Null);
}

fn subagents(project: &Project) -> Vec<Value> {
    project.json("session show A --calls")["subagents"].as_array().expect("a list").clone()
}

/// A prompt whose two subagents and whose agent itself each write a file and a line of the same one.
fn story() -> Project {
    let project = in_git();
    project.write("f.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nlast\n");
    prompt(&project, "A", "A works");
    before(&project, "A", "a1", "Write", json!({ "file_path": "own.txt" }));
    project.write("own.txt", "own\n");
    after(&project, "A", "a1", "Write");
    writes(&project, "s1", "c1", "first.txt", "of the first\n");
    writes(&project, "s1", "c2", "f.txt", "ONE\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nlast\n");
    writes(&project, "s2", "c3", "second.txt", "of the second\n");
    stops(&project, "s1");
    writes(&project, "s2", "c4", "f.txt", "ONE\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nLAST\n");
    stops(&project, "s2");
    stop(&project, "A");
    project
}

#[test]
fn the_conversation_of_a_subagent_that_was_undone_begins_after_its_prompt() {
    let project = story();
    let first = work_of(&project, "A");
    let sub = subagents(&project)[1]["id"].as_str().expect("an id").to_owned();
    prompt(&project, "A", "A goes on");
    before(&project, "A", "a2", "Write", json!({ "file_path": "more.txt" }));
    project.write("more.txt", "more\n");
    after(&project, "A", "a2", "Write");
    stop(&project, "A");
    let undone = project.json(&format!("undo {sub} --yes"));
    let of: Vec<&Value> =
        undone["conversations"].as_array().into_iter().flatten().map(|one| &one["dispatch_id"]).collect();
    assert!(of.len() == 1 && *of[0] != json!(first), "its prompt stands: {undone}");
}

#[test]
fn each_subagent_is_the_child_of_its_prompt_and_what_it_did_is_its_own() {
    let project = story();
    let prompt = work_of(&project, "A");
    let all = subagents(&project);
    assert_eq!(all.len(), 2, "{all:?}");
    for one in &all {
        assert_eq!((&one["parent_id"], &one["status"]), (&json!(prompt), &json!("completed")), "{one}");
        assert_eq!(one["agent_kind"], "helper");
    }
    let names = all.iter().map(|one| one["name"].as_str().expect("a name")).collect::<Vec<_>>();
    assert_eq!(names, ["helper: echo of the first", "helper: echo of the second"]);
    assert_eq!(blamed(&project, "first.txt"), [told("added", names[0], "Bash")]);
    assert_eq!(blamed(&project, "own.txt"), [told("added", "A works", "Write")]);
    // It is named as what it is: the subagent, by its kind, and the prompt that it worked for.
    let whose = |file: &str| project.json(&format!("blame {file}"))["changes"][0]["dispatches"][0].clone();
    let (own, part) = (whose("own.txt"), whose("first.txt"));
    assert_eq!((&part["agent_kind"], &part["prompt_id"]), (&json!("helper"), &json!(prompt)), "{part}");
    assert_eq!((&part["prompt_name"], &part["client"]), (&json!("A works"), &json!("claude-code")));
    assert_eq!((&own["agent_kind"], &own["prompt_id"]), (&json!("claude-code"), &Value::Null), "{own}");
    let reference = format!("dispatch:{} of prompt:{}", part["short_id"].as_str().expect("an id"), &prompt[28..]);
    let text = project.ok("blame first.txt --format text");
    assert!(text.contains(&format!("{reference}  Bash  ↳ helper: echo of the first")), "{text}");
    let log = project.json("log");
    let kinds: Vec<(&str, &Value)> = log
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["kind"].as_str().expect("a kind"), &one["parent_id"]))
        .collect();
    let parent = json!(prompt);
    assert_eq!(kinds, [("dispatch", &parent), ("dispatch", &parent), ("prompt", &Value::Null)]);
    // Of the prompt the whole is told, of a subagent its part.
    assert_eq!(
        log[2]["file_counts"],
        json!({ "created": 3, "modified": 1, "deleted": 0, "shared": 0, "directories": 0 })
    );
    let text = project.run("log --format text").stdout;
    assert!(text.contains("↳ helper: echo of t"), "{text}");
}

#[test]
fn one_subagent_is_undone_alone_and_comes_back() {
    let project = story();
    let whole = ic_testkit::tree(project.root());
    let first = subagents(&project)[0]["id"].as_str().expect("an id").to_owned();
    let report = project.json(&format!("undo --only {first} --yes"));
    assert_eq!(read(&project, "f.txt"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nLAST\n", "the other's line stays");
    assert!(!project.root().join("first.txt").exists());
    assert!(project.root().join("second.txt").exists() && project.root().join("own.txt").exists());
    let run = report["run_id"].as_str().expect("its run");
    project.json(&format!("redo --run {run} --yes"));
    assert_eq!(ic_testkit::tree(project.root()), whole);
}

#[test]
fn the_undo_of_a_prompt_takes_its_subagents_along_and_they_are_refused() {
    for how in ["", "alone"] {
        let project = in_git();
        let base = ic_testkit::tree(project.root());
        prompt(&project, "A", "A works");
        writes(&project, "s1", "c1", "first.txt", "of the first\n");
        if how == "alone" {
            stop(&project, "A");
            let refused = |id: &str| {
                let said = by("s1", "PreToolUse", id, &json!({ "command": "make" }));
                say(&project, &said)
            };
            assert_eq!(refused("c2"), Value::Null);
            let (code, error) = project.refused(&format!("undo --only {} --yes", work_of(&project, "A")));
            assert_eq!((code, error.as_str()), (1, "work_running"), "it is in the middle of a call");
            say(&project, &by("s1", "PostToolUse", "c2", &json!({})));
            project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
        } else {
            project.json("undo --yes");
        }
        assert_eq!(ic_testkit::tree(project.root()), base, "{how}");
        let all = subagents(&project);
        assert!(!all[0]["rolled_back_by"].is_null() && all[0]["status"] == "cancelled", "{how}: {all:?}");
        let answer = say(&project, &by("s1", "PreToolUse", "c9", &json!({ "command": "make" })));
        let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().expect("a reason");
        assert!(reason.contains("was undone"), "{how}: {reason}");
    }
}

#[test]
fn a_subagent_that_was_undone_alone_is_refused_and_its_agent_is_not() {
    let project = in_git();
    prompt(&project, "A", "A works");
    writes(&project, "s1", "c1", "first.txt", "of the first\n");
    stops(&project, "s1");
    let first = subagents(&project)[0]["id"].as_str().expect("an id").to_owned();
    project.json(&format!("undo --only {first} --yes"));
    let answer = say(&project, &by("s1", "PreToolUse", "c2", &json!({ "command": "make" })));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    before(&project, "A", "a1", "Bash", json!({ "command": "make" }));
    after(&project, "A", "a1", "Bash");
    writes(&project, "s2", "c3", "second.txt", "of the second\n");
    stop(&project, "A");
    // For the next prompt it may work again: that is other work.
    say(&project, &crate::agents::Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-2", "again"));
    let said = by("s1", "PreToolUse", "c4", &json!({ "command": "make" })).prompt("p-2", "");
    assert_eq!(say(&project, &said), Value::Null);
    assert_eq!(subagents(&project).len(), 3);
}

#[test]
fn one_that_only_reads_has_no_row_and_one_whose_end_is_not_told_ends_with_the_session() {
    let project = in_git();
    prompt(&project, "A", "A works");
    let reads = call("A", "PreToolUse", "r1", "Read", json!({ "file_path": "f.txt" }));
    assert_eq!(say(&project, &reads.with("agent_id", "s1").with("agent_type", "helper")), Value::Null);
    stops(&project, "s1");
    assert!(subagents(&project).is_empty());
    writes(&project, "s2", "c1", "second.txt", "of the second\n");
    stop(&project, "A");
    assert_eq!(subagents(&project)[0]["status"], "running");
    say(&project, &crate::agents::Said::new("claude-code", "A", "SessionEnd"));
    let all = subagents(&project);
    assert_eq!(all[0]["status"], "cancelled", "{all:?}");
    // Its calls tell what it did, so it can be undone alone anyway.
    let id = all[0]["id"].as_str().expect("an id");
    project.json(&format!("undo --only {id} --yes"));
    assert!(!project.root().join("second.txt").exists());
}

#[test]
fn undo_without_a_point_means_the_prompt_and_never_a_subagent() {
    let project = story();
    let plan = project.json("undo --dry-run");
    assert_eq!(plan["dispatch_ids"], json!([work_of(&project, "A")]), "{plan}");
}

#[test]
fn a_prompt_belongs_to_the_dispatch_that_its_client_was_started_for() {
    let project = in_git();
    let run = created(&project, &["run", "create", "--goal", "sprint", "--phases", "a,b"]);
    let dispatch = created(&project, &["dispatch", "create", &run, "--name", "build"]);
    project.json(&format!("dispatch start {dispatch}"));
    let said = crate::agents::Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-A", "A works");
    crate::agents::say_with(&project, &said, &[("IC_RUN", &run), ("IC_DISPATCH", &dispatch)]);
    let shown = project.json("session show A");
    assert_eq!(shown["prompts"][0]["parent_id"], json!(dispatch), "{shown}");
    assert_eq!(shown["subagents"], json!([]), "a prompt is no subagent");
    project.json(&format!("undo dispatch:{dispatch} --yes"));
    let answer = say(&project, &call("A", "PreToolUse", "a1", "Bash", json!({ "command": "make" })));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
}

#[test]
fn what_its_agent_did_beside_it_is_not_counted_as_a_subagents() {
    let project = in_git();
    prompt(&project, "A", "A works");
    writes(&project, "s1", "c1", "first.txt", "of the first\n");
    before(&project, "A", "a1", "Write", json!({ "file_path": "beside.txt" }));
    project.write("beside.txt", "beside\n");
    after(&project, "A", "a1", "Write");
    writes(&project, "s1", "c2", "second.txt", "of the first, too\n");
    stops(&project, "s1");
    stop(&project, "A");
    let log = project.json("log");
    let created = |at: usize| log[at]["file_counts"]["created"].as_i64();
    assert_eq!((log[0]["kind"].as_str(), created(0), created(1)), (Some("dispatch"), Some(2), Some(3)), "{log}");
    // The run began with the prompt: nothing lies between.
    let all = project.json(&format!("log {}", log[0]["run_id"].as_str().expect("a run")));
    let created = all.as_array().and_then(|all| all.last()).expect("where it began");
    assert_eq!((&created["kind"], &created["file_counts"]["created"]), (&json!("created"), &json!(0)), "{all}");
    let first = subagents(&project)[0]["id"].as_str().expect("an id").to_owned();
    let report = project.json(&format!("undo --only {first} --dry-run"));
    assert_eq!(report["files"]["changes"].as_array().map(Vec::len), Some(2), "{report}");
}
