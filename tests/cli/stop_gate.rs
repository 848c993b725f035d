//! The gate of a run at an agent's stop (`hooks.gate`), and the tokens that a prompt used.

use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say, say_with};
use crate::blame::{after, before, call, prompt, stop};
use crate::support::Project;

fn ask_stop(project: &Project, client: &str, event: &str) -> Value {
    say(project, &Said::new(client, "A", event))
}

/// A run whose gate asks for an artifact, and a session that works for it.
fn gated(settings: &str) -> (Project, String) {
    let project = in_git();
    project.write(".ic.yaml", settings);
    let gates = r#"{"a→b": [{"check": "artifact_exists", "phase": "a"}, {"check": "dispatches_complete"}]}"#;
    let run = created(&project, &["run", "create", "--goal", "sprint", "--phases", "a,b", "--gates", gates]);
    (project, run)
}

/// The id of what a verb made.
pub(crate) fn created(project: &Project, words: &[&str]) -> String {
    let made = project.run_words(words.iter().chain(&["--json"]));
    let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
    made["id"].as_str().or(made["run_id"].as_str()).expect("an id").to_owned()
}

fn begin(project: &Project, run: &str, client: &str, event: &str) {
    let said = Said::new(client, "A", event).prompt("p-A", "write a plan");
    say_with(project, &said, &[("IC_RUN", run)]);
}

fn writes(project: &Project, id: &str, file: &str) {
    before(project, "A", id, "Write", json!({ "file_path": file }));
    project.write(file, id);
    after(project, "A", id, "Write");
}

#[test]
fn an_agent_that_stops_before_its_gate_passes_is_told_what_is_missing() {
    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    writes(&project, "a1", "plan.md");
    let held = ask_stop(&project, "claude-code", "Stop");
    assert_eq!(held["decision"], "block", "{held}");
    let reason = held["reason"].as_str().expect("a reason").to_owned();
    let short = &run[28..];
    assert!(reason.contains("artifact_exists: no artifact in phase a"), "{reason}");
    assert!(reason.contains(&format!("ic run artifact add {short} --path FILE --phase a")), "{reason}");
    assert!(!reason.contains("dispatches_complete"), "its own prompt is not what it waits for: {reason}");
    let status = |project: &Project| project.json("session show A")["prompts"][0]["status"].clone();
    assert_eq!(status(&project), "running", "its work goes on");
    // The other hook of the same stop, where a client has two, says the same; a later one for the same thing lets it go.
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), held);
    let later = [("IC_TEST_CLOCK", "4000000000000")];
    assert_eq!(say_with(&project, &Said::new("claude-code", "A", "Stop"), &later), Value::Null);
    assert_eq!(status(&project), "completed");
}

#[test]
fn the_command_that_it_names_satisfies_the_gate() {
    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    writes(&project, "a1", "plan.md");
    assert_eq!(ask_stop(&project, "claude-code", "Stop")["decision"], "block");
    project.json(&format!("run artifact add {} --path plan.md --phase a", &run[28..]));
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null);
    assert_eq!(project.json(&format!("run advance {run}"))["to_phase"], "b");
}

#[test]
fn who_is_not_held() {
    // Not asked for; no run was given; nothing was changed; a subagent; the last phase.
    let (project, run) = gated("{}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    writes(&project, "a1", "plan.md");
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null);

    let (project, _) = gated("hooks: {gate: true}\n");
    prompt(&project, "A", "in a run of its own");
    writes(&project, "a1", "plan.md");
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null);

    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null, "a question that was answered");

    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    writes(&project, "a1", "plan.md");
    let of_subagent = Said::new("claude-code", "A", "SubagentStop").with("agent_id", "s1");
    assert_eq!(say(&project, &of_subagent), Value::Null);
    project.json(&format!("gate override {run} --reason enough"));
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null, "the last phase");
}

#[test]
fn what_changed_nothing_is_not_held_and_what_no_call_told_the_end_of_is() {
    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    // A person refused it, or it failed: no end is told, and nothing was written.
    before(&project, "A", "a1", "Write", json!({ "file_path": "plan.md" }));
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null, "a write that was refused");

    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    before(&project, "A", "a1", "Bash", json!({ "command": "ls" }));
    after(&project, "A", "a1", "Bash");
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null, "a command that only looked");

    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    before(&project, "A", "a1", "Bash", json!({ "command": "make" }));
    project.write("half.txt", "half");
    assert_eq!(ask_stop(&project, "claude-code", "Stop")["decision"], "block", "it failed half-way");

    let (project, run) = gated("hooks: {gate: true}\nrollback: {checkpointing: {auto: false}}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    before(&project, "A", "a1", "Write", json!({ "file_path": "plan.md" }));
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null, "no capture was made, and it has no end");

    let (project, run) = gated("hooks: {gate: true}\nrollback: {checkpointing: {auto: false}}\n");
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    writes(&project, "a1", "plan.md");
    assert_eq!(ask_stop(&project, "claude-code", "Stop")["decision"], "block", "no capture was made, and it ended");
}

