//! `ic dispatch ...`

use crate::support::{Page, Project, story};

/// The dispatches that [`story`] creates: completed, and running. Ids count the calls.
const PLANNER: &str = "0a00000a";
const BUILDER: &str = "0a00000f";

fn with_story(project: &Project) {
    story(project);
}

#[test]
fn the_dispatches_of_the_story() {
    let story = story(&Project::new());
    assert!(story.planner.ends_with(PLANNER) && story.builder.ends_with(BUILDER), "{}", story.builder);
}

#[test]
fn create() {
    Page::of("ic dispatch create", with_story)
        .does("dispatch create @ --phase review --agent-type codex --name check --model m1 --prompt-file p.md")
        .refuses("dispatch create @ --phase nowhere", 3, "unknown_phase")
        .ends();
}

#[test]
fn start() {
    Page::of("ic dispatch start", |project| {
        story(project);
        project.ok("dispatch create @ --name check");
    })
    .does("dispatch start 0a000015 --pid 1")
    .refuses("dispatch start 0a000015", 1, "dispatch_running")
    .ends();
}

#[test]
fn complete() {
    Page::of("ic dispatch complete", with_story)
        .does(&format!("dispatch complete {BUILDER} --summary 'form and tests' --verdict pass"))
        .refuses(&format!("dispatch complete {BUILDER}"), 1, "dispatch_finished")
        .ends();
}

#[test]
fn fail() {
    Page::of("ic dispatch fail", with_story)
        .does(&format!("dispatch fail {BUILDER} --error 'no answer for 10m' --timed-out"))
        .refuses(&format!("dispatch fail {BUILDER} --error again"), 1, "dispatch_finished")
        .ends();
}

#[test]
fn cancel() {
    Page::of("ic dispatch cancel", with_story)
        .does(&format!("dispatch cancel {BUILDER} --reason 'no longer needed'"))
        .refuses(&format!("dispatch cancel {PLANNER}"), 1, "dispatch_finished")
        .ends();
}

#[test]
fn record() {
    Page::of("ic dispatch record", with_story)
        .does(&format!("dispatch record {BUILDER} --commit CCCCCCC3 --commit ddddddd4 --file src/form.rs"))
        .does(&format!("dispatch record {BUILDER} --commit ccccccc3"))
        .refuses(&format!("dispatch record {BUILDER} --commit main"), 3, "invalid_value")
        .ends();
}

#[test]
fn tokens() {
    Page::of("ic dispatch tokens", with_story)
        .does(&format!("dispatch tokens {BUILDER} --in 12000 --out 3400 --cache 8000"))
        .refuses("dispatch tokens 99999999 --in 1 --out 1", 3, "dispatch_not_found")
        .ends();
}

#[test]
fn show() {
    Page::of("ic dispatch show", with_story)
        .does(&format!("dispatch show {BUILDER}"))
        .refuses("dispatch show form", 3, "invalid_reference")
        .ends();
}

#[test]
fn beat() {
    Page::of("ic dispatch beat", with_story)
        .does(&format!("dispatch beat {BUILDER} --ttl 5m"))
        .refuses(&format!("dispatch beat {PLANNER}"), 1, "dispatch_finished")
        .ends();
}

#[test]
fn list() {
    Page::of("ic dispatch list", with_story)
        .does("dispatch list @")
        .does("dispatch list --status completed")
        .refuses("dispatch list --status done", 3, "invalid_value")
        .ends();
}
