//! Several agents in one tree at the same time: their tool calls tell `ic blame`, and the undo of one of them, whose change it is.

use serde_json::{Value, json};

use crate::agents::{Said, captured, in_git, say};
use crate::support::Project;

/// What a client says of a tool call that names no prompt: it belongs to the one that is worked on.
pub(crate) fn call(session: &str, event: &str, id: &str, tool: &str, input: Value) -> Said {
    let mut said = Said::new("claude-code", session, event);
    said.payload["tool_name"] = json!(tool);
    said.payload["tool_use_id"] = json!(id);
    said.payload["tool_input"] = input;
    said
}

pub(crate) fn before(project: &Project, session: &str, id: &str, tool: &str, input: Value) {
    assert_eq!(say(project, &call(session, "PreToolUse", id, tool, input)), Value::Null, "{id} is let through");
}

pub(crate) fn after(project: &Project, session: &str, id: &str, tool: &str) {
    assert_eq!(say(project, &call(session, "PostToolUse", id, tool, json!({}))), Value::Null);
}

pub(crate) fn prompt(project: &Project, session: &str, text: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(&format!("p-{session}"), text));
}

pub(crate) fn stop(project: &Project, session: &str) {
    say(project, &Said::new("claude-code", session, "Stop"));
}

/// What is done while the sessions A and B are both in a call that names no file.
pub(crate) fn while_both_call(project: &Project, n: &str, deed: impl Fn()) {
    let calls = [("A", format!("a{n}")), ("B", format!("b{n}"))];
    for (session, id) in &calls {
        before(project, session, id, "Bash", json!({ "command": "make" }));
    }
    deed();
    for (session, id) in &calls {
        after(project, session, id, "Bash");
    }
}

pub(crate) fn read(project: &Project, file: &str) -> String {
    std::fs::read_to_string(project.root().join(file)).expect("a text")
}

/// The work of the newest prompt of a session.
pub(crate) fn work_of(project: &Project, session: &str) -> String {
    let prompts = project.json(&format!("session show {session}"))["prompts"].clone();
    prompts.as_array().and_then(|all| all.last()).expect("a prompt")["id"].as_str().expect("its id").to_owned()
}

/// Who made each change of a file, newest first: the titles of the work, and the tools.
pub(crate) fn blamed(project: &Project, file: &str) -> Vec<(String, String, String)> {
    let names = |list: &Value, key: &str| {
        let all = list.as_array().expect("a list").iter().map(|one| one[key].as_str().expect("a text"));
        all.collect::<Vec<_>>().join("+")
    };
    let found = project.json(&format!("blame {file}"));
    let changes = found["changes"].as_array().expect("changes").iter();
    changes
        .map(|one| {
            let change = one["change"].as_str().expect("a change").to_owned();
            let change = if one["by_restore"] == true { "restored".to_owned() } else { change };
            (change, names(&one["dispatches"], "name"), names(&one["calls"], "tool"))
        })
        .collect()
}

pub(crate) fn told(change: &str, who: &str, tools: &str) -> (String, String, String) {
    (change.to_owned(), who.to_owned(), tools.to_owned())
}

/// Two agents that edit one file at the same time, one of them in a shell.
fn interleaved() -> Project {
    let project = in_git();
    project.write("f.txt", "one\n2\n3\n4\n5\n6\nseven\n");
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    before(&project, "A", "a1", "Edit", json!({ "file_path": project.root().join("f.txt") }));
    project.write("f.txt", "ONE\n2\n3\n4\n5\n6\nseven\n");
    after(&project, "A", "a1", "Edit");
    before(&project, "B", "b1", "Bash", json!({ "command": "sed -i s/seven/SEVEN/ f.txt; echo b >b.txt" }));
    project.write("f.txt", "ONE\n2\n3\n4\n5\n6\nSEVEN\n");
    project.write("b.txt", "b\n");
    before(&project, "A", "a2", "Write", json!({ "file_path": "a.txt" }));
    project.write("a.txt", "a\n");
    after(&project, "A", "a2", "Write");
    after(&project, "B", "b1", "Bash");
    stop(&project, "A");
    stop(&project, "B");
    project
}

