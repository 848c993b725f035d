//! `ic uninstall`

use super::{hooks, mcp};
use crate::commands::hooks::{Installed, Place, client_named};
use crate::commands::prelude::*;
use crate::views::hooks::HooksJson;
use crate::views::mcp::{InstallJson, McpJson};

/// Uninstall the hooks and the MCP server: remove from a coding agent exactly what install added.
///
/// What was changed by hand since is left and named: exit 1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic uninstall claude-code
  ic uninstall gemini --dry-run")]
pub(crate) struct Uninstall {
    /// The client: claude-code, codex, gemini, copilot or opencode
    #[arg(value_name = "CLIENT")]
    client: String,
    #[command(flatten)]
    place: Place,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Uninstall {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let (client, place) = (client_named(&self.client)?, &self.place);
        // The other way round than they were installed. What refuses one of the two refuses both.
        let planned = mcp::uninstall::uninstall(session, client, place, None, true)?;
        hooks::uninstall::uninstall(session, client, place, true)?;
        let server = if self.dry_run {
            planned
        } else {
            mcp::uninstall::uninstall(session, client, place, None, false)?
        };
        let hooks = hooks::uninstall::uninstall(session, client, place, self.dry_run)?;
        let record = InstallJson {
            hooks: HooksJson::new(client, &hooks, self.dry_run, Installed::default()),
            mcp: McpJson::new(client, &server, self.dry_run, false),
        };
        session
            .output
            .record(&record, || views::mcp::both(client, (&hooks, None), (&server, None), self.dry_run))?;
        Ok(if hooks.left.is_empty() && server.left.is_empty() { Exit::Done } else { Exit::No })
    }
}
