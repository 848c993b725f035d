//! What taking a rollback back, or giving one up, would do: nothing is changed or locked, and the run stays as it is.

use ic_base::{Result, Seq};
use ic_journal::Force;
use ic_journal::choices;
use ic_journal::choices::Choices;
use ic_journal::steps::{self, Course, Step, StepKind, StepState};
use ic_journal::table::{self, Remembered};
use ic_kernel::Kernel;
use ic_kernel::require_own_project;
use ic_phase::run;
use ic_worktree::{Report, Settings, Watch};

use super::back::Undone;
use super::carry;
use super::data::{self, Data};
use super::quiet::{settled, undone_effects};
use super::reference::unfinished;
use super::tree::{self, Look};
use super::undo::{UndoRequest, undoable};
use crate::compensation::Saga;

type Outside = (Option<Data>, Vec<Report>);

/// What [`super::undo`] would do now.
///
/// Errors: those of `undo`. A restore of the tree that was interrupted is taken to be finished, as `undo` does first.
pub fn preview_undo(
    kernel: &Kernel,
    settings: &Settings,
    request: &UndoRequest<'_>,
    watch: &Watch,
) -> Result<Undone> {
    let (named, _) = super::reference::named(kernel, request.rollback)?;
    let (remembered, until, steps) = kernel.read(|snapshot| {
        let (remembered, until) = undoable(snapshot, request, named.id.as_str())?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, until, steps))
    })?;
    Saga::require_free(kernel, &remembered.run_id)?;
    let is_rest = remembered.status.is_over() && until.is_none();
    // What was passed over is put back too, but by an undo that is under way.
    let begins = until.is_some() || steps::course(&steps) == Course::Stand;
    let is_left = |step: &Step| match step.state {
        StepState::Pending => false,
        StepState::Skipped => is_rest || begins,
        StepState::Running | StepState::Done | StepState::Failed => !is_rest,
    };
    let (until, effects) = kernel.read(|snapshot| {
        // What was aborted was never settled.
        let until = match steps::course(&steps) {
            Course::Abandon => Seq::MAX,
            Course::Forward | Course::Undo | Course::Stand => settled(snapshot, &remembered)?.seq,
        };
        if is_rest {
            return table::require_finished(snapshot, &remembered.run_id).map(|()| (until, Vec::new()));
        }
        Ok((until, undone_effects(snapshot, &remembered, until)?))
    })?;
    let left: Vec<&Step> = steps.iter().filter(|step| is_left(step)).collect();
    let (data, tree) = would_put_back((kernel, settings), (&remembered, until), &left, watch)?;
    let course = Course::Undo;
    Ok(Undone { remembered, steps, tree, data, effects, seq: None, course, is_rest, is_dry_run: true })
}

/// What [`super::abandon`] would do now: put back what an unfinished rollback took, or make a rollback again whose undo is not finished.
///
/// Errors: those of `abandon`, and what would stop it in its midst. A restore of the tree that was interrupted is taken to be
/// finished, as `abandon` does first.
pub fn preview_abandon(
    kernel: &Kernel,
    settings: &Settings,
    reference: &str,
    watch: &Watch,
) -> Result<Undone> {
    let (remembered, steps) = kernel.read(|snapshot| {
        let remembered = unfinished(kernel, snapshot, reference)?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, steps))
    })?;
    kernel.accept_late_of(&remembered.id)?;
    Saga::require_free(kernel, &remembered.run_id)?;
    let now = steps::course(&steps);
    let is_left = |step: &Step| match now {
        // What was passed over is decided anew by whoever turns round.
        Course::Forward => steps::may_have_changed(step, &steps),
        Course::Abandon => !matches!(step.state, StepState::Pending | StepState::Skipped),
        Course::Undo => step.state != StepState::Done,
        Course::Stand => !step.state.is_over(),
    };
    let left: Vec<&Step> = steps.iter().filter(|step| is_left(step)).collect();
    let (course, effects, (data, tree)) = match now {
        Course::Forward | Course::Abandon => {
            choices::run_status(&remembered)?;
            let until = Seq::MAX;
            let effects = kernel.read(|snapshot| undone_effects(snapshot, &remembered, until))?;
            let outside = would_put_back((kernel, settings), (&remembered, until), &left, watch)?;
            (Course::Abandon, effects, outside)
        }
        Course::Undo | Course::Stand => {
            (Course::Stand, Vec::new(), would_go_again((kernel, settings), &remembered, &left, watch)?)
        }
    };
    Ok(Undone { remembered, steps, tree, data, effects, seq: None, course, is_rest: false, is_dry_run: true })
}

/// What these steps would put back. `until`: the rollback's restores lie before this event.
fn would_put_back(
    (kernel, settings): (&Kernel, &Settings),
    (remembered, until): (&Remembered, Seq),
    left: &[&Step],
    watch: &Watch,
) -> Result<Outside> {
    let (mut data, mut tree) = (None, Vec::new());
    if let Some(step) = left.iter().find(|step| step.kind == StepKind::Data) {
        require_own_project(kernel, &kernel.read(|snapshot| run::get(snapshot, &remembered.run_id))?)?;
        data::require_archives(kernel, remembered, &step.detail["rows"])?;
        data = data::would_put_back(kernel, settings, remembered)?;
    }
    let look = Look { until, force: Force::default(), dry_run: true };
    if left.iter().any(|step| step.kind == StepKind::Tree)
        && let Some(found) = tree::to_put_back((kernel, settings), remembered, look, watch)?
    {
        tree::put_back(&found, (true, Force::default()), &mut tree, watch)?;
    }
    Ok((data, tree))
}

/// What these steps of a rollback would take back again.
fn would_go_again(
    (kernel, settings): (&Kernel, &Settings),
    remembered: &Remembered,
    left: &[&Step],
    watch: &Watch,
) -> Result<Outside> {
    let run = kernel.read(|snapshot| run::get(snapshot, &remembered.run_id))?;
    let (mut data, mut tree) = (None, Vec::new());
    if left.iter().any(|step| step.kind == StepKind::Tree) {
        let ask = carry::Ask { force: Force::default(), dry_run: true, expect_plan: None };
        tree.push(carry::Goal::of((kernel, settings), &run, remembered)?.restore(ask, watch)?);
    }
    if left.iter().any(|step| step.kind == StepKind::Data) {
        data = Some(data::would_take_back(
            kernel,
            settings,
            &run,
            (remembered, Choices::of(remembered)?.force().files),
        )?);
    }
    Ok((data, tree))
}