#[test]
fn who_has_advanced_the_run_is_not_held_for_the_phase_that_follows() {
    let project = in_git();
    project.write(".ic.yaml", "hooks: {gate: true}\n");
    let gates =
        r#"{"a→b": [{"check": "artifact_exists", "phase": "a"}], "b→c": [{"check": "artifact_exists", "phase": "b"}]}"#;
    let run = created(&project, &["run", "create", "--goal", "sprint", "--phases", "a,b,c", "--gates", gates]);
    begin(&project, &run, "claude-code", "UserPromptSubmit");
    writes(&project, "a1", "plan.md");
    project.json(&format!("run artifact add {run} --path plan.md"));
    assert_eq!(project.json(&format!("run advance {run}"))["to_phase"], "b");
    assert_eq!(ask_stop(&project, "claude-code", "Stop"), Value::Null);
    // The prompt that begins there is.
    let said = Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-B", "build it");
    say_with(&project, &said, &[("IC_RUN", &run)]);
    in_call(&project, "claude-code", "A", || project.write("built", "b"));
    let held = ask_stop(&project, "claude-code", "Stop");
    assert!(held["reason"].as_str().expect("a reason").contains("no artifact in phase b"), "{held}");
}

#[test]
fn each_client_is_held_in_its_own_words_and_at_most_three_times() {
    let (project, run) = gated("hooks: {gate: true}\n");
    begin(&project, &run, "gemini", "BeforeAgent");
    let tool = |event: &str| {
        let mut said = Said::new("gemini", "A", event);
        said.payload["tool_name"] = json!("write_file");
        said.payload["tool_input"] = json!({ "file_path": "plan.md" });
        said
    };
    say(&project, &tool("BeforeTool"));
    project.write("plan.md", "plan");
    say(&project, &tool("AfterTool"));
    let mut held = 0;
    for nth in 0..5 {
        // Each time something else is missing.
        created(&project, &["dispatch", "create", &run, "--name", &format!("w{nth}")]);
        let answer = ask_stop(&project, "gemini", "AfterAgent");
        held += i32::from(answer["decision"] == "deny");
    }
    assert_eq!(held, 3);
}

#[test]
fn the_tokens_of_a_prompt_are_those_of_the_clients_own_record() {
    let project = in_git();
    let home = tempfile::tempdir().expect("a home");
    let directory = home.path().join(".claude/projects/shop");
    std::fs::create_dir_all(directory.join("subagents")).expect("directories");
    let record = directory.join("A.jsonl");
    let line = |id: &str, input: u32, output: u32| {
        format!(
            "{{\"message\":{{\"id\":\"{id}\",\"usage\":{{\"input_tokens\":{input},\"cache_read_input_tokens\":3,\"output_tokens\":{output}}}}}}}\n"
        )
    };
    std::fs::write(&record, line("before", 1000, 1000)).expect("a record");
    let home = home.path().to_str().expect("a path").to_owned();
    let tell = |said: Said| {
        let said = said.with("transcript_path", record.to_str().expect("a path"));
        say_with(&project, &said, &[("HOME", &home)])
    };
    tell(Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-A", "A works"));
    tell(call("A", "PreToolUse", "c1", "Bash", json!({ "command": "make" })).with("agent_id", "s1"));
    tell(call("A", "PostToolUse", "c1", "Bash", json!({ "command": "make" })).with("agent_id", "s1"));
    let of_subagent = directory.join("subagents/agent-s1.jsonl");
    std::fs::write(&of_subagent, line("sub", 7, 2)).expect("a record");
    let stopped = Said::new("claude-code", "A", "SubagentStop").with("agent_id", "s1");
    tell(stopped.with("agent_transcript_path", of_subagent.to_str().expect("a path")));
    let more = line("before", 1000, 1000) + &line("one", 10, 1) + &line("one", 10, 5) + &line("two", 20, 6);
    std::fs::write(&record, more).expect("a record");
    tell(Said::new("claude-code", "A", "Stop"));
    let shown = project.json("session show A");
    assert_eq!(shown["prompts"][0]["tokens"], json!({ "in": 30, "out": 11, "cache": 6 }), "{shown}");
    assert_eq!(shown["subagents"][0]["tokens"], json!({ "in": 7, "out": 2, "cache": 3 }), "{shown}");
    // A record elsewhere is not read.
    let secret = project.root().join("secret.jsonl");
    std::fs::write(&secret, line("x", 5, 5)).expect("a file");
    let elsewhere = |said: Said| {
        let said = said.with("transcript_path", secret.to_str().expect("a path"));
        say_with(&project, &said, &[("HOME", &home)])
    };
    elsewhere(Said::new("claude-code", "B", "UserPromptSubmit").prompt("p-B", "B works"));
    elsewhere(Said::new("claude-code", "B", "Stop"));
    assert_eq!(project.json("session show B")["prompts"][0]["tokens"], json!({ "in": 0, "out": 0, "cache": 0 }));
}

#[test]
fn a_session_that_was_given_a_run_hears_where_it_is() {
    let (project, run) = gated("{}\n");
    let said = Said::new("claude-code", "A", "SessionStart");
    let own = say(&project, &said)["hookSpecificOutput"]["additionalContext"].as_str().expect("a text").to_owned();
    assert!(!own.contains("phase"), "{own}");
    let text = say_with(&project, &said, &[("IC_RUN", &run)])["hookSpecificOutput"]["additionalContext"].clone();
    let (text, short) = (text.as_str().expect("a text"), &run[28..]);
    assert!(text.contains(&format!("run {short}, phase a; its gate asks: no artifact in phase a")), "{text}");
    assert!(text.contains(&format!("ic gate check {short}; ic run advance {short}")), "{text}");
    stop(&project, "A");
    assert!(text.len() < 700, "{}", text.len());
}
