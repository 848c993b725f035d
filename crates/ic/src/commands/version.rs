//! `ic version`

use crate::commands::prelude::*;
use crate::views::ledger::VersionJson;

/// Print the versions of ic, of the newest ledger that it reads, and of its SQLite.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic version
  ic version --json | jq .schema_version")]
pub(crate) struct Version {}

impl Version {
    #[allow(clippy::unused_self, reason = "verbs share one shape")]
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let record = VersionJson {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("IC_BUILD_COMMIT"),
            schema_version: ic_ledger::LATEST,
            sqlite: ic_ledger::sqlite_version(),
        };
        session.output.record(&record, || {
            let commit = record.commit.map(|commit| format!("commit {commit}, ")).unwrap_or_default();
            format!(
                "ic {} ({commit}ledger schema {}, SQLite {})\n",
                record.version, record.schema_version, record.sqlite
            )
        })?;
        Ok(ExitStatus::Done)
    }
}
