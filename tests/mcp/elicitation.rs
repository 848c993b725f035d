//! The person is asked if the client can ask, and only the plan that was shown is carried out.

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::client::{Era, SESSION};
use crate::project::{all, asking, client, hash_of, spoiled, world};

#[test]
fn the_person_is_shown_the_plan_and_their_yes_carries_it_out() {
    let world = world();
    spoiled(&world);
    let mut client = asking(&world, SESSION);
    let done = client.tool("undo", json!({}));
    assert_eq!(done["status"], "rolled_back", "{done}");
    assert_eq!((world.text("README").as_str(), world.read("bad.txt")), ("base\n", None));
    let [question] = client.asked.as_slice() else { panic!("{:?}", client.asked) };
    assert!(question.contains("bad.txt") && question.ends_with("Carry out this plan?"), "{question}");
    assert!(!question.contains('\u{1b}'), "no colours: {question}");
    let back = client.tool("redo", json!({}));
    assert_eq!((&back["status"], client.asked.len(), world.text("bad.txt").as_str()), (&json!("undone"), 2, "bad\n"));
}

#[test]
fn a_no_of_a_person_changes_nothing_and_the_model_is_not_told_how_to_go_on() {
    for says in ["decline", "cancel"] {
        let world = world();
        spoiled(&world);
        let mut client = asking(&world, SESSION);
        (client.says, client.thinks) = (says, std::time::Duration::from_millis(1100));
        let before = all(&world);
        let plan = client.tool("undo", json!({}));
        assert_eq!((&plan["dry_run"], client.asked.len()), (&json!(true), 1), "{plan}");
        assert!(all(&world) == before, "{says}");
        let notes = plan["notes"].to_string();
        assert!(notes.contains("did not approve") && !notes.contains("expect_plan"), "{notes}");
    }
}

#[test]
fn a_no_that_comes_at_once_changes_nothing_and_answers_the_plan() {
    for says in ["decline", "cancel"] {
        let world = world();
        spoiled(&world);
        let mut client = asking(&world, SESSION);
        client.says = says;
        let before = all(&world);
        let plan = client.tool("undo", json!({}));
        assert_eq!((&plan["dry_run"], client.asked.len()), (&json!(true), 1), "{plan}");
        assert!(all(&world) == before, "{says}");
        // It is a client's own: nothing is said of a person's no, and how to go on is.
        let notes = plan["notes"].to_string();
        assert_eq!(notes.contains("If the person refused, do not"), says == "decline", "{notes}");
        assert!(notes.contains("expect_plan") && !notes.contains("did not approve"), "{notes}");
        client.tool("undo", json!({ "dry_run": true }));
        assert_eq!(client.asked.len(), 1, "a call for only the plan asks no person");
    }
}

#[test]
fn a_client_that_accepts_by_itself_carries_out_nothing() {
    let world = world();
    spoiled(&world);
    let mut client = asking(&world, SESSION);
    for form in [json!({}), json!(null), json!({ "approve": false })] {
        client.form = form;
        let before = all(&world);
        let plan = client.tool("undo", json!({}));
        assert_eq!(plan["dry_run"], true, "{plan}");
        assert!(all(&world) == before, "an empty form is no person's yes");
    }
    assert_eq!(client.asked.len(), 3);
}

#[test]
fn what_would_be_refused_is_asked_of_nobody() {
    let world = world();
    let id = spoiled(&world);
    world.write("bad.txt", "mine\n");
    let mut client = asking(&world, SESSION);
    let plan = client.tool("undo", json!({ "point": id, "only": true }));
    assert_eq!((&plan["refusal"]["code"], client.asked.len()), (&json!("file_conflict"), 0), "{plan}");
}

