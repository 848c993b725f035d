//! Points beside phases: what a rollback to one brings back, and what no point is.

use ic_testkit::{ProjectState, TestWorld};

use crate::project::{Work as _, in_git};
use crate::rows::Rows as _;

/// A dispatch that writes a file and commits it; returns its id.
fn work(world: &TestWorld, name: &str) -> String {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
    world.ic(&["dispatch", "start", &id]);
    world.write(&format!("{name}.txt"), name);
    world.write("shared.txt", &format!("as {name} left it\n"));
    world.effect(name, &[]);
    world.task(name);
    world.commit(name);
    world.ic(&["dispatch", "complete", &id]);
    id
}

fn to<'a>(world: &'a TestWorld, point: &'a str) -> Vec<&'a str> {
    vec!["run", "rollback", &world.run, "--to", point, "--layer=all", "--json"]
}

/// Rolls everything back to a point, and returns the state then.
fn go(world: &TestWorld, point: &str) -> ProjectState {
    let mut words = to(world, point);
    words.push("--dry-run");
    let planned = world.cli.json(words.clone());
    words.pop();
    words.extend(["--yes", "--expect-plan", planned["plan_hash"].as_str().expect("a hash")]);
    let done = world.cli.json(words);
    assert_eq!((&done["status"], &done["point"]), (&"rolled_back".into(), &planned["point"]), "{done}");
    world.state()
}

fn refused(world: &TestWorld, point: &str, code: &str) -> String {
    let (dump, before) = (world.cli.dump(), world.state());
    let mut words = to(world, point);
    words.push("--yes");
    let outcome = world.cli.run(words);
    assert_eq!(outcome.error(), code, "{point}: {outcome:?}");
    assert_eq!(world.cli.dump(), dump, "{point}: something was recorded");
    world.state().assert_is(&before, point);
    outcome.stderr
}

#[test]
fn a_dispatch_goes_back_with_all_that_came_after_it_and_comes_back() {
    let world = in_git().with_rows().begun();
    world.task("planned");
    work(&world, "first");
    world.advance();
    let before = world.state();
    let second = work(&world, "second");
    world.advance();
    let third = work(&world, "third");
    let after = world.state();

    let then = go(&world, &format!("dispatch:{third}"));
    assert_eq!(world.status(), "active@c");
    assert!(world.read("third.txt").is_none() && world.read("second.txt").is_some());
    assert_eq!(world.effects(), ["third"]);
    assert_ne!(then.tree, before.tree);

    let then = go(&world, &second);
    then.assert_outside_is(&before, "before the second");
    assert_eq!((world.status().as_str(), world.effects()), ("active@b", vec!["third".to_owned(), "second".to_owned()]));

    let listed = world.cli.json(["rollback", "list", &world.run, "--json"]);
    assert_eq!(listed[1]["point"], format!("dispatch:{}", &second[second.len() - 8..]), "{listed}");
    // What was undone comes back, the newest first, and the point is one again.
    refused(&world, &format!("dispatch:{third}"), "point_taken_back");
    for rollback in [&listed[1]["id"], &listed[0]["id"]] {
        let id = rollback.as_str().expect("an id");
        world.ic(&["redo", id, "--without-effects", "--yes"]);
    }
    world.state().assert_outside_is(&after, "undone");
    assert_eq!(world.status(), "active@c");
    go(&world, &format!("dispatch:{second}"));
    world.state().assert_outside_is(&before, "again");
}

#[test]
fn what_lies_before_a_point_stays_whatever_phase_it_is_labelled_with() {
    let world = in_git().begun();
    world.write("early.md", "early\n");
    let early = world.ic(&["run", "artifact", "add", &world.run, "--path", "early.md", "--phase", "b"]);
    let id = work(&world, "first");
    world.advance();
    world.write("late.md", "late\n");
    world.ic(&["run", "artifact", "add", &world.run, "--path", "late.md"]);
    go(&world, &format!("dispatch:{id}"));
    assert_eq!(world.status(), "active@a");
    let standing = world.cli.json(["run", "artifact", "list", &world.run, "--json"]);
    let named: Vec<(&str, bool)> = standing
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["id"].as_str().expect("an id"), !one["rolled_back_by"].is_null()))
        .collect();
    assert!(named.contains(&(early.as_str(), false)), "{standing}");
    assert_eq!(world.read("early.md").as_deref(), Some("early\n"));
    assert_eq!(world.read("late.md"), None);
}

#[test]
fn a_dispatch_belongs_to_where_it_was_begun() {
    let world = in_git().begun();
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "waits"]);
    world.advance();
    world.ic(&["dispatch", "start", &id]);
    world.write("x", "x\n");
    world.roll_back("a", &[]);
    let shown = world.cli.json(["dispatch", "show", &id, "--json"]);
    assert_eq!((shown["rolled_back_by"].is_string(), &shown["status"]), (true, &"cancelled".into()), "{shown}");
    assert_eq!(world.read("x"), None);
}

