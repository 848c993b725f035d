//! Pruning checkpoints, freeing their space, and verifying that what is kept can be read.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Timestamp};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::objects::Swept;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal::{self, RestoreProgress, RestoreRecord};
use ic_checkpoint::retention::{self, Damage, Policy};
use ic_checkpoint::{capture, git, scratch};
use ic_kernel::Kernel;
use ic_kernel::journal::kept_checkpoints;
use ic_ledger::Snapshot;
use ic_ledger::events::Hash;

use super::workspace::{Warning, Which, Workspace, find};
use super::{store_location, store_requirements};

mod automatic_retention;

pub use automatic_retention::tidy;
pub use automatic_retention::{claim_sweep, is_sweep_due, sweep};

/// How long content that nothing names is kept: a writer may be about to name it.
pub const GRACE: Duration = Duration::from_mins(1);

/// How many checkpoints are marked first on a full disk: their rows fit into the space that the ledger's reserve leaves for the log.
const FEW: usize = 16;

/// What is to be pruned.
#[derive(Debug, Clone, Copy)]
pub struct RetentionRequest {
    /// How long checkpoints are kept.
    pub policy: Policy,
    /// How long content that nothing names is left alone.
    pub grace: Duration,
    /// Say what would be pruned and change nothing.
    pub dry_run: bool,
    /// The disk is full: a few checkpoints go first, to make room for the rest.
    pub is_tight: bool,
}

/// The result of a prune, or what one would do.
#[derive(Debug)]
pub struct Pruned {
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// The checkpoints, as they were.
    pub checkpoints: Vec<CheckpointRecord>,
    /// How many are kept.
    pub kept: usize,
    /// What the store gave back.
    pub swept: Swept,
    /// Why it gave nothing back, if it could not.
    pub warnings: Vec<Warning>,
}

/// The result of a verification.
#[derive(Debug)]
pub struct Verified {
    /// How many checkpoints were looked at.
    pub checkpoints: usize,
    /// How many different objects these checkpoints need.
    pub objects: u64,
    /// What cannot be read, and who needs it.
    pub damaged: Vec<Damage>,
    /// What SQLite finds wrong with the store's file.
    pub file: Vec<String>,
}

/// Prunes the checkpoints that the policy does not keep, and frees the space that nothing needs any more.
pub fn prune(workspace: &Workspace<'_>, request: &RetentionRequest) -> Result<Pruned> {
    //   store shared: mark what stays ─▶ store alone: choose, mark rows, forget refs, sweep
    //
    // The long part, reading trees, runs beside captures. What they add until the second lock is marked under it.
    let live = if request.dry_run { HashSet::new() } else { workspace.mark_ahead(request)? };
    let _lock = workspace.lock_store(request.dry_run)?;
    let now = workspace.kernel.context.now();
    let (all, pinned) = workspace.kernel.read(|snapshot| {
        Ok((record::all_kept(snapshot)?, pinned(workspace.kernel, snapshot, request.policy.points)?))
    })?;
    let chosen: Vec<CheckpointRecord> =
        retention::given_up(&all, request.policy, now, &pinned).into_iter().cloned().collect();
    let kept = all.len() - chosen.len();
    if request.dry_run {
        let (swept, warnings) = (Swept::default(), Vec::new());
        return Ok(Pruned { dry_run: true, checkpoints: chosen, kept, swept, warnings });
    }
    let (first, rest) = chosen.split_at(if request.is_tight { chosen.len().min(FEW) } else { chosen.len() });
    let (mut swept, mut warnings) = workspace.give_up(first, "retention", request.grace, live)?;
    if !rest.is_empty() {
        let (more, and) = workspace.give_up(rest, "retention", request.grace, HashSet::new())?;
        swept = Swept { objects: swept.objects + more.objects, bytes: swept.bytes + more.bytes };
        warnings = and;
    }
    Ok(Pruned { dry_run: false, checkpoints: chosen, kept, swept, warnings })
}

/// Prunes one checkpoint. Errors: `checkpoint_needed` if a run that is not finished, or a restore, needs it.
pub fn delete(workspace: &Workspace<'_>, which: Which<'_>, force: bool, grace: Duration) -> Result<Pruned> {
    // Locked before it is looked up: a prune that runs now may take the very same one.
    let _lock = workspace.lock_store(false)?;
    let (checkpoint, all, pinned) = workspace.kernel.read(|snapshot| {
        let checkpoint = find(snapshot, &workspace.root, which)?;
        let pinned = pinned(workspace.kernel, snapshot, workspace.settings.retention.policy().points)?;
        Ok((checkpoint, record::all_kept(snapshot)?, pinned))
    })?;
    super::workspace::require_kept(&checkpoint)?;
    if pinned.contains(&checkpoint.id) && !force {
        return Err(Diagnosis::new(
            Code::CheckpointNeeded,
            format!(
                "Checkpoint {} is needed: a run that is not finished, or an undo, points at it.",
                checkpoint.id.short()
            ),
        )
        .hint("finish or cancel the run first, or give --force")
        .detail("checkpoint_id", checkpoint.id.as_str()));
    }
    let (swept, warnings) = workspace.give_up(std::slice::from_ref(&checkpoint), "deleted", grace, HashSet::new())?;
    let checkpoints = vec![checkpoint];
    Ok(Pruned { dry_run: false, checkpoints, kept: all.len() - 1, swept, warnings })
}