#[test]
fn each_change_is_told_by_the_call_that_made_it_and_one_agent_is_undone_alone() {
    let project = interleaved();
    assert_eq!(blamed(&project, "f.txt"), [told("modified", "B works", "Bash"), told("modified", "A works", "Edit")]);
    assert_eq!(blamed(&project, "a.txt"), [told("added", "A works", "Write")]);
    let before = ic_testkit::tree(project.root());
    let report = project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
    assert_eq!((&report["files"]["skipped"], &report["files"]["conflicts"]), (&json!([]), &json!([])), "{report}");
    assert_eq!(read(&project, "f.txt"), "one\n2\n3\n4\n5\n6\nSEVEN\n", "what B changed in the same file stays");
    assert_eq!(read(&project, "b.txt"), "b\n");
    assert!(!project.root().join("a.txt").exists());
    assert_eq!(blamed(&project, "f.txt")[0], told("restored", "", ""));
    let run = report["run_id"].as_str().expect("its run");
    project.json(&format!("redo --run {run} --yes"));
    assert_eq!(ic_testkit::tree(project.root()), before, "and it comes back");
    project.json(&format!("undo --only {} --yes", work_of(&project, "B")));
    assert_eq!(read(&project, "f.txt"), "ONE\n2\n3\n4\n5\n6\nseven\n");
    assert!(!project.root().join("b.txt").exists() && project.root().join("a.txt").exists());
}

#[test]
fn what_no_call_names_while_several_run_is_shared_and_stays() {
    let project = in_git();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    while_both_call(&project, "1", || project.write("out.txt", "of one of them\n"));
    project.write("late.txt", "outside of any call\n");
    stop(&project, "A");
    stop(&project, "B");
    assert_eq!(blamed(&project, "out.txt"), [told("added", "A works+B works", "Bash+Bash")]);
    let kept = project.run(&format!("undo --only {} --keep-theirs --yes", work_of(&project, "A")));
    let report = kept.json();
    assert_eq!((kept.code, &report["status"]), (Some(4), &json!("rolled_back_in_part")), "{report}");
    let left: Vec<&str> = report["files"]["skipped"]
        .as_array()
        .expect("what stays")
        .iter()
        .map(|one| one["path"].as_str().expect("a path"))
        .collect();
    // What changed after the calls was never in question.
    assert_eq!(left, ["late.txt", "out.txt"]);
    assert!(project.root().join("out.txt").exists() && project.root().join("late.txt").exists());
}

#[test]
fn a_call_whose_end_nobody_tells_ends_with_the_next_one_or_with_the_stop() {
    let project = in_git();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    // Codex tells no end of a patch that its shell applies.
    before(&project, "A", "a1", "Bash", json!({ "command": "apply_patch" }));
    project.write("first.txt", "a\n");
    before(&project, "A", "a2", "Bash", json!({ "command": "apply_patch" }));
    project.write("second.txt", "a\n");
    stop(&project, "A");
    before(&project, "B", "b1", "Bash", json!({ "command": "touch" }));
    project.write("third.txt", "b\n");
    after(&project, "B", "b1", "Bash");
    stop(&project, "B");
    for (file, whose) in [("first.txt", "A works"), ("second.txt", "A works"), ("third.txt", "B works")] {
        assert_eq!(blamed(&project, file), [told("added", whose, "Bash")], "{file}");
    }
    let calls = project.json("session show A --calls")["calls"].clone();
    assert!(calls.as_array().expect("calls").iter().all(|call| call["finished_at"].is_null()), "{calls}");
}

#[test]
fn a_path_that_one_of_two_running_calls_names_is_its() {
    let project = in_git();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    before(&project, "A", "a1", "Write", json!({ "file_path": project.root().join("a.txt") }));
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+b\n*** End Patch\n";
    before(&project, "B", "b1", "apply_patch", json!({ "command": patch }));
    project.write("a.txt", "a\n");
    project.write("b.txt", "b\n");
    after(&project, "B", "b1", "apply_patch");
    after(&project, "A", "a1", "Write");
    stop(&project, "A");
    stop(&project, "B");
    assert_eq!(blamed(&project, "a.txt"), [told("added", "A works", "Write")]);
    assert_eq!(blamed(&project, "b.txt"), [told("added", "B works", "apply_patch")]);
}

