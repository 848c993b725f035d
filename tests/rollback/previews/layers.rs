//! Rollbacks of a run, and their ways back.

use std::fs::File;

use ic_testkit::TestWorld;

use super::{FINE, Row, compare, held, locked, row};
use crate::project::Work as _;
use crate::story::story;

pub(super) fn rows() -> Vec<Row> {
    [workflow_layer(), all_layers(), undo(), abandon(), typed(), alone()].into_iter().flatten().collect()
}

fn workflow_layer() -> Vec<Row> {
    vec![
        row("run rollback RUN --to-phase a", &[], FINE),
        row("run rollback RUN --to-phase d --include-target", &[], FINE),
        row("run rollback RUN --to-phase nowhere", &[], (3, "unknown_phase")),
        row("run rollback RUN --to-phase f", &[], (1, "phase_ahead")),
        row("run rollback RUN --to-phase d", &[], (1, "already_at_phase")),
        row("run rollback 00000000 --to-phase a", &[], (3, "run_not_found")),
        row("run rollback ? --to-phase a", &[], (3, "invalid_reference")),
        row("run rollback RUN --to-phase a --expect-plan 00", &[], (1, "plan_changed")),
        row("run rollback RUN --to-phase a --force", &[], (3, "usage")),
        row("run rollback RUN --to-phase a --dispatch 000000", &[], (3, "dispatch_not_found")),
        row("run rollback RUN --to-phase a", &[stopped], (1, "rolling_back")),
        row("run rollback RUN --to-phase a", &[cancelled], (1, "run_not_active")),
    ]
}

fn all_layers() -> Vec<Row> {
    vec![
        row("run rollback RUN --to-phase a --layer=all", &[], FINE),
        row("run rollback RUN --to-phase a --layer=all", &[foreign_file], (1, "file_conflict")),
        row("run rollback RUN --to-phase a --layer=all --force", &[foreign_file], FINE),
        row("run rollback RUN --to-phase a --layer=all --keep-theirs", &[foreign_file], FINE),
        row("run rollback RUN --to-phase a --layer=workflow,files", &[foreign_file], (1, "file_conflict")),
        row("run rollback RUN --to-phase a --layer=workflow,files --force", &[foreign_file], FINE),
        row("run rollback RUN --to-phase a --layer=all", &[pivot], (1, "pivot")),
        row("run rollback RUN --to-phase a --layer=all --force", &[pivot], FINE),
        row("run rollback RUN --to-phase a --layer=all --keep-theirs", &[pivot], (1, "pivot")),
        row("run rollback RUN --to-phase a --layer=all", &[foreign_commits], (1, "foreign_commits")),
        row("run rollback RUN --to-phase a --layer=all --force", &[foreign_commits], FINE),
        row("run rollback RUN --to-phase a --layer=all", &[rebasing], (1, "git_in_progress")),
        row("run rollback RUN --to-phase a --layer=all --force", &[rebasing], (1, "git_in_progress")),
        row("run rollback RUN --to-phase a --layer=all", &[index_locked], (1, "git_busy")),
        row("run rollback RUN --to-phase a --layer=all", &[branch_locked], (1, "git_busy")),
        row("run rollback RUN --to-phase a --layer=all", &[living_worker], (1, "work_running")),
        row("run rollback RUN --to-phase a --layer=all --force", &[living_worker], FINE),
        row("run rollback RUN --to-phase a --layer=all --expect-plan 00", &[], (1, "plan_changed")),
        row("run rollback RUN --to-phase d --layer=all", &[without_checkpoint], (1, "no_checkpoint")),
        row("run rollback RUN --to-phase a --layer=all", &[bad_configuration], (3, "invalid_config")),
        row("run rollback RUN --to-phase a --layer=all", &[stopped], (1, "rolling_back")),
        held(&row("run rollback RUN --to-phase a --layer=all", &[], (1, "work_running")), owned),
        row("run rollback RUN --to-phase a --layer=data", &[], (3, "usage")),
        row("run rollback RUN --to-phase a --layer=everything", &[], (3, "invalid_value")),
        row("run rollback RUN --to-phase a --layer=all --dispatch 000000", &[], (3, "dispatch_not_found")),
        // An effect that cannot be undone stops the real call in its middle, which no plan can know.
        row("run rollback RUN --to-phase a --layer=all", &[failing_effect], FINE),
    ]
}

