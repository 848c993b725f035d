//! `ic health`

use ic_store::health::{self, Check};
use ic_worktree::repair;

use crate::commands::prelude::*;
use crate::text::path_text;
use crate::views::ledger::{CheckJson, HealthJson};

/// Check the health of the ledger and of the object store.
///
/// It checks the file's integrity, foreign keys, schema, journal mode, file system, permissions and disk space, and
/// that the object store beside it exists, belongs to it and is intact. Exit 2 when something is wrong. It also lists
/// what killed captures and restores left, with the command that ends it. ic events verify checks the chain of events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic health
  ic health --json | jq -e .ok")]
pub(crate) struct Health {}

impl Health {
    #[allow(clippy::unused_self, reason = "verbs share one shape")]
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let mut checks = health::examine(&kernel.ledger)?;
        checks.extend(ic_worktree::health::examine(&kernel)?);
        let (ok, detail) = repair::examine(&kernel, session.options())?;
        checks.push(Check { name: "store", ok, detail });
        let ok = checks.iter().all(|check| check.ok);
        let record = HealthJson {
            ok,
            db: kernel.ledger.path().to_string_lossy().into_owned(),
            schema_version: ic_store::LATEST,
            checks: checks.iter().map(CheckJson::from).collect(),
        };
        session.output.record(&record, || {
            format!("{}\n{}", path_text(kernel.ledger.path()), views::ledger::checks(&checks))
        })?;
        Ok(if ok { Exit::Done } else { Exit::Failure })
    }
}
