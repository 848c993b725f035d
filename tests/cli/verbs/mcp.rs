//! `ic install`, `ic uninstall`

use crate::support::Page;

#[test]
fn install() {
    Page::of("ic install", |_| {})
        .does("install codex --dry-run")
        .does("install codex")
        .does("install codex")
        .then(|project| project.write(".gemini/settings.json", "{ // mine\n}\n"))
        .refuses("install gemini --user", 3, "invalid_value")
        .refuses("install gemini", 1, "config_not_changed")
        .refuses("install cursor", 3, "invalid_value")
        .ends();
}

#[test]
fn uninstall() {
    Page::of("ic uninstall", |project| drop(project.ok("install codex")))
        .does("uninstall codex --dry-run")
        .does("uninstall codex")
        .does("uninstall codex")
        .refuses("uninstall cursor", 3, "invalid_value")
        .ends();
}
