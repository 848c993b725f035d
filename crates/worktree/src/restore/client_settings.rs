//! The settings of coding agents in a project: they say how this machine is set up. In git, installed hooks have their file excluded; in a
//! folder without git nothing hides it, so what a person or the client writes there after the work would refuse every undo.

use super::request::Conflict;

/// The files, from the root, that `ic install` or a client writes into a project.
const FILES: [&[u8]; 10] = [
    b".claude/settings.json",
    b".claude/settings.local.json",
    b".codex/config.toml",
    b".codex/hooks.json",
    b".gemini/settings.json",
    b".github/hooks/ic.json",
    b".github/mcp.json",
    b".mcp.json",
    b".opencode/plugins/ic.js",
    b"opencode.json",
];

/// The reason that the report names for a settings file that stays.
pub(super) const STAYS: &str = "settings of a client, which others changed: they stay";

/// Removes settings that are to stay from the conflicts of a restore, and returns those. What the work itself changed there
/// is no conflict.
pub(super) fn take_from(conflicts: &mut Vec<Conflict>, stay: bool) -> Vec<Conflict> {
    let is_one = |conflict: &Conflict| stay && FILES.contains(&conflict.path.0.as_slice());
    let (settings, rest) = std::mem::take(conflicts).into_iter().partition(is_one);
    *conflicts = rest;
    settings
}
