//! `ic install`

use ic_session::clients::Client;

use super::hooks;
use crate::commands::hooks::install::program;
use crate::commands::hooks::{Edit, Excluded, HooksTarget, Servers, SettingsPlace};
use crate::commands::prelude::*;
use crate::views::hooks::HooksJson;
use crate::views::mcp::{InstallJson, McpJson};

/// Install the hooks and the MCP server into a coding agent.
///
/// Every prompt is recorded then, and the agent has the tools of ic. Both are merged into the client's settings, and a copy is kept beside
/// them. A project without a ledger gets one. The hooks alone: ic hooks install CLIENT.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic install claude-code
  ic install codex --trust
  ic install gemini --dry-run        # shows what would be added

Claude Code asks you once, at its start, whether a project's server may run; Codex reads a project's settings once you
trust the project.")]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    target: HooksTarget,
    /// Make Codex trust these hooks, and no others
    #[arg(long)]
    trust: bool,
}

impl InstallArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, place, dry_run) = (self.target.client()?, &self.target.place, self.target.dry_run);
        let trust = hooks::install::require_trust(client, self.trust)?;
        // Both are planned first, so that a refusal of one leaves the other unchanged, too.
        let (mut planned, installed) = hooks::install::install(session, client, place, true)?;
        // A client may have both in one file. Then the second plan begins with what the first would leave.
        let (server, excluded) = install_server(session, client, place, Some(&planned), true)?;
        let (hooks, installed, server, excluded) = if dry_run {
            planned.followed_by(&server);
            (planned, installed, server, excluded)
        } else {
            let (hooks, mut installed) = hooks::install::install(session, client, place, false)?;
            // By now the file itself has the hooks.
            let (server, excluded) = install_server(session, client, place, None, false)?;
            // The client is asked last: it reads the file that was written just now.
            if let Some(trust) = trust {
                installed.trusted = hooks::install::grant(trust, session, client, &hooks)?;
            }
            (hooks, installed, server, excluded)
        };
        let record = InstallJson {
            hooks: HooksJson::new(client, &hooks, dry_run, installed),
            mcp: McpJson::new(client, &server, dry_run, excluded),
        };
        session
            .output
            .record(&record, || views::mcp::both(client, (&hooks, Some(installed)), (&server, Some(excluded)), dry_run))
    }
}

/// Installs the server, or returns the edit of a dry run, and whether git and captures ignore the file. `edited`: what another edit is
/// about to make of the file.
fn install_server(
    session: &CliSession,
    client: &'static Client,
    place: &SettingsPlace,
    edited: Option<&Edit>,
    dry_run: bool,
) -> Result<(Edit, bool)> {
    let servers = Servers::read(&place.file(session, client.server_files)?, client, edited)?;
    let edit = servers.with(&program())?;
    place.install(session, &edit, Excluded::Servers(client), dry_run).map(|excluded| (edit, excluded))
}
