//! `ic rewind ...`

mod init;
mod inspect;
mod list;
mod resume;
mod status;
mod targets;
mod to;
mod undo;

use ic_kernel::Kernel;
use ic_rewind::journal::{Entry, Status};
use ic_rows::Watch;
use ic_worktree::{Settings, Warning};

use crate::commands::prelude::*;
use crate::signals;
use crate::views::rewind::RewindJson;

verbs! {
    pub(crate) enum Verb {
        Init(init::Init),
        Inspect(inspect::Inspect),
        Targets(targets::Targets),
        To(to::To),
        Resume(resume::Resume),
        Status(status::Status),
        List(list::List),
        Undo(undo::Undo),
    }
}

/// The beginning of the question, and of the refusal without a terminal.
const DOES: &str = "A rewind writes into the application's database and the working tree";

fn watch() -> Result<Watch> {
    Ok(Watch { interrupted: signals::interrupted()? })
}

/// Prints the outcome of a rewind; exit 4 if a part is left. A rewind that is done also removes archives that have outlived their
/// retention.
fn finish(
    session: &mut Session,
    kernel: &Kernel,
    settings: &Settings,
    entry: &Entry,
    warning: Option<Warning>,
) -> Result<Exit> {
    let is_done = entry.status == Status::Done;
    let untidy = if is_done { ic_rows::tidy(kernel, settings) } else { None };
    session.output.warn_all(&untidy);
    let warnings: Vec<Warning> = warning.into_iter().chain(untidy).collect();
    let record = RewindJson::from(entry).with_warnings(&warnings);
    session.output.record(&record, || views::rewind::entry(entry))?;
    Ok(if is_done { Exit::Done } else { Exit::Partly })
}