#[test]
fn the_newer_era_is_answered_that_input_is_required() {
    let world = world();
    spoiled(&world);
    let mut client = asking(&world, Era::Alone);
    let before = all(&world);
    let wanted = client.call("undo", json!({}));
    assert_eq!(wanted["resultType"], "input_required", "{wanted}");
    let question = &wanted["inputRequests"]["approve"];
    assert_eq!(question["method"], "elicitation/create", "{wanted}");
    assert!(question["params"]["message"].as_str().expect("a message").contains("bad.txt"), "{question}");
    assert!(all(&world) == before, "nothing was changed");
    let mut again = |action: &str, state: &Value| {
        client.request(
            "tools/call",
            json!({
                "name": "undo",
                "arguments": {},
                "requestState": state,
                "inputResponses": { "approve": { "action": action, "content": { "approve": true } } },
            }),
        )
    };
    let by_itself = again("decline", &wanted["requestState"]);
    let notes = by_itself["structuredContent"]["notes"].to_string();
    assert!(notes.contains("If the person refused, do not") && notes.contains("expect_plan"), "{notes}");
    // A person takes longer than that.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let no = again("decline", &wanted["requestState"]);
    assert_eq!((&no["structuredContent"]["dry_run"], &no["resultType"]), (&json!(true), &json!("complete")), "{no}");
    let notes = no["structuredContent"]["notes"].to_string();
    assert!(notes.contains("did not approve") && !notes.contains("expect_plan"), "{notes}");
    assert!(all(&world) == before, "a no changes nothing");
    let forged = again("accept", &json!("0".repeat(64)));
    assert_eq!(forged["isError"], true, "a plan that no person was shown is not carried out: {forged}");
    assert!(all(&world) == before, "nothing was changed");
    let yes = again("accept", &wanted["requestState"]);
    assert_eq!(yes["structuredContent"]["status"], "rolled_back", "{yes}");
    assert_eq!(world.read("bad.txt"), None);
}

/// What a client says of a prompt, or of a call of our tool for it.
fn said(world: &TestWorld, event: &str, prompt: &str) {
    let payload = json!({ "session_id": "s", "cwd": world.root(), "hook_event_name": event, "prompt": prompt,
        "prompt_id": prompt, "transcript_path": "/none", "tool_name": "mcp__ic__undo", "tool_use_id": prompt, "tool_input": {} });
    let heard = world.cli.run_with_input(["hook", "claude-code", event], payload.to_string().as_bytes());
    assert_eq!(heard.code, Some(0), "{heard:?}");
}

#[test]
fn an_agent_that_asks_undoes_the_prompt_before_and_never_its_own() {
    let world = TestWorld::around(ic_testkit::Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints());
    world.git(&["init", "-q"]);
    world.write("kept", "base\n");
    world.commit("base");
    for (prompt, file) in [("first", Some("one")), ("second", Some("two")), ("a question", None)] {
        for event in ["UserPromptSubmit", "PreToolUse"] {
            said(&world, event, prompt);
        }
        if let Some(file) = file {
            world.write(file, "x\n");
        }
        for event in ["PostToolUse", "Stop"] {
            said(&world, event, prompt);
        }
    }
    let there = || ["one", "two", "own"].map(|file| world.root().join(file).exists());
    // The prompt that asks has changed something, too.
    for event in ["UserPromptSubmit", "PreToolUse"] {
        said(&world, event, "undo my last prompt");
    }
    world.write("own", "x\n");
    let mut client = client(&world);
    for left in [[true, false, true], [false, false, true]] {
        let plan = client.tool("undo", json!({}));
        assert_eq!(plan["refusal"], Value::Null, "{plan}");
        let done = client.tool("undo", json!({ "expect_plan": hash_of(&plan) }));
        assert_eq!(done["status"], "rolled_back", "{done}");
        assert_eq!(there(), left, "{done}");
    }
    let (code, ..) = client.failure("undo", json!({}));
    assert_eq!(code, "nothing_to_undo", "its own prompt is never meant");
    said(&world, "PostToolUse", "undo my last prompt");
    said(&world, "Stop", "undo my last prompt");
    assert_eq!(there(), [false, false, true], "the asking agent was not cancelled, and what it did stands");
}
