//! `ic hooks ...`, `ic session ...`

use crate::agents::{Said, say};
use crate::support::{Page, Project};

#[test]
fn install() {
    Page::of("ic hooks install", |_| {})
        .does("hooks install claude-code --dry-run")
        .does("hooks install claude-code")
        .does("hooks install claude-code")
        .refuses("hooks install gemini --user", 3, "invalid_value")
        .refuses("hooks install cursor", 3, "invalid_value")
        .then(|project| project.write(".codex/hooks.json", "{ // mine\n}\n"))
        .refuses("hooks install codex", 1, "config_not_changed")
        .ends();
}

#[test]
fn doctor() {
    Page::of("ic hooks doctor", |project| drop(project.ok("hooks install codex")))
        .does("hooks doctor")
        .does("hooks doctor codex")
        .refuses("hooks doctor cursor", 3, "invalid_value")
        .ends();
}

fn with_a_session(project: &Project) {
    for (event, prompt) in [("UserPromptSubmit", "Add a login"), ("Stop", "")] {
        say(project, &Said::new("claude-code", "s-1", event).prompt("p-1", prompt));
    }
}

#[test]
fn list() {
    Page::of("ic session list", with_a_session)
        .does("session list")
        .refuses("session list --limit 0", 3, "invalid_value")
        .ends();
}

#[test]
fn show() {
    Page::of("ic session show", with_a_session)
        .then(|project| {
            let id = project.json("session list")[0]["id"].as_str().expect("an id").to_owned();
            assert_eq!(project.json(&format!("session show {id}"))["prompts"][0]["name"], "Add a login");
        })
        .does("session show 0a000002")
        .refuses("session show 7f3a9c21", 3, "session_not_found")
        .ends();
}

#[test]
fn attach() {
    Page::of("ic session attach", |project| {
        with_a_session(project);
        project.ok("run create --goal sprint --phases a,b");
    })
    .does("session attach @ --session s-1")
    .does("session attach @ --session s-1")
    .refuses("session attach @", 3, "session_not_found")
    .refuses("session attach 7f3a9c21 --session s-1", 3, "run_not_found")
    .ends();
}

#[test]
fn continue_session() {
    Page::of("ic session continue", with_a_session).refuses("session continue 99999999", 3, "point_not_found").ends();
}
