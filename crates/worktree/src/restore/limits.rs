//! What a restore is limited to: a step's changes, or what a run or dispatch recorded.

use std::collections::BTreeSet;

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_checkpoint::diff;
use ic_checkpoint::record::{self, CheckpointKind, CheckpointRecord};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::plan::Limits;
use ic_dispatch::code;
use ic_dispatch::dispatch;
use ic_ledger::{Snapshot, path_bytes};
use ic_runtrack::artifact;
use ic_session::call;

use super::super::workspace::Workspace;

/// Whose files are meant by `--mine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitOwner {
    /// The calling dispatch's, else those of the checkpoint's run.
    Caller,
    /// Those of the checkpoint's run, whichever dispatch calls: a rollback belongs to a run.
    Run,
}

impl Workspace<'_> {
    /// Narrows a restore of `target` down as its strategy and `--mine` ask.
    pub(super) fn narrow(
        &self,
        limits: &mut Limits,
        target: &CheckpointRecord,
        strategy: Strategy,
        whose: Option<LimitOwner>,
    ) -> Result<()> {
        let mut narrow = |paths: BTreeSet<Vec<u8>>| {
            limits.only = Some(match limits.only.take() {
                Some(only) => only.intersection(&paths).cloned().collect(),
                None => paths,
            });
        };
        if strategy == Strategy::Partial
            && let Some(paths) = self.changed_by_the_step_after(target)?
        {
            narrow(paths);
        }
        if let Some(whose) = whose {
            narrow(self.recorded(target, whose)?);
        }
        Ok(())
    }

    /// What changed between a checkpoint and the next one of its line; `None` if there is no next one yet.
    fn changed_by_the_step_after(&self, target: &CheckpointRecord) -> Result<Option<BTreeSet<Vec<u8>>>> {
        let children = self.kernel.read(|snapshot| record::children(snapshot, &target.id))?;
        // A safety checkpoint and what a restore left follow the target as well. Neither is a step of the work.
        let is_work = |child: &&CheckpointRecord| matches!(child.kind, CheckpointKind::Manual | CheckpointKind::Auto);
        let Some(next) = children.iter().find(is_work) else { return Ok(None) };
        let mut paths = BTreeSet::new();
        diff::diff(&self.objects, Some(&target.tree), Some(&next.tree), &mut |difference| {
            paths.insert(difference.path);
            Ok(())
        })?;
        Ok(Some(paths))
    }

    /// The files that the calling dispatch recorded, else the checkpoint's run since the checkpoint.
    ///
    /// Errors: `invalid_value` when there is neither, or where work of the run records no file.
    fn recorded(&self, target: &CheckpointRecord, whose: LimitOwner) -> Result<BTreeSet<Vec<u8>>> {
        self.kernel.read(|snapshot| {
            let caller = self.kernel.calling_dispatch(snapshot)?.filter(|_| whose == LimitOwner::Caller);
            let mut paths = BTreeSet::new();
            match (&caller, &target.link.run_id) {
                (Some(dispatch), _) => {
                    let files = code::files_of(snapshot, &dispatch.id)?;
                    paths.extend(files.iter().map(|file| path_bytes(&file.path).to_vec()));
                }
                (None, Some(run)) => {
                    require_recorded(snapshot, run, target.seq)?;
                    let files = code::files_of_run(snapshot, run, target.seq)?;
                    paths.extend(files.iter().map(|file| path_bytes(&file.path).to_vec()));
                    let artifacts = artifact::list(snapshot, run, artifact::ArtifactFilter::default())?;
                    // An absolute path, or an address, is not in the tree.
                    let since = artifacts.iter().filter(|a| a.seq > target.seq && a.path.is_relative());
                    paths.extend(since.map(|a| path_bytes(&a.path).to_vec()));
                }
                (None, None) => {
                    return Err(Diagnosis::new(
                        Code::InvalidValue,
                        "--mine needs a run: the checkpoint belongs to none.",
                    )
                    .hint("name the dispatch: --dispatch ID"));
                }
            }
            Ok(paths)
        })
    }
}

/// Errors: `invalid_value` if work since an event records no file, as its calls tell what it did: none of it would be restored.
fn require_recorded(snapshot: &Snapshot<'_>, run: &RunId, since: Seq) -> Result<()> {
    let mut work = dispatch::of_run(snapshot, run)?;
    work.retain(|one| one.place() > since && one.rolled_back_by.is_none() && one.work.parent_id.is_none());
    let mut without = Vec::new();
    for one in work {
        let has_calls = !call::of_dispatch(snapshot, &one.id)?.is_empty();
        if has_calls && code::files_of(snapshot, &one.id)?.is_empty() {
            without.push((one.place(), one.id));
        }
    }
    without.sort();
    let Some((_, newest)) = without.last() else { return Ok(()) };
    let (short, more) = (newest.short(), without.len() - 1);
    let whose = match more {
        0 => format!("The prompt {short} records"),
        n => format!("The prompt {short} and {n} more record"),
    };
    let next = if more == 0 { "" } else { "; then the others in the same way, newest first" };
    Err(Diagnosis::new(
        Code::InvalidValue,
        format!("{whose} no file, so --mine would restore none of theirs. Nothing was changed."),
    )
    .hint(format!(
        "undo it alone, whatever others did: ic undo --only {short} --dry-run{next}; or go back over all but what others changed: \
         --keep-theirs in place of --mine"
    ))
    .detail("dispatch_ids", without.iter().rev().map(|(_, id)| id.as_str()).collect::<Vec<_>>()))
}