/// Looks whether everything that checkpoints need is there; with `read_data`, reads and verifies all of it.
pub fn verify(workspace: &Workspace<'_>, read_data: bool) -> Result<Verified> {
    // Shared: what a sweep removes during the reading would look like damage.
    let _lock = lock::store(workspace.objects.path(), LockMode::Shared, workspace.settings.busy_timeout)?;
    let all = workspace.kernel.read(record::all_kept)?;
    let file = workspace.objects.file_damage()?;
    let (damaged, objects) = retention::verify(&workspace.objects, &all, read_data)?;
    Ok(Verified { checkpoints: all.len(), objects, damaged, file })
}

/// Checkpoints that must not be pruned: those that unfinished runs took when they moved and before their steps, those that undoing a
/// rollback needs, and those that undo and redo go to next. `points`: as in [`Policy`].
fn pinned(kernel: &Kernel, snapshot: &Snapshot<'_>, points: usize) -> Result<HashSet<CheckpointId>> {
    let mut pinned: HashSet<CheckpointId> = record::of_unfinished_runs(snapshot)?.into_iter().collect();
    pinned.extend((kernel.above.needed_checkpoints)(snapshot)?);
    pinned.extend(ic_phase::point::needed_checkpoints(snapshot, points)?);
    pinned.extend(ic_session::needed_checkpoints(snapshot)?);
    pinned.extend(kept_checkpoints::needed_checkpoints(snapshot)?);
    // By root: what an undo or redo does next is decided for each tree alone.
    let mut of_root: BTreeMap<std::path::PathBuf, Vec<RestoreRecord>> = BTreeMap::new();
    for restore in journal::all(snapshot)? {
        of_root.entry(restore.root.clone()).or_default().push(restore);
    }
    pinned.extend(ic_rewind::journal::safety_checkpoints(snapshot)?);
    for restores in of_root.into_values() {
        let (finished, unfinished): (Vec<RestoreRecord>, Vec<RestoreRecord>) =
            restores.into_iter().partition(|restore| restore.progress == RestoreProgress::Applied);
        let (undo, redo) = journal::stacks(&finished);
        for restore in undo.last().into_iter().chain(redo.last()).copied().chain(&unfinished) {
            pinned.extend([&restore.target_id, &restore.safety_id].map(Clone::clone));
            pinned.extend(restore.restored_id.clone());
        }
    }
    Ok(pinned)
}

