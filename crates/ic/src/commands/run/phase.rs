//! `ic run phase`

use crate::commands::prelude::*;
use crate::views::run::PhaseJson;

/// Print the current phase of a run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run phase @
  [ \"$(ic run phase @)\" = executing ] && ./build.sh")]
pub(crate) struct Phase {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl Phase {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let run = kernel.read(|snapshot| kernel.run(snapshot, &self.run))?;
        session.output.scalar(&run.phase, &PhaseJson::from(&run))
    }
}
