//! `ic mcp install`

use ic_session::clients::Client;

use super::report;
use crate::commands::hooks::install::program;
use crate::commands::hooks::{Edit, Excluded, HooksTarget, Servers, SettingsPlace};
use crate::commands::prelude::*;

/// Install the MCP server into a coding agent: its model then has the tools of ic.
///
/// The server is merged into the client's settings, and a copy is kept beside them. A project without a ledger gets one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic mcp install claude-code
  ic mcp install codex --dry-run        # shows what would be added
  ic mcp install gemini

Together with the hooks: ic install CLIENT. Claude Code asks you once, at its start, whether a project's server may run;
Codex reads a project's settings once you trust the project.")]
pub(crate) struct McpInstallArgs {
    #[command(flatten)]
    target: HooksTarget,
}

impl McpInstallArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, target) = (self.target.client()?, &self.target);
        let (edit, excluded) = install(session, client, &target.place, None, target.dry_run)?;
        report(session, client, &edit, target.dry_run, Some(excluded))
    }
}

/// Installs the server, or returns the edit of a dry run, and whether git and captures ignore the file. `edited`: what another edit is
/// about to make of the file.
pub(crate) fn install(
    session: &CliSession,
    client: &'static Client,
    place: &SettingsPlace,
    edited: Option<&Edit>,
    dry_run: bool,
) -> Result<(Edit, bool)> {
    let servers = Servers::read(&place.file(session, client.server_files)?, client, edited)?;
    let edit = servers.with(&program())?;
    let exclude = place.exclude(session, Excluded::Servers(client))?;
    if !dry_run {
        place.prepare(session, exclude.as_ref())?;
        edit.write()?;
    }
    Ok((edit, exclude.is_some_and(|exclude| exclude.covers_settings)))
}
