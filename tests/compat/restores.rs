//! Restores of checkpoints and rewinds of an application's database, and their undos.

use ic_testkit::{TestWorld, text_of};

use crate::half::{assert_tree_is, every_finished, every_half};
use crate::project::{ask, call, state};

/// The id and the status of the newest rewind.
fn newest_rewind(world: &TestWorld) -> Option<(String, String)> {
    let list = ask(world, &["rewind", "list"]);
    let newest = list.as_array().expect("a list").first()?;
    Some((text_of(newest, "id"), text_of(newest, "status")))
}

/// Undoes a rewind: rows, and by the command that it names, the tree.
fn undo_rewind(world: &TestWorld, id: &str, when: &str) {
    let undone = ask(world, &["undo", id, "--yes"]);
    if let Some(command) = undone["git"]["restore"].as_str() {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        call(world, &words, &[0], when);
    }
}

/// Whether a restore stands in the journal.
fn has_begun(world: &TestWorld) -> bool {
    let restores = ic_testkit::dump(&world.cli.db());
    restores.lines().any(|row| row.starts_with("restores|"))
}

#[test]
fn a_restore_is_resumed() {
    every_half("restore", |half| {
        half.again(&[0]);
        half.assert_is_after();
    });
}

#[test]
fn a_restore_is_aborted() {
    every_half("restore", |half| {
        if has_begun(&half.world) {
            call(&half.world, &["redo", "--yes"], &[0], &half.when);
        }
        half.assert_outside_is_before();
    });
}

#[test]
fn an_undo_of_a_restore_is_resumed() {
    every_half("restore-undo", |half| {
        // One that had come to its end leaves nothing to undo.
        half.again(&[0, 1]);
        half.assert_is_after();
    });
}

#[test]
fn an_undo_of_a_restore_is_aborted() {
    every_half("restore-undo", |half| {
        let undos = half.world.cli.sql("SELECT count(*) FROM restores WHERE kind = 'undo'");
        // One that had not begun leaves nothing to undo.
        if undos != "0" {
            call(&half.world, &["undo", &half.world.cli.last_restore(), "--yes"], &[0], &half.when);
        }
        half.assert_outside_is_before();
    });
}

#[test]
fn a_finished_restore_is_undone() {
    every_finished("restore", |world, before, when| {
        call(world, &["redo", "--yes"], &[0], when);
        state(world).assert_outside_is(&before.state, when);
    });
}

#[test]
fn a_rewind_is_resumed() {
    every_half("rewind", |half| {
        match newest_rewind(&half.world) {
            None => half.again(&[0]),
            Some((id, _)) => {
                call(&half.world, &["rewind", "resume", &id, "--yes"], &[0], &half.when);
            }
        }
        half.assert_outside_is_after();
    });
}

#[test]
fn a_rewind_is_aborted() {
    every_half("rewind", |half| {
        if let Some((id, _)) = newest_rewind(&half.world) {
            undo_rewind(&half.world, &id, &half.when);
        }
        half.assert_outside_is_before();
    });
}

#[test]
fn an_undo_of_a_rewind_is_resumed() {
    every_half("rewind-undo", |half| {
        let (id, status) = newest_rewind(&half.world).expect("a rewind");
        if status != "undone" {
            call(&half.world, &["undo", &id, "--yes"], &[0], &half.when);
        }
        half.assert_outside_is_after();
    });
}

#[test]
fn a_finished_rewind_is_undone() {
    every_finished("rewind", |world, before, when| {
        let (id, _) = newest_rewind(world).expect("a rewind");
        undo_rewind(world, &id, when);
        assert_tree_is(world, before, when);
        assert_eq!(state(world).rows, before.state.rows, "{when}");
    });
}