fn undo() -> Vec<Row> {
    vec![
        row("redo ROLLBACK --without-effects", &[rolled_back], FINE),
        row("redo ROLLBACK", &[rolled_back], (1, "effects_undone")),
        row("redo ROLLBACK --without-effects", &[changed_since], (1, "file_conflict")),
        row("redo ROLLBACK --without-effects", &[went_on], (1, "run_changed")),
        row("redo ROLLBACK --without-effects", &[undone], (1, "nothing_to_undo")),
        row("redo ROLLBACK", &[stopped], (1, "rolling_back")),
        row("redo 000000", &[], (3, "rollback_not_found")),
        row("redo ?", &[], (3, "invalid_reference")),
        held(&row("redo ROLLBACK --without-effects", &[rolled_back], (1, "work_running")), owned),
        row("redo ROLLBACK --without-effects", &[rolled_back, rebasing], (1, "git_in_progress")),
        row("redo ROLLBACK --without-effects", &[rolled_back, index_locked], (1, "git_busy")),
        row("redo ROLLBACK --without-effects", &[rolled_back, living_worker], (1, "work_running")),
        row("redo ROLLBACK --without-effects", &[rolled_back, interrupted], FINE),
    ]
}

fn abandon() -> Vec<Row> {
    vec![
        row("rollback resume RUN", &[stopped], FINE),
        row("rollback resume RUN", &[], (1, "nothing_to_resume")),
        row("rollback resume 000000", &[], (3, "rollback_not_found")),
        held(&row("rollback resume RUN", &[stopped], (1, "work_running")), owned),
        row("rollback abort RUN", &[stopped], FINE),
        row("rollback abort ROLLBACK", &[stopped], FINE),
        row("rollback abort RUN", &[], (1, "nothing_to_resume")),
        row("rollback abort ROLLBACK", &[rolled_back], (1, "nothing_to_resume")),
        row("rollback abort 000000", &[], (3, "rollback_not_found")),
        held(&row("rollback abort RUN", &[stopped], (1, "work_running")), owned),
    ]
}

/// What is typed every day.
fn typed() -> Vec<Row> {
    vec![
        row("undo", &[], FINE),
        row("undo phase:a", &[], FINE),
        row("undo phase:nowhere", &[], (3, "unknown_phase")),
        row("undo dispatch:000000", &[], (3, "dispatch_not_found")),
        row("undo phase:a", &[foreign_file], (1, "file_conflict")),
        row("undo", &[stopped], (1, "rolling_back")),
        held(&row("undo phase:a", &[], (1, "work_running")), owned),
        row("redo --without-effects", &[rolled_back], FINE),
        row("redo", &[rolled_back], (1, "effects_undone")),
        row("redo", &[], (1, "nothing_to_undo")),
        row("redo", &[stopped], (1, "rolling_back")),
    ]
}

/// What one dispatch did.
fn alone() -> Vec<Row> {
    vec![
        row("undo --only WORK", &[worked], FINE),
        row("undo --only WORK --layer=workflow,files", &[worked], FINE),
        row("undo --only WORK", &[worked, changed_too], (1, "file_conflict")),
        row("undo --only WORK --keep-theirs", &[worked, changed_too], (4, "")),
        row("undo --only WORK --force", &[worked, changed_too], FINE),
        row("undo --only WORK --layer=git", &[worked], (3, "usage")),
        row("undo --only WORK", &[begun], (1, "work_running")),
        row("undo --only WORK", &[worked, living_worker], FINE),
        row("undo --only WORK --expect-plan 00", &[worked], (1, "plan_changed")),
        row("undo --only WORK", &[worked, stopped], (1, "rolling_back")),
        held(&row("undo --only WORK", &[worked], (1, "work_running")), owned),
        row("undo --only 000000", &[], (3, "dispatch_not_found")),
        row("redo", &[worked, without], FINE),
        row("redo", &[worked, without, changed_too], (1, "file_conflict")),
    ]
}

fn begun(world: &TestWorld) {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "alone"]);
    world.ic(&["dispatch", "start", &id]);
}

fn worked(world: &TestWorld) {
    begun(world);
    world.write("README", "its own\n");
    let id = newest_dispatch(world);
    world.ic(&["dispatch", "complete", &id]);
}

