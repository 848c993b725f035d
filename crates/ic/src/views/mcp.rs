//! The MCP server in the settings of coding agents, alone and with the hooks.

use ic_session::clients::Client;

use crate::commands::hooks::{Edit, Installed};
use crate::text::{path_text, style, styled};
use crate::views;
use crate::views::hooks::{HooksJson, SettingsEditJson};

shape! {
    /// What was done to the MCP server in a client's settings.
    pub(crate) struct McpJson from (client: &Client, edit: &Edit, dry_run: bool, excluded: bool) {
        #[serde(flatten)]
        edit: SettingsEditJson = SettingsEditJson::new(client, edit, dry_run),
        /// The server's name, if a person changed its entry, which stays; else null.
        server_left: Option<String> = edit.left.first().cloned(),
        /// Whether git and captures ignore the file, by `.git/info/exclude`.
        excluded: bool = excluded,
    }

    /// What was done to a client's settings (`install`, `uninstall`).
    pub(crate) struct InstallJson {
        /// What was done to its hooks.
        pub(crate) hooks: HooksJson,
        /// What was done to its MCP server.
        pub(crate) mcp: McpJson,
    }
}

/// What was done to a client's settings. `excluded`: after an installation, whether git and captures ignore the file.
fn edited(client: &Client, edit: &Edit, dry_run: bool, excluded: Option<bool>) -> String {
    let file = path_text(edit.file());
    let mut out = match (edit.is_change(), dry_run, excluded.is_some()) {
        (false, _, true) => format!("The MCP server is installed already: {file}\n"),
        (false, _, false) => format!("No MCP server of ic to remove: {file}\n"),
        (true, true, _) if edit.removes_file() => format!("Would remove {file}\n"),
        (true, true, _) => format!("Would write {file}:\n{}", edit.text()),
        (true, false, true) => format!(
            "{} {file}\nFrom its next session on {} has the tools of ic: status, log, diff, undo, ...\n",
            styled(style::GOOD, "MCP server installed in"),
            client.name
        ),
        (true, false, false) => format!("{} {file}\n", styled(style::GOOD, "MCP server removed from")),
    };
    if excluded == Some(true) && edit.is_change() {
        out += "Git and captures leave it out, by .git/info/exclude.\n";
    }
    if excluded.is_some() && !dry_run && edit.is_change() && !edit.is_of_user() {
        out += client.server_note;
    }
    for name in &edit.left {
        out += &format!("{} the server {name} is not as ic writes it; remove it there\n", styled(style::WARN, "left:"));
    }
    out
}

/// What was done to the hooks and to the server.
pub(crate) fn both(
    client: &Client,
    (hooks, installed): (&Edit, Option<Installed>),
    (server, excluded): (&Edit, Option<bool>),
    dry_run: bool,
) -> String {
    let servers = edited(client, server, dry_run, excluded);
    if dry_run && hooks.file() == server.file() && hooks.is_change() && server.is_change() {
        // If both are in one file, each edit has the result of both: it is shown once.
        return servers;
    }
    format!("{}\n{servers}", views::hooks::edited(client, hooks, dry_run, installed))
}
