//! When the server ends: after a client that goes away, and after a signal; and when it does not.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::signals;
use serde_json::{Value, json};

use crate::client::{Client, SESSION};
use crate::project::{client, hash_of, spoiled, world};

#[test]
fn a_client_that_goes_away_ends_it() {
    let world = world();
    assert_eq!(client(&world).goes_away(), (Some(0), String::new()));
    // One that never said anything, too.
    let mut command = world.cli.command(["mcp"]);
    let output = command.stdin(Stdio::null()).output().expect("run");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
}

#[test]
fn requests_that_are_piped_in_are_answered() {
    let world = world();
    let mut child =
        world.cli.command(["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server");
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "status", "arguments": {} } }),
    ];
    let mut input = child.stdin.take().expect("its input");
    for line in lines {
        writeln!(input, "{line}").expect("written");
    }
    drop(input);
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().count() == 2 && text.contains("structuredContent"), "{text}");
}

#[test]
fn a_signal_ends_it_although_the_client_is_there() {
    for name in signals::that_end() {
        let world = world();
        spoiled(&world);
        let mut client = client(&world);
        // An undo listens for signals of its own; that is no reason to stay.
        let plan = client.tool("undo", json!({}));
        client.tool("undo", json!({ "expect_plan": hash_of(&plan) }));
        signals::send_to(name, client.child.id());
        assert_eq!(client.ends().0, Some(0), "{name}");
    }
}

#[test]
fn what_is_at_work_is_brought_to_its_end() {
    let world = world();
    world.write("slow.sh", "sleep 2; echo undone > outside.txt\n");
    let point = world.ic(&["dispatch", "create", &world.run, "--name", "effect"]);
    world.ic(&["dispatch", "start", &point]);
    world.ic(&["compensation", "add", &world.run, "--step", "s", "--shell", "sleep 2; echo undone > ../undone.txt"]);
    world.ic(&["dispatch", "complete", &point]);
    let mut client = client(&world);
    let plan = client.tool("undo", json!({}));
    client.send(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call",
        "params": { "name": "undo", "arguments": { "expect_plan": hash_of(&plan) } } }));
    std::thread::sleep(Duration::from_millis(700));
    let begun = Instant::now();
    assert_eq!(client.goes_away().0, Some(0));
    assert!(begun.elapsed() > Duration::from_millis(500), "it waited");
    assert!(world.root().join("../undone.txt").exists(), "the undo of the effect ran to its end");
    let rollback = world.cli.json(["rollback", "list", &world.run, "--json"])[0].clone();
    assert_eq!(rollback["status"], "done", "{rollback}");
}

#[test]
fn after_a_signal_what_waits_for_its_turn_is_not_begun() {
    let world = world();
    let point = world.ic(&["dispatch", "create", &world.run, "--name", "effect"]);
    world.ic(&["dispatch", "start", &point]);
    world.ic(&["compensation", "add", &world.run, "--step", "s", "--shell", "touch ../begun; sleep 20"]);
    world.ic(&["dispatch", "complete", &point]);
    let mut client = client(&world);
    let plan = client.tool("undo", json!({}));
    let before = world.cli.json(["checkpoint", "list", "--json"]);
    let call = |id: u32, name: &str, arguments: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": name, "arguments": arguments } })
    };
    client.send(&call(99, "undo", json!({ "expect_plan": hash_of(&plan) })));
    for id in 100..120 {
        client.send(&call(id, "checkpoint", json!({ "name": "late" })));
    }
    let begun = Instant::now();
    while !world.root().join("../begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the undo of the effect never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    signals::send_to("TERM", client.child.id());
    assert_eq!(client.ends().0, Some(0));
    let rollback = world.cli.json(["rollback", "list", &world.run, "--json"])[0].clone();
    assert_eq!(rollback["status"], "stopped", "{rollback}");
    let names = |list: &serde_json::Value| list.to_string().matches("\"late\"").count();
    let after = world.cli.json(["checkpoint", "list", "--json"]);
    assert_eq!((names(&before), names(&after)), (0, 0), "nothing was captured in the midst of an undo");
}

/// What is done is told: a client that asks again would have it twice.
#[test]
fn what_is_at_work_when_a_signal_comes_is_done_and_answered() {
    let world = world();
    let mut client = client(&world);
    client.tool("status", json!({}));
    let held = world.cli.hold_writers();
    let call = json!({ "name": "register_artifact", "arguments": { "path": "late.md" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call }));
    // It waits for the ledger now.
    std::thread::sleep(Duration::from_millis(400));
    signals::send_to("TERM", client.child.id());
    std::thread::sleep(Duration::from_millis(100));
    drop(held);
    let answer = client.read().expect("an answer");
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(99), &json!(false)), "{answer}");
    assert_eq!(client.ends().0, Some(0));
    let artifacts = world.cli.json(["run", "artifact", "list", &world.run, "--json"]);
    assert_eq!(artifacts.as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_no_message_does_not_end_it() {
    let world = world();
    let mut client = Client::start(&mut world.cli.command(["mcp"]), SESSION);
    client.send_text("{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": ");
    client.send_text("this is no JSON");
    client.send_text(&"[".repeat(100_000));
    client.send_text("[]");
    // Each is answered, as JSON-RPC 2.0 (5.1) has it: who sent it may wait for that.
    for code in [-32700, -32700, -32700, -32600] {
        let answer = client.read().expect("an answer");
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{answer}");
    }
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/of-nothing" }));
    // Whatever it says of that, it answers the next call.
    client.tool("status", json!({}));
}

#[test]
fn a_terminal_is_no_client() {
    let world = world();
    let Some(terminal) = ic_testkit::Terminal::open(&world.cli.command(["mcp"]), world.root()) else {
        return;
    };
    terminal.sees("ic install CLIENT");
    assert_eq!(terminal.ends().0, Some(3));
}
