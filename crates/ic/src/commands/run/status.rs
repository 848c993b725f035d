//! `ic run status`

use clap::Args;
use ic_base::Result;
use ic_phase::skip;

use crate::exit::Exit;
use crate::json::RunJson;
use crate::render;
use crate::session::Session;

/// Show a run as it is now.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run status @
  ic run status scope:sprint-12
  ic run status 7f3a9c --json | jq -r .phase")]
pub(crate) struct Status {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl Status {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let (run, skipped) = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            let skipped = skip::skipped_phases(snapshot, &run.id)?;
            Ok((run, skipped))
        })?;
        session.output.record(&RunJson::from(&run), || render::run::card(&run, &skipped))?;
        Ok(Exit::Done)
    }
}