#[test]
fn readers_are_no_calls_and_a_look_that_shows_nothing_new_is_no_checkpoint() {
    let project = captured();
    prompt(&project, "A", "A works");
    let checkpoints = || project.json("checkpoint list --calls").as_array().expect("a list").len();
    let known = checkpoints();
    for tool in ["Read", "Grep", "Task"] {
        before(&project, "A", "r1", tool, json!({ "file_path": "x" }));
        after(&project, "A", "r1", tool);
    }
    assert_eq!(project.json("session show A")["call_count"], 0);
    before(&project, "A", "b1", "Bash", json!({ "command": "ls" }));
    after(&project, "A", "b1", "Bash");
    assert_eq!((project.json("session show A")["call_count"].clone(), checkpoints()), (json!(1), known));
    before(&project, "A", "b2", "Bash", json!({ "command": "touch x" }));
    project.write("x", "x\n");
    after(&project, "A", "b2", "Bash");
    assert_eq!(checkpoints(), known + 1);
    let listed = project.json("checkpoint list").as_array().expect("a list").len();
    assert_eq!(listed, known, "a list leaves out those of calls");
}

#[test]
fn of_a_file_that_no_checkpoint_knows_git_is_asked_and_what_changed_since_is_said() {
    let project = in_git();
    let found = project.json("blame README.md");
    assert_eq!((&found["changes"], &found["changed_since"]), (&json!([]), &json!(false)));
    assert_eq!(found["commits"][0]["subject"], "base");
    prompt(&project, "A", "A works");
    before(&project, "A", "b1", "Bash", json!({ "command": "make" }));
    project.write("README.md", "other\n");
    after(&project, "A", "b1", "Bash");
    stop(&project, "A");
    assert_eq!(blamed(&project, "README.md"), [told("modified", "A works", "Bash")]);
    project.write("README.md", "by hand\n");
    assert_eq!(project.json("blame README.md")["changed_since"], true);
    for (file, code) in [("nowhere", "path_not_found"), ("/etc/passwd", "path_not_found"), (".", "invalid_value")] {
        assert_eq!(project.refused(&format!("blame {file}")).1, code, "{file}");
    }
}

