//! What others, runs or a person, may have changed while a run was at work in the same tree. Where the client of their agents reports each
//! call, those calls say what is theirs. Otherwise their checkpoints say when they worked: from the first one after the beginning of the
//! workflow to their last, or to now while they are not finished.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ic_base::{CheckpointId, DispatchId, Result, RunId, Seq};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal;
use ic_checkpoint::restore::plan::{RestoreNode, RestoreStep as PlanStep};
use ic_dispatch::dispatch;
use ic_kernel::journal::step_results::safety_of;
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackStatus};
use ic_ledger::Snapshot;
use ic_phase::{RunStatus, run};
use ic_session::attribution::Attribution;

use ic_kernel::Kernel;
use ic_worktree::{Conflict, Warning, Workspace};

/// Another run that worked in the tree.
struct Other {
    run: RunId,
    /// Whether all that it did is on record: it does nothing now that no checkpoint shows.
    is_still: bool,
    first: CheckpointRecord,
    last: CheckpointRecord,
}

/// Which other runs are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConcurrentWork {
    /// Every run that worked here.
    All,
    /// Runs of agents whose client reports each call: what they changed is known.
    Told,
}

/// Those of these paths, which all differ from the target, that another run may have changed since the target was taken.
///
/// `called_off`: work that ran until this rollback cancelled it.
pub(super) fn conflicts(
    kernel: &Kernel,
    workspace: &Workspace<'_>,
    target: &CheckpointId,
    (others_asked, called_off): (ConcurrentWork, &[DispatchId]),
    steps: &[PlanStep],
) -> Result<Vec<Conflict>> {
    let (target, others, attribution, undos) = kernel.read(|snapshot| {
        let target = record::get(snapshot, target)?;
        let mut of_run: BTreeMap<RunId, (CheckpointRecord, CheckpointRecord)> = BTreeMap::new();
        for checkpoint in record::all_kept(snapshot)? {
            let is_later = checkpoint.root == target.root && checkpoint.seq > target.seq;
            if let Some(run) = checkpoint.link.run_id.clone().filter(|_| is_later)
                && Some(&run) != target.link.run_id.as_ref()
            {
                let window = of_run.entry(run).or_insert_with(|| (checkpoint.clone(), checkpoint.clone()));
                // Checkpoints come oldest first, so the last one stays.
                window.1 = checkpoint;
            }
        }
        let since = (target.seq, Seq::MAX);
        let attribution = Attribution::between(snapshot, &target.root, since, target.created_at)?;
        let attribution = attribution.with_running(called_off);
        let mut others = Vec::new();
        for (id, (first, last)) in of_run {
            let status = run::get(snapshot, &id)?.status;
            let is_finished = !matches!(status, RunStatus::Active | RunStatus::RollingBack);
            let is_told = attribution.is_told(&id) && attribution.workers.iter().any(|one| one.run_id == id);
            if others_asked == ConcurrentWork::Told && !is_told {
                continue;
            }
            // A run whose agent reports each call is still between two calls; any other may write at any moment until it is finished.
            let is_still = is_finished || is_told && !attribution.runs_now(&id);
            others.push(Other { run: id, is_still, first, last });
        }
        let undos = LeftByUndos::of(snapshot, &target)?;
        Ok((target, others, attribution, undos))
    })?;
    let paths: Vec<&[u8]> = steps.iter().map(|step| step.path.0.as_slice()).collect();
    let mut found = undone_by_others(workspace, &target, (&attribution, &undos), &paths)?;
    let without_work = changed_without_work(workspace, &target, &attribution, steps)?;
    for path in paths.iter().filter(|path| without_work.contains(**path)) {
        let reason = "changed while no agent was at work, so it may be yours".to_owned();
        // The first reason stays: an undo by others says more than that no agent was at work.
        found.entry(path.to_vec()).or_insert(reason);
    }
    for other in others {
        let objects = &workspace.objects;
        let changed = changed_by(workspace, &other, &attribution)?;
        for path in &paths {
            // A path that was as the target has it when the other run came was changed later.
            let is_later = || {
                let state = |tree| diff::find(objects, tree, path);
                Ok::<_, ic_base::Diagnosis>(state(&other.first.tree)? == state(&target.tree)?)
            };
            if changed.contains(*path) || (!other.is_still && is_later()?) {
                found.entry(path.to_vec()).or_insert_with(|| {
                    format!("changed while run {} worked here too, and may be its work", other.run.short())
                });
            }
        }
    }
    let conflict = |(path, reason)| Conflict { path: ic_checkpoint::manifest::PathText(path), reason };
    Ok(found.into_iter().map(conflict).collect())
}

/// What undos that stand left in the tree since the target.
struct LeftByUndos {
    /// Of work that all began after the target: each path was then as before that work, so the target would restore nothing of it.
    of_later_work: HashSet<CheckpointId>,
    /// Of work that had begun by the target, which may have some of it.
    of_earlier_work: HashSet<CheckpointId>,
}

