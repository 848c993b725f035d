//! What a rollback over several layers would do, and what refuses it. No lock is held for long, and nothing is written.

use std::path::Path;

use ic_base::display::path_text;
use ic_base::{Code, CompensationId, Diagnosis, Result, title};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::Kernel;
use ic_kernel::journal::table::{self, RollbackStatus};
use ic_kernel::journal::{Course, Force, LayerName as Name, RollbackStep};
use ic_kernel::owner::OwnerLock;
use ic_ledger::{Snapshot, path_from_bytes};
use ic_phase::Run;
use ic_worktree::{CaptureSettings, RestoreWatch, Warning, root_of};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::coverage::Covered;
use super::events::PlanCounts;
use super::git_remains;
use super::layers::{self, LayerWork, Site};
use super::other_places;
use super::outcome::{Effects, LayeredRollback, LayeredStatus, Parts, Refusal, RollbackSummary};
use super::outside_change::OutsideChange;
use super::plan::RollbackPlan;
use super::points;
use super::refusals::{kept_by_name, refusals};
use super::request::{LayeredRequest, RollbackTarget};
use super::straddling_work::{self, Lost};

pub(super) fn plan(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &LayeredRequest<'_>,
    layers: &[Name],
    watch: &RestoreWatch,
) -> Result<LayeredRollback> {
    let plan = &kernel.read(|snapshot| {
        // A read does not check its caller, and the real call is refused for work that was rolled back.
        kernel.calling_dispatch(snapshot)?;
        super::apply::planned_by_cut(kernel, snapshot, &request.base)
    })?;
    // The lock is only looked at: a preview must not keep a process from the run.
    OwnerLock::require_free(kernel.store(), &plan.run.id)?;
    let (parts, mut refused) = look(kernel, settings, (plan, request), layers, watch)?;
    let root = root_of(&plan.run.project_dir);
    // This comes after the look: the paths and commits that the tree loses tell which work straddles the cut.
    let plan = kernel.read(|snapshot| straddling_work::add(snapshot, plan.clone(), parts.lost.as_ref()))?;
    require_any(kernel, &plan, &parts)?;
    let mut rollback = RollbackSummary::planned(plan, request.base.reason);
    refused.extend(refusals(&parts, request, rollback.plan.point_of_one()));
    refused.extend(nothing_more(kernel, &rollback.plan, &parts)?);
    rollback.plan_hash = hash(&rollback, layers, request.force, parts.effects.as_ref(), &parts);
    require_expected(&rollback, request.base.expect_plan)?;
    let is_everything = request.layers.is_everything(request.base.to);
    let rows_stay = if is_everything { layers::rows_that_stay(kernel, layers, rollback.plan.cut.seq)? } else { None };
    let mut work_stays = Vec::new();
    if layers.contains(&Name::Files) {
        kernel.read(|snapshot| {
            work_stays.extend(other_places::changed(snapshot, &rollback.plan)?);
            work_stays.extend(rests(snapshot, &rollback.plan.run, request.base.to)?);
            Ok(())
        })?;
    }
    let git_remains = git_remains::remaining(kernel, settings, &rollback.plan, &parts, false)?;
    Ok(LayeredRollback {
        rollback,
        layers: layers.to_vec(),
        parts,
        status: LayeredStatus::Planned,
        steps: Vec::new(),
        refusals: refused,
        rows_stay,
        git_stays: is_everything.then(|| git_stays(settings, &root)).flatten(),
        work_stays,
        git_remains,
    })
}

/// A warning for each later work of a thread that was undone in part, and that an undo from this target on leaves unchanged.
fn rests(snapshot: &Snapshot<'_>, run: &Run, to: RollbackTarget<'_>) -> Result<Vec<Warning>> {
    let (RollbackTarget::Since(first) | RollbackTarget::Exactly(first)) = to else { return Ok(Vec::new()) };
    let (_, in_part) = crate::points::thread_since(snapshot, run, first)?;
    let warning = |work: &Dispatch| {
        let name = title(work.work.name.as_deref().unwrap_or_default());
        let message = format!(
            "the later prompt {name:?} was undone in part before, and its rest stays: ic undo --only {} --dry-run",
            work.id.short()
        );
        Warning { code: "rest_stays", message }
    };
    Ok(in_part.iter().map(warning).collect())
}

