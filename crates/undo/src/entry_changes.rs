//! What the work of an entry of a log changed in the tree.

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::dispatch;
use ic_ledger::OpenOptions;
use ic_worktree::{Changes, Workspace};

use crate::dispatch_changes::{WorkChanges, changes_of_work};
use crate::points::log::{self, What};
use crate::points::{NamedWork, checkpoint_at, newest_works, work_at};

/// What a prompt, dispatch or step made of the tree.
///
/// Errors: `no_checkpoint` if the tree was not captured as it began or ended, or is not kept any more.
pub fn changes_of_entry(workspace: &Workspace<'_>, options: OpenOptions, work: &NamedWork) -> Result<WorkChanges> {
    match work.point.filter(|_| work.is_step()) {
        Some(seq) => changes_of_step(workspace, options, work, seq),
        None => changes_of_work(workspace, &work.dispatch),
    }
}

/// What changed from the checkpoint before a step to the next one: a step tells no calls, and its end is not captured.
fn changes_of_step(workspace: &Workspace<'_>, options: OpenOptions, work: &NamedWork, seq: Seq) -> Result<WorkChanges> {
    let (entry, _) = log::at(workspace.kernel, options, &work.run, (seq, work.reference.as_str()))?;
    let What::Point { point, until, .. } = entry.what else { return Ok(WorkChanges::default()) };
    let Some((from, to)) = point.checkpoint_id.zip(until) else {
        let message = format!("The tree was not captured before and after {}.", work.reference);
        return Err(Diagnosis::new(Code::NoCheckpoint, message).hint("what changed since: ic diff REF --stat"));
    };
    let differences = changes_between(workspace, (&from, &to))?;
    Ok(WorkChanges { differences, looks: vec![from, to], ..WorkChanges::default() })
}

/// What changed from one checkpoint to another.
///
/// Errors: `checkpoint_not_found` if one of them is not kept any more.
pub fn changes_between(
    workspace: &Workspace<'_>,
    (from, to): (&CheckpointId, &CheckpointId),
) -> Result<Vec<Difference>> {
    let trees = workspace.kernel.read(|snapshot| {
        Ok(Changes { before: Some(record::get(snapshot, from)?.tree), after: record::get(snapshot, to)?.tree })
    })?;
    let mut differences = Vec::new();
    let listed = ic_worktree::changes_of(workspace, trees, &mut |difference| {
        differences.extend(difference.change().is_some().then_some(difference));
        Ok(())
    });
    ic_worktree::unless_pruned(workspace, &[from, to], listed)?;
    Ok(differences)
}

/// The newest work of this place that is not undone and changed one of these paths or what is below them; `None` where none did.
///
/// Errors: those of the store.
pub fn newest_change(workspace: &Workspace<'_>, options: OpenOptions, paths: &[Vec<u8>]) -> Result<Option<NamedWork>> {
    /// How many works are looked at first: most people mean what happened last.
    const FIRST: usize = 16;
    let (mut seen, mut wanted) = (0, FIRST);
    loop {
        let works = workspace.kernel.read(|snapshot| {
            let mut named = Vec::new();
            let found = newest_works(snapshot, &workspace.root, wanted)?;
            let count = found.len();
            for (run, point) in found.into_iter().skip(seen) {
                named.extend(work_at(snapshot, run, &point)?);
            }
            Ok((named, count))
        })?;
        let (named, count) = works;
        for work in named {
            if has_changed(workspace, options, &work, paths)? {
                return Ok(Some(work));
            }
        }
        // Fewer than were asked for: the place has no older work.
        if count < wanted {
            return Ok(None);
        }
        (seen, wanted) = (count, wanted.saturating_mul(4));
    }
}

/// Whether work changed one of these paths, or may have. Work that no capture shows changed nothing that is known.
pub fn has_changed(
    workspace: &Workspace<'_>,
    options: OpenOptions,
    work: &NamedWork,
    paths: &[Vec<u8>],
) -> Result<bool> {
    if !work.is_step() && left_unchanged(workspace, work, paths)? {
        return Ok(false);
    }
    let changes = match changes_of_entry(workspace, options, work) {
        Err(error) if error.code() == Code::NoCheckpoint => return Ok(false),
        changes => changes?,
    };
    let mut paths_of_work =
        changes.differences.iter().map(|one| &one.path).chain(changes.unsure.iter().map(|(path, _)| path));
    Ok(paths_of_work.any(|path| ic_worktree::is_among(path, paths)))
}

/// Whether the checkpoints before and after work that began no other show the same at these paths. That is told by two lookups, and what a
/// work made by all of its calls: a long log is searched for a file in this way. `false` where it is not known, or for a directory.
fn left_unchanged(workspace: &Workspace<'_>, work: &NamedWork, paths: &[Vec<u8>]) -> Result<bool> {
    let ends = workspace.kernel.read(|snapshot| {
        let Some((point, end)) = work.point.zip(work.dispatch.finished_seq) else { return Ok(None) };
        // What it began may go on after its end.
        if !dispatch::descendants(snapshot, &work.dispatch.id)?.is_empty() {
            return Ok(None);
        }
        let before = checkpoint_at(snapshot, &work.run, point)?;
        Ok(before.zip(record::of_event(snapshot, end - 1)?))
    })?;
    let is_kept = |look: &CheckpointRecord| look.pruned_at.is_none() && look.root == workspace.root;
    let Some((before, after)) = ends.filter(|(before, after)| is_kept(before) && is_kept(after)) else {
        return Ok(false);
    };
    // A directory, and a path that was left out, say nothing of what is in them.
    let is_told =
        |state: &Option<DiffState>| matches!(state, None | Some(DiffState::File { .. } | DiffState::Symlink(_)));
    for path in paths {
        let was = diff::find(&workspace.objects, &before.tree, path)?;
        let is = diff::find(&workspace.objects, &after.tree, path)?;
        if path.is_empty() || !is_told(&was) || was != is {
            return Ok(false);
        }
    }
    Ok(true)
}
