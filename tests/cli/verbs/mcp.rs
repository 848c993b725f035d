//! `ic mcp ...`, `ic install`, `ic uninstall`

use crate::support::Page;

#[test]
fn install() {
    Page::of("ic mcp install", |_| {})
        .does("mcp install claude-code --dry-run")
        .does("mcp install claude-code")
        .does("mcp install claude-code")
        .refuses("mcp install gemini --user", 3, "invalid_value")
        .refuses("mcp install cursor", 3, "invalid_value")
        .then(|project| project.write(".codex/config.toml", "model = \n"))
        .refuses("mcp install codex", 1, "config_not_changed")
        .ends();
}

#[test]
fn uninstall() {
    Page::of("ic mcp uninstall", |project| drop(project.ok("mcp install claude-code")))
        .does("mcp uninstall claude-code --dry-run")
        .does("mcp uninstall claude-code")
        .does("mcp uninstall claude-code")
        .refuses("mcp uninstall cursor", 3, "invalid_value")
        .ends();
}

#[test]
fn both() {
    Page::of("ic install", |_| {})
        .does("install codex --dry-run")
        .does("install codex")
        .does("install codex")
        .then(|project| project.write(".gemini/settings.json", "{ // mine\n}\n"))
        .refuses("install gemini", 1, "config_not_changed")
        .refuses("install cursor", 3, "invalid_value")
        .ends();
}

#[test]
fn neither() {
    Page::of("ic uninstall", |project| drop(project.ok("install codex")))
        .does("uninstall codex --dry-run")
        .does("uninstall codex")
        .does("uninstall codex")
        .refuses("uninstall cursor", 3, "invalid_value")
        .ends();
}
