//! The tree of a rollback that is taken back: first whether it can be, then the restores, newest first.
//!
//! Both can be asked and done again: a path that is back already is as one of the restores found it.

use ic_base::{Code, Diagnosis, Result, Seq};
use ic_checkpoint::restore::journal::Restore;
use ic_store::path_from_bytes;

use super::layer::Layer;
use super::table::Remembered;
use crate::checkpoint::{self, Report, RestoreRequest, Watch, Which, Workspace};
use crate::compensation::Saga;

/// The restores of a rollback, in the tree that they changed.
pub(super) struct TreeBack<'k> {
    workspace: Workspace<'k>,
    /// Oldest first.
    restores: Vec<Restore>,
}

/// What is to be put back of files and git's state, when nothing stands against it; `None`: nothing.
///
/// Errors: `conflict` if somebody changed since what the rollback restored, or recorded it; `foreign_commits`, `work_running`: nothing
/// is changed. `force`: none of them.
pub(super) fn to_put_back<'k>(
    saga: &Saga<'k>,
    remembered: &Remembered,
    (until, force): (Seq, bool),
    watch: &Watch,
) -> Result<Option<TreeBack<'k>>> {
    let has_tree = remembered.layers.iter().any(|layer| matches!(layer, Layer::Files | Layer::Git));
    let target =
        saga.kernel.read(|snapshot| ic_checkpoint::record::of_advance(snapshot, remembered.cut_seq))?;
    let Some(target) = target.filter(|_| has_tree) else { return Ok(None) };
    let workspace = Workspace::of_run(saga.kernel, &saga.run()?, saga.settings)?;
    // One that was interrupted is taken back like the others, once it is finished.
    checkpoint::settle(&workspace, watch)?;
    let mut restores = checkpoint::restores_since(&workspace, &target.id, remembered.seq)?;
    restores.retain(|restore| restore.seq < until);
    let tree = TreeBack { workspace, restores };
    if force {
        return Ok(Some(tree));
    }
    require_untouched(&tree.workspace, &tree.restores)?;
    for restore in &tree.restores {
        let report = tree.take_back(restore, (true, false), watch)?;
        if let Some(conflict) = report.conflicts.first() {
            let path = path_from_bytes(&conflict.path.0).display().to_string();
            return Err(by_hand(
                restore,
                Diagnosis::new(
                    Code::Conflict,
                    format!("{path} is not the rollback's any more: {}.", conflict.reason),
                ),
            ));
        }
    }
    Ok(Some(tree))
}

impl TreeBack<'_> {
    fn take_back(&self, restore: &Restore, (dry_run, force): (bool, bool), watch: &Watch) -> Result<Report> {
        let request = RestoreRequest {
            which: Which::Id(restore.safety_id.as_str()),
            strategy: Some(restore.strategy),
            paths: &[],
            mine: false,
            dry_run,
            force,
            keep_theirs: false,
            into: false,
            expect_plan: None,
        };
        checkpoint::take_restore_back(&self.workspace, restore, &request, watch).map_err(|error| match error
            .code()
        {
            Code::Conflict | Code::ForeignCommits => by_hand(restore, error),
            _ => error,
        })
    }
}

fn by_hand(restore: &Restore, error: Diagnosis) -> Diagnosis {
    error.hint(format!(
        "put the tree back by hand, then call again: ic checkpoint restore {} --force --yes",
        restore.safety_id.short()
    ))
}

/// Puts files and git's state back as they were before the rollback touched them, newest restore first. A path that does not come
/// back ends it: the last report names it.
pub(super) fn put_back(
    tree: &TreeBack<'_>,
    force: bool,
    reports: &mut Vec<Report>,
    watch: &Watch,
) -> Result<()> {
    for restore in tree.restores.iter().rev() {
        let report = tree.take_back(restore, (false, force), watch)?;
        let is_whole = report.failed.is_empty();
        reports.push(report);
        if !is_whole {
            break;
        }
    }
    Ok(())
}

/// Errors: `conflict`, naming what somebody changed since the rollback restored it.
fn require_untouched(workspace: &Workspace<'_>, restores: &[Restore]) -> Result<()> {
    let changed = checkpoint::changed_since(workspace, restores)?;
    let Some(first) = changed.first() else { return Ok(()) };
    let shown = |path: &[u8]| path_from_bytes(path).display().to_string();
    let others = match changed.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let left = restores.iter().rev().find_map(|restore| restore.restored_id.as_ref());
    let hint = left.map_or_else(String::new, |left| {
        format!(
            "this puts it as it was (and keeps your changes in a checkpoint): ic checkpoint restore {} --yes",
            left.short()
        )
    });
    Err(Diagnosis::new(
        Code::Conflict,
        format!(
            "What the rollback restored was changed since: {}{others}. Nothing was changed.",
            shown(&first.0)
        ),
    )
    .hint(hint)
    .detail("paths", changed.iter().map(|path| shown(&path.0)).collect::<Vec<_>>()))
}