/// What each layer would undo, and what it refuses.
fn look(
    kernel: &Kernel,
    settings: &CaptureSettings,
    (plan, request): (&RollbackPlan, &LayeredRequest<'_>),
    layers: &[Name],
    watch: &RestoreWatch,
) -> Result<(Parts, Vec<Refusal>)> {
    let mut refused = Vec::new();
    let mut work = LayerWork::default();
    for kind in layers::kinds(layers) {
        let step = RollbackStep::planned(kind);
        decided(request, &mut refused, |request| {
            let covered = Covered::planned(plan, layers, request, settings);
            let mut site = Site::to_look(kernel, settings, &covered, Course::Forward, watch);
            layers::of(kind).go(&mut site, &step, &mut work)
        })?;
    }
    let mut parts = Parts::from(work);
    if let Some(tree) = &mut parts.tree {
        // The rollback is refused as a whole, and reports that in one place.
        tree.refusal = None;
        // This is found now, while the plan of the tree is at hand. The fence adds it to the record's plan, and must
        // not look at a tree.
        parts.lost = Some(Lost::of(kernel, settings, plan, (tree, parts.commits.as_deref()))?);
    }
    Ok((parts, refused))
}

/// A warning where files are restored, and the commits that have them are not.
fn git_stays(settings: &CaptureSettings, root: &Path) -> Option<Warning> {
    let has_git = ic_ledger::git_dirs(root).is_some();
    (has_git && !settings.checkpointing.include_git).then(|| Warning {
        code: "git_stays",
        message: "branches, commits and what is staged stay as they are: include-git is false, so no checkpoint has them; the layer \
                  code lists the commits that were recorded"
            .to_owned(),
    })
}

/// Errors: `plan_changed` if the caller expects another plan.
pub(super) fn require_expected(rollback: &RollbackSummary, expected: Option<&str>) -> Result<()> {
    let Some(expected) = expected.filter(|expected| *expected != rollback.plan_hash) else { return Ok(()) };
    Err(Diagnosis::new(Code::PlanChanged, "The plan is not the expected one: something changed since it was made.")
        .hint("look at the new plan: add --dry-run and leave out --expect-plan")
        .detail("expected", expected)
        .detail("plan_hash", rollback.plan_hash.as_str()))
}

/// Errors: `nothing_to_undo` where a run is back before a point already, and nothing of what was undone is there again. A rollback of
/// nothing would block a redo.
fn require_any(kernel: &Kernel, plan: &RollbackPlan, parts: &Parts) -> Result<()> {
    let is_in_record =
        plan.counts() != PlanCounts::default() || !plan.reinstated.is_empty() || plan.run.phase != plan.to_phase;
    let (Some(point), false) = (&plan.point, is_in_record || plan.reopens() || parts.is_any()) else {
        return Ok(());
    };
    let all = kernel.read(|snapshot| table::standing_of(snapshot, &plan.run.id))?;
    let stands = all.iter().rev().find(|by| by.status == RollbackStatus::Done && by.cut_seq == plan.cut.seq);
    let Some(stands) = stands else { return Ok(()) };
    let (run, by) = (plan.run.id.short(), stands.id.short());
    Err(Diagnosis::new(
        Code::NothingToUndo,
        format!("The run {run} is back before {point} already, by the rollback {by}: nothing is left to undo."),
    )
    .hint(format!("to bring back what was undone: ic redo {by} --yes")))
}

/// Refuses to undo works a second time of which all that is left stays: that would be one more entry, and nothing would have happened.
fn nothing_more(kernel: &Kernel, plan: &RollbackPlan, parts: &Parts) -> Result<Option<Refusal>> {
    let Some(tree) = &parts.tree else { return Ok(None) };
    if tree.parts_left.is_empty() || parts.is_any() {
        return Ok(None);
    }
    let by = kernel.read(|snapshot| {
        let mut by = None;
        for id in &plan.chosen {
            by = points::undone_in_part_by(snapshot, &dispatch::get(snapshot, id)?)?;
            if by.is_none() {
                break;
            }
        }
        Ok(by)
    })?;
    let (Some(by), Some(first)) = (by, plan.chosen.first()) else { return Ok(None) };
    let left: Vec<_> = tree.plan.skipped.iter().filter(|(path, _)| tree.parts_left.contains(path)).collect();
    let named: Vec<String> =
        left.iter().map(|(path, why)| format!("{} ({why})", path_text(&path_from_bytes(&path.0)))).collect();
    let message =
        format!("Nothing more is undone of what {} left: {}. Nothing was changed.", by.short(), named.join(", "));
    // A conflict that was decided before can be decided otherwise.
    let is_conflict = left.iter().any(|(_, why)| why.starts_with("kept: "));
    let (goal, flags) = if is_conflict {
        ("take it out anyway, with what others made of the same lines", " --force-files".to_owned())
    } else {
        ("say that this is yours, so that the work counts as undone", kept_by_name(left.iter().map(|(path, _)| path)))
    };
    let error = Diagnosis::new(Code::NothingToUndo, message)
        .hint(format!("to {goal}: ic undo --only {}{flags} --yes", first.short()));
    Ok(Some(Refusal { error, flag: None }))
}

/// Plans a part of a rollback. A preview notes a refusal that a flag passes, and then plans with that flag. So it names all refusals, where
/// the real call ends at the first.
fn decided<'r, T>(
    request: &LayeredRequest<'r>,
    refused: &mut Vec<Refusal>,
    mut plan: impl FnMut(&LayeredRequest<'r>) -> Result<T>,
) -> Result<T> {
    let mut request = request.clone();
    loop {
        let error = match plan(&request) {
            Err(error) if request.base.dry_run => error,
            done => return done,
        };
        // A flag that was given already did not pass this refusal, so trying it again would never end.
        let decision = Force::of_tree(error.code()).filter(|by| request.force.or(*by) != request.force);
        let Some(decision) = decision else { return Err(error) };
        request.force = request.force.or(decision);
        refused.push(Refusal { error, flag: decision.flags().first().copied() });
    }
}

pub(super) fn hash(
    rollback: &RollbackSummary,
    layers: &[Name],
    force: Force,
    effects: Option<&Effects>,
    parts: &Parts,
) -> String {
    // The record alone keeps the hash of its own plan, which `ic run rollback` prints for the same target.
    if layers == [Name::Workflow] {
        return rollback.plan_hash.clone();
    }
    let effects = effects.map(|effects| {
        let ids = |list: &mut dyn Iterator<Item = &CompensationId>| list.map(ToString::to_string).collect::<Vec<_>>();
        json!([ids(&mut effects.compensations.iter().map(|c| &c.id)), ids(&mut effects.left.iter().map(|c| &c.id))])
    });
    let tree = parts.tree.as_ref().map(|tree| tree.plan_hash.clone());
    // A plan does not read the rows themselves, so their numbers stand for them.
    let data = parts.data.as_ref().map(|data| json!([data.database.to_string_lossy(), data.rows]));
    let layers: Vec<&str> = layers.iter().map(|layer| layer.as_str()).collect();
    let mut whole = json!({
        "workflow": rollback.plan_hash, "layers": layers, "effects": effects, "tree": tree, "data": data,
    });
    if !parts.outside.is_empty() {
        whole["outside"] = json!(parts.outside.iter().map(OutsideChange::named).collect::<Vec<_>>());
    }
    // A member only where a flag was given: a plan that was approved without the flag is not the plan with it.
    if force != Force::default() {
        whole["force"] = json!(force.flags());
    }
    ic_ledger::events::hex(&Sha256::digest(whole.to_string().as_bytes()).into())
}
