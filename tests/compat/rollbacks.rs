//! Rollbacks over every layer, and their undos.

use ic_testkit::{TestWorld, text_of};

use crate::half::{Half, every_finished, every_half};
use crate::project::{self, call, stands, state};

const LIST: [&str; 2] = ["rollback", "list"];

/// The id and the status of the newest rollback.
fn newest(world: &TestWorld) -> Option<(String, String)> {
    project::newest(world, &LIST).map(|rollback| (text_of(&rollback, "id"), text_of(&rollback, "status")))
}

fn undo(world: &TestWorld, id: &str, when: &str) {
    call(world, &["redo", id, "--without-effects", "--yes"], &[0], when);
}

#[test]
fn a_rollback_is_resumed() {
    every_half("rollback", |half| {
        match newest(&half.world) {
            None => half.again(&[0]),
            Some((_, status)) if status == "done" => {}
            Some((id, _)) => {
                call(&half.world, &["rollback", "resume", &id, "--yes"], &[0], &half.when);
            }
        }
        half.assert_is_after();
    });
}

#[test]
fn a_rollback_is_aborted() {
    every_half("rollback", |half| {
        match newest(&half.world) {
            None => {}
            Some((id, status)) if status == "done" => undo(&half.world, &id, &half.when),
            Some((id, _)) => {
                call(&half.world, &["rollback", "abort", &id, "--yes"], &[0], &half.when);
            }
        }
        half.assert_outside_is_before();
    });
}

#[test]
fn an_undo_of_a_rollback_is_resumed() {
    every_half("rollback-undo", |half| {
        let (id, status) = newest(&half.world).expect("a rollback");
        if status != "undone" {
            undo(&half.world, &id, &half.when);
        }
        half.assert_is_after();
    });
}

/// What an abort of the undo comes to: the rollback stands.
fn abort_the_undo(half: &Half) {
    let (id, status) = newest(&half.world).expect("a rollback");
    match status.as_str() {
        "done" => half.assert_outside_is_before(),
        "undone" => half.assert_is_after(),
        _ => {
            call(&half.world, &["rollback", "abort", &id, "--yes"], &[0], &half.when);
            half.assert_outside_is_before();
        }
    }
}

#[test]
fn an_undo_of_a_rollback_is_aborted() {
    every_half("rollback-undo", abort_the_undo);
}

#[test]
fn a_finished_rollback_is_undone() {
    every_finished("rollback", |world, before, when| {
        let (id, _) = newest(world).expect("a rollback");
        undo(world, &id, when);
        state(world).assert_outside_is(&before.state, when);
        assert_eq!(stands(world), before.stands, "{when}");
    });
}

#[test]
fn after_a_finished_undo_the_run_is_rolled_back_again() {
    every_finished("rollback-undo", |world, before, when| {
        let run = world.newest_run();
        call(world, &["run", "rollback", &run, "--to-phase", "a", "--layer=all", "--yes"], &[0], when);
        state(world).assert_outside_is(&before.state, when);
        assert_eq!(stands(world), before.stands, "{when}");
    });
}
