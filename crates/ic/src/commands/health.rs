//! `ic health`

use ic_store::health::{self, Check};
use ic_worktree::repair;

use crate::commands::prelude::*;
use crate::text::path_text;
use crate::views::ledger::{CheckJson, HealthJson};

/// Check that the ledger is sound and can go on being so.
///
/// Integrity of the file, foreign keys, schema, journal mode, file system, permissions, disk space, and whether the object
/// store beside it is there, its own and sound. Exit 2 when something is wrong. What killed captures and restores left is
/// named too, with what ends it. The chain of events has its own check: ic events verify.
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
