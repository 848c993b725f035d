//! Taking restores back that a rollback made, and saying what somebody changed since.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::diff;
use ic_checkpoint::git::GitState;
use ic_checkpoint::lock::Mode;
use ic_checkpoint::manifest::{Manifest, PathText};
use ic_checkpoint::record::{self, Checkpoint};
use ic_checkpoint::restore::journal::{self, Kind, Restore};
use ic_checkpoint::restore::plan::{Limits, Node};
use ic_events::Hash;
use ic_store::path_from_bytes;

use super::super::shot::{GitPart, Purpose};
use super::super::{Workspace, require_kept};
use super::{Report, Request, Watch, run};

/// Finishes a restore of the workspace that was interrupted, forward.
pub(crate) fn settle(workspace: &Workspace<'_>, watch: &Watch) -> Result<()> {
    if workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?.is_none() {
        return Ok(());
    }
    let _held = workspace.lock(Mode::Exclusive)?;
    workspace.settle(watch).map(|_| ())
}

/// The finished restores of a checkpoint in a workspace that were begun after `since`, oldest first.
pub(crate) fn restores_since(
    workspace: &Workspace<'_>,
    target: &CheckpointId,
    since: Seq,
) -> Result<Vec<Restore>> {
    let mut finished = workspace.kernel.read(|snapshot| journal::finished(snapshot, &workspace.root))?;
    finished.retain(|restore| restore.seq > since && restore.target_id == *target);
    Ok(finished)
}

/// Takes one restore of a workspace back: the tree is as it was before, where that restore changed it.
pub(crate) fn take_restore_back(
    workspace: &Workspace<'_>,
    restore: &Restore,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
    let finished = workspace.kernel.read(|snapshot| journal::finished(snapshot, &workspace.root))?;
    let is_last = journal::stacks(&finished).0.last().is_some_and(|last| last.id == restore.id);
    let target = workspace.kernel.read(|snapshot| record::get(snapshot, &restore.safety_id))?;
    require_kept(&target)?;
    let only = run::read_plan(workspace, restore)?.steps.into_iter().map(|step| step.path.0).collect();
    let limits = Limits { only: Some(only), ..Limits::default() };
    let request = Request { strategy: Some(restore.strategy), ..*request };
    let kind = if is_last { Kind::Undo } else { Kind::Restore };
    run::run(
        workspace,
        run::Task { kind, target, limits, leaves_others: true, until: Seq::MAX },
        &request,
        watch,
    )
}

/// Puts back what changed in the tree from one checkpoint to a newer one; `None`: nothing did.
///
/// Errors: `conflict`, naming a path that somebody changed since, unless `request` forces it.
pub(crate) fn take_changes_back(
    workspace: &Workspace<'_>,
    (before, after): (&CheckpointId, &CheckpointId),
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Option<Report>> {
    let get = |id| workspace.kernel.read(|snapshot| record::get(snapshot, id));
    let (before, after) = (get(before)?, get(after)?);
    require_kept(&before)?;
    let mut only = BTreeSet::new();
    diff::diff(&workspace.objects, Some(&after.tree), Some(&before.tree), &mut |difference| {
        only.insert(difference.path);
        Ok(())
    })?;
    if only.is_empty() {
        return Ok(None);
    }
    if !request.force {
        let changed = workspace.changed_from(&only, &[before.tree, after.tree])?;
        if let Some(path) = changed.first() {
            let path = path_from_bytes(&path.0).display().to_string();
            return Err(Diagnosis::new(
                Code::Conflict,
                format!("{path} was changed since an effect was undone, which had changed it too."),
            )
            .hint(format!("what it was before: ic checkpoint cat {} {path}", before.id.short())));
        }
    }
    let limits = Limits { only: Some(only), ..Limits::default() };
    let task =
        run::Task { kind: Kind::Restore, target: before, limits, leaves_others: true, until: Seq::MAX };
    run::run(workspace, task, request, watch).map(Some)
}

/// A state of the tree that a restore began with or ended with.
struct Known {
    tree: Hash,
    git: Option<GitState>,
}

/// What these restores changed and is now neither as the last of them left it nor as one of them found it: somebody changed it
/// since. Git's state is named `.git`.
pub(crate) fn changed_since(workspace: &Workspace<'_>, restores: &[Restore]) -> Result<Vec<PathText>> {
    let Some(last) = restores.last() else { return Ok(Vec::new()) };
    let mut paths = BTreeSet::new();
    for restore in restores {
        paths.extend(run::read_plan(workspace, restore)?.steps.into_iter().map(|step| step.path.0));
    }
    let _held = workspace.lock(Mode::Shared)?;
    let force = paths.iter().filter(|path| !path.is_empty()).cloned().collect();
    let has_git = restores.iter().any(|restore| restore.strategy.has_git());
    let git = if has_git { GitPart::Look } else { GitPart::Nothing };
    let now = workspace.shoot(Purpose::look(git, force), &Progress::default())?;
    let ids = restores.iter().map(|restore| &restore.safety_id).chain(&last.restored_id);
    let known = ids.map(|id| workspace.known(id)).collect::<Result<Vec<Known>>>()?;
    let mut changed = Vec::new();
    for path in paths.into_iter().filter(|path| !path.is_empty()) {
        let here = workspace.node(&now.captured.root, &path)?;
        let mut is_known = false;
        for state in &known {
            is_known |= workspace.node(&state.tree, &path)? == here;
        }
        if !is_known {
            changed.push(PathText(path));
        }
    }
    if has_git && !known.iter().any(|state| is_same_place(state.git.as_ref(), now.manifest.git.as_ref())) {
        changed.push(PathText(b".git".to_vec()));
    }
    Ok(changed)
}

/// Whether HEAD, its branch and the stash are the same: what work after a restore moves.
fn is_same_place(a: Option<&GitState>, b: Option<&GitState>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.head == b.head && a.branch == b.branch && a.stash == b.stash,
        (None, None) => true,
        _ => false,
    }
}

impl Workspace<'_> {
    /// Those of `paths` that are now as none of these trees has them.
    fn changed_from(&self, paths: &BTreeSet<Vec<u8>>, trees: &[Hash]) -> Result<Vec<PathText>> {
        let _held = self.lock(Mode::Shared)?;
        let force = paths.iter().filter(|path| !path.is_empty()).cloned().collect();
        let look = Purpose::look(GitPart::Nothing, force);
        let now = self.shoot(look, &Progress::default())?.captured.root;
        let mut changed = Vec::new();
        for path in paths.iter().filter(|path| !path.is_empty()) {
            let here = self.node(&now, path)?;
            let known = trees.iter().map(|tree| self.node(tree, path)).collect::<Result<Vec<_>>>()?;
            if !known.contains(&here) {
                changed.push(PathText(path.clone()));
            }
        }
        Ok(changed)
    }

    fn known(&self, id: &CheckpointId) -> Result<Known> {
        let Checkpoint { tree, manifest, .. } = self.kernel.read(|snapshot| record::get(snapshot, id))?;
        Ok(Known { tree, git: Manifest::read(&self.objects, &manifest)?.git })
    }

    fn node(&self, tree: &Hash, path: &[u8]) -> Result<Option<Node>> {
        Ok(diff::find(&self.objects, tree, path)?.as_ref().and_then(Node::of))
    }
}
