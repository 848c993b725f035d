//! Calls and answers of tools: the same as of the commands, with errors that say what to do.

use serde_json::{Value, json};

use crate::client::{Client, SESSION};
use crate::project::{client, spoiled, world};

#[test]
fn the_work_of_a_dispatch_is_told_through_its_own_server() {
    let world = world();
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "work"]);
    world.ic(&["dispatch", "start", &id]);
    let mut client = Client::start(world.cli.command(["mcp"]).env("IC_DISPATCH", &id), SESSION);
    let caller = client.tool("status", json!({}))["caller"].clone();
    assert_eq!(
        (&caller["dispatch_id"], &caller["status"], &caller["stale"]),
        (&json!(id), &json!("running"), &json!(false))
    );
    world.write("out.md", "report\n");
    let artifact = client.tool("register_artifact", json!({ "path": "out.md", "kind": "report" }));
    assert_eq!(artifact["dispatch_id"].as_str(), Some(id.as_str()), "{artifact}");
    client.tool("record_work", json!({ "files": ["out.md"] }));
    client.tool("complete", json!({ "summary": "done", "verdict": "pass" }));
    let shown: Value = world.cli.json(["dispatch", "show", &id, "--json"]);
    assert_eq!(
        (&shown["status"], &shown["summary"], &shown["verdict"]),
        (&json!("completed"), &json!("done"), &json!("pass"))
    );
    assert!(shown["files"].to_string().contains("out.md"), "{shown}");
    // The work is undone on the command line: the agent that did it is told.
    world.ic(&["undo", "--yes"]);
    let caller = client.tool("status", json!({}))["caller"].clone();
    assert_eq!(caller["stale"], true, "{caller}");
    let (code, _, hint) = client.failure("register_artifact", json!({ "path": "README" }));
    assert_eq!(code, "stale_dispatch");
    assert!(!hint.is_empty());
}

#[test]
fn a_gate_that_blocks_is_an_answer() {
    let world = world();
    let mut client = client(&world);
    let status = client.tool("status", json!({}));
    let answer = client.tool("advance", json!({}));
    let reached = world.cli.json(["run", "status", &world.run, "--json"])["phase"].clone();
    assert_eq!(answer["advanced"] == json!(true), reached != status["run"]["phase"], "{answer}");
    let (code, _, _) = client.failure("advance", json!({ "expect_phase": "nowhere" }));
    assert!(code == "stale_phase" || code == "unknown_phase", "{code}");
}

