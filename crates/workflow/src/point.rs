//! The points to which a workflow can be rolled back: before each step that was begun.
//!
//! A point is the checkpoint from before a step; the ledger orders the points. A rollback to a point undoes what was recorded after it, and
//! restores the checkpoint; earlier steps stand.

use std::ops::ControlFlow;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::record::{self, CheckpointFilter, CheckpointRecord};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::Run;

use crate::begun_rollback::{is_unfinished, require_same_point};
use crate::definition::Definition;
use crate::graph::StepOrder;
use crate::options::Overrides;
use crate::permission::require_work;
use crate::table::{self, StepRow, Workflow};

/// A point to which a workflow can be rolled back.
#[derive(Debug, Clone)]
pub struct WorkflowPoint {
    /// The steps that began from it: several where they ran at the same time.
    pub steps: Vec<String>,
    /// The phase of the first of them.
    pub phase: String,
    /// The checkpoint of the tree from before them.
    pub checkpoint: CheckpointRecord,
    /// Whether no work of the workflow is before it.
    pub is_first: bool,
}

/// The points to which a workflow can be rolled back now, newest first: before each step that stands and whose checkpoint is kept.
///
/// Errors: `no_workflow`; `nothing_to_roll_back` if nothing was done since its last rollback.
pub fn points(kernel: &Kernel, reference: &str) -> Result<Vec<WorkflowPoint>> {
    kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        let workflow = table::get(snapshot, &run.id)?;
        require_work(snapshot, &run)?;
        let mut points = standing(snapshot, &run, &workflow)?;
        // Only now: which point is the first depends on the pruned ones, too.
        points.retain(|point| point.checkpoint.pruned_at.is_none());
        points.reverse();
        Ok(points)
    })
}

/// The point that `checkpoint` names by its id or the end of one. While a rollback is unfinished, its own point.
///
/// Errors: `checkpoint_not_found`, `ambiguous_id`; `invalid_value` if no step of the workflow began from it; `steps_overlap` if an
/// unfinished rollback goes to another point.
pub fn point(kernel: &Kernel, reference: &str, checkpoint: &str) -> Result<WorkflowPoint> {
    kernel.read(|snapshot| {
        let found = record::resolve(snapshot, checkpoint)?;
        let run = kernel.run(snapshot, reference)?;
        let workflow = table::get(snapshot, &run.id)?;
        if is_unfinished(&run) {
            let overrides = Overrides { to: Some(found.id.clone()), ..Overrides::default() };
            require_same_point(snapshot, &run, &overrides)?;
            return Ok(WorkflowPoint { steps: Vec::new(), phase: run.phase, checkpoint: found, is_first: false });
        }
        before(snapshot, &run, &workflow, &found.id)
    })
}

/// The point that has this checkpoint.
///
/// Errors: `invalid_value` if no step that stands began from it; `steps_overlap` if an earlier step may have run again after it, because
/// the checkpoint would restore half of that step's changes.
pub(crate) fn before(
    snapshot: &Snapshot<'_>,
    run: &Run,
    workflow: &Workflow,
    id: &CheckpointId,
) -> Result<WorkflowPoint> {
    // Checked before the checkpoint: with nothing to undo, every checkpoint would be refused for another reason.
    require_work(snapshot, run)?;
    let standing = standing(snapshot, run, workflow)?;
    let point = match standing.iter().position(|point| point.checkpoint.id == *id) {
        Some(at) => standing[at].clone(),
        None => return Err(no_point(run, id, &standing)),
    };
    let rows = table::steps(snapshot, &run.id, run.epoch)?;
    let definition = workflow.parsed()?;
    // A row is written over when its step runs again. The captures before its attempts stay on record.
    let began = step_checkpoints(snapshot, run, point.checkpoint.seq)?;
    for row in &rows {
        if is_earlier(snapshot, row, point.checkpoint.seq)?
            && may_have_run_again(snapshot, workflow, &definition, row, &point, &began)?
        {
            return Err(ran_again(run, row, &point));
        }
    }
    Ok(point)
}

