//! `ic uninstall`

use super::{hooks, mcp};
use crate::commands::hooks::{HooksTarget, Installed};
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
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    target: HooksTarget,
}

impl UninstallArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, place, dry_run) = (self.target.client()?, &self.target.place, self.target.dry_run);
        // In the reverse order of the installation. Both are planned first, so that a refusal of one leaves the other unchanged, too.
        let mut planned = mcp::uninstall::uninstall(session, client, place, true)?;
        // As in `ic install`: one file may have both.
        let hooks = hooks::uninstall::uninstall(session, client, place, Some(&planned), true)?;
        let (server, hooks) = if dry_run {
            planned.followed_by(&hooks);
            (planned, hooks)
        } else {
            let server = mcp::uninstall::uninstall(session, client, place, false)?;
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
