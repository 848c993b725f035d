//! `agent & ic dispatch start ID --pid $!`: the agent works before its beginning is recorded.

use std::process::{Child, Command};

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::project::in_git;

/// A run in a repository, and a dispatch of it that was handed out.
fn handed_out() -> (TestWorld, String) {
    let world = in_git();
    let run = world.ic(&["run", "create", "--goal", "g", "--phases", "a,b"]);
    let dispatch = world.ic(&["dispatch", "create", &run, "--name", "agent"]);
    (world.with_run(run), dispatch)
}

/// An agent that has changed these files, and lives.
fn agent(world: &TestWorld) -> Child {
    let script = "echo bad > early; echo clobbered > README; touch ../changed; exec sleep 600";
    let child = Command::new("sh").args(["-c", script]).current_dir(world.root()).spawn().expect("an agent");
    ic_testkit::wait_for("its changes", || world.cli.home().join("changed").exists());
    child
}

fn ended(mut child: Child) {
    child.kill().expect("end it");
    child.wait().expect("its end");
}

#[test]
fn what_an_agent_changes_before_it_is_said_to_begin_is_its_work() {
    let (world, dispatch) = handed_out();
    let child = agent(&world);
    let begun = world.cli.json(["dispatch", "start", &dispatch, "--pid", &child.id().to_string(), "--json"]);
    assert_eq!((&begun["status"], &begun["alive"]), (&json!("running"), &json!(true)));
    world.write("late", "late\n");
    world.ic(&["dispatch", "complete", &dispatch]);
    ended(child);
    world.ic(&["undo", "--yes"]);
    assert_eq!((world.text("README").as_str(), world.read("early"), world.read("late")), ("base\n", None, None));
}

#[test]
fn what_a_person_changed_before_the_agent_came_is_not_its_work() {
    let (world, dispatch) = handed_out();
    world.write("mine", "thesis\n");
    // Its start is known to a hundredth of a second.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let child = agent(&world);
    world.ic(&["dispatch", "start", &dispatch, "--pid", &child.id().to_string()]);
    world.ic(&["dispatch", "complete", &dispatch]);
    ended(child);
    world.ic(&["undo", "--yes"]);
    assert_eq!(world.text("mine"), "thesis\n");
}

#[test]
fn the_order_of_the_help_captures_the_tree_before_the_agent_begins() {
    let (world, dispatch) = handed_out();
    world.write("mine", "thesis\n");
    world.ic(&["dispatch", "start", &dispatch]);
    let child = agent(&world);
    let pid = child.id().to_string();
    let named = world.cli.json(["dispatch", "start", &dispatch, "--pid", &pid, "--json"]);
    assert_eq!((&named["pid"], &named["alive"]), (&json!(child.id()), &json!(true)));
    let again = world.cli.run(["dispatch", "start", &dispatch, "--pid", &pid]);
    assert_eq!((again.code, again.error().as_str()), (Some(1), "dispatch_running"), "{again:?}");
    ended(child);
    world.ic(&["dispatch", "complete", &dispatch]);
    world.ic(&["undo", "--yes"]);
    assert_eq!((world.text("README").as_str(), world.read("early")), ("base\n", None));
    assert_eq!(world.text("mine"), "thesis\n");
}

#[test]
fn a_process_that_is_named_later_may_be_silent_as_long_as_it_says() {
    let (world, dispatch) = handed_out();
    world.ic(&["dispatch", "start", &dispatch]);
    let child = agent(&world);
    let named = ["dispatch", "start", &dispatch, "--pid", &child.id().to_string(), "--ttl", "5m", "--json"];
    let named = world.cli.json(named);
    ended(child);
    assert!(named["due_at"].is_string(), "{named}");
}

#[test]
fn an_agent_that_has_ended_by_then_breaks_no_script() {
    let (world, dispatch) = handed_out();
    let mut child = Command::new("true").spawn().expect("a process");
    child.wait().expect("its end");
    let gone = child.id().to_string();
    let begun = world.cli.json(["dispatch", "start", &dispatch, "--pid", &gone, "--json"]);
    assert_eq!((&begun["status"], &begun["alive"]), (&json!("running"), &json!(false)), "{begun}");
    assert_eq!(begun["warnings"][0]["code"], "process_gone", "{begun}");
    world.ic(&["dispatch", "complete", &dispatch]);
    let late = world.cli.run(["dispatch", "start", &dispatch, "--pid", &gone]);
    assert_eq!((late.code, late.error().as_str()), (Some(1), "dispatch_finished"), "{late:?}");

    let quick = world.ic(&["dispatch", "create", &world.run, "--name", "quick"]);
    world.ic(&["dispatch", "complete", &quick, "--verdict", "pass"]);
    let met = world.cli.json(["dispatch", "start", &quick, "--pid", &gone, "--json"]);
    assert_eq!((&met["status"], &met["verdict"]), (&json!("completed"), &json!("pass")), "{met}");
    let codes: Vec<&Value> = met["warnings"].as_array().into_iter().flatten().map(|one| &one["code"]).collect();
    assert!(codes.contains(&&json!("already_ended")), "{met}");
}

#[test]
fn work_that_is_handed_out_is_captured_once() {
    let (world, _) = handed_out();
    let count = || world.cli.json(["checkpoint", "list", "--json"]).as_array().map_or(0, Vec::len);
    let before = count();
    world.ic(&["dispatch", "create", &world.run]);
    assert_eq!(count(), before, "a tree that is known is captured again");
    world.write("news", "1\n");
    world.ic(&["dispatch", "create", &world.run, "--no-checkpoint"]);
    assert_eq!(count(), before);
    world.ic(&["dispatch", "create", &world.run]);
    assert_eq!(count(), before + 1);
}
