//! `ic run list`

use std::path::PathBuf;

use ic_phase::run::{self, RunFilter};
use ic_phase::run_reference;

use crate::commands::prelude::*;
use crate::views::run::RunJson;

/// List runs, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run list --active
  ic run list --project . --limit 5
  ic run list --before \"$first_id\"      # the previous page
  ic run list --json | jq -r '.[] | [.short_id, .phase, .goal] | @tsv'")]
pub(crate) struct RunListArgs {
    /// Only runs that are active
    #[arg(long)]
    active: bool,
    /// Only runs of this project (its directory may be deleted)
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// At most the newest N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
    /// Only runs older than this one (for paging)
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

impl RunListArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let project = self.project.as_ref().map(|p| input::known_project(session, &kernel, p)).transpose()?;
        let mut runs = kernel.read(|snapshot| {
            let before = self.before.as_ref().map(|text| run_reference::by_id(snapshot, text)).transpose()?;
            let filter = RunFilter {
                open: self.active,
                project: project.as_deref(),
                limit: self.limit,
                before: before.as_ref().map(|run| &run.id),
            };
            run::list(snapshot, &filter)
        })?;
        // The query returns the newest ones, newest first.
        runs.reverse();
        let records: Vec<RunJson> = runs.iter().map(RunJson::from).collect();
        let now = kernel.context.now();
        session.output.list(&records, || views::run::table(&runs, now))
    }
}
