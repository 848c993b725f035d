//! `ic health`

use ic_ledger::health::{self, HealthCheck};
use ic_worktree::repair;

use crate::commands::prelude::*;
use crate::environment::CliEnvironment;
use crate::text::path_text;
use crate::views::checkpoint::size::StoreSize;
use crate::views::ledger::{CheckJson, HealthJson};

/// Check the health of the ledger and of the object store.
///
/// It checks the file's integrity, foreign keys, schema, journal mode, file system, permissions and disk space, and that the object store
/// beside it exists, belongs to it and is intact. Exit 2 when something is wrong. It also tells the store's size, and lists what killed
/// captures and restores left, with the command that ends it. ic events verify checks the chain of events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic health
  ic health --json | jq -e .ok
  ic health --accept-older")]
pub(crate) struct Health {
    /// Accept this ledger though the store has held newer events; set a log aside that is not its own
    #[arg(long)]
    accept_older: bool,
}

impl Health {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        // This comes before the ledger is opened: a log that is not its own may prevent the opening.
        if self.accept_older {
            accept(session)?;
        }
        let kernel = session.kernel()?;
        let mut checks = health::examine(&kernel.ledger, kernel.context.now())?;
        checks.extend(ic_worktree::health::examine(&kernel)?);
        let (ok, detail) = repair::examine(&kernel, session.options())?;
        checks.push(HealthCheck { name: "store", ok, detail });
        // A configuration that cannot be read is not what was asked about, so the size is shown with the default limit.
        let size = StoreSize::of(&kernel, session.checkpoint_settings(&kernel).ok().as_ref());
        // The size is only reported: a large store is not a fault.
        checks.push(HealthCheck { name: "size", ok: true, detail: size.words() });
        let ok = checks.iter().all(|check| check.ok);
        let record = HealthJson {
            ok,
            db: kernel.ledger.name().to_string_lossy().into_owned(),
            schema_version: ic_ledger::LATEST,
            checks: checks.iter().map(CheckJson::from).collect(),
        };
        session
            .output
            .record(&record, || format!("{}\n{}", path_text(&kernel.ledger.name()), views::ledger::checks(&checks)))?;
        Ok(if ok { ExitStatus::Done } else { ExitStatus::Failure })
    }
}

/// Accepts a store that lacks newer events or content. A log that belongs to another file is set aside, and named.
fn accept(session: &CliSession) -> Result<()> {
    let (db, now) = (session.place()?.db, CliEnvironment::context().now());
    let of_ledger = ic_ledger::accept(&db, session.options(), now)?;
    let of_content = ic_worktree::repair::accept(&db, session.options(), now)?;
    for log in of_ledger.iter().chain(&of_content) {
        session.output.warn(&format!("The log that is not its file's is now {}.", path_text(log)));
    }
    Ok(())
}
