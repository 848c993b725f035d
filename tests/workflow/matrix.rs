//! kill -9 at every point of every action and of every undo, over a -> {b, c} -> d.

use ic_testkit::{TestWorld, long};

use crate::calls::{Calls as _, status};
use crate::effects::Effects as _;
use crate::flow::{DIAMOND, Flow as _};
use crate::project::{plain, with_checkpoints};

const RUN: &str = "workflow run flow.yaml --jobs 2 --on-failure stop";

/// A diamond that is killed while a script is held at a point.
fn killed(call: &str, point: &str, checkpoints: bool) -> TestWorld {
    let world = if checkpoints { with_checkpoints() } else { plain() };
    world.flow(&DIAMOND);
    world.kill_at(call, point);
    world.cli.assert_sound("afterwards");
    world
}

fn points(kind: &str) -> Vec<String> {
    let point = |step: &str, place: &str| format!("{kind}-{step}-{place}");
    DIAMOND.iter().flat_map(|(step, _)| ["before", "after"].map(|place| point(step, place))).collect()
}

/// Killed at every point of every action: the next call goes on, or takes it back.
fn actions(rollback: bool, checkpoints: bool, lets_it_end: bool) {
    for point in points("do") {
        let world = killed(RUN, &point, checkpoints);
        if lets_it_end {
            // The copy that outlived its executor goes on at any moment from now.
            world.outside.remove(&format!("held-{point}"));
        }
        let run = world.newest_run();
        let context = format!("{point}, rollback {rollback}");
        if rollback {
            let resume = format!("workflow resume {run} --on-failure rollback --yes");
            let report = world.report(&resume, 1);
            assert_eq!(report["status"], "rolled_back", "{context}: {report}");
            world.assert_nothing_stands(&DIAMOND, &context);
            let step = point.split('-').nth(1).expect("a step");
            let interrupted = world.log().iter().any(|act| act.what == "undone" && act.step == step);
            assert!(interrupted, "{context}: what was in the middle was not undone");
        } else {
            let report = world.report(&format!("workflow resume {run}"), 0);
            assert_eq!(report["status"], "completed", "{context}: {report}");
            let effects = world.effects();
            assert!(effects.values().all(|(done, _)| done.len() == 1), "{context}: {}", world.outside.text("log"));
            world.assert_each_stands_once(&DIAMOND, &context);
        }
        world.assert_no_complaints();
        world.cli.assert_sound("afterwards");
    }
}

#[test]
fn a_killed_action_is_finished_by_the_next() {
    actions(false, false, false);
}

#[test]
fn a_killed_action_is_taken_back_by_the_next() {
    actions(true, false, false);
}

#[test]
fn a_killed_action_that_goes_on_meanwhile() {
    if long() {
        for rollback in [false, true] {
            for checkpoints in [false, true] {
                actions(rollback, checkpoints, true);
            }
        }
    } else {
        actions(false, true, true);
    }
}

/// A diamond whose last step fails after its effect, and that is then rolled back until a point of an undo.
fn taken_back_until(point: &str, checkpoints: bool) -> TestWorld {
    let world = if checkpoints { with_checkpoints() } else { plain() };
    world.flow(&DIAMOND);
    world.outside.put("spoil-do-d", "");
    world.kill_at("workflow run flow.yaml --jobs 2 --on-failure rollback", point);
    world.cli.assert_sound("afterwards");
    assert_eq!(status(&world), "rolling_back", "{point}");
    world
}

/// Killed at every point of every undo: the next call continues with what is left.
fn undos(checkpoints: bool, lets_it_end: bool) {
    for point in points("undo") {
        let world = taken_back_until(&point, checkpoints);
        if lets_it_end {
            world.outside.remove(&format!("held-{point}"));
        }
        let run = world.newest_run();
        assert_eq!(world.refused(&format!("run advance {run}")), "rolling_back", "{point}");
        let undone = world.undone();
        let report = world.report(&format!("workflow resume {run} --yes"), 1);
        assert_eq!(report["status"], "rolled_back", "{point}: {report}");
        world.assert_nothing_stands(&DIAMOND, &point);
        world.assert_no_complaints();
        // What was recorded as undone is not undone again.
        let step = point.split('-').nth(1).expect("a step");
        for other in undone.iter().filter(|other| *other != step) {
            let times = world.log().iter().filter(|act| act.what == "undone" && act.step == **other).count();
            assert_eq!(times, 1, "{point}: {other}");
        }
        world.cli.assert_sound("afterwards");
        world.outside.remove("spoil-do-d");
        assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed", "{point}");
        world.assert_each_stands_once(&DIAMOND, &point);
    }
}

#[test]
fn a_killed_undo_is_finished_by_the_next() {
    undos(false, false);
}

#[test]
fn a_killed_undo_that_goes_on_meanwhile() {
    if long() {
        undos(true, false);
        undos(false, true);
    }
    undos(true, true);
}

#[test]
fn a_workflow_that_is_killed_again_and_again() {
    let world = with_checkpoints();
    world.flow(&DIAMOND);
    world.kill_at("workflow run flow.yaml --on-failure stop", "do-a-after");
    let resume = format!("workflow resume {} --on-failure stop", world.newest_run());
    for point in ["do-b-before", "do-c-before", "do-d-before", "do-d-after"] {
        world.kill_at(&resume, point);
    }
    let rollback = format!("workflow rollback {} --yes", world.newest_run());
    for point in ["undo-d-before", "undo-c-after", "undo-b-after", "undo-a-before", "undo-a-after"] {
        world.kill_at(&rollback, point);
    }
    world.report(&rollback, 0);
    world.assert_nothing_stands(&DIAMOND, "again and again");
    assert!(world.effects().values().all(|(done, undone)| done == undone), "{}", world.outside.text("log"));
    world.assert_no_complaints();
    world.cli.assert_sound("afterwards");
}
