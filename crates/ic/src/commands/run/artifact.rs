//! `ic run artifact ...`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ic_base::{Label, Result};
use ic_ops::artifact::{self, Request};
use ic_runtrack::ArtifactStatus;
use ic_runtrack::artifact::Filter;

use crate::commands::input;
use crate::exit::Exit;
use crate::flags::Door;
use crate::json::ArtifactJson;
use crate::render;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Add(Add),
    List(List),
    Cat(Cat),
}

/// Record a file that a run produced, with its SHA-256 if it exists, and print the artifact's id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run artifact add @ --path docs/plan.md
  ic run artifact add @ --path report.html --phase review --type report")]
pub(crate) struct Add {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Its path; outside of the project, it is recorded as an absolute path
    #[arg(long, value_name = "F")]
    path: PathBuf,
    /// Its phase [default: the run's current one]
    #[arg(long, value_name = "P")]
    phase: Option<String>,
    /// What it is
    #[arg(long = "type", value_name = "T", default_value = "file")]
    kind: String,
    #[command(flatten)]
    door: Door,
}

/// List the artifacts of a run, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run artifact list @ --phase planned
  ic run artifact list @ --status rolled_back --json | jq -r '.[].path'")]
pub(crate) struct List {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Only those of this phase
    #[arg(long, value_name = "P")]
    phase: Option<String>,
    /// Only those with this status
    #[arg(long, value_enum)]
    status: Option<Wanted>,
}

/// Print the content of an artifact, as it was when it was recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run artifact cat 3f9a12c4
  ic run artifact cat 3f9a12c4 > plan.before.md")]
pub(crate) struct Cat {
    /// The artifact: an id, or the end of one
    id: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Wanted {
    Active,
    RolledBack,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Add(verb) => verb.run(session),
            Self::List(verb) => verb.run(session),
            Self::Cat(verb) => verb.run(session),
        }
    }
}

impl Add {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kind = Label::parse("--type", &self.kind)?;
        let request = Request {
            path: input::path("--path", &self.path)?,
            phase: self.phase.as_deref(),
            kind: kind.as_str(),
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let keep = session.kept_content(&kernel)?;
        let artifact = artifact::add(&kernel, &self.run, &request, keep.as_ref())?;
        session.output.scalar(artifact.id.as_str(), &ArtifactJson::from(&artifact))?;
        Ok(Exit::Done)
    }
}

impl Cat {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        session.output.exact(|sink| artifact::cat(&kernel, &settings, &self.id, sink))?;
        Ok(Exit::Done)
    }
}

impl List {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let status = self.status.map(|status| match status {
            Wanted::Active => ArtifactStatus::Active,
            Wanted::RolledBack => ArtifactStatus::RolledBack,
        });
        let artifacts = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            if let Some(phase) = &self.phase {
                run.chain.require(phase)?;
            }
            let filter = Filter { phase: self.phase.as_deref(), status };
            ic_runtrack::artifact::list(snapshot, &run.id, filter)
        })?;
        let records: Vec<ArtifactJson> = artifacts.iter().map(ArtifactJson::from).collect();
        session.output.list(&records, || render::runtrack::artifacts(&artifacts))?;
        Ok(Exit::Done)
    }
}
