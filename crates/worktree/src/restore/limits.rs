//! What a restore is limited to: a step's changes, or what a run or dispatch recorded.

use std::collections::BTreeSet;

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::diff;
use ic_checkpoint::record::{self, Checkpoint, Kind};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::plan::Limits;
use ic_dispatch::code;
use ic_runtrack::artifact;
use ic_store::path_bytes;

use super::super::workspace::Workspace;

/// Whose files are meant by `--mine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The calling dispatch's, else those of the checkpoint's run.
    Caller,
    /// Those of the checkpoint's run, whoever calls: a rollback is of a run.
    Run,
}

impl Workspace<'_> {
    /// Narrows a restore of `target` down as its strategy and `--mine` ask.
    pub(super) fn narrow(
        &self,
        limits: &mut Limits,
        target: &Checkpoint,
        strategy: Strategy,
        whose: Option<Whose>,
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

    /// What changed between a checkpoint and the next one of its line; `None` when that is the tree as it is.
    fn changed_by_the_step_after(&self, target: &Checkpoint) -> Result<Option<BTreeSet<Vec<u8>>>> {
        let children = self.kernel.read(|snapshot| record::children(snapshot, &target.id))?;
        let is_work = |child: &&Checkpoint| matches!(child.kind, Kind::Manual | Kind::Auto);
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
    /// Errors: `invalid_value` when there is neither.
    fn recorded(&self, target: &Checkpoint, whose: Whose) -> Result<BTreeSet<Vec<u8>>> {
        self.kernel.read(|snapshot| {
            let caller = self.kernel.calling_dispatch(snapshot)?.filter(|_| whose == Whose::Caller);
            let mut paths = BTreeSet::new();
            match (&caller, &target.link.run_id) {
                (Some(dispatch), _) => {
                    let files = code::files_of(snapshot, &dispatch.id)?;
                    paths.extend(files.iter().map(|file| path_bytes(&file.path).to_vec()));
                }
                (None, Some(run)) => {
                    let files = code::files_of_run(snapshot, run, target.seq)?;
                    paths.extend(files.iter().map(|file| path_bytes(&file.path).to_vec()));
                    let artifacts = artifact::list(snapshot, run, artifact::Filter::default())?;
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
