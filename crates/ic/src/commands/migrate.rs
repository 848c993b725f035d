//! `ic migrate`

use crate::commands::prelude::*;
use crate::views::ledger::MigrateJson;

/// Bring a ledger on a server to the schema of this program.
///
/// A ledger in a file is migrated when it is opened. One on a server is not: hosts with an older ic could not use it any more. It is one
/// transaction; of many that try at once, one migrates.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic migrate
  ic migrate --db 'postgres://owner@db.example/app?ledger=shop'")]
pub(crate) struct Migrate {}

impl Migrate {
    #[allow(clippy::unused_self, reason = "verbs share one shape")]
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let place = session.place()?;
        let migrated = ic_ledger::migrate_on_server(&place, session.options())?;
        if migrated.is_none() {
            // A ledger in a file is migrated by opening it.
            session.kernel()?;
        }
        let from = migrated.unwrap_or(ic_ledger::LATEST);
        let record = MigrateJson {
            db: place.name().to_string_lossy().into_owned(),
            earlier_schema_version: from,
            schema_version: ic_ledger::LATEST,
            migrated: from != ic_ledger::LATEST,
        };
        session.output.record(&record, || {
            if record.migrated {
                format!("Migrated from schema {from} to {}.\n", record.schema_version)
            } else {
                format!("Nothing to migrate: the ledger has schema {}.\n", record.schema_version)
            }
        })?;
        Ok(ExitStatus::Done)
    }
}
