//! `ic run agent ...` and `ic run artifact ...`

use crate::support::{Page, Project, story};

fn with_story(project: &Project) {
    story(project);
}

/// The agent that [`story`] adds; ids count the calls.
const AGENT: &str = "0a000012";

#[test]
fn the_agent_of_the_story() {
    let project = Project::new();
    assert!(story(&project).agent.ends_with(AGENT));
}

#[test]
fn agent_add() {
    Page::of("ic run agent add", with_story)
        .does("run agent add @ --type claude --name reviewer")
        .refuses("run agent add @ --type '  '", 3, "invalid_value")
        .ends();
}

#[test]
fn agent_list() {
    Page::of("ic run agent list", with_story)
        .does("run agent list @")
        .refuses("run agent list scope:nowhere", 3, "run_not_found")
        .ends();
}

#[test]
fn agent_update() {
    Page::of("ic run agent update", with_story)
        .does(&format!("run agent update {AGENT} --status completed"))
        .refuses(&format!("run agent update {AGENT} --status failed"), 1, "agent_finished")
        .refuses("run agent update 99999999 --status failed", 3, "agent_not_found")
        .ends();
}

#[test]
fn artifact_add() {
    Page::of("ic run artifact add", with_story)
        .does("run artifact add @ --path docs/plan.md --phase planned --type plan")
        .does("run artifact add @ --path later.md")
        .refuses("run artifact add @ --path later.md --phase nowhere", 3, "unknown_phase")
        .ends();
}

#[test]
fn artifact_list() {
    Page::of("ic run artifact list", |project| {
        story(project);
        project.ok("run rollback @ --to-phase planned");
    })
    .does("run artifact list @")
    .does("run artifact list @ --phase planned --status active")
    .refuses("run artifact list @ --status deleted", 3, "invalid_value")
    .ends();
}
