//! A client that resumes a session in an MCP server that it started for another session.

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::client::{Client, SESSION};

fn hook(world: &TestWorld, session: &str, event: &str, said: &[(&str, Value)]) {
    let mut payload = json!({ "session_id": session, "hook_event_name": event, "cwd": world.root() });
    for (name, value) in said {
        payload[*name] = value.clone();
    }
    let payload = payload.to_string();
    let done = world.cli.run_with_input(["hook", "claude-code", event], payload.as_bytes());
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// A prompt, up to its end or not, in which the agent writes a file.
fn prompt(world: &TestWorld, session: &str, id: &str, file: &str) {
    hook(world, session, "UserPromptSubmit", &[("prompt", json!(id)), ("prompt_id", json!(id))]);
    call(world, session, id, "Bash", || world.write(file, "made\n"));
}

fn call<T>(world: &TestWorld, session: &str, id: &str, tool: &str, work: impl FnOnce() -> T) -> T {
    let call = [
        ("prompt_id", json!(id)),
        ("tool_name", json!(tool)),
        ("tool_use_id", json!(format!("{id}-{tool}"))),
        ("tool_input", json!({})),
    ];
    hook(world, session, "PreToolUse", &call);
    let done = work();
    hook(world, session, "PostToolUse", &call);
    done
}

/// A server that was started in the environment of this session.
fn server(world: &TestWorld, session: &str) -> Client {
    Client::start(world.cli.command(["mcp"]).env("CLAUDE_CODE_SESSION_ID", session), SESSION)
}

#[test]
fn undo_in_a_resumed_session_never_means_the_prompt_that_asks() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    prompt(&world, "A", "p-1", "one.txt");
    hook(&world, "A", "Stop", &[]);
    prompt(&world, "A", "p-2", "own.txt");
    // Another session works, and the server's own one has ended its prompt or was never heard of.
    prompt(&world, "B", "b-1", "other.txt");
    prompt(&world, "C", "c-1", "ended.txt");
    hook(&world, "C", "Stop", &[]);
    let is_there = || ["one.txt", "own.txt", "other.txt", "ended.txt"].map(|file| world.read(file).is_some());
    for started_for in ["unheard-of", "C", "B"] {
        let mut client = server(&world, started_for);
        let plan = call(&world, "A", "p-2", "mcp__ic__undo", || client.tool("undo", json!({})));
        let changes: Vec<&str> = plan["files"]["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .filter_map(|one| one["path"].as_str())
            .collect();
        assert_eq!((changes, &plan["cancelled_dispatches"]), (vec!["one.txt"], &json!([])), "{started_for}: {plan}");
        let hash = plan["plan_hash"].as_str().expect("a hash").to_owned();
        let undo = json!({ "expect_plan": hash });
        let done = call(&world, "A", "p-2", "mcp__ic__undo", || client.tool("undo", undo));
        assert_eq!((&done["status"], is_there()), (&json!("rolled_back"), [false, true, true, true]), "{done}");
        world.ic(&["redo", done["rollback_id"].as_str().expect("an id"), "--yes"]);
        assert_eq!(is_there(), [true; 4]);
    }
}

#[test]
fn work_is_recorded_for_the_prompt_of_a_resumed_session() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    prompt(&world, "A", "p-1", "one.txt");
    prompt(&world, "B", "b-1", "other.txt");
    let mut client = server(&world, "unheard-of");
    let arguments = json!({ "path": "one.txt" });
    let added = call(&world, "A", "p-1", "mcp__ic__register_artifact", || client.tool("register_artifact", arguments));
    let prompts = world.cli.json(["session", "show", "A", "--json"]);
    assert_eq!(added["dispatch_id"], prompts["prompts"][0]["id"], "{added} {prompts}");
}
