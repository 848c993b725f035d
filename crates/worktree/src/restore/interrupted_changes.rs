//! What others changed while a restore was interrupted: it is theirs, and no part of what the restore did.
//!
//! ```text
//!   safety ── killed half way, a person writes ──▶ now ── the same plan again ──▶ restored
//!     └────────▶ theirs = safety, and what they wrote outside of the plan ─────────┘
//! ```
//!
//! The checkpoint `theirs` is recorded before the restore is finished. So what changed until then is no one's work, as before any restore,
//! and only what comes after it is the restore's. A path of the plan that others wrote is left alone when it comes to writing, so what the
//! restore left has it.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{CheckpointId, Result, RunId, Seq};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff;
use ic_checkpoint::graft::overlay;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{self, CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use ic_checkpoint::restore::plan::RestorePlan;
use ic_session::attribution::Attribution;

use super::super::capture::{GitPart, OpenCapture, Purpose, Shot};
use super::super::workspace::Workspace;
use super::assumed_tree::differences;
use super::kept_plan;

/// What others changed since a restore was interrupted.
struct Theirs<'w> {
    /// The tree as it was before the restore, with what they changed outside of its plan.
    open: OpenCapture<'w>,
    paths: BTreeSet<Vec<u8>>,
}

impl Workspace<'_> {
    /// A picture of the tree before an interrupted restore, with what others changed outside of its plan since; `None`: they changed
    /// nothing, in the plan or outside of it. The caller holds the root.
    pub(super) fn shoot_theirs(&self, restore: &RestoreRecord, plan: &RestorePlan) -> Result<Option<Shot>> {
        let Theirs { open, paths } = self.theirs(restore, plan, GitPart::FilesAlone)?;
        if paths.is_empty() {
            return Ok(None);
        }
        self.close(open).map(Some)
    }

    /// The paths that others changed since a restore was interrupted, which is not finished yet.
    pub(super) fn paths_of_theirs(&self, restore: &RestoreRecord) -> Result<BTreeSet<Vec<u8>>> {
        let plan = kept_plan::read_plan(self, restore)?;
        let Theirs { open, paths } = self.theirs(restore, &plan, GitPart::Nothing)?;
        // Closed and not dropped: its stat cache spares the real call from reading that again.
        self.close(open)?;
        Ok(paths)
    }

    fn theirs(&self, restore: &RestoreRecord, plan: &RestorePlan, git: GitPart) -> Result<Theirs<'_>> {
        let safety = self.kernel.read(|snapshot| record::get(snapshot, &restore.safety_id))?;
        let message = Some(format!("while the restore of {} was interrupted", restore.target_id.short()));
        let link = CheckpointLink { name: None, message, ..safety.link.clone() };
        let steps = plan.steps.iter().map(|step| step.path.0.clone());
        let force = steps.clone().filter(|path| !path.is_empty()).collect();
        // Its parent is the safety checkpoint, so the changes that its manifest lists are those of others alone.
        let parent = Some(safety.id.clone());
        let purpose = Purpose { git, parent, force, ..Purpose::new(CheckpointKind::Safety, link) };
        let open = self.shoot_open(purpose, &CaptureProgress::default())?;
        let mut paths = self.of_others_in(restore, &open.shot.captured.root)?;
        let before = CheckpointManifest::read(&self.objects, &safety.manifest)?.git;
        // With the directories that it opened up to write into.
        let own: BTreeSet<Vec<u8>> = steps.chain(plan.closed.iter().map(|(path, _)| path.0.clone())).collect();
        let (open, differences) = open.with_tree(before, |writer, now| {
            // At the paths of the plan the tree from before the restore, everywhere else the current one.
            let tree = overlay(&self.objects, writer, (now, &safety.tree), &own)?;
            writer.expose()?;
            let mut changes = differences(self, &safety.tree, &tree)?;
            changes.retain(|difference| difference.change().is_some());
            Ok((tree, changes))
        })?;
        paths.extend(differences.into_iter().map(|one| one.path));
        Ok(Theirs { open, paths })
    }

    /// The paths that others changed while a restore since `target` was interrupted: one that is finished by now, or not yet. Each with
    /// whether it is asked about: where an attempt at the same deed, which began at the event `deed`, had nothing to restore, it stays.
    pub(super) fn changed_while_interrupted(
        &self,
        target: &CheckpointRecord,
        deed: Seq,
    ) -> Result<BTreeMap<Vec<u8>, bool>> {
        let (restores, unfinished) = self.kernel.read(|snapshot| {
            let mut all = journal::finished(snapshot, &self.root)?;
            all.retain(|one| one.seq > target.seq);
            Ok((all, journal::unfinished(snapshot, &self.root)?))
        })?;
        let mut found = BTreeMap::new();
        let mut add = |restore: &RestoreRecord, paths: BTreeSet<Vec<u8>>| -> Result<()> {
            let is_attempt = restore.seq > deed && restore.target_id == target.id;
            let safety = self.kernel.read(|snapshot| record::get(snapshot, &restore.safety_id))?;
            let to_do = if is_attempt { self.changed_paths(&safety.tree, &target.tree)? } else { BTreeSet::new() };
            found.extend(paths.into_iter().map(|path| (path.clone(), !is_attempt || to_do.contains(&path))));
            Ok(())
        };
        if let Some(restore) = &unfinished {
            add(restore, self.paths_of_theirs(restore)?)?;
        }
        if restores.is_empty() {
            return Ok(found);
        }
        let looks = self.kernel.read(|snapshot| record::of_root_between(snapshot, &self.root, target.seq, Seq::MAX))?;
        for restore in &restores {
            let place = |id: &CheckpointId| looks.iter().find(|look| look.id == *id && look.pruned_at.is_none());
            let left = restore.restored_id.as_ref().and_then(place);
            // Without both checkpoints, nothing can be told of that restore.
            let Some((safety, left)) = place(&restore.safety_id).zip(left) else { continue };
            let is_theirs = |look: &&CheckpointRecord| {
                let is_between = restore.seq < look.seq && look.seq < left.seq;
                is_between && look.kind == CheckpointKind::Safety && look.pruned_at.is_none()
            };
            // A restore that was interrupted twice has two of these. Each begins at the safety checkpoint, so the
            // later one has all of it.
            if let Some(theirs) = looks.iter().rfind(is_theirs) {
                let mut paths = self.of_others_in(restore, &left.tree)?;
                self.add_changes_of_others(target, (safety, theirs), &mut paths)?;
                add(restore, paths)?;
            }
        }
        Ok(found)
    }

    /// Adds what changed between two checkpoints, but for what calls of the target's own run did.
    fn add_changes_of_others(
        &self,
        target: &CheckpointRecord,
        (from, to): (&CheckpointRecord, &CheckpointRecord),
        paths: &mut BTreeSet<Vec<u8>>,
    ) -> Result<()> {
        let range = (from.seq, to.seq);
        let attribution =
            self.kernel.read(|snapshot| Attribution::between(snapshot, &self.root, range, from.created_at))?;
        let window = attribution.window(from, to);
        diff::diff(&self.objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
            let makers = window.makers(&difference.path);
            let is_own = |run: &RunId| makers.iter().all(|maker| maker.run_id == *run);
            let is_of_run = !makers.is_empty() && target.link.run_id.as_ref().is_some_and(is_own);
            if difference.change().is_some() && !is_of_run {
                paths.insert(difference.path);
            }
            Ok(())
        })
    }
}