impl LeftByUndos {
    fn of(snapshot: &Snapshot<'_>, target: &CheckpointRecord) -> Result<Self> {
        let restores = journal::finished(snapshot, &target.root)?;
        let mut left = Self { of_later_work: HashSet::new(), of_earlier_work: HashSet::new() };
        for one in table::all(snapshot)?.iter().filter(|one| one.status == RollbackStatus::Done) {
            let began = match one.works().first() {
                Some(first) => dispatch::get(snapshot, first)?.place(),
                None => one.cut_seq,
            };
            let safety: HashSet<CheckpointId> =
                steps::of_rollback(snapshot, &one.id)?.iter().flat_map(safety_of).collect();
            let own = restores.iter().filter(|restore| safety.contains(&restore.safety_id));
            let all = if began < target.seq { &mut left.of_earlier_work } else { &mut left.of_later_work };
            all.extend(own.filter_map(|restore| restore.restored_id.clone()));
        }
        Ok(left)
    }

    /// Whether the target would restore what this undo took out of a path.
    fn is_in_the_way(&self, undo: &CheckpointRecord, change: &Difference, wanted: Option<&DiffState>) -> bool {
        if self.of_later_work.contains(&undo.id) {
            return false;
        }
        // Other work may have changed the same file: then the undo left a content that the target never had.
        let is_mixed = self.of_earlier_work.contains(&undo.id) && change.after.as_ref() != wanted;
        is_mixed || change.before.as_ref() == wanted
    }
}

/// Those of the paths from which an undo in another run removed what the target has.
fn undone_by_others(
    workspace: &Workspace<'_>,
    target: &CheckpointRecord,
    (attribution, undos): (&Attribution, &LeftByUndos),
    paths: &[&[u8]],
) -> Result<BTreeMap<Vec<u8>, String>> {
    let paths: BTreeSet<&[u8]> = paths.iter().copied().collect();
    // What each path was before a restore and after it, oldest first.
    let mut restored: BTreeMap<Vec<u8>, Vec<(Difference, &CheckpointRecord, &RunId)>> = BTreeMap::new();
    for (from, to) in attribution.restores() {
        let Some(run) = to.link.run_id.as_ref().filter(|run| target.link.run_id.as_ref() != Some(run)) else {
            continue;
        };
        diff::diff(&workspace.objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
            if difference.change().is_some() && paths.contains(&difference.path.as_slice()) {
                let all = restored.entry(difference.path.clone()).or_default();
                // A redo reverts its undo: together they changed nothing.
                let is_redo = |(last, ..): &mut (Difference, &CheckpointRecord, &RunId)| {
                    last.before == difference.after && last.after == difference.before
                };
                if all.pop_if(is_redo).is_none() {
                    all.push((difference, to, run));
                }
            }
            Ok(())
        })?;
    }
    let mut found = BTreeMap::new();
    for (path, all) in restored {
        let wanted = diff::find(&workspace.objects, &target.tree, &path)?;
        let mut in_the_way = all.iter().filter(|(change, to, _)| undos.is_in_the_way(to, change, wanted.as_ref()));
        if let Some((.., run)) = in_the_way.next() {
            let reason = format!("an undo in run {} changed it from what it would be again", run.short());
            found.insert(path, reason);
        }
    }
    Ok(found)
}

/// The paths that changed while no agent was at work: a person did it, or a program that no client reported. This is known only for the run
/// of a session, whose client reports all that its agent does. `steps`: what would be restored, compared with the present tree.
fn changed_without_work(
    workspace: &Workspace<'_>,
    target: &CheckpointRecord,
    attribution: &Attribution,
    steps: &[PlanStep],
) -> Result<BTreeSet<Vec<u8>>> {
    let mut changed = BTreeSet::new();
    let Some(run) = &target.link.run_id else { return Ok(changed) };
    let is_told = attribution.is_told(run) && attribution.workers.iter().any(|one| one.run_id == *run);
    for window in attribution.windows().filter(|window| is_told && window.is_idle()) {
        diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
            if difference.change().is_some() {
                changed.insert(difference.path);
            }
            Ok(())
        })?;
    }
    // Work that an undo cancelled has ended, and no checkpoint is taken before the next work begins.
    if let Some(last) = attribution.at_rest_since(workspace.kernel.context.now()).filter(|_| is_told) {
        for step in steps.iter().filter(|step| !step.is_of_directory()) {
            if is_changed_since(workspace, last, step)? {
                changed.insert(step.path.0.clone());
            }
        }
    }
    Ok(changed)
}

/// Whether the content that a step replaces differs from what this checkpoint has.
pub(super) fn is_changed_since(workspace: &Workspace<'_>, last: &CheckpointRecord, step: &PlanStep) -> Result<bool> {
    let seen = diff::find(&workspace.objects, &last.tree, &step.path.0)?;
    Ok(seen.as_ref().and_then(RestoreNode::of).map(RestoreNode::plain) != step.before.clone().map(RestoreNode::plain))
}

/// The code of the warning about paths that changed between the tool calls of an agent.
pub(super) const BETWEEN_CALLS: &str = "changed_between_calls";

