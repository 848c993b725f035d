//! What a server could not be told is recorded by the next hook that reaches it, in its order and once.

use ic_testkit::Cli;
use serde_json::json;

use crate::cluster::cluster;

fn hook(cli: &Cli, event: &str, prompt: &str) {
    let payload = json!({ "session_id": "s-1", "hook_event_name": event, "prompt": format!("do {prompt}"),
        "prompt_id": prompt, "cwd": cli.root(), "tool_name": "Write", "tool_use_id": format!("t-{prompt}"), "tool_input": {} });
    let said = cli.run_with_input(["hook", "claude-code", event], payload.to_string().as_bytes());
    assert_eq!(said.code, Some(0), "{event}: {said:?}");
}

fn turn(cli: &Cli, prompt: &str) {
    for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"] {
        hook(cli, event, prompt);
    }
}

fn prompts(cli: &Cli) -> Vec<String> {
    let shown = cli.json(["session", "show", "s-1", "--json"]);
    let all = shown["prompts"].as_array().expect("a list").clone();
    all.iter()
        .map(|one| format!("{} {}", one["name"].as_str().expect("a name"), one["status"].as_str().expect("a status")))
        .collect()
}

/// A project in whose own store it stands that its ledger is on the server.
fn project(url: &str) -> Cli {
    use std::os::unix::fs::PermissionsExt;
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let store = cli.root().join(".ic");
    std::fs::create_dir_all(&store).expect("a store");
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o700)).expect("its mode");
    std::fs::write(store.join("remote"), format!("{url}\n")).expect("its pointer");
    cli
}

#[test]
fn the_next_hook_records_what_waited_in_its_order_and_once() {
    let Some(cluster) = cluster(&[]) else { return };
    let there = cluster.project("late");
    let cli = project(&cluster.url("late"));
    turn(&cli, "one");
    cluster.stop("fast");
    turn(&cli, "two");
    turn(&cli, "three");
    hook(&cli, "UserPromptSubmit", "four");
    let file = cli.root().join(".ic/unsent.jsonl");
    let lines = std::fs::read_to_string(&file).expect("what waits");
    assert_eq!(lines.lines().count(), 9, "{lines}");
    cluster.start();
    hook(&cli, "PreToolUse", "four");
    assert!(!file.exists() && !cli.root().join(".ic/unsent.done").exists(), "nothing waits any more");
    let told = ["do one completed", "do two completed", "do three completed", "do four running"];
    assert_eq!(prompts(&cli), told);
    hook(&cli, "PostToolUse", "four");
    hook(&cli, "Stop", "four");
    assert_eq!(prompts(&cli)[3], "do four completed");

    // One that was killed after it had recorded a line, and before it noted that, records the line again: nothing comes of it.
    let first = lines.lines().next().expect("a line");
    std::fs::write(&file, &lines).expect("what waits");
    let progress = json!({ "first": first, "count": 7 });
    std::fs::write(cli.root().join(".ic/unsent.done"), progress.to_string()).expect("how far it is");
    hook(&cli, "Stop", "four");
    assert_eq!(prompts(&cli).len(), 4, "{:?}", prompts(&cli));
    assert!(!file.exists());
    there.assert_sound("after all");
}
