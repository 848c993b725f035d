//! `ic uninstall`

use ic_session::clients::Client;

use super::hooks;
use crate::commands::hooks::{Edit, Excluded, HooksTarget, Installed, Servers, SettingsPlace};
use crate::commands::prelude::*;
use crate::views::hooks::HooksJson;
use crate::views::mcp::{InstallJson, McpJson};

/// Uninstall the hooks and the MCP server: remove from a coding agent exactly what install added.
///
/// Settings that did not change since the install are again byte for byte as before it. What was changed by hand since is left and named:
/// exit 1. What Codex trusts of these hooks goes from its `config.toml`, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic uninstall claude-code
  ic uninstall gemini --dry-run")]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    target: HooksTarget,
}

impl UninstallArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, place, dry_run) = (self.target.client()?, &self.target.place, self.target.dry_run);
        // In the reverse order of the installation. Both are planned first, so that a refusal of one leaves the other unchanged, too.
        let mut planned = uninstall_server(session, client, place, true)?;
        // As in `ic install`: one file may have both.
        let hooks = hooks::uninstall::uninstall(session, client, place, Some(&planned), true)?;
        let (server, hooks) = if dry_run {
            planned.followed_by(&hooks);
            (planned, hooks)
        } else {
            let server = uninstall_server(session, client, place, false)?;
            (server, hooks::uninstall::uninstall(session, client, place, None, false)?)
        };
        let record = InstallJson {
            hooks: HooksJson::new(client, &hooks, dry_run, Installed::default()),
            mcp: McpJson::new(client, &server, dry_run, false),
        };
        session.output.record(&record, || views::mcp::both(client, (&hooks, None), (&server, None), dry_run))?;
        Ok(if hooks.left.is_empty() && server.left.is_empty() { ExitStatus::Done } else { ExitStatus::No })
    }
}

/// Uninstalls the server, or returns the edit of a dry run.
fn uninstall_server(
    session: &CliSession,
    client: &'static Client,
    place: &SettingsPlace,
    dry_run: bool,
) -> Result<Edit> {
    let servers = Servers::read(&place.file(session, client.server_files)?, client, None)?;
    let edit = servers.without()?;
    if !dry_run {
        place.uninstall(session, &edit, Excluded::Servers(client))?;
    }
    Ok(edit)
}