/// The code of the warning about paths that changed while a prompt was under way that told no tool call.
pub(super) const UNTOLD: &str = "no_call_told";

/// Names the paths that changed between the tool calls of an agent, and those that changed in or after one that was cut off. A process that
/// it left behind may have changed them, or a person. `alone`: the command that undoes only this work.
pub(super) fn between_calls(
    workspace: &Workspace<'_>,
    target: &CheckpointRecord,
    steps: &[PlanStep],
    alone: Option<&str>,
) -> Result<Vec<Warning>> {
    let attribution = workspace
        .kernel
        .read(|snapshot| Attribution::between(snapshot, &target.root, (target.seq, Seq::MAX), target.created_at))?;
    let (mut between, mut untold, mut unsure) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for window in attribution.windows().filter(|window| !window.is_idle()) {
        diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
            let is_change = difference.change().is_some();
            if is_change && !window.is_in_call() {
                let all = if attribution.has_untold_work(&window) { &mut untold } else { &mut between };
                all.insert(difference.path);
            } else if is_change && window.is_unsure(&difference.path) {
                unsure.insert(difference.path);
            }
            Ok(())
        })?;
    }
    // No checkpoint was taken since the last call, or since the call that was stopped, or that still runs.
    if let Some((last, now)) = attribution.until_now(workspace.kernel.context.now()) {
        let window = attribution.window(last, &now);
        let is_between = !window.is_idle() && !window.is_in_call();
        for step in steps.iter().filter(|step| !step.is_of_directory()) {
            let path = step.path.0.as_slice();
            if (is_between || window.is_unsure(path)) && is_changed_since(workspace, last, step)? {
                let all = match is_between {
                    true if attribution.has_untold_work(&window) => &mut untold,
                    true => &mut between,
                    false => &mut unsure,
                };
                all.insert(path.to_vec());
            }
        }
    }
    let named = |changed: &BTreeSet<Vec<u8>>| {
        let paths = steps.iter().map(|step| step.path.0.as_slice()).filter(|path| changed.contains(*path));
        first_named(&paths.collect::<Vec<_>>())
    };
    let alone = alone.map_or_else(String::new, |command| format!("; an undo of this work alone leaves it: {command}"));
    let warning = |code, when: &str, changed| {
        named(changed).map(|paths| Warning {
            code,
            message: format!("changed {when}, so it may be yours, and goes back too: {paths}{alone}"),
        })
    };
    let between = warning(BETWEEN_CALLS, "between the tool calls of this work", &between);
    let untold = warning(UNTOLD, "while a prompt was under way that told no tool call", &untold);
    let unsure = warning("call_end_unknown", "in or after a tool call whose end was not told", &unsure);
    Ok(between.into_iter().chain(untold).chain(unsure).collect())
}

/// The first of these paths, and how many more there are; `None`: there is none.
fn first_named(paths: &[&[u8]]) -> Option<String> {
    const NAMED: usize = 3;
    let named: Vec<_> = paths.iter().take(NAMED).map(|path| String::from_utf8_lossy(path)).collect();
    let more = match paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// The paths that another run may have changed.
fn changed_by(workspace: &Workspace<'_>, other: &Other, attribution: &Attribution) -> Result<BTreeSet<Vec<u8>>> {
    let mut changed = BTreeSet::new();
    let mut add = |trees: (&CheckpointRecord, &CheckpointRecord), is_its: &dyn Fn(&[u8]) -> bool| {
        diff::diff(&workspace.objects, Some(&trees.0.tree), Some(&trees.1.tree), &mut |difference| {
            if difference.change().is_some() && is_its(&difference.path) {
                changed.insert(difference.path);
            }
            Ok(())
        })
    };
    // Without reports of calls every change between its checkpoints may be its own.
    if !attribution.is_told(&other.run) {
        add((&other.first, &other.last), &|_| true)?;
        return Ok(changed);
    }
    let restored = restored_by(workspace, other, attribution)?;
    for window in attribution.windows() {
        // What was undone is in the tree no longer, unless the undo left it there.
        let is_gone = |path: &[u8]| restored.iter().any(|(seq, paths)| *seq > window.to.seq && paths.contains(path));
        let is_its = |path: &[u8]| {
            let mut owners = window.owners(path).into_iter().filter(|owner| owner.run_id == other.run);
            owners.any(|owner| owner.rolled_back_by.is_none() || !is_gone(path))
        };
        add((window.from, window.to), &is_its)?;
    }
    Ok(changed)
}

/// The paths that undos in another run restored, each with its place in the record.
fn restored_by(
    workspace: &Workspace<'_>,
    other: &Other,
    attribution: &Attribution,
) -> Result<Vec<(Seq, BTreeSet<Vec<u8>>)>> {
    let mut restored = Vec::new();
    for (from, to) in attribution.restores().filter(|(_, to)| to.link.run_id.as_ref() == Some(&other.run)) {
        let mut paths = BTreeSet::new();
        diff::diff(&workspace.objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
            paths.insert(difference.path);
            Ok(())
        })?;
        restored.push((to.seq, paths));
    }
    Ok(restored)
}
