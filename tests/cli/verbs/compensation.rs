//! `ic compensation ...`

use std::fs::remove_file;

use super::checkpoint::write;
use crate::support::{Page, Project, chain};

/// A run with a queue to delete, a setting to restore and a build that needs nothing; the review declares no undo.
fn with_effects(project: &Project) {
    chain(project, "draft,edit,done", "edit");
    write(project, "app.toml", "port = 80\n");
    project.ok("compensation add @ --step queue --exec --description 'the queue of orders' -- echo delete 'orders 1'");
    project.ok("compensation add @ --step settings --restore-file app.toml --restore-file cache/index");
    project.ok("compensation add @ --step build --skip --reason 'only makes what is ignored'");
    project.ok("dispatch create @ --name review");
    write(project, "app.toml", "port = 8080\n");
    write(project, "cache/index", "1\n");
}

/// As [`with_effects`], and one that fails: it needs a file.
fn with_a_failure(project: &Project) {
    with_effects(project);
    project.ok("compensation add @ --step migrate --shell 'echo no database >&2; test -e database' --retries 1");
}

#[test]
fn add() {
    Page::of("ic compensation add", with_effects)
        .does("compensation add @ --step mail --pivot --reason 'mail cannot be called back'")
        .does("compensation add @ --step queue --shell './queue.sh delete' --cwd ops --timeout 2m --retries 3 --backoff 5s")
        .does("compensation add @ --step settings --restore-file app.toml --restore-file new.toml")
        .refuses("compensation add @ --step queue", 3, "usage")
        .refuses("compensation add @ --step queue --skip --pivot", 3, "usage")
        .refuses("compensation add @ --step queue --shell true --cwd ..", 3, "invalid_value")
        .refuses("compensation add @ --step serve --kill-pid 99999999", 3, "invalid_value")
        .ends();
}

#[test]
fn list() {
    Page::of("ic compensation list", |project| {
        with_a_failure(project);
        project.run("compensation run @ --yes");
    })
    .does("compensation list @")
    .refuses("compensation list scope:nowhere", 3, "run_not_found")
    .ends();
}

#[test]
fn list_of_none() {
    let project = Project::new();
    chain(&project, "draft,edit,done", "edit");
    assert_eq!(project.ok("compensation list @"), "[]");
    assert_eq!(project.ok("compensation list @ --format text"), "No compensations.");
    assert_eq!(project.ok("compensation run @ --yes --format text"), "Nothing of run 0a000002 is to be undone.");
}

#[test]
fn run() {
    Page::of("ic compensation run", with_a_failure)
        .does("compensation run @ --dry-run")
        .does("compensation run @ --step build --yes")
        .leaves_some("compensation run @ --yes")
        .leaves_some("compensation run @ --policy continue --yes")
        .then(|project| write(project, "database", ""))
        .does("compensation run @ --yes")
        .then(|project| {
            remove_file(project.root().join("database")).expect("the file");
            project.ok("compensation add @ --step publish --exec -- true");
            project.ok("compensation add @ --step mail --pivot --reason sent");
            project.ok("compensation add @ --step tag --exec -- true");
        })
        .does("compensation run @ --dry-run")
        .leaves_some("compensation run @ --yes")
        .does("compensation run @ --force --yes")
        .refuses("compensation run @ --step deploy --yes", 3, "compensation_not_found")
        .refuses("compensation run @ --to-phase done --yes", 1, "phase_ahead")
        .refuses("compensation run @", 3, "confirmation_required")
        .ends();
}

#[test]
fn coverage() {
    Page::of("ic compensation coverage", with_effects)
        .does("compensation coverage @")
        .then(|project| drop(project.ok("compensation add @ --step review --skip")))
        .does("compensation coverage @")
        .refuses("compensation coverage scope:nowhere", 3, "run_not_found")
        .ends();
}
