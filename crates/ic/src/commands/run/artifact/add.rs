//! `ic run artifact add`

use std::path::PathBuf;

use ic_base::Label;
use ic_ops::artifact::{self, ArtifactRequest};

use crate::commands::prelude::*;
use crate::views::artifact::ArtifactAddedJson;

/// Record a file that a run produced, with its SHA-256 if it exists, and print the artifact's id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run artifact add @ --path docs/plan.md
  ic run artifact add @ --path report.html --phase review --type report")]
pub(crate) struct RunArtifactAddArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Its path; outside of the project, it is recorded as an absolute path
    #[arg(long, value_name = "F")]
    path: PathBuf,
    /// Its phase [default: the run's current one]
    #[arg(long, value_name = "P")]
    phase: Option<String>,
    /// The kind of artifact
    #[arg(long = "type", value_name = "T", default_value = "file")]
    kind: String,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunArtifactAddArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kind = Label::parse("--type", &self.kind)?;
        let request = ArtifactRequest {
            path: input::path("--path", &self.path)?,
            phase: self.phase.as_deref(),
            kind: kind.as_str(),
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let keep = session.kept_content(&kernel)?;
        let added = artifact::add(&kernel, &self.run, &request, keep.as_ref())?;
        session.output.warn_beside_value(&added.warnings);
        session.output.scalar(added.artifact.id.as_str(), &ArtifactAddedJson::from(&added))
    }
}
