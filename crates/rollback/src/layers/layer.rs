//! What a layer is, where it is gone through, and what comes of that.

use super::super::covered::Covered;
use super::super::leaving_commits::LeavingCommit;
use super::super::outcome::{Data, Effects, Parts};
use super::super::own_work::OwnCommit;
use super::super::undo_preconditions;
use crate::compensation::{Saga, Sink};
use crate::outside_change::OutsideChange;
use ic_base::{Result, Seq};
use ic_journal::{Course, Force, Layer as Name, RollbackRecord, Step};
use ic_kernel::Kernel;
use ic_store::Snapshot;
use ic_worktree::shot::Shot;
use ic_worktree::{Report, Settings, Watch};
use serde_json::Value;

/// A layer, or what of it lies outside of the ledger.
pub(crate) trait Layer {
    /// Goes through it one way. What happened is added to `work`; what the step is remembered with is returned.
    ///
    /// Errors: what refuses it, or keeps it from its end; `work.has_changed` says whether anything was changed by then.
    fn go(&self, site: &mut Site<'_, '_>, step: &Step, course: Course, work: &mut Work) -> Result<Value>;
}

/// Where a layer is gone through, and by whom.
pub(crate) struct Site<'s, 'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) settings: &'k Settings,
    pub(crate) covered: &'s Covered,
    /// Which refusals this call passes.
    pub(crate) force: Force,
    /// The owner of the run; `None`: nothing is changed.
    pub(crate) saga: Option<&'s Saga<'k>>,
    /// The plan that the caller insists on.
    pub(crate) seen: Option<&'s Parts>,
    /// Who is told of each effect as it is undone.
    pub(crate) sink: Option<&'s mut dyn Sink>,
    pub(crate) watch: &'s Watch,
}

impl<'s, 'k> Site<'s, 'k> {
    /// Where nothing is changed.
    pub(crate) fn to_look(
        kernel: &'k Kernel,
        settings: &'k Settings,
        covered: &'s Covered,
        watch: &'s Watch,
    ) -> Self {
        let force = Force::default();
        Self { kernel, settings, covered, force, saga: None, seen: None, sink: None, watch }
    }

    /// Where the owner of the run acts.
    pub(crate) fn of_owner(saga: &'s Saga<'k>, covered: &'s Covered, watch: &'s Watch) -> Self {
        Self { saga: Some(saga), ..Self::to_look(saga.kernel, saga.settings, covered, watch) }
    }

    /// Whether it is only looked at.
    pub(crate) fn is_dry(&self) -> bool {
        self.saga.is_none()
    }
}

/// What layers did, or would do.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) effects: Option<Effects>,
    /// The tree as the layer before has left it.
    pub(crate) seen: Option<Shot>,
    /// A report for each restore, in the order in which they were made.
    pub(crate) tree: Vec<Report>,
    /// Files outside of the project that tool calls named.
    pub(crate) outside: Vec<OutsideChange>,
    pub(crate) commits: Option<Vec<LeavingCommit>>,
    pub(crate) own_commits: Option<Vec<OwnCommit>>,
    pub(crate) data: Option<Data>,
    /// Whether anything outside of the ledger is other than it was.
    pub(crate) has_changed: bool,
    /// The event of its end.
    pub(crate) seq: Option<Seq>,
}

impl From<Work> for Parts {
    fn from(mut work: Work) -> Self {
        Self {
            effects: work.effects,
            tree: work.tree.pop(),
            outside: work.outside,
            commits: work.commits,
            own_commits: work.own_commits,
            data: work.data,
            lost: None,
        }
    }
}

/// Whether the layers mean anything of the working tree.
pub(crate) fn has_tree(layers: &[Name]) -> bool {
    layers.contains(&Name::Files) || layers.contains(&Name::Git)
}

/// What a rollback did lies before this event: that with which it was settled, if it was.
pub(crate) fn until(snapshot: &Snapshot<'_>, remembered: &RollbackRecord, course: Course) -> Result<Seq> {
    match course {
        Course::Undo | Course::Reapply => {
            undo_preconditions::settled(snapshot, remembered).map(|event| event.seq)
        }
        Course::Forward | Course::Abort => Ok(Seq::MAX),
    }
}