/// The points before all steps that stand, oldest first.
fn standing(snapshot: &Snapshot<'_>, run: &Run, workflow: &Workflow) -> Result<Vec<WorkflowPoint>> {
    let definition = workflow.parsed()?;
    let mut points: Vec<WorkflowPoint> = Vec::new();
    for row in table::steps(snapshot, &run.id, run.epoch)? {
        let Some(id) = &row.checkpoint_id else { continue };
        if let Some(known) = points.iter_mut().find(|point| point.checkpoint.id == *id) {
            known.steps.push(row.step);
            continue;
        }
        let phase = definition.steps.iter().find(|step| step.id == row.step).map(|step| step.phase.clone());
        let (phase, checkpoint) = (phase.unwrap_or_default(), record::get(snapshot, id)?);
        points.push(WorkflowPoint { steps: vec![row.step], phase, checkpoint, is_first: false });
    }
    // A resumed step keeps the checkpoint from before its first attempt, so the order of the rows is not that of the points.
    points.sort_by_key(|point| point.checkpoint.seq);
    if let Some(first) = points.first_mut() {
        first.is_first = true;
    }
    Ok(points)
}

fn is_earlier(snapshot: &Snapshot<'_>, row: &StepRow, seq: Seq) -> Result<bool> {
    let Some(id) = &row.checkpoint_id else { return Ok(false) };
    Ok(record::get(snapshot, id)?.seq < seq)
}

/// The names of the steps before which the run's tree was captured after the event `seq`.
fn step_checkpoints(snapshot: &Snapshot<'_>, run: &Run, seq: Seq) -> Result<Vec<String>> {
    let mut names = Vec::new();
    record::list(
        snapshot,
        CheckpointFilter { run_id: Some(&run.id), pruned: true, ..CheckpointFilter::default() },
        |found| {
            // Checkpoints before and after a restore belong to no step.
            let is_look = found.seq > seq && found.kind == record::CheckpointKind::Auto;
            names.extend(found.link.step_name.filter(|_| is_look));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(names)
}

/// Whether a step that first began before a point may have run after it too.
fn may_have_run_again(
    snapshot: &Snapshot<'_>,
    workflow: &Workflow,
    definition: &Definition,
    row: &StepRow,
    point: &WorkflowPoint,
    began: &[String],
) -> Result<bool> {
    let again = match &row.dispatch_id {
        Some(id) => ic_dispatch::dispatch::get(snapshot, id)?.seq > point.checkpoint.seq,
        None => false,
    };
    if again || began.contains(&row.step) {
        return Ok(true);
    }
    // Alone, each attempt is on record with a checkpoint of its own.
    if workflow.options.jobs == 1 || row.attempts == 1 {
        return Ok(false);
    }
    // An interrupted step resumes its work, and beside others it takes no checkpoint of its own, so the time of that is not on record.
    // Steps that the point's steps need had ended before those began.
    let place = |name: &str| definition.steps.iter().position(|step| step.id == name);
    let Some(earlier) = place(&row.step) else { return Ok(false) };
    let after = StepOrder::of(definition).descendants(earlier);
    let waits = |at: usize| after.contains(&at) || definition.steps[at].phase != definition.steps[earlier].phase;
    Ok(!point.steps.iter().filter_map(|step| place(step)).all(waits))
}

fn no_point(run: &Run, id: &CheckpointId, standing: &[WorkflowPoint]) -> Diagnosis {
    let short = run.id.short();
    // `workflow checkpoints` lists all of the run's checkpoints; the hint tells which of them a step began from.
    let newest = standing.iter().rev().find(|point| point.checkpoint.pruned_at.is_none()).map(|point| {
        format!(
            "to before {}: ic workflow rollback {short} --id {} --yes; ",
            point.steps.join(" and "),
            point.checkpoint.id.short()
        )
    });
    Diagnosis::new(
        Code::InvalidValue,
        format!("No step of the workflow of run {short} that stands began from checkpoint {}.", id.short()),
    )
    .hint(format!(
        "{}to restore the tree alone: ic checkpoint restore {} --yes",
        newest.unwrap_or_default(),
        id.short()
    ))
    .detail("checkpoint_id", id.as_str())
}

fn ran_again(run: &Run, row: &StepRow, point: &WorkflowPoint) -> Diagnosis {
    let short = run.id.short();
    let id = row.checkpoint_id.as_ref().map_or("ID", CheckpointId::short);
    Diagnosis::new(
        Code::StepsOverlap,
        format!(
            "The step {} began before {} did, and may have run again after: it cannot be kept.",
            row.step,
            point.steps.join(" and ")
        ),
    )
    .hint(format!("roll back to before it: ic workflow rollback {short} --id {id} --yes"))
    .detail("step", row.step.as_str())
}
