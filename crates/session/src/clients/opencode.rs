//! `OpenCode`: a script of ours, that it loads, calls `ic hook`.

use serde_json::{Value, json};

use super::{Client, Dialect, HookOccasion, ServerList, USUAL};

pub(super) static CLIENT: Client = Client {
    name: "opencode",
    title: "OpenCode",
    // A subagent has a session of its own, whose end our script tells with the agent's name.
    events: &[
        ("session.created", HookOccasion::SessionBegins),
        ("chat.message", HookOccasion::Prompt),
        ("tool.execute.before", HookOccasion::BeforeCall),
        ("tool.execute.after", HookOccasion::AfterCall),
        ("session.idle", HookOccasion::Stops),
        ("session.deleted", HookOccasion::SessionEnds),
    ],
    dialect: &OpenCode,
    // The script sets it.
    shell_variable: Some("IC_OPENCODE_SESSION"),
    hook_files: [".opencode/plugins/ic.js", ".config/opencode/plugins/ic.js"],
    script: Some(include_str!("opencode.js")),
    server_files: ["opencode.json", ".config/opencode/opencode.json"],
    server_list: ServerList::Json("mcp"),
    readers: "list lsp plan_enter plan_exit question read skill todoread todowrite webfetch",
    editors: "edit write",
    directory: ".local/share/opencode",
    records: &["storage", "log", "plans"],
    // The script has no answer to give at a prompt, and hears of a stop when it is over.
    listens_at_prompts: false,
    can_hold: false,
    ..USUAL
};

#[derive(Debug)]
struct OpenCode;

impl Dialect for OpenCode {
    fn refuse(&self, reason: &str) -> Value {
        // The script throws it as an error, which refuses the call.
        json!({ "refuse": reason })
    }

    fn server(&self, program: &str) -> Value {
        json!({ "type": "local", "command": [program, "mcp"], "enabled": true })
    }
}
