//! Work that began before the cut and did something after it. It is covered where that is undone; what it did before the cut stays.
//!
//! What is undone is known from records (`dispatch record`, hooks) and from checkpoints after the cut. Work that reports nothing may have
//! changed a path that changed while it ran: a gate must not count work that may be gone.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::diff;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::{RestoreNode, RestoreStep};
use ic_dispatch::{Dispatch, code, dispatch};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, path_bytes};
use ic_phase::Run;
use ic_session::attribution::{Attribution, Window};
use ic_worktree::{CaptureSettings, RestoreReport, Workspace};

use super::leaving_commits::LeavingCommit;
use super::plan::RollbackPlan;

/// What a rollback of the tree removes.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// The paths of files that are restored.
    paths: BTreeSet<Vec<u8>>,
    /// The commits that leave their branches.
    commits: Vec<String>,
    /// Work that may have changed some of them, by what checkpoints show.
    seen: BTreeSet<DispatchId>,
}

/// Adds what `lost` names to a plan; `None`: the record alone goes back.
pub(super) fn add(snapshot: &Snapshot<'_>, plan: RollbackPlan, lost: Option<&Lost>) -> Result<RollbackPlan> {
    let Some(lost) = lost else { return recorded(snapshot, plan) };
    let mut ids = lost.seen.clone();
    if !plan.cut.is_of_works() && !lost.commits.is_empty() {
        let made = code::commits_of_run(snapshot, &plan.run.id, 0)?;
        // A commit may have been recorded by its first digits alone.
        let goes = |sha: &str| lost.commits.iter().any(|commit| commit.starts_with(sha));
        ids.extend(made.into_iter().filter(|one| goes(&one.sha)).map(|one| one.dispatch_id));
    }
    if !plan.cut.is_of_works() && !lost.paths.is_empty() {
        // Files that work recorded before the cut stay its work (ADR 0046).
        let files = code::files_of_run(snapshot, &plan.run.id, plan.cut.seq)?;
        let goes = |file: &code::RecordedFile| lost.paths.contains(path_bytes(&file.path));
        ids.extend(files.into_iter().filter(goes).map(|file| file.dispatch_id));
    }
    with(snapshot, plan, ids)
}

/// Adds to a plan of the record alone the work that recorded commits or files after its cut: the layer `code` lists those as what is to be
/// reverted.
pub(super) fn recorded(snapshot: &Snapshot<'_>, plan: RollbackPlan) -> Result<RollbackPlan> {
    if plan.cut.is_of_works() {
        return Ok(plan);
    }
    let ids = code::recorders_since(snapshot, &plan.run.id, plan.cut.seq)?;
    with(snapshot, plan, ids.into_iter().collect())
}

fn with(snapshot: &Snapshot<'_>, plan: RollbackPlan, ids: BTreeSet<DispatchId>) -> Result<RollbackPlan> {
    let mut straddling = Vec::new();
    for id in ids {
        let one = dispatch::get(snapshot, &id)?;
        straddling.extend(is_straddling(&plan, &one).then_some(one));
    }
    straddling.sort_by_key(|one| one.seq);
    plan.with_straddling(snapshot, straddling)
}

/// Whether this is work of the run that stands and that the cut alone does not cover.
fn is_straddling(plan: &RollbackPlan, work: &Dispatch) -> bool {
    let cut = &plan.cut;
    !cut.is_of_works()
        && work.run_id == plan.run.id
        && work.rolled_back_by.is_none()
        && !cut.covers(work.place(), &work.phase, Some(&work.id))
}

impl Lost {
    /// What is removed, with the work that checkpoints show. `tree`: what the rollback does about it, and which commits leave.
    pub(super) fn of(
        kernel: &Kernel,
        settings: &CaptureSettings,
        plan: &RollbackPlan,
        (tree, commits): (&RestoreReport, Option<&[LeavingCommit]>),
    ) -> Result<Self> {
        if plan.cut.is_of_works() {
            return Ok(Self::default());
        }
        let commits = commits.unwrap_or_default();
        let lost = Self {
            paths: tree.plan.steps.iter().map(|step| step.path.0.clone()).collect(),
            commits: commits.iter().map(|leaving| leaving.commit.sha.clone()).collect(),
            seen: BTreeSet::new(),
        };
        // A commit that no work recorded may be that of any work which ran while git moved.
        let moves_unknown = commits.iter().any(|commit| commit.dispatch.is_none());
        if lost.paths.is_empty() && !moves_unknown {
            return Ok(lost);
        }
        // The checkpoint of the target was taken at the cut: the looks since then show all that the rollback may
        // remove.
        let target = &tree.target;
        let looked = kernel.read(|snapshot| Looked::of(snapshot, plan, target))?;
        let Some(looked) = looked else { return Ok(lost) };
        let workspace = Workspace::of_run(kernel, &plan.run, settings)?;
        let mut seen = looked.by_paths(&workspace, &lost.paths)?;
        seen.extend(looked.since_the_newest(&workspace, &tree.plan.steps)?);
        if moves_unknown {
            seen.extend(looked.by_git(kernel.context.now()));
        }
        Ok(Self { seen, ..lost })
    }
}

