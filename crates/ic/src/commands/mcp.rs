//! `ic mcp ...`

pub(crate) mod install;
pub(crate) mod uninstall;

use ic_session::clients::Client;

use crate::commands::RunCommand;
use crate::commands::hooks::Edit;
use crate::commands::prelude::*;
use crate::views::mcp::McpJson;

/// Serve the tools of coding agents by the Model Context Protocol (MCP).
///
/// A coding agent starts it; `ic mcp install CLIENT` tells the agent how. The server speaks on standard input and
/// output until the agent ends it. Its tools are commands of ic, with the same JSON: status, log, diff, undo and others.
/// docs/MCP.md says what each does, and what a client shows of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic mcp install claude-code
  ic mcp uninstall claude-code
  ic mcp                        # as an agent starts it, in the project
  ic -C /srv/shop mcp           # for that project")]
pub(crate) struct Mcp {
    #[command(subcommand)]
    verb: Option<McpVerb>,
}

super::verbs! {
    pub(crate) enum McpVerb {
        Install(install::McpInstallArgs),
        Uninstall(uninstall::McpUninstallArgs),
    }
}

impl Mcp {
    /// Whether no verb was given, which starts the server.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_server(&self) -> bool {
        self.verb.is_none()
    }

    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        match &self.verb {
            Some(verb) => verb.run(session),
            // With the feature, `ic mcp` without a verb is the server, and `run` in lib.rs starts that instead.
            None => Err(Diagnosis::new(Code::Usage, "This ic was built without the server.")
                .hint("build it with the feature mcp, which is on by default")),
        }
    }
}

/// Prints what was done. `excluded`: after an installation, whether git and captures ignore the file.
fn report(
    session: &mut CliSession,
    client: &Client,
    edit: &Edit,
    dry_run: bool,
    excluded: Option<bool>,
) -> Result<ExitStatus> {
    let record = McpJson::new(client, edit, dry_run, excluded.unwrap_or_default());
    session.output.record(&record, || views::mcp::edited(client, edit, dry_run, excluded))?;
    Ok(if edit.left.is_empty() { ExitStatus::Done } else { ExitStatus::No })
}
