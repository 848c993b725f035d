//! `@` means the run that is worked on, not the workflows that came to their end beside it.

use ic_testkit::{TestWorld, wait_for};

use crate::calls::Calls as _;
use crate::flow::{Flow as _, kill};
use crate::project::plain;

fn code(world: &TestWorld, arguments: &str) -> String {
    world.refused(arguments)
}

/// A workflow that failed, and its run.
fn failed(world: &TestWorld, name: &str) -> String {
    world.workflow(name, &["{id: a, run: 'false'}"]);
    world.report(&format!("workflow run {name}.yaml"), 1);
    world.newest_run()
}

#[test]
fn runs_of_workflows_that_ended_do_not_make_it_ambiguous() {
    let world = plain();
    let first = failed(&world, "first");
    assert_eq!(world.report("run status @", 0)["id"], first.as_str(), "nothing else is open");
    let second = failed(&world, "second");
    assert_eq!(code(&world, "run status @"), "ambiguous_run");
    let by_hand = world.cli.ok(["run", "create", "--goal", "by hand", "--phases", "a,b,c"]);
    for _ in 0..12 {
        failed(&world, "more");
    }
    assert_eq!(world.report("run status @", 0)["id"], by_hand.as_str());
    assert_eq!(world.cli.ok(["run", "current"]), by_hand);
    let other = world.cli.ok(["run", "create", "--goal", "beside it", "--phases", "a,b,c"]);
    let ambiguous = world.call("run status @ --format json");
    assert_eq!(ambiguous.error(), "ambiguous_run");
    let listed = &ambiguous.stderr;
    assert!(listed.contains(&by_hand) && listed.contains(&other) && !listed.contains(&first), "{listed}");
    // The names stay, and workflows are found by their own verbs.
    assert_eq!(world.report(&format!("run status {second}"), 0)["id"], second.as_str());
}

#[test]
fn a_living_executor_is_work_and_a_dead_one_is_none() {
    let world = plain();
    world.workflow("long", &["{id: a, run: 'touch begun; exec sleep 1000'}"]);
    let mut child = world.start("workflow run long.yaml");
    wait_for("the step runs", || !world.text("begun").is_empty() || world.cli.root().join("begun").exists());
    let long = world.newest_run();
    let by_hand = world.cli.ok(["run", "create", "--goal", "by hand", "--phases", "a,b,c"]);
    assert_eq!(code(&world, "run status @"), "ambiguous_run");
    kill(&mut child);
    assert_eq!(world.report("run status @", 0)["id"], by_hand.as_str(), "{long} has no executor any more");
    world.report(&format!("run cancel {long} --stop"), 0);
}