#[test]
fn secrets_in_calls_are_masked_and_a_redaction_reaches_them() {
    let project = captured();
    prompt(&project, "A", "A works");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    before(&project, "A", "b1", "Bash", json!({ "command": format!("curl -H 'Authorization: {token}' \u{1b}[31mx") }));
    after(&project, "A", "b1", "Bash");
    stop(&project, "A");
    let line = || project.json("session show A --calls")["calls"][0]["line"].clone();
    let shown = line().as_str().expect("a line").to_owned();
    assert!(
        shown.contains("Authorization: …[masked]'") && !shown.contains("a1B2") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
    let text = project.ok("session show A --calls --format text");
    assert!(text.contains("curl") && !text.contains('\u{1b}'), "{text:?}");
    let work = work_of(&project, "A");
    let events = project.json("events tail");
    let created = events
        .as_array()
        .expect("events")
        .iter()
        .find(|event| event["kind"] == "dispatch_created" && event["subject_id"] == work.as_str());
    let seq = created.expect("its event")["seq"].clone();
    project.json(&format!("events redact {seq} --reason secret"));
    assert_eq!(line(), Value::Null);
}

#[test]
fn while_another_agent_is_in_a_call_nothing_goes_back_under_it_but_its_own_work() {
    let project = in_git();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    before(&project, "A", "a1", "Write", json!({ "file_path": "a.txt" }));
    project.write("a.txt", "a\n");
    after(&project, "A", "a1", "Write");
    stop(&project, "A");
    before(&project, "B", "b1", "Bash", json!({ "command": "make" }));
    let run = |session: &str| {
        let prompts = project.json(&format!("session show {session}"));
        prompts["run_id"].as_str().expect("its run").to_owned()
    };
    let tree = ic_testkit::tree(project.root());
    // A return of the run is refused, and the undo of the prompt leaves what the other agent does.
    let by_run = format!("undo --run {} --layer=workflow,effects,files,git --yes", run("A"));
    assert_eq!(project.refused(&by_run).1, "work_running");
    let plan = project.json(&format!("undo --run {} --dry-run", run("A")));
    assert_eq!(plan["files"]["changes"].as_array().map(Vec::len), Some(1), "{plan}");
    let restore = project.run("restore a.txt --yes --json");
    let hint = restore.stderr.as_str();
    assert!(
        restore.error() == "work_running" && hint.contains("--force;") && !hint.contains("--force-workers"),
        "{hint}"
    );
    assert_eq!(ic_testkit::tree(project.root()), tree);
    // The work of the agent itself: its next call is refused.
    project.json(&format!("undo --run {} --yes --force", run("B")));
    let refused = say(&project, &call("B", "PreToolUse", "b2", "Bash", json!({ "command": "make" })));
    assert_eq!(refused["hookSpecificOutput"]["permissionDecision"], "deny");
    after(&project, "B", "b1", "Bash");
    project.json(&format!("undo --run {} --yes", run("A")));
    assert!(!project.root().join("a.txt").exists());
}

#[test]
fn a_hook_that_fires_twice_records_a_call_once() {
    let project = in_git();
    prompt(&project, "A", "A works");
    for id in ["a1", ""] {
        let (first, second) = (format!("{id}x"), json!({ "command": format!("make {id}") }));
        let id = if id.is_empty() { "" } else { first.as_str() };
        before(&project, "A", id, "Bash", second.clone());
        before(&project, "A", id, "Bash", second);
        after(&project, "A", id, "Bash");
        after(&project, "A", id, "Bash");
    }
    let shown = project.json("session show A --calls");
    assert_eq!(shown["call_count"], 2, "{shown}");
    assert!(shown["calls"].as_array().expect("calls").iter().all(|call| !call["finished_at"].is_null()), "{shown}");
}

#[test]
fn what_a_subagent_does_after_the_stop_goes_with_its_prompt_and_what_a_person_does_stays() {
    let project = in_git();
    prompt(&project, "A", "A works");
    stop(&project, "A");
    project.write("mine.txt", "by hand\n");
    let subagent = |event: &str| {
        let said = call("A", event, "a1", "Bash", json!({ "command": "make" }));
        say(&project, &said.with("agent_id", "sub-1").with("agent_type", "general"))
    };
    subagent("PreToolUse");
    project.write("late.txt", "of the subagent\n");
    subagent("PostToolUse");
    assert_eq!(blamed(&project, "late.txt"), [told("added", "general: make", "Bash")]);
    assert_eq!(blamed(&project, "mine.txt"), [told("added", "", "")]);
    assert_eq!(project.json("blame late.txt")["changes"][0]["calls"][0]["agent_kind"], "general");
    project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
    assert!(!project.root().join("late.txt").exists() && project.root().join("mine.txt").exists());
}

#[test]
fn going_back_with_keep_theirs_leaves_what_another_agent_did() {
    let project = in_git();
    project.write("f.txt", "before\n");
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    for (session, file) in [("A", "a.txt"), ("B", "b.txt")] {
        before(&project, session, session, "Bash", json!({ "command": "make" }));
        project.write(file, session);
        if session == "B" {
            project.write("f.txt", "of B\n");
        }
        after(&project, session, session, "Bash");
        stop(&project, session);
    }
    let run = project.json("session show A")["run_id"].as_str().expect("its run").to_owned();
    let undo = format!("undo --run {run} --keep-theirs");
    let planned = project.json(&format!("{undo} --dry-run"));
    let hash = planned["plan_hash"].as_str().expect("a hash");
    let done = project.json(&format!("{undo} --expect-plan {hash} --yes"));
    assert_eq!(done["files"]["changes"], planned["files"]["changes"]);
    assert!(!project.root().join("a.txt").exists(), "{done}");
    assert_eq!((read(&project, "b.txt"), read(&project, "f.txt")), ("B".to_owned(), "of B\n".to_owned()));
    let kept: Vec<&str> = done["files"]["skipped"]
        .as_array()
        .expect("what stays")
        .iter()
        .filter_map(|one| one["path"].as_str())
        .collect();
    assert_eq!(kept, Vec::<&str>::new(), "a file that it never touched is in no plan");
    project.json(&format!("redo --run {run} --yes"));
    assert_eq!(read(&project, "a.txt"), "A");
}

#[test]
fn what_changed_while_a_rule_hid_it_may_be_of_each_who_worked_then() {
    let project = in_git();
    project.write("f.txt", "one\n");
    prompt(&project, "A", "A works");
    before(&project, "A", "a", "Bash", json!({ "command": "echo f.txt > .gitignore; echo two > f.txt" }));
    project.write(".gitignore", "f.txt\n");
    project.write("f.txt", "two\n");
    after(&project, "A", "a", "Bash");
    stop(&project, "A");
    prompt(&project, "B", "B works");
    before(&project, "B", "b", "Bash", json!({ "command": "rm .gitignore" }));
    std::fs::remove_file(project.root().join(".gitignore")).expect("the rule");
    after(&project, "B", "b", "Bash");
    stop(&project, "B");
    assert_eq!(blamed(&project, "f.txt"), [told("modified", "A works+B works", "Bash+Bash")]);
}
