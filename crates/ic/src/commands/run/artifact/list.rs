//! `ic run artifact list`

use ic_runtrack::ArtifactStatus;
use ic_runtrack::artifact::ArtifactFilter;

use crate::commands::prelude::*;
use crate::views::artifact::ArtifactJson;

/// List the artifacts of a run, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run artifact list @ --phase planned
  ic run artifact list @ --status rolled_back --json | jq -r '.[].path'")]
pub(crate) struct RunArtifactListArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Only those of this phase
    #[arg(long, value_name = "P")]
    phase: Option<String>,
    /// Only those with this status
    #[arg(long, value_parser = one_of(ArtifactStatus::as_str, &[(ArtifactStatus::Active, ""), (ArtifactStatus::RolledBack, "")]))]
    status: Option<ArtifactStatus>,
}

impl RunArtifactListArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let artifacts = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            // As in `ic dispatch list`: an empty list would hide a typing error.
            if let Some(phase) = &self.phase {
                run.chain.require(phase)?;
            }
            let filter = ArtifactFilter { phase: self.phase.as_deref(), status: self.status };
            ic_runtrack::artifact::list(snapshot, &run.id, filter)
        })?;
        let records: Vec<ArtifactJson> = artifacts.iter().map(ArtifactJson::from).collect();
        session.output.list(&records, || views::artifact::artifacts(&artifacts))
    }
}
