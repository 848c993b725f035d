//! `undo` and `redo`: a plan that changes nothing, and then exactly that plan.

use serde_json::{Value, json};

use crate::client::{Client, Era, SESSION};
use crate::project::{all, client, hash_of, spoiled, world};

/// What is said beside a plan.
fn notes(plan: &Value) -> String {
    plan["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What is said beside an error.
fn second_text(answer: &Value) -> String {
    answer["content"][1]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_plan_changes_nothing_and_its_hash_carries_it_out() {
    for era in [SESSION, Era::Session("2025-06-18"), Era::Alone] {
        let world = world();
        spoiled(&world);
        let mut client = Client::start(&mut world.cli.command(["mcp"]), era);
        let before = all(&world);

        let answer = client.call("undo", json!({}));
        let plan = &answer["structuredContent"];
        assert_eq!((&plan["dry_run"], &plan["status"]), (&json!(true), &json!("planned")), "{answer}");
        assert!(all(&world) == before, "a plan changes nothing");
        let hash = hash_of(plan);
        assert!(notes(plan).contains(&hash), "{answer}");
        let typed = world.cli.json(["undo", "--dry-run", "--json"]);
        let mut told = plan.clone();
        told.as_object_mut().expect("an object").shift_remove("notes");
        assert_eq!(typed, told, "it is the plan of the command line");

        let done = client.tool("undo", json!({ "expect_plan": hash }));
        assert_eq!(done["status"], "rolled_back", "{done}");
        assert_eq!((world.text("README").as_str(), world.read("bad.txt")), ("base\n", None));

        let again = client.tool("redo", json!({}));
        assert_eq!((&again["dry_run"], world.read("bad.txt")), (&json!(true), None), "{again}");
        let redone = client.tool("redo", json!({ "expect_plan": hash_of(&again) }));
        assert_eq!(redone["status"], "undone", "{redone}");
        assert_eq!((world.text("README").as_str(), world.text("bad.txt").as_str()), ("spoiled\n", "bad\n"));
        assert_eq!(client.goes_away().0, Some(0));
    }
}

#[test]
fn a_plan_that_changed_is_refused_and_the_new_one_shown() {
    let world = world();
    spoiled(&world);
    let mut client = client(&world);
    let first = client.tool("undo", json!({ "point": "created" }));
    // Between the two steps more is done, on the command line.
    spoiled(&world);
    let before = all(&world);
    let answer = client.call("undo", json!({ "point": "created", "expect_plan": hash_of(&first) }));
    assert_eq!(answer["isError"], true, "{answer}");
    let error: Value = serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(error["error"]["code"], "plan_changed", "{error}");
    assert!(all(&world) == before, "nothing was changed");
    let now = second_text(&answer);
    let (_, now) = now.split_once(": ").expect("the new plan");
    let now: Value = serde_json::from_str(now).expect("JSON");
    assert_ne!(hash_of(&now), hash_of(&first));
    let done = client.tool("undo", json!({ "point": "created", "expect_plan": hash_of(&now) }));
    assert_eq!(done["status"], "rolled_back", "{done}");
}

#[test]
fn a_redo_whose_plan_changed_is_refused() {
    let world = world();
    spoiled(&world);
    world.ic(&["undo", "--yes"]);
    let mut client = client(&world);
    let plan = client.tool("redo", json!({}));
    // Undone again in another way: it is another rollback that would be undone.
    world.ic(&["redo", "--yes"]);
    world.ic(&["undo", "created", "--yes"]);
    let before = all(&world);
    let (code, _, hint) = client.failure("redo", json!({ "expect_plan": hash_of(&plan) }));
    assert_eq!(code, "plan_changed");
    assert!(!hint.is_empty());
    assert!(all(&world) == before, "nothing was changed");
}

#[test]
fn the_command_line_insists_on_the_plan_of_a_redo_too() {
    let world = world();
    spoiled(&world);
    world.ic(&["undo", "--yes"]);
    let rollback =
        world.cli.json(["rollback", "list", &world.run, "--json"])[0]["id"].as_str().expect("an id").to_owned();
    let plan = world.cli.json(["redo", "--dry-run", "--json"]);
    let of_rollback = world.cli.json(["redo", &rollback, "--dry-run", "--json"]);
    assert_eq!(plan["undo_plan_hash"], of_rollback["undo_plan_hash"]);
    assert_ne!(plan["undo_plan_hash"], plan["plan_hash"], "that is the hash of what was undone");
    let other = "0".repeat(64);
    for words in [vec!["redo"], vec!["redo", &rollback]] {
        for last in ["--dry-run", "--yes"] {
            let outcome = world.cli.run(words.iter().copied().chain(["--expect-plan", &other, last, "--json"]));
            assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "plan_changed"), "{outcome:?}");
        }
    }
    assert_eq!(world.read("bad.txt"), None, "nothing came back");
    let done = world.cli.json(["redo", "--expect-plan", &hash_of(&plan), "--yes", "--json"]);
    assert_eq!((&done["status"], world.text("bad.txt").as_str()), (&json!("undone"), "bad\n"));
}

#[test]
fn what_is_refused_says_why_and_needs_a_person() {
    let world = world();
    let id = spoiled(&world);
    // Another process changed what would go back.
    world.write("bad.txt", "mine\n");
    let mut client = client(&world);
    let answer = client.call("undo", json!({ "point": id, "only": true }));
    let plan = &answer["structuredContent"];
    assert_eq!(plan["refusal"]["code"], "file_conflict", "{answer}");
    assert!(plan["plan_hash"].is_null() || notes(plan).contains("nothing would be"), "{answer}");
    let kept = client.tool("undo", json!({ "point": id, "only": true, "keep_theirs": true }));
    let done =
        client.tool("undo", json!({ "point": id, "only": true, "keep_theirs": true, "expect_plan": hash_of(&kept) }));
    // What others changed stays, so it is done in part.
    assert_eq!(done["status"], "rolled_back_in_part", "{done}");
    assert_eq!((world.text("README").as_str(), world.text("bad.txt").as_str()), ("base\n", "mine\n"));
}

#[test]
fn a_tree_without_a_run_goes_back_to_its_checkpoint() {
    let world = crate::project::world();
    world.ic(&["run", "cancel", &world.run, "--reason", "r"]);
    let other = ic_testkit::TestWorld::around(ic_testkit::Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints());
    other.write("a.txt", "one\n");
    let mut client = Client::start(&mut other.cli.command(["mcp"]), SESSION);
    let taken = client.tool("checkpoint", json!({ "message": "before" }));
    other.write("a.txt", "two\n");
    let plan = client.tool("undo", json!({}));
    assert_eq!(
        plan["restored_checkpoint_id"].as_str().or(plan["checkpoint_id"].as_str()),
        taken["id"].as_str(),
        "{plan}"
    );
    assert_eq!(other.text("a.txt"), "two\n");
    client.tool("undo", json!({ "expect_plan": hash_of(&plan) }));
    assert_eq!(other.text("a.txt"), "one\n");
    let back = client.tool("redo", json!({}));
    assert_eq!(other.text("a.txt"), "one\n");
    client.tool("redo", json!({ "expect_plan": hash_of(&back) }));
    assert_eq!(other.text("a.txt"), "two\n");
}
