//! `ic rollback ...`

use crate::support::{Page, Project, chain};

/// A run that was rolled back once, by its workflow layer alone.
fn rolled_back(project: &Project) {
    chain(project, "draft,edit,print,done", "print");
    project.ok("run rollback @ --to-phase draft --reason 'the wrong book'");
}

/// A run whose rollback stopped: one effect of two cannot be undone.
fn stopped(project: &Project) {
    chain(project, "draft,edit,print,done", "edit");
    project.ok("compensation add @ --step order --exec -- true");
    project.ok("compensation add @ --step bill --exec -- false");
    project.ok("run advance @");
    let stopped = project.run("run rollback @ --to-phase draft --layer=workflow,effects --yes --json");
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
}

#[test]
fn list() {
    Page::of("ic rollback list", rolled_back)
        .does("rollback list")
        .does("rollback list @")
        .refuses("rollback list 7f3a9c21", 3, "run_not_found")
        .ends();
}

#[test]
fn show() {
    Page::of("ic rollback show", stopped)
        .does("rollback show 0a00000a")
        .refuses("rollback show 7f3a9c21", 3, "rollback_not_found")
        .ends();
}

#[test]
fn resume() {
    Page::of("ic rollback resume", stopped)
        .refuses("rollback resume @", 3, "confirmation_required")
        .leaves_some("rollback resume @ --yes")
        .does("rollback resume @ --skip-step --yes")
        .refuses("rollback resume @ --yes", 1, "nothing_to_resume")
        .ends();
}

#[test]
fn abandon() {
    Page::of("ic rollback abort", stopped)
        .refuses("rollback abort @", 3, "confirmation_required")
        .does("rollback abort @ --dry-run")
        .does("rollback abort @ --yes")
        .refuses("rollback abort @ --yes", 1, "nothing_to_resume")
        .ends();
}
