//! `ic run ...`

use crate::support::{Page, Project, chain, story};

fn with_story(project: &Project) {
    story(project);
}

#[test]
fn create() {
    Page::of("ic run create", |_| {})
        .does("run create --goal 'Add a login'")
        .does(
            "run create --goal 'Write docs' --phases draft,edit,done --complexity 2 --scope-id docs \
             --auto-advance false --metadata '{\"ticket\": 12}'",
        )
        .refuses("run create --goal Port --phases a", 3, "invalid_value")
        .ends();
}

#[test]
fn list() {
    Page::of("ic run list", |project| {
        story(project);
        project.ok("run create --goal 'Write docs' --phases draft,edit,done");
    })
    .does("run list --limit 1")
    .does("run list --active")
    .refuses("run list --before 99999999", 3, "run_not_found")
    .ends();
}

#[test]
fn status() {
    Page::of("ic run status", with_story)
        .does("run status @")
        .refuses("run status scope:sprint-13", 3, "run_not_found")
        .ends();
}

#[test]
fn phase() {
    Page::of("ic run phase", with_story)
        .does("run phase scope:sprint-12")
        .refuses("run phase 12345", 3, "invalid_reference")
        .ends();
}

#[test]
fn current() {
    Page::of("ic run current", |project| {
        story(project);
        std::fs::create_dir(project.root().join("other")).expect("a directory");
    })
    .does("run current")
    .refuses("run current --project other", 1, "no_active_run")
    .ends();
}

#[test]
fn history() {
    Page::of("ic run history", |project| {
        chain(project, "draft,edit,print,done", "print");
        project.ok("run rollback @ --to-phase draft --reason 'the wrong book'");
        project.ok("run advance @");
    })
    .does("run history @")
    .refuses("run history 99999999", 3, "run_not_found")
    .ends();
}

#[test]
fn events() {
    Page::of("ic run events", |project| {
        chain(project, "a,b,c", "b");
        project.ok("run rollback @ --to-phase a --reason 'wrong way'");
    })
    .does("run events @")
    .refuses("run events 99999999", 3, "run_not_found")
    .ends();
}

#[test]
fn advance() {
    Page::of("ic run advance", with_story)
        .says_no("run advance @")
        .does("run advance @ --priority 2")
        .does("run advance @ --disable-gates --reason 'reviewed elsewhere'")
        .refuses("run advance @ --expect-phase planned@0", 1, "stale_phase")
        .ends();
}

#[test]
fn skip() {
    Page::of("ic run skip", with_story)
        .does("run skip @ reflect --reason 'nothing to say'")
        .does("run skip @ reflect --reason 'again'")
        .refuses("run skip @ planned --reason 'too late'", 1, "phase_passed")
        .ends();
}

#[test]
fn set() {
    Page::of("ic run set", with_story)
        .does("run set @ --complexity 4 --auto-advance false --metadata-merge '{\"ticket\": 12}'")
        .refuses("run set @", 3, "usage")
        .ends();
}

#[test]
fn cancel() {
    Page::of("ic run cancel", with_story)
        .does("run cancel @ --reason 'superseded by sprint-13'")
        .refuses("run cancel scope:sprint-12", 1, "run_not_active")
        .ends();
}

#[test]
fn reopen() {
    Page::of("ic run reopen", with_story)
        .refuses("run reopen @ --reason 'too early'", 1, "run_not_active")
        .then(|project| drop(project.ok("run cancel @ --reason 'superseded by sprint-13'")))
        .does("run reopen scope:sprint-12 --reason 'cancelled the wrong one'")
        .ends();
}

#[test]
fn rollback() {
    Page::of("ic run rollback", with_story)
        .does("run rollback @ --to-phase planned --dry-run")
        .does("run rollback @ --to-phase planned --reason 'the plan was wrong'")
        .refuses("run rollback @ --to-phase review", 1, "phase_ahead")
        .ends();
}

#[test]
fn code() {
    Page::of("ic run rollback --layer=code", |project| {
        let story = story(project);
        project.ok("run rollback @ --to-phase planned");
        project.ok(&format!("dispatch record {} --commit ccccccc3", story.builder));
    })
    .does("run rollback @ --layer=code")
    .does("run rollback @ --layer=code --phase planned")
    .does("run rollback @ --layer=code --to-phase planned")
    .refuses("run rollback @ --layer=code --phase nowhere", 3, "unknown_phase")
    .ends();
}
