//! Executors that are aborted before each of their statements, in the ledger and in the object store.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::{Random, TestWorld, long, tell};

use crate::calls::{Calls as _, pairs, status};
use crate::effects::Effects as _;
use crate::flow::Flow as _;
use crate::project::{plain, with_checkpoints};

/// More statements than any of these verbs has: a loop that gets there never ended.
const TOO_MANY: usize = 2_000;

const STEPS: [(&str, &[&str]); 2] = [("a", &[]), ("b", &["a"])];

/// Two steps; where it says so, the second fails after its effect.
fn world(spoilt: bool, checkpoints: bool) -> TestWorld {
    let world = if checkpoints { with_checkpoints() } else { plain() };
    world.flow(&STEPS);
    if spoilt {
        world.outside.put("spoil-do-b", "");
    }
    world
}

/// Whether the call was aborted before its `n`-th statement.
fn aborted(world: &TestWorld, call: &str, n: usize, usual: i32) -> bool {
    let mut command = world.command(call);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    let ended = output.status.code() == Some(usual) || output.status.signal().is_some();
    assert!(ended, "{call} before {n}: {output:?}");
    output.status.signal().is_some()
}

/// Aborts a call before every statement; in the short form, before one in `stride` of them.
fn every(stride: u64, mut once: impl FnMut(usize) -> bool) {
    let mut random = Random::seeded();
    let mut n = 1;
    while n < TOO_MANY {
        if !once(n) {
            tell(&format!("{n} statements"));
            assert!(n > 20, "it has only {n} statements");
            return;
        }
        n += if long() { 1 } else { 1 + usize::try_from(random.below(2 * stride)).expect("a stride") };
    }
    panic!("it has more than {TOO_MANY} statements");
}

/// Takes up what was aborted, to its end. `None`: nothing was begun.
fn go_on(world: &TestWorld, rest: &str, codes: &[i32]) -> Option<serde_json::Value> {
    world.cli.assert_sound("afterwards");
    if world.cli.json(["run", "list"]).as_array().is_none_or(Vec::is_empty) {
        return None;
    }
    let outcome = world.call(&format!("workflow resume {} {rest}", world.newest_run()));
    assert!(outcome.code.is_some_and(|code| codes.contains(&code)), "{outcome:?}");
    Some(outcome.json())
}

fn runs(checkpoints: bool, stride: u64) {
    every(stride, |n| {
        let world = world(false, checkpoints);
        if !aborted(&world, "workflow run flow.yaml", n, 0) {
            return false;
        }
        let shown = world.cli.json(["run", "list"]);
        if shown[0]["status"] == "completed" {
            world.assert_each_stands_once(&STEPS, "completed");
            return true;
        }
        let Some(report) = go_on(&world, "", &[0]) else {
            assert!(world.log().is_empty(), "before statement {n}");
            return true;
        };
        assert_eq!(report["status"], "completed", "before statement {n}: {report}");
        assert!(world.effects().values().all(|(done, _)| done.len() == 1), "before {n}: {}", world.outside.text("log"));
        world.assert_each_stands_once(&STEPS, &format!("before statement {n}"));
        world.assert_no_complaints();
        true
    });
}

#[test]
fn an_aborted_workflow_is_finished_by_resume() {
    runs(false, 3);
}

#[test]
fn an_aborted_workflow_with_checkpoints_is_finished_by_resume() {
    runs(true, 12);
}

fn taken_back(checkpoints: bool, stride: u64) {
    every(stride, |n| {
        let world = world(true, checkpoints);
        if !aborted(&world, "workflow run flow.yaml --on-failure rollback", n, 1) {
            return false;
        }
        let Some(report) = go_on(&world, "--on-failure rollback --yes", &[1]) else { return true };
        assert!(["rolled_back", "stopped"].contains(&report["status"].as_str().expect("a status")), "{n}: {report}");
        world.assert_nothing_stands(&STEPS, &format!("before statement {n}"));
        world.assert_no_complaints();
        assert_eq!(status(&world), "active", "before statement {n}");
        true
    });
}

#[test]
fn an_aborted_rollback_after_a_failure_is_finished_by_resume() {
    taken_back(false, 5);
}

#[test]
fn an_aborted_rollback_with_checkpoints_is_finished_by_resume() {
    taken_back(true, 20);
}

#[test]
fn an_aborted_resume_is_resumed() {
    every(4, |n| {
        let world = world(true, false);
        world.report("workflow run flow.yaml --on-failure stop", 1);
        world.outside.remove("spoil-do-b");
        let run = world.newest_run();
        if !aborted(&world, &format!("workflow resume {run}"), n, 0) {
            return false;
        }
        world.cli.assert_sound("afterwards");
        if status(&world) != "completed" {
            world.report(&format!("workflow resume {run}"), 0);
        }
        world.assert_each_stands_once(&STEPS, &format!("before statement {n}"));
        assert!(world.effects().values().all(|(done, _)| done.len() == 1), "before {n}: {}", world.outside.text("log"));
        true
    });
}

#[test]
fn an_aborted_rollback_of_a_completed_workflow_is_finished() {
    every(5, |n| {
        let world = world(false, n % 2 == 0);
        world.write("made-before", "");
        world.report("workflow run flow.yaml", 0);
        let run = world.newest_run();
        if !aborted(&world, &format!("workflow rollback {run} --yes"), n, 0) {
            return false;
        }
        world.cli.assert_sound("afterwards");
        let again = world.call(&format!("workflow rollback {run} --yes"));
        // It had ended, but for saying so.
        let had_ended = again.code == Some(1) && again.error() == "nothing_to_roll_back";
        assert!(again.code == Some(0) || had_ended, "before statement {n}: {again:?}");
        world.assert_nothing_stands(&STEPS, &format!("before statement {n}"));
        assert_eq!(world.compensations(), pairs(&[("a", "done"), ("b", "done")]), "before statement {n}");
        assert_eq!(status(&world), "active", "before statement {n}");
        true
    });
}

#[test]
fn an_aborted_compensation_run_is_finished() {
    every(4, |n| {
        let world = world(false, false);
        world.report("workflow run flow.yaml", 0);
        let run = world.newest_run();
        let call = format!("compensation run {run} --yes");
        if !aborted(&world, &call, n, 0) {
            return false;
        }
        world.cli.assert_sound("afterwards");
        world.report(&call, 0);
        world.assert_nothing_stands(&STEPS, &format!("before statement {n}"));
        assert_eq!(world.compensations(), pairs(&[("a", "done"), ("b", "done")]), "before statement {n}");
        assert_eq!(status(&world), "completed", "before statement {n}");
        true
    });
}
