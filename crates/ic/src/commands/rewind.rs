//! `ic rewind ...`

mod init;
mod inspect;
mod list;
mod resume;
mod status;
mod targets;
mod task;

use ic_kernel::Kernel;
use ic_rewind::journal::{RewindEntry, RewindStatus};
use ic_undo::app_rewind::VectorWatch;
use ic_worktree::{CaptureSettings, Warning};

use crate::commands::prelude::*;
use crate::signals;
use crate::views::rewind::RewindJson;

verbs! {
    pub(crate) enum RewindVerb {
        Init(init::RewindInitArgs),
        Inspect(inspect::Inspect),
        Targets(targets::Targets),
        To(task::RewindToArgs),
        Resume(resume::RewindResumeArgs),
        Status(status::RewindStatusArgs),
        List(list::RewindListArgs),
    }
}

/// The beginning of the question, and of the refusal without a terminal.
pub(super) const DOES: &str = "A rewind writes into the application's database and the working tree";

fn watch() -> Result<VectorWatch> {
    Ok(VectorWatch { interrupted: signals::interrupted()? })
}

/// Prints the outcome of a rewind; exit 4 if a part is left. A rewind that is done also removes archives that have outlived their
/// retention.
fn finish(
    session: &mut CliSession,
    kernel: &Kernel,
    settings: &CaptureSettings,
    entry: &RewindEntry,
    warning: Option<Warning>,
) -> Result<ExitStatus> {
    let is_done = entry.status == RewindStatus::Done;
    let untidy = if is_done { ic_undo::app_rewind::tidy(kernel, settings) } else { None };
    session.output.warn_all(&untidy);
    let warnings: Vec<Warning> = warning.into_iter().chain(untidy).collect();
    let record = RewindJson::from(entry).with_warnings(&warnings);
    session.output.record(&record, || views::rewind::entry(entry))?;
    Ok(if is_done { ExitStatus::Done } else { ExitStatus::Partly })
}
