//! `ic rollback ...`

mod abort;
mod list;
mod resume;
mod show;
mod undo;

use ic_journal::steps;
use ic_journal::table::RollbackRecord;
use ic_kernel::Kernel;
use ic_rollback::Undone;
use ic_worktree::{Settings, Watch};
pub(crate) use undo::Undo;

use crate::commands::prelude::*;
use crate::views::rollback::record::RollbackShowJson;
use crate::views::rollback::undone::RollbackUndoneJson;
use crate::{signals, text};

verbs! {
    /// A rollback is made by `ic run rollback`. ID is its id, or the end of one; or a run, for the newest rollback of it.
    pub(crate) enum Verb {
        List(list::List),
        Show(show::Show),
        Resume(resume::Resume),
        Abort(abort::Abort),
        Undo(undo::Undo),
    }
}

/// The beginning of the question, and of the refusal without a terminal.
const DOES: &str = "This changes more than the ledger";

fn show(
    session: &mut Session,
    kernel: &Kernel,
    remembered: &RollbackRecord,
    steps: &[steps::Step],
    is_at_work: bool,
) -> Result<()> {
    let record = RollbackShowJson::new(remembered, steps, is_at_work);
    let files_alone = files_alone(session, kernel, remembered, steps);
    let way_back = ic_rollback::way_back(kernel, remembered);
    let text =
        || views::rollback::record::show(remembered, steps, is_at_work, files_alone.as_ref(), way_back);
    session.output.record(&record, text).map(|_| ())
}

/// The files whose restore alone can be undone: see [`ic_rollback::files_alone`]. An error there is ignored, because the rest is still
/// worth showing, and the undo itself reports it.
fn files_alone(
    session: &Session,
    kernel: &Kernel,
    remembered: &RollbackRecord,
    steps: &[steps::Step],
) -> Option<ic_rollback::FilesAlone> {
    let settings = settings(session, kernel, remembered.id.as_str()).ok()?;
    ic_rollback::files_alone(kernel, &settings, (remembered, steps)).ok()?
}

fn watch() -> Result<Watch> {
    Ok(Watch { interrupted: signals::interrupted()?, ..Watch::default() })
}

/// The settings of the run's project: how checkpoints are taken, and where its state database is.
fn settings(session: &Session, kernel: &Kernel, reference: &str) -> Result<Settings> {
    session.settings_of_project(kernel, &ic_rollback::run_of(kernel, reference)?.project_dir)
}

fn show_preview(session: &mut Session, preview: &Undone) -> Result<Exit> {
    let record = RollbackUndoneJson::from(preview);
    session.output.record(&record, || {
        let end = match preview.plan_hash.as_deref() {
            _ if !preview.refusals.is_empty() => {
                views::rollback::layered::would_be_refused(&preview.refusals, None)
            }
            Some(hash) => text::exactly(hash),
            None => text::to_do_it(),
        };
        views::rollback::undone::undone(preview, None) + &end
    })?;
    let is_partial = preview.is_partial();
    let exit = if is_partial { Exit::Partly } else { Exit::Done };
    Ok(preview.refusals.first().map_or(exit, |refusal| Exit::from(refusal.error.kind())))
}

fn finish(session: &mut Session, kernel: &Kernel, undone: &Undone) -> Result<Exit> {
    let files_alone = files_alone(session, kernel, &undone.remembered, &undone.steps);
    let text = || views::rollback::undone::undone(undone, files_alone.as_ref());
    session.output.record(&RollbackUndoneJson::from(undone), text)?;
    let is_partial = undone.is_partial();
    Ok(if undone.seq.is_some() && !is_partial { Exit::Done } else { Exit::Partly })
}

/// A rollback in its current state, as text for the question.
fn shown(session: &Session, reference: &str) -> Result<String> {
    let kernel = session.kernel()?;
    let (remembered, steps) = ic_rollback::named(&kernel, reference)?;
    let files_alone = files_alone(session, &kernel, &remembered, &steps);
    Ok(views::rollback::record::show(&remembered, &steps, false, files_alone.as_ref(), None))
}