/// What the dispatch changed, others changed too.
fn changed_too(world: &TestWorld) {
    world.write("README", "of others\n");
}

fn without(world: &TestWorld) {
    world.ic(&["undo", "--only", &newest_dispatch(world), "--yes"]);
}

fn newest_dispatch(world: &TestWorld) -> String {
    let all = world.cli.json(["dispatch", "list", "--json"]);
    let newest = all.as_array().and_then(|all| all.last()).expect("a dispatch");
    newest["id"].as_str().expect("an id").to_owned()
}

/// A file that would be restored was recorded by another run.
pub(super) fn foreign_file(world: &TestWorld) {
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    world.ic(&["dispatch", "record", &dispatch, "--file", "src/a.rs"]);
}

/// A commit on the branch was recorded by another run.
pub(super) fn foreign_commits(world: &TestWorld) {
    world.write("theirs.rs", "theirs\n");
    let sha = world.commit("theirs");
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    world.ic(&["dispatch", "record", &dispatch, "--commit", &sha]);
}

/// What cannot be undone came after what could be.
fn pivot(world: &TestWorld) {
    world.ic(&["compensation", "add", &world.run, "--step", "sent", "--pivot", "--reason", "sent"]);
}

fn failing_effect(world: &TestWorld) {
    world.ic(&["compensation", "add", &world.run, "--step", "stuck", "--shell", "exit 1"]);
}

/// A rollback whose first step failed.
pub(super) fn stopped(world: &TestWorld) {
    failing_effect(world);
    let outcome = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
}

pub(super) fn rolled_back(world: &TestWorld) {
    world.roll_back("a", &[]);
}

fn changed_since(world: &TestWorld) {
    rolled_back(world);
    world.write("README", "changed since\n");
}

fn went_on(world: &TestWorld) {
    rolled_back(world);
    world.ic(&["run", "advance", &world.run]);
}

fn undone(world: &TestWorld) {
    rolled_back(world);
    let id = world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    world.ic(&["redo", &id, "--without-effects", "--yes"]);
}

fn cancelled(world: &TestWorld) {
    world.ic(&["run", "cancel", &world.run]);
}

/// An unfinished rebase.
pub(super) fn rebasing(world: &TestWorld) {
    world.write(".git/rebase-merge/head-name", "refs/heads/main\n");
}

pub(super) fn index_locked(world: &TestWorld) {
    world.write(".git/index.lock", "");
}

/// A git that is gone left the lock of the branch, which the rollback moves.
fn branch_locked(world: &TestWorld) {
    world.write("committed.rs", "of the run\n");
    world.commit("of the run");
    let branch = world.git(&["symbolic-ref", "HEAD"]);
    world.write(&format!(".git/{branch}.lock"), "");
}

/// A dispatch of the tree whose process lives until the test ends.
pub(super) fn living_worker(world: &TestWorld) {
    let other = world.cli.ok(["run", "create", "--goal", "working", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    world.ic(&["dispatch", "start", &dispatch, "--pid", &ic_testkit::living_process().to_string()]);
}

/// Another process is at work on the run.
pub(super) fn owned(world: &TestWorld) -> Vec<File> {
    vec![locked(&world.cli.beside("owners").join(&world.run))]
}

/// The last restore as a process leaves it that dies in its middle.
pub(super) fn interrupted(world: &TestWorld) {
    let sql = "UPDATE restores SET state = 'applying', restored_id = NULL WHERE seq = (SELECT max(seq) FROM restores)";
    world.cli.sql(sql);
    assert_eq!(world.cli.sql("SELECT count(*) FROM restores WHERE state = 'applying'"), "1");
}

/// The advance that left the phase took no checkpoint.
fn without_checkpoint(world: &TestWorld) {
    world.ic(&["run", "advance", &world.run, "--no-checkpoint"]);
}

pub(super) fn bad_configuration(world: &TestWorld) {
    world.write(".ic.yaml", "rollback: {nonsense: 1}\n");
}

#[test]
fn a_preview_of_a_rollback_ends_as_the_rollback() {
    compare(&story(), &[workflow_layer(), all_layers()].into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn a_preview_of_the_way_back_ends_as_the_way_back() {
    compare(&story(), &[undo(), abandon()].into_iter().flatten().collect::<Vec<_>>());
}
