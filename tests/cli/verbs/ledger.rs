//! `ic init`, `where`, `version`, `health`.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{Page, Project, assert_shape};

#[test]
fn init() {
    Page::without_ledger("ic init")
        .does("init")
        .does("init")
        .refuses("init --store elsewhere", 1, "ledger_exists")
        .ends();
}

#[test]
fn r#where() {
    Page::of("ic where", |_| {})
        .does("where")
        .refuses("where --db missing.db", 3, "no_ledger")
        .refuses("where -C /", 3, "no_ledger")
        .ends();
}

#[test]
fn version() {
    Page::without_ledger("ic version").does("version").refuses("version --short", 3, "usage").ends();
}

#[test]
fn health() {
    Page::of("ic backup", |_| {})
        .does("backup copy.db")
        .refuses("backup copy.db", 1, "file_exists")
        .does("backup --replace --content copy.db")
        .refuses("backup .ic/copy.db", 3, "invalid_value")
        .refuses("backup none/copy.db", 3, "invalid_value")
        .ends();
    Page::of("ic health", |_| {}).does("health").refuses("health --db missing.db", 3, "no_ledger").ends();
}

#[test]
fn migrate() {
    Page::of("ic migrate", |_| {})
        .does("migrate")
        .refuses("migrate --db missing.db", 3, "no_ledger")
        .refuses("migrate --db postgres://ic:secret@db.example/app", 3, "invalid_value")
        .ends();
}

#[test]
fn health_says_what_is_wrong() {
    let project = Project::new();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(project.cli.db(), open).expect("open it to others");
    let outcome = project.run("health");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(2), ""), "the record says it all");
    let record = outcome.json();
    assert_shape("health", &record);
    let wrong: Vec<_> = record["checks"].as_array().expect("checks").iter().filter(|c| c["ok"] == false).collect();
    assert_eq!((&record["ok"], wrong.len(), &wrong[0]["name"]), (&json!(false), 1, &json!("permissions")));
}

#[test]
fn a_new_ledger_is_private() {
    let project = Project::new();
    let mode = |path: &str| {
        let meta = std::fs::metadata(project.root().join(path)).expect("it exists");
        meta.permissions().mode() & 0o777
    };
    assert_eq!((mode(".ic"), mode(".ic/ic.db")), (0o700, 0o600));
    let before = project.dump();
    assert_eq!(project.json("init")["created"], false);
    assert_eq!(project.dump(), before, "a second init changes nothing");
}
