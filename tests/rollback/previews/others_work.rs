//! Rewinds, compensations and workflows.

use std::fs::File;

use ic_testkit::TestWorld;

use super::layers::{bad_configuration, index_locked, living_worker, owned, rebasing, stopped};
use super::{FINE, Row, compare, held, locked, row};
use crate::project::in_git;
use crate::story::story;

pub(super) fn rows() -> Vec<Row> {
    [rewinds(), compensations(), hooks()].into_iter().flatten().collect()
}

fn rewinds() -> Vec<Row> {
    vec![
        row("rewind to T1", &[tasks], FINE),
        row("rewind to T2", &[tasks], FINE),
        row("rewind to T9", &[tasks], (3, "unknown_task")),
        row("rewind to T1", &[tasks, without_database], (3, "invalid_config")),
        row("rewind to T1", &[tasks, bad_configuration], (3, "invalid_config")),
        row("rewind to T1", &[tasks, unfinished], (1, "not_finished")),
        row("rewind to T1 --dispatch 000000", &[tasks], (3, "dispatch_not_found")),
        row("rewind to T2 --dispatch 000000", &[tasks], (3, "dispatch_not_found")),
        row("rewind to T1 --scope nothing", &[tasks], (3, "invalid_value")),
        row("rewind to T1", &[tasks, living_worker], FINE),
        held(&row("rewind to T1 --busy-timeout 100ms", &[rewound], (2, "busy")), rewinding),
        row("undo REWIND", &[rewound], FINE),
        row("undo 000000", &[tasks], (3, "point_not_found")),
        row("redo 000000", &[tasks], (3, "rollback_not_found")),
        row("redo REWIND", &[rewound], FINE),
        row("redo REWIND --expect-plan 00", &[rewound], (3, "usage")),
        row("undo REWIND --keep-theirs", &[rewound], (3, "usage")),
        row("undo REWIND", &[undone], (1, "nothing_to_undo")),
        row("undo REWIND", &[in_the_way], (1, "row_conflict")),
        held(&row("undo REWIND --busy-timeout 100ms", &[rewound], (2, "busy")), rewinding),
    ]
}

fn hooks() -> Vec<Row> {
    vec![
        row("hooks install claude-code", &[], FINE),
        row("hooks install claude-code", &[hooked], FINE),
        row("hooks install cursor", &[], (3, "invalid_value")),
        row("hooks install gemini", &[with_comments], (1, "config_not_changed")),
        row("install claude-code", &[], FINE),
        row("install gemini", &[with_comments], (1, "config_not_changed")),
        row("uninstall claude-code", &[installed], FINE),
        row("uninstall claude-code", &[hooked], FINE),
        row("uninstall claude-code", &[], FINE),
        row("uninstall gemini", &[with_comments], (1, "config_not_changed")),
    ]
}

fn installed(world: &TestWorld) {
    world.ic(&["install", "claude-code"]);
}

fn hooked(world: &TestWorld) {
    world.ic(&["hooks", "install", "claude-code"]);
}

fn with_comments(world: &TestWorld) {
    world.write(".gemini/settings.json", "{ // mine\n}\n");
}

fn compensations() -> Vec<Row> {
    vec![
        row("compensation run RUN", &[], FINE),
        row("compensation run RUN --to-phase b", &[], FINE),
        row("compensation run RUN --to-phase nowhere", &[], (3, "unknown_phase")),
        row("compensation run RUN --to-phase f", &[], (1, "phase_ahead")),
        row("compensation run RUN --step pay", &[], FINE),
        row("compensation run RUN --step nothing", &[], (3, "compensation_not_found")),
        row("compensation run RUN --skip pay --reason why", &[], FINE),
        row("compensation run RUN --skip nothing --reason why", &[], (3, "compensation_not_found")),
        row("compensation run RUN --skip pay", &[], (3, "usage")),
        row("compensation run RUN --policy maybe", &[], (3, "invalid_value")),
        row("compensation run 000000", &[], (3, "run_not_found")),
        row("compensation run RUN --dispatch 000000", &[], (3, "dispatch_not_found")),
        row("compensation run RUN", &[stopped], (1, "rolling_back")),
        held(&row("compensation run RUN", &[], (1, "work_running")), owned),
        // What came after the pivot is undone: the real call does a part, and ends with 4.
        row("compensation run RUN", &[pivot], FINE),
        row("compensation run RUN --force", &[pivot], FINE),
        row("compensation run RUN", &[bad_configuration], (3, "invalid_config")),
    ]
}

