//! What other runs may have changed while a run was at work in the same tree. Their checkpoints say when they worked: from the
//! first one after the beginning of the workflow to their last, or to now while they are not finished.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{CheckpointId, Result, RunId};
use ic_checkpoint::diff;
use ic_checkpoint::record::{self, Checkpoint};
use ic_phase::{RunStatus, run};

use ic_kernel::Kernel;
use ic_worktree::{Conflict, Workspace};

/// Another run that worked in the tree.
struct Other {
    run: RunId,
    is_finished: bool,
    first: Checkpoint,
    last: Checkpoint,
}

/// Those of these paths, which all differ from the target, that another run may have changed since the target was taken.
pub(super) fn conflicts<'p>(
    kernel: &Kernel,
    workspace: &Workspace<'_>,
    target: &CheckpointId,
    paths: impl Iterator<Item = &'p [u8]>,
) -> Result<Vec<Conflict>> {
    let (target, others) = kernel.read(|snapshot| {
        let target = record::get(snapshot, target)?;
        let mut of_run: BTreeMap<RunId, (Checkpoint, Checkpoint)> = BTreeMap::new();
        for checkpoint in record::all_kept(snapshot)? {
            let is_later = checkpoint.root == target.root && checkpoint.seq > target.seq;
            if let Some(run) = checkpoint.link.run_id.clone().filter(|_| is_later)
                && Some(&run) != target.link.run_id.as_ref()
            {
                let window = of_run.entry(run).or_insert_with(|| (checkpoint.clone(), checkpoint.clone()));
                window.1 = checkpoint;
            }
        }
        let mut others = Vec::new();
        for (id, (first, last)) in of_run {
            let status = run::get(snapshot, &id)?.status;
            let is_finished = !matches!(status, RunStatus::Active | RunStatus::RollingBack);
            others.push(Other { run: id, is_finished, first, last });
        }
        Ok((target, others))
    })?;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let paths: Vec<&[u8]> = paths.collect();
    let mut found = BTreeMap::new();
    for other in others {
        let mut meanwhile = BTreeSet::new();
        let objects = &workspace.objects;
        diff::diff(objects, Some(&other.first.tree), Some(&other.last.tree), &mut |difference| {
            if difference.change().is_some() {
                meanwhile.insert(difference.path);
            }
            Ok(())
        })?;
        for path in &paths {
            // What was as the target has it when the other run came was changed later.
            let is_later = || {
                let state = |tree| diff::find(objects, tree, path);
                Ok::<_, ic_base::Diagnosis>(state(&other.first.tree)? == state(&target.tree)?)
            };
            if meanwhile.contains(*path) || (!other.is_finished && is_later()?) {
                found.entry(path.to_vec()).or_insert_with(|| {
                    format!("changed while run {} worked here too, and may be its work", other.run.short())
                });
            }
        }
    }
    let conflict = |(path, reason)| Conflict { path: ic_checkpoint::manifest::PathText(path), reason };
    Ok(found.into_iter().map(conflict).collect())
}
