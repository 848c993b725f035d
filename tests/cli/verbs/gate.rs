//! `ic gate ...`

use crate::support::{Page, Project, chain, story};

fn with_story(project: &Project) {
    story(project);
}

#[test]
fn check() {
    Page::of("ic gate check", with_story)
        .says_no("gate check @")
        .does("gate check @ --priority 4")
        .refuses("gate check @ --priority high", 3, "invalid_value")
        .ends();
}

#[test]
fn r#override() {
    Page::of("ic gate override", with_story)
        .does("gate override @ --reason 'reviewed by hand'")
        .refuses("gate override @ --reason ''", 3, "invalid_value")
        .ends();
}

#[test]
fn rules() {
    Page::of("ic gate rules", |project| {
        chain(project, "a,b,c", "a");
    })
    .does("gate rules")
    .does("gate rules --phase review")
    .does("gate rules @")
    .refuses("gate rules @ --phase review", 3, "unknown_phase")
    .ends();
}
