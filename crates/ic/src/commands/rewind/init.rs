//! `ic rewind init`

use std::path::PathBuf;

use clap::ValueEnum;
use ic_kernel::config::FILE_NAME;
use ic_rewind::Profile;

use crate::commands::prelude::*;
use crate::views::rewind::database::RewindInitJson;

/// Configure what can be rewound: the section `rewind` of .ic.yaml.
///
/// The profile devs creates its tables (tasks, requirements, `agent_logs`, `langgraph_checkpoints`) where they are
/// missing. An existing section `rewind` is not overwritten, and the rest of the file is not touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind init --profile devs           # its database is beside the ledger
  ic rewind init --profile devs --database app/state.db
  ic rewind init --profile langgraph --database checkpoints.sqlite

For a database of another layout: ic rewind inspect DB --write")]
pub(crate) struct RewindInitArgs {
    /// The layout of the database
    #[arg(long, value_enum, value_name = "PROFILE")]
    profile: ProfileFlag,
    /// The database [default for devs: state.db beside the ledger]
    #[arg(long, value_name = "PATH")]
    database: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProfileFlag {
    /// The four tables of a development loop; they are made
    Devs,
    /// The database that langgraph-checkpoint-sqlite writes
    Langgraph,
}

impl From<ProfileFlag> for Profile {
    fn from(flag: ProfileFlag) -> Self {
        match flag {
            ProfileFlag::Devs => Self::Devs,
            ProfileFlag::Langgraph => Self::Langgraph,
        }
    }
}

impl RewindInitArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let database = self.database.as_deref().map(|path| input::path("--database", path)).transpose()?;
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let file = session.named_config().unwrap_or_else(|| kernel.project.root.join(FILE_NAME));
        let configured = ic_undo::app_rewind::init(&kernel, &settings, &file, self.profile.into(), database)?;
        session.output.record(&RewindInitJson::from(&configured), || views::rewind::database::configured(&configured))
    }
}