#[test]
fn a_checkpoint_of_the_run_is_a_point_and_a_phase_is_the_same_by_both_names() {
    let world = in_git().begun();
    world.write("a.txt", "one\n");
    let kept = world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "good"]);
    world.advance();
    world.write("a.txt", "two\n");
    let by = |words: &[&str]| {
        let mut all = vec!["run", "rollback", &world.run, "--dry-run", "--layer=all", "--json"];
        all.extend(words);
        world.cli.json(all)
    };
    let (phase, point) = (by(&["--to-phase", "a"]), by(&["--to", "phase:a"]));
    assert_eq!(phase, point);
    assert_eq!(phase["point"], serde_json::Value::Null);
    let first = by(&["--to", "created"]);
    assert_eq!(first["plan_hash"], by(&["--to-phase", "a", "--include-target"])["plan_hash"]);
    for name in ["good".to_owned(), kept[kept.len() - 8..].to_owned(), kept.clone()] {
        assert_eq!(by(&["--to", &format!("checkpoint:{name}")])["to_phase"], "a", "{name}");
    }
    go(&world, "checkpoint:good");
    assert_eq!((world.status().as_str(), world.read("a.txt").as_deref()), ("active@a", Some("one\n")));
}

#[test]
fn what_is_no_point_is_refused_by_name_and_changes_nothing() {
    let world = in_git();
    let early = world.ic(&["checkpoint", "create"]);
    let world = world.begun();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "a,b,c"]);
    let theirs = world.ic(&["dispatch", "create", &other, "--name", "theirs"]);
    let own = work(&world, "own");
    refused(&world, &format!("checkpoint:{early}"), "point_before_run");
    refused(&world, &format!("dispatch:{theirs}"), "point_of_other_run");
    refused(&world, "dispatch:123", "invalid_reference");
    refused(&world, "dispatch:0123456789", "dispatch_not_found");
    refused(&world, "phase:z", "unknown_phase");
    refused(&world, "step:deploy", "point_not_found");
    refused(&world, "prompt:-1", "point_not_found");
    refused(&world, "", "point_not_found");
    let near = refused(&world, &format!("dispach:{}", &own[own.len() - 8..]), "point_not_found");
    assert!(near.contains(&format!("did you mean dispatch:{}", &own[own.len() - 8..])), "{near}");
    // Nothing was captured before work that was never begun.
    let idle = world.ic(&["dispatch", "create", &world.run, "--name", "idle"]);
    refused(&world, &format!("dispatch:{idle}"), "no_checkpoint");
    world.ic(&["run", "rollback", &world.run, "--to", &format!("dispatch:{idle}")]);
    let shown = world.cli.json(["dispatch", "show", &idle, "--json"]);
    assert!(shown["rolled_back_by"].is_string(), "{shown}");
}

#[test]
fn a_point_whose_checkpoint_is_gone_is_refused_and_the_newest_ones_are_kept() {
    let world = in_git();
    world.write(".ic.yaml", "rollback: {retention: {points: 1}}\n");
    let world = world.begun();
    let ids: Vec<String> = ["first", "second", "third"].map(|name| work(&world, name)).into();
    for _ in 0..3 {
        world.ic(&["checkpoint", "create"]);
    }
    world.ic(&["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s"]);
    let said = refused(&world, &format!("dispatch:{}", ids[0]), "no_checkpoint");
    assert!(said.contains("was pruned on"), "{said}");
    go(&world, &format!("dispatch:{}", ids[2]));
    assert_eq!((world.read("third.txt"), world.read("second.txt").as_deref()), (None, Some("second")));
}

#[test]
fn a_dispatch_captures_unless_it_is_told_not_to() {
    let world = in_git().begun();
    let count = |world: &TestWorld| world.cli.json(["checkpoint", "list", "--json"]).as_array().map_or(0, Vec::len);
    let before = count(&world);
    let id = world.ic(&["dispatch", "create", &world.run]);
    world.ic(&["dispatch", "start", &id, "--no-checkpoint"]);
    world.ic(&["dispatch", "fail", &id, "--error", "no", "--no-checkpoint"]);
    assert_eq!(count(&world), before);
    let id = world.ic(&["dispatch", "create", &world.run]);
    world.ic(&["dispatch", "start", &id]);
    world.write("x", "x\n");
    world.ic(&["dispatch", "complete", &id]);
    assert_eq!(count(&world), before + 2);
    world.write(".ic.yaml", "rollback: {checkpointing: {auto: false}}\n");
    let id = world.ic(&["dispatch", "create", &world.run]);
    world.ic(&["dispatch", "start", &id]);
    assert_eq!(count(&world), before + 2);
    // A capture that fails is said, and holds nothing up.
    world.write(".ic.yaml", "rollback: {checkpointing: {max-files: 1}}\n");
    let id = world.ic(&["dispatch", "create", &world.run]);
    let outcome = world.cli.run(["dispatch", "start", &id]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let shown: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("a record");
    assert_eq!(shown["warnings"][0]["code"], "checkpoint_failed", "{outcome:?}");
    let shown = world.cli.json(["dispatch", "show", &id, "--json"]);
    assert_eq!(shown["status"], "running");
}

#[test]
fn a_checkpoint_that_was_asked_for_is_a_point_for_rows_too() {
    let world = in_git().with_rows().begun();
    world.task("early");
    world.write("a.txt", "early\n");
    world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "here"]);
    let (rows, before) = (world.rows(), world.state());
    world.task("late");
    world.write("a.txt", "late\n");
    world.ic(&["undo", "checkpoint:here", "--run", &world.run, "--yes"]);
    assert_eq!((world.rows(), world.read("a.txt").as_deref()), (rows, Some("early\n")));
    world.state().assert_outside_is(&before, "undone");
}
