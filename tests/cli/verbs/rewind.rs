//! `ic rewind ...`

use std::path::Path;

use rusqlite::Connection;

use super::checkpoint::write;
use crate::support::{Page, Project};

/// Three tasks with what belongs to them, in the database of the profile `devs`.
pub(crate) fn fill(path: &Path) {
    let db = Connection::open(path).expect("the database");
    db.execute_batch(
        "INSERT INTO tasks VALUES ('T1', 'login', 'done', NULL, 1771606500000), ('T2', 'mail', 'done', NULL, 1771606510000),
           ('T3', 'search', 'open', NULL, 1771606514000);
         INSERT INTO requirements VALUES ('R1', 'T1', 'users log in', 1771606500000),
           ('R2', 'T3', 'users find things', 1771606514000);
         INSERT INTO agent_logs VALUES (1, 'T1', 'note', '{}', 1771606500000), (2, 'T1', 'note', '{}', 1771606505000),
           (3, 'T2', 'note', '{}', 1771606511000);
         INSERT INTO langgraph_checkpoints VALUES ('L1', 'T2', x'00ff', 1771606510000)",
    )
    .expect("fill it");
}

/// A project whose database has tasks `T1` to `T3`.
pub(crate) fn with_tasks(project: &Project) {
    project.ok("rewind init --profile devs");
    fill(&project.cli.beside("state.db"));
}

/// As [`with_tasks`], with vectors that are pruned only once a file has been made.
pub(crate) fn with_vectors(project: &Project) {
    with_tasks(project);
    let config = "rollback: {checkpointing: {auto: false}}\nrewind:\n  profile: devs\n  vectors:\n    \
                  exec: [sh, -c, 'echo the store is away; test -e store']\n";
    write(project, ".ic.yaml", config);
}

#[test]
fn init() {
    Page::of("ic rewind init", |_| {})
        .refuses("rewind init --profile langgraph", 3, "invalid_value")
        .refuses("rewind init --profile devs --database app/state.db", 3, "path_not_found")
        .does("rewind init --profile devs --database app.db")
        .refuses("rewind init --profile devs", 1, "config_not_changed")
        .then(|project| write(project, ".ic.yaml", "# nothing\n"))
        .does("rewind init --profile langgraph --database threads.sqlite")
        .ends();
}

#[test]
fn inspect() {
    let prepare = |project: &Project| {
        let db = Connection::open(project.root().join("app.db")).expect("the database");
        db.execute_batch(
            "CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT UNIQUE, created_at TEXT NOT NULL);
             CREATE TABLE job_steps (job_id INTEGER NOT NULL REFERENCES jobs(id), n INTEGER, said TEXT);
             CREATE TABLE colours (name TEXT);
             INSERT INTO jobs VALUES (1, 'a', '2026-02-20T10:00:00Z'), (2, 'b', '2026-02-20T11:00:00Z')",
        )
        .expect("fill it");
    };
    Page::of("ic rewind inspect", prepare)
        .does("rewind inspect app.db")
        .does("rewind inspect app.db --write")
        .refuses("rewind inspect app.db --write", 1, "config_not_changed")
        .refuses("rewind inspect nowhere.db", 3, "invalid_config")
        .ends();
}

#[test]
fn targets() {
    Page::of("ic rewind targets", |_| {})
        .refuses("rewind targets", 3, "invalid_config")
        .then(with_tasks)
        .does("rewind targets")
        .does("rewind targets --limit 1")
        .refuses("rewind targets --scope-id T", 3, "invalid_value")
        .refuses("rewind targets --limit 0", 3, "invalid_value")
        .ends();
}

#[test]
fn to() {
    Page::of("ic rewind to", with_vectors)
        .refuses("rewind to T1", 3, "confirmation_required")
        .refuses("rewind to T9 --yes", 3, "unknown_task")
        .leaves_some("rewind to T1 --yes")
        .refuses("rewind to T1 --yes", 1, "not_finished")
        .then(|project| write(project, "store", ""))
        .then(|project| {
            let id = project.json("rewind status")["id"].as_str().expect("an id").to_owned();
            project.ok(&format!("undo {id} --yes"));
        })
        .does("rewind to T2 --yes")
        .does("rewind to T2 --yes")
        .ends();
}

#[test]
fn dry_run() {
    Page::of("ic rewind to --dry-run", with_vectors)
        .does("rewind to T2 --dry-run")
        .does("rewind to T3 --dry-run")
        .refuses("rewind to T9 --dry-run", 3, "unknown_task")
        .refuses("rewind to T1 --dry-run --scope thread_id=1", 3, "invalid_value")
        .ends();
}

#[test]
fn resume() {
    Page::of("ic rewind resume", |project| {
        with_vectors(project);
        assert_eq!(project.run("rewind to T1 --yes").code, Some(4));
    })
    .leaves_some("rewind resume 0a000021 --yes")
    .then(|project| write(project, "store", ""))
    .does("rewind resume 0a000021 --yes")
    .does("rewind resume 0a000021 --yes")
    .refuses("rewind resume 7f3a9c21 --yes", 3, "rewind_not_found")
    .ends();
}

#[test]
fn status() {
    Page::of("ic rewind status", |_| {})
        .refuses("rewind status", 3, "rewind_not_found")
        .then(|project| {
            with_vectors(project);
            assert_eq!(project.run("rewind to T1 --yes").code, Some(4));
        })
        .does("rewind status")
        .ends();
}

#[test]
fn list() {
    Page::of("ic rewind list", with_tasks)
        .does("rewind list")
        .then(|project| {
            project.ok("rewind to T2 --yes");
            project.ok("rewind to T1 --yes");
        })
        .does("rewind list")
        .ends();
}

#[test]
fn redo() {
    Page::of("ic redo --json REWIND", |project| {
        with_tasks(project);
        project.ok("rewind to T1 --yes");
    })
    .refuses("redo 0a000021", 3, "confirmation_required")
    .does("redo 0a000021 --dry-run")
    .refuses("redo 0a000021 --reason why --yes", 3, "usage")
    .does("undo 0a000021 --yes")
    .refuses("undo 0a000021 --yes", 1, "nothing_to_undo")
    .refuses("redo 7f3a9c21 --yes", 3, "rollback_not_found")
    .ends();
}
