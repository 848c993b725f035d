//! The first screen is the log of the place: all sessions, what a person changed, restores, undos; and a prompt is undone from there.

use ic_testkit::{Cli, TestWorld};
use serde_json::{Value, json};

use crate::served::{BINARY, Reply, Served, encoded, world};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// A project in git with a file that two sessions change.
fn place() -> TestWorld {
    let world = TestWorld::around(Cli::without_ledger(BINARY).with_checkpoints());
    world.git(&["init", "-q", "-b", "main", "."]);
    world.write("list.txt", LINES);
    world.commit("A list");
    world.ic(&["init"]);
    world
}

fn hook(world: &TestWorld, session: &str, event: &str, mut payload: Value) {
    payload["session_id"] = json!(session);
    payload["hook_event_name"] = json!(event);
    payload["cwd"] = json!(world.root());
    let answer = world.cli.run_with_input(["hook", "claude-code", event], payload.to_string().as_bytes());
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{event}");
}

/// A prompt whose one tool call does something.
fn prompt(world: &TestWorld, session: &str, text: &str, does: impl FnOnce()) {
    hook(world, session, "UserPromptSubmit", json!({ "prompt": text, "prompt_id": text }));
    let call = json!({ "tool_name": "Bash", "tool_use_id": text, "tool_input": { "command": "make" } });
    hook(world, session, "PreToolUse", call.clone());
    does();
    hook(world, session, "PostToolUse", call);
    hook(world, session, "Stop", json!({}));
}

fn edit(world: &TestWorld, from: &str, to: &str) {
    world.write("list.txt", &world.text("list.txt").replace(from, to));
}

/// The rows of the page, each as HTML.
fn rows(page: &Reply) -> Vec<String> {
    page.main()
        .split("<li class=\"entry")
        .skip(1)
        .map(|row| row.split("</li>").next().unwrap_or_default().to_owned())
        .collect()
}

/// What a row says first about itself: its name in commands.
fn name(row: &str) -> String {
    let (_, rest) = row.split_once("<code>").expect("a name");
    rest.trim_start_matches("<bdi>").split('<').next().expect("its end").to_owned()
}

/// The names that `ic log` prints.
fn logged(world: &TestWorld) -> Vec<String> {
    let log = world.cli.json(["log", "-n", "100", "--json"]);
    let name = |one: &Value| match (one["kind"].as_str(), one["reference"].as_str(), one["id"].as_str()) {
        (Some("rollback"), _, Some(id)) => id[id.len() - 8..].to_owned(),
        (Some("own" | "created" | "phase"), Some(reference), _) => reference.to_owned(),
        (_, Some(reference), _) => reference.split_once(':').map_or(reference, |(_, bare)| bare).to_owned(),
        _ => panic!("no name: {one}"),
    };
    log.as_array().expect("a list").iter().map(name).collect()
}

/// Two sessions, a hand edit, a restore, and a prompt that was undone.
fn story() -> TestWorld {
    let world = place();
    prompt(&world, "A", "Add a menu", || edit(&world, "1\n", "1 by A\n"));
    world.write("notes.txt", "mine\n");
    prompt(&world, "B", "Add prices", || edit(&world, "9\n", "9 by B\n"));
    let own = logged(&world).into_iter().find(|name| name.starts_with("own:")).expect("a hand edit");
    world.ic(&["restore", "--before", &own, "--yes", "notes.txt"]);
    prompt(&world, "A", "Tidy up", || world.write("tidy.txt", "x\n"));
    world.ic(&["undo", "--yes"]);
    assert_eq!((world.read("notes.txt"), world.read("tidy.txt")), (None, None));
    world
}

#[test]
fn the_first_screen_is_the_log_of_the_place() {
    let world = story();
    let page = Served::of_world(&world);
    let shown = page.page("/");
    let all = rows(&shown);
    assert_eq!(all.iter().map(|row| name(row)).collect::<Vec<_>>(), logged(&world));
    let said: Vec<[bool; 4]> =
        all.iter().map(|row| ["over", "data-undo", "data-redo", "you<"].map(|part| row.contains(part))).collect();
    let titles = ["Undid ", "Tidy up", "restored notes.txt", "Add prices", "changed notes.txt", "Add a menu"];
    // Over, to be undone, to be redone, by the person.
    let wanted = [
        [false, false, true, false],
        [true, false, false, false],
        [false, false, false, true],
        [false, true, false, false],
        [false, false, false, true],
        [false, true, false, false],
    ];
    assert_eq!(said, wanted, "{all:#?}");
    for (row, title) in all.iter().zip(titles) {
        assert!(row.contains(title), "{title}: {row}");
    }
    assert!(all[0].contains("Tidy up"), "an undo names the prompt: {}", all[0]);
    assert!(all[5].contains("~1") && all[5].contains("claude-code") && !all[5].contains("session"), "{}", all[5]);
    // A session is titled by its first prompt, here and on its own page.
    assert!(all[1].contains("/sessions/") && all[1].contains("Add a menu"), "{}", all[1]);
    let session = page.page(&shown.link("/sessions/"));
    assert!(session.main().contains("<h1><bdi>Add a menu</bdi></h1>"), "{}", session.main());
    // Each title leads to a page that exists.
    for row in &all {
        let link = row.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
        page.page(&link.replace("&amp;", "&"));
    }
}

#[test]
fn an_undo_from_a_prompt_leaves_the_other_session() {
    let world = story();
    let page = Served::of_world(&world);
    let all = rows(&page.page("/"));
    let row = all.iter().find(|row| row.contains("Add a menu") && row.contains("data-undo")).expect("the prompt");
    assert!(row.contains(">Undo from here</a>"), "{row}");
    let link = row.split("href=\"").filter_map(|rest| rest.split('"').next()).find(|link| link.contains("/undo?"));
    let link = link.expect("its button").replace("&amp;", "&");
    let plan = page.page(&link);
    assert_eq!(world.text("list.txt"), LINES.replace("1\n", "1 by A\n").replace("9\n", "9 by B\n"));
    let path = link.split('?').next().expect("its path");
    let done = page.confirm(&plan, path, &format!("&to={}", encoded(&plan.field("to"))));
    assert!(done.main().contains("It is done"), "{}", done.main());
    assert_eq!(world.text("list.txt"), LINES.replace("9\n", "9 by B\n"), "the other session's line stays");
    let shown = page.page("/");
    let all = rows(&shown);
    assert_eq!(all.iter().map(|row| name(row)).collect::<Vec<_>>(), logged(&world));
    assert!(all[0].contains("Undid") && all[0].contains("Add a menu"), "{}", all[0]);
    let redo = page.page(&shown.link("/redo"));
    page.confirm(&redo, shown.link("/redo").as_str(), "");
    assert!(world.text("list.txt").contains("1 by A\n") && world.text("list.txt").contains("9 by B\n"));
    world.cli.assert_sound("after an undo and a redo");
}

#[test]
fn every_entry_of_a_long_log_is_on_one_page() {
    let world = world();
    for n in 0..60 {
        crate::served::work(&world, &format!("work {n}"), || {});
    }
    let page = Served::of_world(&world);
    let mut shown = page.page("/");
    let mut seen = Vec::new();
    loop {
        seen.extend(rows(&shown).iter().map(|row| name(row)));
        if !shown.main().contains("rel=\"next\"") {
            break;
        }
        shown = page.page(&shown.link("/?before="));
    }
    assert_eq!(seen, logged(&world));
}
