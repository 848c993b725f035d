//! `ic session list`

use crate::commands::prelude::*;
use crate::views::session::SessionJson;

/// List sessions of coding agents, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session list
  ic session list --json | jq -r '.[-1].run_id'")]
pub(crate) struct SessionListArgs {
    /// At most the newest N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

impl SessionListArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let all = kernel.read(|snapshot| ic_session::list(snapshot, self.limit))?;
        let records: Vec<SessionJson> = all.iter().map(SessionJson::from).collect();
        let now = kernel.context.now();
        session.output.list(&records, || views::session::sessions(&all, now))
    }
}
