//! `ic undo`, `ic redo`

use crate::support::{Page, Project, chain};
use crate::verbs::checkpoint::write;

/// A run in which one dispatch did something.
fn worked(project: &Project) {
    chain(project, "draft,edit,print,done", "edit");
    let id = project.ok("dispatch create @ --name login");
    project.ok(&format!("dispatch start {id}"));
    write(project, "login.rs", "fn login() {}\n");
    project.ok("run artifact add @ --path login.rs");
}

/// The same, rolled back.
fn undone(project: &Project) {
    worked(project);
    project.ok("run rollback @ --to-phase draft");
}

#[test]
fn undo() {
    Page::of("ic undo", worked)
        .refuses("undo", 1, "no_checkpoint")
        .refuses("undo --only 0a000006 --dry-run", 1, "work_running")
        .then(|project| drop(project.ok("dispatch complete 0a000006 --no-checkpoint")))
        .refuses("undo --only 0a000006 --yes", 1, "no_checkpoint")
        .does("undo --only 0a000006 --layer=workflow --dry-run")
        .does("undo --layer=workflow --dry-run")
        .does("undo --layer=workflow")
        .refuses("undo --yes", 1, "nothing_to_undo")
        .refuses("undo dispatch:7f3a9c21 --yes", 3, "dispatch_not_found")
        .refuses("undo --only 7f3a9c21 --yes", 3, "dispatch_not_found")
        .refuses("undo phase:draft --run 7f3a9c21 --yes", 3, "run_not_found")
        .ends();
}

#[test]
fn redo() {
    Page::of("ic redo", undone)
        .refuses("redo", 3, "confirmation_required")
        .refuses("redo 7f3a9c21 --yes", 3, "rollback_not_found")
        .does("redo --dry-run")
        .does("redo 0a000009 --dry-run")
        .does("redo --yes")
        .refuses("redo --yes", 1, "nothing_to_undo")
        .ends();
}
