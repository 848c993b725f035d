//! Restores, their undo and redo, and retention.

use ic_testkit::TestWorld;

use super::layers::{
    bad_configuration, foreign_commits, foreign_file, index_locked, interrupted, living_worker, rebasing,
};
use super::{FINE, Row, compare, row};
use crate::story::story;

pub(super) fn rows() -> Vec<Row> {
    [restore(), undo_and_redo(), prune()].into_iter().flatten().collect()
}

fn restore() -> Vec<Row> {
    vec![
        row("checkpoint restore CHECKPOINT", &[], FINE),
        row("checkpoint restore --latest", &[captured], FINE),
        row("checkpoint restore CHECKPOINT --path src", &[], FINE),
        row("restore --before CHECKPOINT src", &[], FINE),
        row("restore --before 000000 src", &[], (3, "checkpoint_not_found")),
        row("checkpoint restore CHECKPOINT", &[foreign_file], (1, "file_conflict")),
        row("checkpoint restore CHECKPOINT --force", &[foreign_file], FINE),
        row("checkpoint restore CHECKPOINT --keep-theirs", &[foreign_file], FINE),
        row("checkpoint restore CHECKPOINT --strategy git-only", &[foreign_file], FINE),
        row("checkpoint restore CHECKPOINT", &[foreign_commits], (1, "foreign_commits")),
        row("checkpoint restore CHECKPOINT --force", &[foreign_commits], FINE),
        row("checkpoint restore CHECKPOINT --strategy files-only", &[foreign_commits], FINE),
        row("checkpoint restore CHECKPOINT", &[rebasing], (1, "git_in_progress")),
        row("checkpoint restore CHECKPOINT --force", &[rebasing], (1, "git_in_progress")),
        row("checkpoint restore CHECKPOINT", &[index_locked], (1, "git_busy")),
        row("checkpoint restore CHECKPOINT", &[living_worker], (1, "work_running")),
        row("checkpoint restore CHECKPOINT --force", &[living_worker], FINE),
        row("checkpoint restore CHECKPOINT --expect-plan 00", &[], (1, "plan_changed")),
        row("checkpoint restore 000000", &[], (3, "checkpoint_not_found")),
        row("checkpoint restore ?", &[], (3, "invalid_reference")),
        row("checkpoint restore", &[], (3, "usage")),
        row("checkpoint restore --name nothing", &[], (3, "checkpoint_not_found")),
        row("checkpoint restore CHECKPOINT --strategy most", &[], (3, "invalid_value")),
        row("checkpoint restore CHECKPOINT --force --keep-theirs", &[], (3, "usage")),
        row("checkpoint restore CHECKPOINT --path ../beside", &[], (3, "path_not_found")),
        row("checkpoint restore --latest", &[bad_configuration], (3, "invalid_config")),
        row("checkpoint restore CHECKPOINT --dispatch 000000", &[], (3, "dispatch_not_found")),
        row("checkpoint restore CHECKPOINT", &[restored, interrupted], FINE),
    ]
}

fn undo_and_redo() -> Vec<Row> {
    vec![
        row("redo", &[], (1, "nothing_to_undo")),
        row("redo", &[restored], FINE),
        row("redo", &[restored, foreign_file], (3, "ambiguous_run")),
        row("redo RESTORE", &[restored, foreign_file], (1, "file_conflict")),
        row("redo RESTORE --force", &[restored, foreign_file], FINE),
        row("redo", &[restored, rebasing], (1, "git_in_progress")),
        row("redo RESTORE", &[restored, living_worker], (1, "work_running")),
        row("redo", &[restored, in_the_place_of_a_file], (4, "")),
        row("redo --expect-plan 00", &[restored], (1, "plan_changed")),
        row("redo", &[restored, interrupted], FINE),
        row("redo RESTORE --keep-theirs", &[restored, foreign_file], FINE),
        row("redo --reason why", &[restored], (3, "usage")),
        row("redo RESTORE", &[restored], FINE),
        row("undo RESTORE", &[restored], FINE),
        row("undo RESTORE", &[restored, foreign_file], (1, "file_conflict")),
        row("undo RESTORE --force-files", &[restored, foreign_file], FINE),
        row("undo RESTORE --keep-theirs", &[restored, foreign_file], FINE),
        row("undo RESTORE --force-workers", &[restored, living_worker], FINE),
        row("undo RESTORE --expect-plan 00", &[restored], (1, "plan_changed")),
        row("undo RESTORE", &[restored, interrupted], FINE),
        row("undo RESTORE --layer files", &[restored], (3, "usage")),
        row("redo RESTORE --reason why", &[restored], (3, "usage")),
        row("undo FIRST", &[restored, restored_again], (1, "not_undoable")),
        row("undo FIRST", &[undone], (1, "nothing_to_undo")),
        row("undo FIRST", &[undone, restored], (1, "nothing_to_undo")),
        row("undo RESTORE", &[undone], FINE),
        row("redo RESTORE", &[undone], FINE),
        row("undo RESTORE", &[undone, living_worker], (1, "work_running")),
        row("undo RESTORE", &[undone, interrupted], FINE),
        row("undo FIRST", &[undone, interrupted], FINE),
    ]
}

/// Where the restore wrote a file, there is a directory with something of a person's.
fn in_the_place_of_a_file(world: &TestWorld) {
    let report = world.cli.json(["redo", "--dry-run", "--json"]);
    let changes = report["changes"].as_array().expect("changes").iter();
    let modified = changes.filter(|one| one["change"] == "modify").find_map(|one| one["path"].as_str());
    let path = world.root().join(modified.expect("a file"));
    std::fs::remove_file(&path).expect("remove it");
    std::fs::create_dir(&path).expect("a directory");
    std::fs::write(path.join("mine"), "mine").expect("write it");
}

fn prune() -> Vec<Row> {
    vec![
        row("checkpoint prune", &[], FINE),
        row("checkpoint prune --older-than 0s --keep-last 0 --grace 0s", &[], FINE),
        row("checkpoint prune --older-than soon", &[], (3, "invalid_value")),
        row("checkpoint prune --keep-last -1", &[], (3, "usage")),
        row("checkpoint prune", &[bad_configuration], (3, "invalid_config")),
    ]
}

fn captured(world: &TestWorld) {
    world.ic(&["checkpoint", "create"]);
}

fn restored(world: &TestWorld) {
    let listed = world.cli.json(["checkpoint", "list", "--run", &world.run, "--json"]);
    world.ic(&["checkpoint", "restore", listed[0]["id"].as_str().expect("an id"), "--yes"]);
}

/// A newer restore, to another checkpoint.
fn restored_again(world: &TestWorld) {
    let listed = world.cli.json(["checkpoint", "list", "--run", &world.run, "--json"]);
    world.ic(&["checkpoint", "restore", listed[1]["id"].as_str().expect("an id"), "--force", "--yes"]);
}

fn undone(world: &TestWorld) {
    restored(world);
    world.ic(&["redo", "--yes"]);
}

#[test]
fn a_preview_of_a_restore_ends_as_the_restore() {
    compare(&story(), &rows());
}
