//! What others changed since a restore, or while it was interrupted.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Result, Seq};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff;
use ic_checkpoint::git::GitState;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::{CheckpointManifest, PathText};
use ic_checkpoint::record::{self, CheckpointKind, CheckpointRecord};
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use ic_checkpoint::restore::plan::RestoreNode;
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;

use super::super::capture::{GitPart, Purpose};
use super::super::workspace::Workspace;
use super::assumed_tree::paths_of;
use super::restore_revert::TreeChanges;
use super::{concurrent_changes, kept_plan};

/// A state of the tree that a restore began with or ended with.
struct Known {
    tree: Hash,
    git: Option<GitState>,
}

/// What these restores changed and is now neither as the last of them left it nor as one of them found it: others changed it since.
/// `older`: changes from before the restores, of which some may be undone already, too.
pub fn changed_since(
    workspace: &Workspace<'_>,
    restores: &[RestoreRecord],
    older: &[TreeChanges],
) -> Result<Vec<LaterChange>> {
    let Some(last) = restores.last() else { return Ok(Vec::new()) };
    let mut paths = paths_of(workspace, restores)?;
    let interrupted = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?;
    let _held = workspace.lock(LockMode::Shared)?;
    let force = paths.iter().filter(|path| !path.is_empty()).cloned().collect();
    // While a restore is interrupted, git is between two states, and is not compared.
    let has_git = interrupted.is_none() && restores.iter().any(|restore| restore.strategy.has_git());
    let git = if has_git { GitPart::Look } else { GitPart::Nothing };
    let now = workspace.shoot(Purpose::look(git, force), &CaptureProgress::default())?;
    // What one that is interrupted found, and what it will leave, is no work of others; so of one that takes these back, too.
    if let Some(restore) = &interrupted {
        let open = paths_of(workspace, std::slice::from_ref(restore))?;
        let of_others = workspace.of_others_in(restore, &now.captured.root)?;
        paths.retain(|path| !open.contains(path) || of_others.contains(path));
    }
    // Oldest first: what each restore found, and at last what the newest one left.
    let ids = restores.iter().map(|restore| &restore.safety_id).chain(&last.restored_id);
    let known = ids.map(|id| workspace.known(id)).collect::<Result<Vec<Known>>>()?;
    let left = known.last().filter(|_| last.restored_id.is_some());
    let of_others = left.map(|left| workspace.of_others_in(last, &left.tree)).transpose()?.unwrap_or_default();
    let mut changed = Vec::new();
    for path in paths.into_iter().filter(|path| !path.is_empty()) {
        let here = workspace.node(&now.captured.root, &path)?;
        let mut is_known = false;
        // What others wrote into it while it was interrupted is none of its states.
        let count = known.len() - usize::from(of_others.contains(&path));
        let trees = known.iter().take(count).map(|state| &state.tree);
        let trees = trees.chain(older.iter().map(TreeChanges::tree_before));
        for tree in trees {
            is_known |= workspace.node(tree, &path)? == here;
        }
        if !is_known {
            changed.push(LaterChange::file(path));
        }
    }
    let here = now.manifest.git.as_ref();
    if has_git && !known.iter().any(|state| is_same_place(state.git.as_ref(), here)) {
        changed.push(LaterChange::git(known.last().and_then(|left| left.git.as_ref()), here));
    } else if has_git && is_staged_since(&known, here) {
        changed.push(LaterChange { path: PathText(b".git".to_vec()), shown: "what is staged".to_owned() });
    }
    Ok(changed)
}

/// Whether checkpoints show that anything but a restore changed what these restores had changed, though it may be as they left it again.
pub fn was_changed_since(workspace: &Workspace<'_>, restores: &[RestoreRecord]) -> Result<bool> {
    let Some(left) = restores.last().and_then(|last| last.restored_id.as_ref()) else { return Ok(false) };
    let paths = paths_of(workspace, restores)?;
    let looks = workspace.kernel.read(|snapshot| {
        let left = record::get(snapshot, left)?;
        record::of_root_between(snapshot, &workspace.root, left.seq, Seq::MAX)
    })?;
    // What leads to a checkpoint of a restore is the restore's own change.
    for pair in looks.windows(2).filter(|pair| pair[1].kind != CheckpointKind::Restored) {
        let mut is_any = false;
        diff::diff(&workspace.objects, Some(&pair[0].tree), Some(&pair[1].tree), &mut |difference| {
            is_any |= paths.contains(&difference.path);
            Ok(())
        })?;
        if is_any {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the index differs from all of these states. If they all have the same index, no restore changed it, and it is not compared.
fn is_staged_since(known: &[Known], here: Option<&GitState>) -> bool {
    let indexes: BTreeSet<Hash> = known.iter().filter_map(|state| state.git.as_ref()).map(|git| git.index.0).collect();
    indexes.len() > 1 && here.is_some_and(|here| !indexes.contains(&here.index.0))
}

/// Something that others changed since.
pub struct LaterChange {
    /// Git's state is named `.git`.
    pub path: PathText,
    /// How a message names it: a path, or what moved of git and where it is now.
    pub shown: String,
}

impl LaterChange {
    fn file(path: Vec<u8>) -> Self {
        Self { shown: path_from_bytes(&path).display().to_string(), path: PathText(path) }
    }

    /// What of HEAD, its branch and the stash is another than it was left.
    fn git(left: Option<&GitState>, here: Option<&GitState>) -> Self {
        let shown = match left.zip(here) {
            Some((left, here)) if !concurrent_changes::stand_alike(left, here) => {
                format!(
                    "HEAD, which is at {} and was at {}",
                    concurrent_changes::place(here),
                    concurrent_changes::place(left)
                )
            }
            Some(_) => "the stash".to_owned(),
            None => "git's state".to_owned(),
        };
        Self { path: PathText(b".git".to_vec()), shown }
    }
}

/// Whether HEAD, its branch and the stash are the same: what work after a restore moves.
fn is_same_place(a: Option<&GitState>, b: Option<&GitState>) -> bool {
    a.zip(b).is_some_and(|(a, b)| concurrent_changes::stand_alike(a, b) && a.stash == b.stash)
}

impl Workspace<'_> {
    /// The paths of a restore whose content it neither found nor wrote. Others wrote them after it was interrupted, and it left them
    /// alone. A database is another file once its log is in it.
    pub(super) fn of_others_in(&self, restore: &RestoreRecord, left: &Hash) -> Result<BTreeSet<Vec<u8>>> {
        let plan = kept_plan::read_plan(self, restore)?;
        let is_of_database =
            |path: &PathText| plan.databases.iter().any(|one| one.path == *path || one.sides.contains(path));
        let mut found = BTreeSet::new();
        for step in plan.steps.iter().filter(|step| !is_of_database(&step.path)) {
            let here = self.node(left, &step.path.0)?;
            let is_content = matches!(here, Some(RestoreNode::File { .. } | RestoreNode::Symlink(_)));
            let is = |state: &Option<RestoreNode>| state.clone().map(RestoreNode::plain) == here;
            if is_content && !is(&step.before) && !is(&step.after) {
                found.insert(step.path.0.clone());
            }
        }
        Ok(found)
    }

    fn known(&self, id: &CheckpointId) -> Result<Known> {
        let CheckpointRecord { tree, manifest, .. } = self.kernel.read(|snapshot| record::get(snapshot, id))?;
        Ok(Known { tree, git: CheckpointManifest::read(&self.objects, &manifest)?.git })
    }
}
