//! `ic rollback ...`

mod abort;
mod list;
mod resume;
mod show;

use ic_kernel::Kernel;
use ic_kernel::journal::steps;
use ic_kernel::journal::table::RollbackRecord;
use ic_undo::UndoneRollback;
use ic_worktree::{CaptureSettings, RestoreWatch, Warning};

use crate::commands::prelude::*;
use crate::views::rollback::record::RollbackShowJson;
use crate::views::rollback::rollback_undo::RollbackUndoneJson;
use crate::{signals, text};

verbs! {
    /// A rollback is made by `ic run rollback`. ID is its id, or the end of one; or a run, for the newest rollback of it.
    pub(crate) enum RollbackVerb {
        List(list::RollbackListArgs),
        Show(show::RollbackShowArgs),
        Resume(resume::RollbackResumeArgs),
        Abort(abort::Abort),
    }
}

/// Shows the rollback with this id, as `ic rollback show` does.
pub(crate) fn show_by_id(session: &mut CliSession, id: &str) -> Result<ExitStatus> {
    show::RollbackShowArgs { id: id.to_owned() }.run(session)
}

/// The beginning of the question, and of the refusal without a terminal.
pub(super) const DOES: &str = "This changes more than the ledger";

/// Shows a rollback and its steps. `stays`: warnings about what it left.
fn show(
    session: &mut CliSession,
    kernel: &Kernel,
    (remembered, steps): (&RollbackRecord, &[steps::RollbackStep]),
    is_at_work: bool,
    stays: &[Warning],
) -> Result<()> {
    session.output.warn_all(stays);
    let record = RollbackShowJson::new(remembered, steps, is_at_work).with_warnings(stays);
    let files_alone = files_alone(session, kernel, remembered, steps);
    let way_back = ic_undo::way_back(kernel, remembered);
    let text = || views::rollback::record::show(remembered, steps, is_at_work, files_alone.as_ref(), way_back);
    session.output.record(&record, text).map(|_| ())
}

/// The files whose restore alone can be undone: see [`ic_undo::files_alone`]. An error there is ignored, because the rest is still
/// worth showing, and the undo itself reports it.
fn files_alone(
    session: &CliSession,
    kernel: &Kernel,
    remembered: &RollbackRecord,
    steps: &[steps::RollbackStep],
) -> Option<ic_undo::FilesAlone> {
    let settings = settings(session, kernel, remembered.id.as_str()).ok()?;
    ic_undo::files_alone(kernel, &settings, (remembered, steps)).ok()?
}

/// This is made after the last question: from then on Ctrl-C ends the call only between two steps. At a question it
/// should end the process.
pub(super) fn watch() -> Result<RestoreWatch> {
    Ok(RestoreWatch { interrupted: signals::interrupted()?, ..RestoreWatch::default() })
}

/// The settings of the run's project: how checkpoints are taken, and where its state database is.
pub(super) fn settings(session: &CliSession, kernel: &Kernel, reference: &str) -> Result<CaptureSettings> {
    session.settings_of_project(kernel, &ic_undo::run_of(kernel, reference)?.project_dir)
}

pub(super) fn show_preview(session: &mut CliSession, preview: &UndoneRollback) -> Result<ExitStatus> {
    let record = RollbackUndoneJson::from(preview);
    session.output.record(&record, || {
        let end = match preview.plan_hash.as_deref() {
            _ if !preview.refusals.is_empty() => {
                views::rollback::layers_plan::would_be_refused(&preview.refusals, None)
            }
            Some(hash) => text::exactly(hash),
            None => text::to_do_it(),
        };
        views::rollback::rollback_undo::undone(preview, None) + &end
    })?;
    // This is the exit of the real call, which would be refused before anything could be left.
    let is_partial = preview.is_partial();
    let exit = if is_partial { ExitStatus::Partly } else { ExitStatus::Done };
    Ok(preview.refusals.first().map_or(exit, |refusal| ExitStatus::from(refusal.error.kind())))
}

pub(super) fn finish(session: &mut CliSession, kernel: &Kernel, undone: &UndoneRollback) -> Result<ExitStatus> {
    let files_alone = files_alone(session, kernel, &undone.remembered, &undone.steps);
    let text = || views::rollback::rollback_undo::undone(undone, files_alone.as_ref());
    session.output.record(&RollbackUndoneJson::from(undone), text)?;
    let is_partial = undone.is_partial();
    // Without its last event something is left, and a step says why.
    Ok(if undone.seq.is_some() && !is_partial { ExitStatus::Done } else { ExitStatus::Partly })
}

/// A rollback in its current state, as text for the question.
fn shown(session: &CliSession, reference: &str) -> Result<String> {
    let kernel = session.kernel()?;
    let (remembered, steps) = ic_undo::named(&kernel, reference)?;
    let files_alone = files_alone(session, &kernel, &remembered, &steps);
    Ok(views::rollback::record::show(&remembered, &steps, false, files_alone.as_ref(), None))
}