/// The checkpoints of a tree since the cut, and the work that ran between them.
struct Looked {
    attribution: Attribution,
    /// Work that the cut alone does not cover.
    straddling: BTreeSet<DispatchId>,
    /// The dispatches that recorded each path.
    recorded: BTreeMap<Vec<u8>, BTreeSet<DispatchId>>,
}

impl Looked {
    /// `None` where no work straddles the cut.
    fn of(snapshot: &Snapshot<'_>, plan: &RollbackPlan, target: &CheckpointRecord) -> Result<Option<Self>> {
        let span = (target.seq, Seq::MAX);
        let attribution = Attribution::between(snapshot, &target.root, span, target.created_at)?;
        let straddling = attribution.workers.iter().filter(|work| is_straddling(plan, work));
        let straddling: BTreeSet<DispatchId> = straddling.map(|work| work.id.clone()).collect();
        if straddling.is_empty() {
            return Ok(None);
        }
        let recorded = recorded_paths(snapshot, &plan.run)?;
        Ok(Some(Self { attribution, straddling, recorded }))
    }

    /// The work that may have changed one of these paths between two checkpoints.
    fn by_paths(&self, workspace: &Workspace<'_>, paths: &BTreeSet<Vec<u8>>) -> Result<BTreeSet<DispatchId>> {
        let mut seen = BTreeSet::new();
        for window in self.attribution.windows().filter(|window| window.from.tree != window.to.tree) {
            // Every candidate has been found, so no further comparison can add one.
            if seen.len() == self.straddling.len() {
                break;
            }
            let trees = (Some(&window.from.tree), Some(&window.to.tree));
            diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
                if difference.change().is_some() && paths.contains(&difference.path) {
                    seen.extend(self.owners(&window, &difference.path));
                }
                Ok(())
            })?;
        }
        Ok(seen)
    }

    /// The work that may have changed what differs from the newest checkpoint.
    fn since_the_newest(&self, workspace: &Workspace<'_>, steps: &[RestoreStep]) -> Result<BTreeSet<DispatchId>> {
        let mut seen = BTreeSet::new();
        // The time since the newest checkpoint is a window, too.
        let Some((newest, now)) = self.attribution.until_now(workspace.kernel.context.now()) else { return Ok(seen) };
        let window = self.attribution.window(newest, &now);
        for step in steps {
            let known = diff::find(&workspace.objects, &newest.tree, &step.path.0)?;
            if known.as_ref().and_then(RestoreNode::of) != step.before {
                seen.extend(self.owners(&window, &step.path.0));
            }
        }
        Ok(seen)
    }

    /// The work that ran while git's state changed; where no checkpoint shows that, the work that runs now.
    fn by_git(&self, now: Timestamp) -> BTreeSet<DispatchId> {
        // The looks of calls show files alone, so a window of git leads from one other look to the next.
        let looks: Vec<_> = self.attribution.looks.iter().filter(|look| !look.link.of_call).collect();
        let windows = looks.windows(2).map(|pair| self.attribution.window(pair[0], pair[1]));
        let moved = windows.filter(|window| !window.is_restore() && !window.to.has_git_as(window.from));
        // No record names the empty path, so all work that was under way as git moved is meant.
        let mut seen: BTreeSet<DispatchId> = moved.flat_map(|window| self.owners(&window, b"")).collect();
        // Git moved between no two checkpoints, so it moved after the newest one.
        if let (true, Some(newest), Some((_, now))) = (seen.is_empty(), looks.last(), self.attribution.until_now(now)) {
            seen.extend(self.owners(&self.attribution.window(newest, &now), b""));
        }
        seen
    }

    /// Those of the straddling work that may have changed a path in a window. If some of them recorded the path, only those.
    fn owners(&self, window: &Window<'_>, path: &[u8]) -> Vec<DispatchId> {
        let owners = window.owners(path);
        let has_recorded = |owner: &&&Dispatch| self.recorded.get(path).is_some_and(|ids| ids.contains(&owner.id));
        let own: Vec<&Dispatch> = owners.iter().filter(has_recorded).copied().collect();
        let owners = if own.is_empty() { owners } else { own };
        let ids = owners.into_iter().map(|owner| owner.id.clone());
        ids.filter(|id| self.straddling.contains(id)).collect()
    }
}

fn recorded_paths(snapshot: &Snapshot<'_>, run: &Run) -> Result<BTreeMap<Vec<u8>, BTreeSet<DispatchId>>> {
    let mut recorded: BTreeMap<Vec<u8>, BTreeSet<DispatchId>> = BTreeMap::new();
    for file in code::files_of_run(snapshot, &run.id, 0)? {
        recorded.entry(path_bytes(&file.path).to_vec()).or_default().insert(file.dispatch_id);
    }
    Ok(recorded)
}