pub(super) fn workflow_rows() -> Vec<Row> {
    vec![
        row("workflow run next.yaml", &[], FINE),
        row("workflow run missing.yaml", &[], (3, "invalid_workflow")),
        row("workflow run next.yaml", &[spoilt], (3, "invalid_workflow")),
        row("workflow run parallel.yaml --strategy partial --jobs 2", &[], (3, "invalid_value")),
        row("workflow run next.yaml --jobs 0", &[], (3, "invalid_value")),
        row("workflow run next.yaml", &[bad_configuration], (3, "invalid_config")),
        row("workflow rollback", &[], FINE),
        row("workflow rollback RUN", &[], FINE),
        row("workflow rollback RUN --strategy files-only", &[], FINE),
        row("workflow rollback RUN --strategy most", &[], (3, "invalid_value")),
        row("workflow rollback 000000", &[], (3, "run_not_found")),
        row("workflow rollback RUN", &[taken_back], (1, "nothing_to_roll_back")),
        row("workflow rollback", &[pivoted], (1, "pivot")),
        row("workflow rollback --force", &[pivoted], FINE),
        row("workflow rollback RUN", &[written_by_others], (1, "file_conflict")),
        row("workflow rollback RUN --force", &[written_by_others], FINE),
        row("workflow rollback RUN", &[rebasing], (1, "git_in_progress")),
        row("workflow rollback RUN --force", &[rebasing], (1, "git_in_progress")),
        row("workflow rollback RUN", &[index_locked], (1, "git_busy")),
        row("workflow rollback RUN", &[living_worker], (1, "work_running")),
        row("workflow rollback RUN --force", &[living_worker], FINE),
        held(&row("workflow rollback RUN", &[], (1, "work_running")), owned),
        row("workflow rollback RUN", &[bad_configuration], (3, "invalid_config")),
    ]
}

/// A state database with three tasks; it belongs to no run.
fn tasks(world: &TestWorld) {
    world.write(
        ".ic.yaml",
        "rewind:\n  database: data/app.db\n  anchor: {table: tasks, key: id, order: at}\n  tables:\n    - {name: tasks, order: at}\n",
    );
    std::fs::create_dir_all(world.cli.root().join("data")).expect("a directory");
    let tables = "CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER NOT NULL); \
         INSERT INTO tasks VALUES ('T1', 1), ('T2', 2), ('T3', 3)";
    world.connect().execute_batch(tables).expect("make the tables");
}

fn without_database(world: &TestWorld) {
    world.remove("data/app.db");
}

fn spoilt(world: &TestWorld) {
    world.write("next.yaml", "name: x\nsteps: 1\n");
}

fn taken_back(world: &TestWorld) {
    world.ic(&["workflow", "rollback", &world.run, "--yes"]);
}

fn rewound(world: &TestWorld) {
    tasks(world);
    world.ic(&["rewind", "to", "T1", "--yes"]);
}

fn undone(world: &TestWorld) {
    rewound(world);
    let id = world.cli.json(["rewind", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    world.ic(&["undo", &id, "--yes"]);
}

/// A rewind that stopped after it had begun.
fn unfinished(world: &TestWorld) {
    world.ic(&["rewind", "to", "T2", "--yes"]);
    world.cli.sql("UPDATE rewinds SET status = 'stopped', stage = 'db_done'");
}

/// A row was written since that has the key of one that would come back.
fn in_the_way(world: &TestWorld) {
    rewound(world);
    world.connect().execute_batch("INSERT INTO tasks VALUES ('T2', 9)").expect("a row");
}

/// Another process is rewinding the database.
fn rewinding(world: &TestWorld) -> Vec<File> {
    let rewinds = std::fs::read_dir(world.cli.beside("rewinds")).expect("a directory");
    let paths = rewinds.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "lock")).map(|path| locked(&path)).collect()
}

fn pivot(world: &TestWorld) {
    world.ic(&["compensation", "add", &world.run, "--step", "sent", "--pivot", "--reason", "sent"]);
}

/// A workflow with a step that cannot be undone.
fn pivoted(world: &TestWorld) {
    world.ic(&["workflow", "run", "pivoted.yaml"]);
}

fn written_by_others(world: &TestWorld) {
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    world.write("made", "theirs\n");
    world.ic(&["dispatch", "record", &dispatch, "--file", "made"]);
}

/// A workflow that was run to its end.
fn ran() -> TestWorld {
    let mut world = in_git();
    let step = "steps:\n  - {id: make, phase: p, run: 'echo made > made', compensate: {shell: 'true'}}\n";
    world.write("flow.yaml", &format!("name: flow\n{step}  - {{id: last, phase: q, run: 'echo last > last && git add last && git -c user.name=n -c user.email=e@x commit -qm last', compensate: {{shell: 'true'}}, needs: [make]}}\n"));
    world.write("next.yaml", &format!("name: next\n{step}"));
    world.write("pivoted.yaml", "name: sent\nsteps:\n  - {id: a, phase: p, run: 'true', compensate: {shell: 'true'}}\n  - {id: b, phase: q, run: 'true', needs: [a], compensate: {pivot: sent}}\n");
    world.write("parallel.yaml", "name: two\nsteps:\n  - {id: a, phase: p, run: 'true'}\n  - {id: b, run: 'true'}\n");
    world.commit("workflows");
    let ran = world.cli.json(["workflow", "run", "flow.yaml", "--json"]);
    ran["run_id"].as_str().expect("a run").clone_into(&mut world.run);
    world
}

#[test]
fn a_preview_of_a_rewind_and_of_an_undo_of_effects_ends_as_the_deed() {
    compare(&story(), &rows());
}

#[test]
fn a_preview_of_a_workflow_ends_as_the_workflow() {
    compare(&ran(), &workflow_rows());
}
