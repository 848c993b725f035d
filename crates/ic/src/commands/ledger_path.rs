//! `ic where`

use crate::commands::prelude::*;
use crate::views::ledger::WhereJson;

/// Print the path of the ledger that commands use here.
///
/// A copy of this file alone can lack the newest changes, which stand in its log (-wal): ic backup FILE copies both.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic where
  sqlite3 \"$(ic where)\" 'SELECT goal, phase FROM runs'
  ic where --json | jq -r .project_dir")]
pub(crate) struct Where {}

impl Where {
    #[allow(clippy::unused_self, reason = "verbs share one shape")]
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let place = session.place()?;
        // A ledger on a server has no file that could be missing.
        if place.server.is_none() && !place.db.exists() {
            return Err(Diagnosis::new(Code::NoLedger, format!("The ledger {} does not exist.", place.db.display()))
                .hint("create it with: ic init"));
        }
        let record = WhereJson::new(&place, session.named_config().as_deref());
        session.output.path(&place.name(), &record)
    }
}
