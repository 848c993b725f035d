//! `ic init`

use std::path::PathBuf;

use crate::commands::prelude::*;
use crate::environment::CliEnvironment;
use crate::text::path_text;
use crate::views::ledger::{InitJson, WhereJson};

/// Create the ledger of this project, or keep the existing one.
///
/// In a git repository the ledger is in the git directory, out of reach of `git clean`, and all linked worktrees share
/// it; elsewhere it is in .ic/. Directory 0700, files 0600.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic init
  ic init --store ~/ledgers/shop       # elsewhere, with a pointer here: it outlives .git
  ic init --db /tmp/try/ic.db          # exactly this file
  ic init --db 'postgres://db.example/app?ledger=shop'   # on a server

In a repository the record and its checkpoints are in .git, and go with it. One made with --store stays: should .git be lost,
IC_DB=~/ledgers/shop/ic.db ic undo --yes restores the files, and not git's own history. One that is in .git already moves so:
mv .git/ic ~/ledgers/shop && ic init --store ~/ledgers/shop")]
pub(crate) struct InitArgs {
    /// Create the ledger in this directory, with a pointer to it here
    #[arg(long, value_name = "DIR", conflicts_with = "db")]
    store: Option<PathBuf>,
}

impl InitArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let store = self.store.as_ref().map(|store| session.directory.join(store));
        let place = ic_ledger::initial_place(&session.lookup(), store.as_deref())?;
        let (directory, options) = (session.directory.clone(), session.options());
        let (ledger, created) =
            ic_ledger::create(&place, store.is_some(), &directory, options, &CliEnvironment::context())?;
        let place = place.as_made(&ledger);
        let record = InitJson { place: WhereJson::new(&place, session.named_config().as_deref()), created };
        session.output.record(&record, || {
            let what = if created { "Created the ledger" } else { "The ledger is already there:" };
            format!("{what} {}\n", path_text(&place.name()))
        })?;
        Ok(ExitStatus::Done)
    }
}
