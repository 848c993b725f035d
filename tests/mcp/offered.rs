//! The lists that a client gets: tools with their schemas and hints, resources, prompts, in older and newer protocols.

use std::collections::BTreeSet;

use jsonschema::validator_for;
use serde_json::{Value, json};

use crate::client::{Client, Era, SESSION};
use crate::project::{client, spoiled, world};

const TOOLS: [&str; 13] = [
    "status", "log", "diff", "checkpoint", "undo", "redo", "advance", "register_artifact", "record_work", "complete",
    "fork", "wait", "declare_compensation",
];

fn names(listed: &Value) -> Vec<&str> {
    listed.as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name")).collect()
}

#[test]
fn both_eras_are_offered_the_same() {
    let world = world();
    let mut seen = BTreeSet::new();
    for era in [Era::Session("2024-11-05"), Era::Session("2025-03-26"), Era::Session("2025-06-18"), SESSION, Era::Alone]
    {
        let mut client = Client::start(&mut world.cli.command(["mcp"]), era);
        let tools = client.request("tools/list", json!({}));
        assert_eq!(names(&tools["tools"]), TOOLS, "{era:?}");
        let resources = client.request("resources/list", json!({}))["resources"].clone();
        let templates = client.request("resources/templates/list", json!({}))["resourceTemplates"].clone();
        let prompts = client.request("prompts/list", json!({}))["prompts"].clone();
        assert_eq!(names(&prompts), ["undo", "what-changed"]);
        seen.insert([&tools["tools"], &resources, &templates, &prompts].map(Value::to_string).concat());
        assert_eq!(client.goes_away(), (Some(0), String::new()), "{era:?}");
    }
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_client_that_discovers_is_told_who_we_are() {
    let world = world();
    let mut client = Client::start(&mut world.cli.command(["mcp"]), Era::Alone);
    let told = client.request("server/discover", json!({}));
    let versions = told["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-06-18")), "{told}");
    let instructions = told["instructions"].as_str().expect("instructions");
    assert_eq!(instructions.lines().count(), 3, "{instructions}");
    for name in ["status", "log", "diff", "undo", "redo", "checkpoint", "declare_compensation"] {
        assert!(instructions.contains(name) && TOOLS.contains(&name), "{name}");
    }
}

#[test]
fn what_a_tool_answers_has_the_shape_that_it_promises() {
    let world = world();
    let dispatch = spoiled(&world);
    let mut client = client(&world);
    let listed = client.request("tools/list", json!({}))["tools"].clone();
    let calls = [
        ("status", json!({})),
        ("log", json!({})),
        ("diff", json!({ "from": "created" })),
        ("checkpoint", json!({ "message": "m", "name": "n" })),
        ("undo", json!({})),
        ("record_work", json!({ "dispatch": dispatch, "files": ["README"] })),
        ("register_artifact", json!({ "path": "README" })),
        ("declare_compensation", json!({ "step": "s", "exec": ["true", "--yes"] })),
        ("advance", json!({})),
    ];
    for (tool, arguments) in calls {
        let answer = client.tool(tool, arguments);
        let listed = listed.as_array().expect("tools").iter().find(|one| one["name"] == tool).expect("it");
        let validator = validator_for(&listed["outputSchema"]).expect("a schema");
        let wrong: Vec<String> = validator.iter_errors(&answer).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{tool}: {wrong:?}: {answer}");
    }
}

#[test]
fn the_hints_are_true() {
    let world = world();
    let dispatch = spoiled(&world);
    let mut client = client(&world);
    let listed = client.request("tools/list", json!({}))["tools"].clone();
    let hints = |name: &str| {
        let tool = listed.as_array().expect("tools").iter().find(|one| one["name"] == name).expect("it").clone();
        tool["annotations"].clone()
    };
    let calls = [
        ("status", json!({})),
        ("log", json!({ "all": true })),
        ("diff", json!({ "from": "created" })),
        ("checkpoint", json!({ "message": "m" })),
        ("record_work", json!({ "dispatch": dispatch, "files": ["README"], "commits": ["1234567"] })),
        ("register_artifact", json!({ "path": "README" })),
        ("declare_compensation", json!({ "step": "s", "skip": true, "reason": "r" })),
    ];
    for (tool, arguments) in calls {
        let before = world.cli.dump();
        client.call(tool, arguments.clone());
        let once = world.cli.dump();
        client.call(tool, arguments);
        let twice = world.cli.dump();
        let hints = hints(tool);
        assert_eq!(hints["readOnlyHint"], once == before, "{tool}");
        assert_eq!(hints["idempotentHint"], twice == once, "{tool}");
        assert_eq!(hints["destructiveHint"], false, "{tool}");
    }
    for tool in ["undo", "redo"] {
        assert_eq!(hints(tool)["destructiveHint"], true, "{tool}");
        assert_eq!(hints(tool)["readOnlyHint"], false, "{tool}");
    }
}

#[test]
fn resources_and_prompts_say_what_commands_say() {
    let world = world();
    spoiled(&world);
    let mut client = client(&world);
    let mut read = |uri: &str| client.request("resources/read", json!({ "uri": uri }))["contents"][0].clone();
    let status = read("ic://run/@");
    let typed: Value = world.cli.json(["status", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(status["text"].as_str().expect("text")).expect("JSON"), typed);
    let history = read("ic://run/@/history");
    let typed: Value = world.cli.json(["run", "history", "@", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(history["text"].as_str().expect("text")).expect("JSON"), typed);
    let diff = read("ic://point/created/diff");
    let text = diff["text"].as_str().expect("text");
    assert!(text.contains("-base\n+spoiled\n") && text.contains("+bad\n"), "{text}");

    let error = client.ask("resources/read", json!({ "uri": "ic://run/ffffffff" })).expect_err("unknown");
    assert_eq!(error["data"]["code"], "run_not_found", "{error}");
    assert!(client.ask("resources/read", json!({ "uri": "file:///etc/passwd" })).is_err());

    let dump = world.cli.dump();
    let undo = client.request("prompts/get", json!({ "name": "undo", "arguments": {} }));
    let text = undo["messages"][0]["content"]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("bad.txt") && text.contains("--expect-plan"), "{text}");
    let changed = client.request("prompts/get", json!({ "name": "what-changed", "arguments": { "point": "created" } }));
    assert!(changed.to_string().contains("+spoiled"), "{changed}");
    assert_eq!(world.cli.dump(), dump, "a prompt changes nothing");
    // A client may send the field that its person left blank.
    for name in ["undo", "what-changed"] {
        let blank = client.request("prompts/get", json!({ "name": name, "arguments": { "point": "" } }));
        assert_eq!(blank, client.request("prompts/get", json!({ "name": name, "arguments": {} })), "{name}");
    }
    assert!(client.ask("prompts/get", json!({ "name": "other" })).is_err());
}
