//! `ic mcp uninstall`

use ic_session::clients::Client;

use super::report;
use crate::commands::hooks::{Edit, Excluded, HooksTarget, Servers, SettingsPlace};
use crate::commands::prelude::*;

/// Uninstall the MCP server: remove from a client's settings exactly what install added.
///
/// Settings that did not change since the install are again byte for byte as before it. An entry that changed since is
/// left and named: exit 1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic mcp uninstall claude-code
  ic mcp uninstall gemini --dry-run")]
pub(crate) struct McpUninstallArgs {
    #[command(flatten)]
    target: HooksTarget,
}

impl McpUninstallArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, target) = (self.target.client()?, &self.target);
        let edit = uninstall(session, client, &target.place, target.dry_run)?;
        report(session, client, &edit, target.dry_run, None)
    }
}

/// Uninstalls the server, or returns the edit of a dry run.
pub(crate) fn uninstall(
    session: &CliSession,
    client: &'static Client,
    place: &SettingsPlace,
    dry_run: bool,
) -> Result<Edit> {
    let servers = Servers::read(&place.file(session, client.server_files)?, client, None)?;
    let edit = servers.without()?;
    if !dry_run {
        edit.write()?;
        place.clear(session, &edit, Excluded::Servers(client))?;
    }
    Ok(edit)
}