#[test]
fn a_diff_is_bounded_and_says_where_it_was_cut() {
    let world = world();
    for n in 0..20 {
        world.write(&format!("many/{n:02}.txt"), &"line\n".repeat(400));
    }
    let mut client = client(&world);
    let whole = client.tool("diff", json!({ "from": "created", "max_bytes": 1_000_000 }));
    assert_eq!(
        whole["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .filter(|one| one["path"].as_str().is_some_and(|p| p.starts_with("many/")))
            .count(),
        20
    );
    assert_eq!((&whole["patch"]["cut_path"], &whole["patch"]["cut_count"]), (&Value::Null, &json!(0)));
    let cut = client.tool("diff", json!({ "from": "created", "max_bytes": 5000 }));
    let text = cut["patch"]["text"].as_str().expect("text");
    assert!(text.len() <= 5000 && text.ends_with('\n'), "{}", text.len());
    assert!(whole["patch"]["text"].as_str().expect("text").starts_with(text));
    assert!(cut["patch"]["cut_path"].as_str().is_some_and(|path| path.starts_with("many/")), "{cut}");
    assert!(cut["patch"]["cut_count"].as_u64().is_some_and(|n| n > 10), "{cut}");
    assert_eq!(cut["changes"], whole["changes"], "every path is named");
    let one = client.tool("diff", json!({ "from": "created", "paths": ["many/03.txt"] }));
    assert_eq!(one["changes"].as_array().map(Vec::len), Some(1), "{one}");
    let read = client.request("resources/read", json!({ "uri": "ic://point/created/diff" }));
    let told = read["contents"][0]["text"].as_str().expect("text").to_owned();
    assert!(told.contains("# cut here, in many/"), "{}", &told[told.len().saturating_sub(200)..]);
}

#[test]
fn a_diff_names_points_on_the_command_line_too() {
    let world = world();
    let id = spoiled(&world);
    let point = format!("dispatch:{}", &id[id.len() - 8..]);
    let mut client = client(&world);
    for from in [point.as_str(), "created"] {
        let told = client.tool("diff", json!({ "from": from, "max_bytes": 100_000 }));
        let typed = world.cli.json(["checkpoint", "diff", from, "--json", "--patch-bytes", "100000"]);
        assert_eq!(told, typed);
        let without = world.cli.json(["checkpoint", "diff", from, "--json"]);
        assert_eq!((&without["changes"], without.get("patch")), (&typed["changes"], None));
        let patch = world.ic(&["checkpoint", "diff", from, "--unified"]);
        assert_eq!(typed["patch"]["text"].as_str().map(str::trim_end), Some(patch.as_str()));
    }
    let (code, _, hint) = client.failure("diff", json!({ "from": "phase:nowhere" }));
    assert!(!code.is_empty() && !hint.is_empty(), "{code}");
}

#[test]
fn a_log_is_read_by_pages_that_miss_nothing() {
    let world = world();
    for n in 0..23 {
        let id = world.ic(&["dispatch", "create", &world.run, "--name", &format!("d{n}")]);
        world.ic(&["dispatch", "start", &id]);
        world.write("counter.txt", &format!("{n}\n"));
        world.ic(&["dispatch", "complete", &id]);
    }
    let mut client = client(&world);
    let whole = client.tool("log", json!({ "limit": 1000 }));
    assert_eq!(whole["next_before"], Value::Null);
    let mut all: Vec<Value> = Vec::new();
    let mut before = Value::Null;
    for _ in 0..20 {
        let mut arguments = json!({ "limit": 5 });
        if !before.is_null() {
            arguments["before"] = before.clone();
        }
        let page = client.tool("log", arguments);
        for entry in page["entries"].as_array().expect("entries") {
            if !all.contains(entry) {
                all.push(entry.clone());
            }
        }
        before = page["next_before"].clone();
        if before.is_null() {
            break;
        }
    }
    assert_eq!(Value::Array(all), whole["entries"]);
    let (code, ..) = client.failure("log", json!({ "limit": 0 }));
    assert_eq!(code, "invalid_value");
}

#[test]
fn what_fails_has_a_code_a_message_and_a_hint_and_the_server_goes_on() {
    let world = world();
    let mut client = client(&world);
    let failures = [
        ("undo", json!({ "point": "dispatch:ffffffff" })),
        ("undo", json!({ "point": "--yes" })),
        ("undo", json!({ "point": 7 })),
        ("undo", json!({ "no_such": true })),
        ("undo", json!({ "expect_plan": "not hex" })),
        ("undo", json!({ "point": "ffffffff", "only": true })),
        ("redo", json!({})),
        ("complete", json!({})),
        ("diff", json!({})),
        ("status", json!({ "run": "ffffffff" })),
        ("register_artifact", json!({ "path": "a\u{0}b" })),
        ("declare_compensation", json!({ "step": "s" })),
    ];
    for (tool, arguments) in failures {
        let before = world.cli.dump();
        let (code, message, hint) = client.failure(tool, arguments.clone());
        assert!(
            !code.is_empty() && message.ends_with('.') && !hint.is_empty(),
            "{tool} {arguments}: {code}: {message}: {hint}"
        );
        assert!(world.cli.dump() == before, "{tool} {arguments} changed something");
    }
    let error = client.ask("tools/call", json!({ "name": "no_such_tool", "arguments": {} })).expect_err("unknown");
    assert!(error["message"].as_str().expect("a message").contains("declare_compensation"), "{error}");
    assert!(client.ask("no/such/method", json!({})).is_err());
    client.tool("status", json!({}));
    assert_eq!(client.goes_away().0, Some(0));
}

#[test]
fn without_a_ledger_each_call_says_how_to_get_one() {
    let cli = ic_testkit::Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let mut client = Client::start(&mut cli.command(["mcp"]), SESSION);
    let (code, _, hint) = client.failure("status", json!({}));
    assert_eq!(code, "no_ledger");
    assert!(hint.contains("ic init"), "{hint}");
    cli.ok(["init"]);
    cli.ok(["run", "create", "--goal", "g"]);
    client.tool("status", json!({}));
}

#[test]
fn a_checkpoint_is_named_to_diff_and_to_undo() {
    let world = world();
    let mut client = client(&world);
    let of_run = client.tool("checkpoint", json!({ "name": "mine", "run": "@" }));
    world.write("later.txt", "later\n");
    client.tool("checkpoint", json!({ "name": "free" }));
    world.write("last.txt", "last\n");
    for (from, run, paths) in [
        ("checkpoint:mine", Some("@"), &["last.txt", "later.txt"][..]),
        ("checkpoint:mine", None, &["last.txt", "later.txt"]),
        ("checkpoint:free", None, &["last.txt"]),
        (&format!("checkpoint:{}", of_run["short_id"].as_str().expect("an id")), None, &["last.txt", "later.txt"]),
    ] {
        let diff = client.tool("diff", json!({ "from": from, "run": run }));
        let found: Vec<&str> =
            diff["changes"].as_array().expect("a list").iter().filter_map(|one| one["path"].as_str()).collect();
        assert_eq!(found, paths, "{from}");
    }
    let plan = client.tool("undo", json!({ "point": "checkpoint:mine" }));
    assert!(plan.to_string().contains("later.txt"), "{plan}");
    let resource = client.request("resources/read", json!({ "uri": "ic://point/checkpoint:free/diff" }));
    assert!(resource.to_string().contains("last.txt"), "{resource}");
    assert_eq!(client.failure("diff", json!({ "from": "checkpoint:other-name" })).0, "invalid_reference");
}

#[test]
fn an_error_speaks_of_arguments_and_not_of_flags() {
    let world = world();
    let id = spoiled(&world);
    let mut client = client(&world);
    for (tool, arguments) in [
        ("declare_compensation", json!({ "step": "x" })),
        ("declare_compensation", json!({ "step": "x", "shell": "true", "skip": true })),
        ("declare_compensation", json!({ "step": "x", "kill_pid": 1, "retries": 2 })),
        ("record_work", json!({ "dispatch": id })),
        ("undo", json!({ "point": "created", "only": true })),
    ] {
        let (_, message, hint) = client.failure(tool, arguments.clone());
        assert!(!hint.contains("--") && !hint.contains("$(") && !hint.contains("| ic"), "{tool} {arguments}: {hint}");
        assert!(!message.contains("--stdin") && !message.contains("--retry|"), "{tool} {arguments}: {message}");
    }
}

#[test]
fn an_agent_waits_for_other_work_and_forks_the_tree() {
    let world = world();
    let mut client = Client::start(&mut world.cli.command(["mcp"]), SESSION);
    let work = world.ic(&["dispatch", "create", &world.run, "--name", "other"]);
    let waited = client.tool("wait", json!({ "references": [work], "timeout_seconds": 0 }));
    assert_eq!((&waited["entries"][0]["code"], &waited["next_before"]), (&json!("timed_out"), &Value::Null));
    world.ic(&["dispatch", "complete", &work]);
    let waited = client.tool("wait", json!({ "references": [work] }));
    assert_eq!((&waited["entries"][0]["status"], &waited["entries"][0]["code"]), (&json!("completed"), &Value::Null));
    assert_eq!(client.failure("wait", json!({ "references": ["99999999"] })).0, "dispatch_not_found");
    let fork = client.tool("fork", json!({ "name": "try" }));
    let place = std::path::PathBuf::from(fork["path"].as_str().expect("a directory"));
    assert_eq!((fork["name"].as_str(), place.join("README").exists()), (Some("try"), true), "{fork}");
}

#[test]
fn steps_that_began_together_are_all_on_one_page() {
    let world = world();
    let steps = ["a", "b", "c"].map(|id| format!("  - {{id: {id}, run: 'true'}}\n")).concat();
    world.write("flow.yaml", &format!("name: flow\nsteps:\n{steps}"));
    world.ic(&["workflow", "run", "flow.yaml"]);
    let mut client = client(&world);
    let runs = world.cli.json(["run", "list", "--json"]);
    let run = runs.as_array().and_then(|all| all.last()).expect("a run")["id"].clone();
    for of in [json!({}), json!({ "run": run })] {
        let mut call = |limit: u32, before: &Value| {
            let mut arguments = of.clone();
            arguments["limit"] = json!(limit);
            arguments["before"] = before.clone();
            client.tool("log", arguments)
        };
        let whole = call(1000, &Value::Null)["entries"].clone();
        let steps = whole.as_array().expect("a list").iter().filter(|one| one["kind"] == "step").count();
        assert_eq!(steps, 3, "{whole}");
        for limit in 1..=3 {
            let (mut all, mut before) = (Vec::new(), Value::Null);
            for _ in 0..10 {
                let page = call(limit, &before);
                all.extend(page["entries"].as_array().expect("a list").clone());
                before = page["next_before"].clone();
                if before.is_null() {
                    break;
                }
            }
            assert_eq!(Value::Array(all), whole, "pages of {limit}");
        }
    }
}

#[test]
fn a_patch_that_is_longer_than_the_schema_allows_is_refused() {
    let world = world();
    let mut client = client(&world);
    let (code, ..) = client.failure("diff", json!({ "from": "created", "max_bytes": 1_048_577 }));
    assert_eq!(code, "invalid_value");
    client.tool("diff", json!({ "from": "created", "max_bytes": 1_048_576 }));
}
