//! `ic mcp`

use crate::commands::prelude::*;

/// Serve the tools of coding agents by the Model Context Protocol (MCP).
///
/// A coding agent starts it; `ic install CLIENT` tells the agent how. The server speaks on standard input and output
/// until the agent ends it. Its tools are commands of ic, with the same JSON: status, log, diff, undo and others.
/// docs/MCP.md says what each does, and what a client shows of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic mcp                        # as an agent starts it, in the project
  ic -C /srv/shop mcp           # for that project")]
pub(crate) struct Mcp {}

impl Mcp {
    /// With the feature, the server is started before this, by `run` in lib.rs.
    #[allow(clippy::unused_self, reason = "every verb is called so")]
    pub(crate) fn run(&self, _session: &mut CliSession) -> Result<ExitStatus> {
        Err(Diagnosis::new(Code::Usage, "This ic was built without the server.")
            .hint("build it with the feature mcp, which is on by default"))
    }
}
