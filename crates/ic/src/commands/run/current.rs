//! `ic run current`

use std::path::PathBuf;

use ic_phase::run_reference;

use crate::commands::prelude::*;
use crate::views::run::RunJson;

/// Print the id of the only active run of this project; exit 1 if none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run current
  run=$(ic run current) || run=$(ic run create --goal 'Next')
  ic run current --project ~/src/shop")]
pub(crate) struct Current {
    /// The project; its directory may be deleted [default: this one]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl Current {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let project = self.project.as_ref().map(|p| input::known_project(session, &kernel, p)).transpose()?;
        let found = kernel.read(|snapshot| match &project {
            Some(directory) => run_reference::only_open_run_of(snapshot, directory, &|snapshot, run, is_only| {
                kernel.standing(snapshot, run, is_only)
            }),
            None => kernel.current(snapshot),
        })?;
        let moved = if found.is_none() { kernel.read(ic_undo::points::moved_from)? } else { None };
        let run = found.ok_or_else(|| {
            let directory = project.as_ref().unwrap_or(&kernel.project.root);
            Diagnosis::new(Code::NoActiveRun, format!("{} has no active run.", directory.display()))
                .hint(moved.unwrap_or_else(|| "create one: ic run create --goal TEXT".to_owned()))
        })?;
        session.output.scalar(run.id.as_str(), &RunJson::from(&run))
    }
}