impl Workspace<'_> {
    pub(super) fn lock_store(&self, dry_run: bool) -> Result<lock::Lock> {
        let mode = if dry_run { LockMode::Shared } else { LockMode::Exclusive };
        lock::store(self.objects.path(), mode, self.settings.busy_timeout)
    }

    /// Every object that the checkpoints need which the policy keeps, read while others capture.
    ///
    /// Reading whole trees takes long, and the store is held alone only for what is left to do then: what was added since.
    /// What is marked here and needed by nothing any more is found by the next sweep.
    fn mark_ahead(&self, request: &RetentionRequest) -> Result<HashSet<Hash>> {
        let mut live = HashSet::new();
        // A caller that does not wait for the lock would often read all of it for nothing, because the store is in use.
        if !self.settings.busy_timeout.is_zero() {
            let _lock = lock::store(self.objects.path(), LockMode::Shared, self.settings.busy_timeout)?;
            let (mut all, pinned) = self.kernel.read(|snapshot| {
                Ok((record::all_kept(snapshot)?, pinned(self.kernel, snapshot, request.policy.points)?))
            })?;
            let now = self.kernel.context.now();
            let goes = retention::given_up(&all, request.policy, now, &pinned);
            let goes: HashSet<CheckpointId> = goes.into_iter().map(|one| one.id.clone()).collect();
            all.retain(|checkpoint| !goes.contains(&checkpoint.id));
            // What is damaged must be met again under the lock, where it stops the sweep: what is marked is not looked at again.
            if retention::readable(retention::mark(&self.objects, &all, &mut live))?.is_none() {
                return Ok(HashSet::new());
            }
        }
        Ok(live)
    }

    /// Marks checkpoints as pruned and sweeps what nothing names any more; `live` is what is known to be needed. Says
    /// why, where that cannot be told. The caller holds the store's lock alone.
    fn give_up(
        &self,
        chosen: &[CheckpointRecord],
        reason: &str,
        grace: Duration,
        live: HashSet<Hash>,
    ) -> Result<(Swept, Vec<Warning>)> {
        // First of all: on a full disk this frees the space that the rest needs.
        let copies = scratch::clear_alone(self.objects.path());
        store_location::restored_roots(self.kernel)?.iter().for_each(|root| git::clear_indexes(root));
        let left = self.kernel.write(|tx, now| {
            for checkpoint in chosen {
                // Read again: pruning an earlier one of this list may have changed this one's parent.
                let checkpoint = record::get(tx, &checkpoint.id)?;
                record::prune(tx, now, &checkpoint, reason)?;
            }
            record::all_kept(tx)
        })?;
        // After the rows: a crash in between leaves refs, which the next prune removes.
        self.forget_refs(&left)?;
        match self.sweep(&left, grace, live) {
            Ok(mut swept) => {
                swept.bytes += copies.bytes;
                Ok((swept, Vec::new()))
            }
            // The checkpoints are marked, which is what was asked for. From a damaged store nothing is removed: content that
            // only an unreadable directory names may be all that is left of it.
            Err(error) if error.code() == Code::Corrupt => {
                Ok((Swept { objects: 0, bytes: copies.bytes }, vec![not_swept(&error)]))
            }
            Err(error) => Err(error),
        }
    }

    /// Sweeps what neither these checkpoints nor anything else names; `live` is what is known to be needed.
    fn sweep(&self, left: &[CheckpointRecord], grace: Duration, mut live: HashSet<Hash>) -> Result<Swept> {
        self.mark_named(left, &mut live)?;
        if grace.is_zero() {
            // Without a grace period everything unneeded goes, also what only a cache names; the next capture then reads the whole tree.
            capture::forget_caches(&self.objects)?;
        }
        // A capture believes what its cache names without reading it, so a sweep must not take that away.
        for tree in capture::cached_trees(&self.objects) {
            retention::mark_tree(&self.objects, &tree, &mut live)?;
        }
        let grace = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(self.kernel.context.now().millis().saturating_sub(grace));
        self.objects.sweep(&live, before)
    }

    /// Removes the refs below `refs/ic/` of restores and rewinds whose safety checkpoint is not kept any more: nothing undoes them.
    fn forget_refs(&self, kept: &[CheckpointRecord]) -> Result<()> {
        let kept: HashSet<&CheckpointId> = kept.iter().map(|checkpoint| &checkpoint.id).collect();
        let mut of_root: BTreeMap<PathBuf, HashSet<String>> = BTreeMap::new();
        let moved = self.kernel.read(|snapshot| {
            let restores = journal::all(snapshot)?.into_iter();
            let restores = restores.filter(|restore| restore.progress == RestoreProgress::Applied);
            let restores = restores.map(|restore| (restore.root, restore.id.to_string(), restore.safety_id));
            let rewinds = ic_rewind::journal::list(snapshot)?.into_iter().filter(|entry| !entry.is_unfinished());
            let rewinds = rewinds.filter_map(|entry| Some((entry.root, entry.id.to_string(), entry.safety_id?)));
            Ok(restores.chain(rewinds).collect::<Vec<_>>())
        })?;
        for (root, id, safety_id) in moved {
            if !kept.contains(&safety_id) {
                of_root.entry(root).or_default().insert(id);
            }
        }
        for (root, ids) in of_root {
            // A locked ref, or a repository that is gone, must not stop the prune: the next one tries again.
            let _ = git::forget_refs(&root, &ids);
        }
        Ok(())
    }

    /// Every object that the ledger names: by these checkpoints, by plans of restores, artifacts and compensations.
    pub(super) fn named(&self, checkpoints: &[CheckpointRecord]) -> Result<HashSet<Hash>> {
        let mut live = HashSet::new();
        self.mark_named(checkpoints, &mut live)?;
        Ok(live)
    }

    /// As [`Workspace::named`], added to what is known to be needed.
    fn mark_named(&self, checkpoints: &[CheckpointRecord], live: &mut HashSet<Hash>) -> Result<()> {
        retention::mark(&self.objects, checkpoints, live)?;
        for hash in self.kernel.read(|snapshot| store_requirements::named(snapshot, &self.objects))? {
            retention::mark_one(&self.objects, &hash, live)?;
        }
        Ok(())
    }
}

fn not_swept(error: &Diagnosis) -> Warning {
    let way_out = match error.code() {
        Code::Corrupt => "see what is lost, and remove it: ic checkpoint verify --repair",
        _ => error.get_hint().unwrap_or_default(),
    };
    let message = format!("no space was freed: {} {way_out}", error.message());
    Warning { code: "not_swept", message }
}
