//! Workflows, and their rollbacks.

use ic_testkit::{TestWorld, text_of};

use crate::half::{Half, assert_tree_is, every_finished, every_half};
use crate::project::{ask, call, run, stands};

/// The run of the workflow that began last, and its state; `None` where none had begun.
fn newest(world: &TestWorld) -> Option<(String, String)> {
    let run = run(world)?;
    Some((run.clone(), text_of(&ask(world, &["workflow", "show", &run]), "status")))
}

/// Makes the call again if the workflow had not begun; else gives its run and its state.
fn begun(half: &Half, exit: i32) -> Option<(String, String)> {
    let found = newest(&half.world);
    if found.is_none() {
        half.again(&[exit]);
    }
    found
}

#[test]
fn a_workflow_is_resumed() {
    every_half("workflow", |half| {
        if let Some((run, state)) = begun(half, 0)
            && state != "completed"
        {
            call(&half.world, &["workflow", "resume", &run], &[0], &half.when);
        }
        half.assert_outside_is_after();
    });
}

#[test]
fn a_workflow_is_aborted() {
    every_half("workflow", |half| {
        if let Some((run, _)) = newest(&half.world) {
            let shown = ask(&half.world, &["workflow", "show", &run]);
            let steps = shown["steps"].as_array().expect("steps");
            // Where no step had begun there is nothing to roll back, and it says so.
            let exit = i32::from(steps.iter().all(|step| step["status"] == "pending"));
            call(&half.world, &["workflow", "rollback", &run, "--yes"], &[exit], &half.when);
        }
        half.assert_tree_is_before();
    });
}

#[test]
fn a_rollback_of_a_workflow_is_resumed() {
    every_half("workflow-rollback", |half| {
        let (run, state) = newest(&half.world).expect("a workflow");
        match state.as_str() {
            "completed" => half.again(&[0]),
            "rolled_back" => {}
            _ => {
                call(&half.world, &["workflow", "resume", &run, "--yes"], &[0, 1], &half.when);
            }
        }
        half.assert_outside_is_after();
    });
}

#[test]
fn after_a_rollback_that_was_resumed_the_workflow_runs_again() {
    every_half("workflow-rollback", |half| {
        let (run, state) = newest(&half.world).expect("a workflow");
        if state == "rolling_back" {
            call(&half.world, &["workflow", "resume", &run, "--yes"], &[0, 1], &half.when);
        }
        if state != "completed" {
            call(&half.world, &["workflow", "resume", &run], &[0], &half.when);
        }
        half.assert_tree_is_before();
    });
}

#[test]
fn a_workflow_that_failed_is_rolled_back() {
    every_half("workflow-failed", |half| {
        if let Some((run, state)) = begun(half, 1)
            && state != "rolled_back"
        {
            let words = ["workflow", "resume", &run, "--on-failure", "rollback", "--yes"];
            call(&half.world, &words, &[1], &half.when);
        }
        // It compensates the steps that had begun, and begins no other.
        half.assert_outside_is_after_what_was_made();
    });
}

#[test]
fn a_workflow_that_failed_is_repaired_and_completes() {
    every_half("workflow-failed", |half| {
        std::fs::remove_file(half.world.cli.home().join("outside/fail")).expect("repair it");
        if let Some((run, _)) = begun(half, 0) {
            // The run is closed first, then the workflow says so: in between only the run tells.
            if stands(&half.world).is_some_and(|(status, _)| status == "rolling_back") {
                call(&half.world, &["workflow", "resume", &run, "--yes"], &[1], &half.when);
            }
            call(&half.world, &["workflow", "resume", &run], &[0], &half.when);
        }
        let three = std::fs::read_to_string(half.world.cli.root().join("three.txt"));
        assert_eq!(three.expect("what the last step writes"), "three\n", "{}", half.when);
        assert_eq!(newest(&half.world).map(|found| found.1).as_deref(), Some("completed"), "{}", half.when);
    });
}

#[test]
fn a_finished_workflow_is_rolled_back() {
    every_finished("workflow", |world, before, when| {
        let (run, _) = newest(world).expect("a workflow");
        call(world, &["workflow", "rollback", &run, "--yes"], &[0], when);
        assert_tree_is(world, before, when);
        assert_eq!(world.outside.text("undone"), "three\ntwo\none\n", "{when}");
    });
}
