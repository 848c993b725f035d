//! What a layer is, the site on which it is executed, and what it did.

use super::super::coverage::Covered;
use super::super::dispatch_changes::OwnCommit;
use super::super::leaving_commits::LeavingCommit;
use super::super::outcome::{Data, Effects, Parts};
use super::super::undo_preconditions;
use crate::compensation::{Saga, Sink};
use crate::outside_change::OutsideChange;
use ic_base::{Result, Seq};
use ic_kernel::Kernel;
use ic_kernel::journal::{Course, Force, LayerName as Name, RollbackRecord, RollbackStep, StepDetail};
use ic_ledger::Snapshot;
use ic_worktree::capture::Shot;
use ic_worktree::{CaptureSettings, RestoreReport, RestoreWatch};

/// A layer of a rollback, as far as it lies outside of the ledger.
pub(crate) trait LayerDriver {
    /// Executes the step in the direction of the site. What happened is added to `work`; the detail that the journal keeps of the step is returned.
    ///
    /// Errors: what refuses the step or stops it in the middle; `work.has_changed` says whether anything was changed by then.
    fn go(&self, site: &mut Site<'_, '_>, step: &RollbackStep, work: &mut LayerWork) -> Result<StepDetail>;
}

/// The place in which a layer is executed, and on whose behalf.
pub(crate) struct Site<'s, 'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) settings: &'k CaptureSettings,
    pub(crate) covered: &'s Covered,
    /// The direction in which the step is executed.
    pub(crate) course: Course,
    /// The refusals that this call passes.
    pub(crate) force: Force,
    /// The owner of the run; `None`: nothing is changed.
    pub(crate) saga: Option<&'s Saga<'k>>,
    /// The plan that the caller insists on.
    pub(crate) seen: Option<&'s Parts>,
    /// Learns when the undo of each effect begins and ends.
    pub(crate) sink: Option<&'s mut dyn Sink>,
    pub(crate) watch: &'s RestoreWatch,
}

impl<'s, 'k> Site<'s, 'k> {
    /// A site on which nothing is changed.
    pub(crate) fn to_look(
        kernel: &'k Kernel,
        settings: &'k CaptureSettings,
        covered: &'s Covered,
        course: Course,
        watch: &'s RestoreWatch,
    ) -> Self {
        let force = Force::default();
        Self { kernel, settings, covered, course, force, saga: None, seen: None, sink: None, watch }
    }

    /// A site on which the owner of the run acts.
    pub(crate) fn of_owner(saga: &'s Saga<'k>, covered: &'s Covered, course: Course, watch: &'s RestoreWatch) -> Self {
        Self { saga: Some(saga), ..Self::to_look(saga.kernel, saga.settings, covered, course, watch) }
    }

    /// Whether nothing is to be changed.
    pub(crate) fn is_dry(&self) -> bool {
        self.saga.is_none()
    }
}

/// What layers did, or would do.
#[derive(Default)]
pub(crate) struct LayerWork {
    pub(crate) effects: Option<Effects>,
    /// The capture of the tree with which the layer before ended.
    pub(crate) seen: Option<Shot>,
    /// A report for each restore, in the order in which they were made.
    pub(crate) tree: Vec<RestoreReport>,
    /// Files outside of the project that tool calls named.
    pub(crate) outside: Vec<OutsideChange>,
    pub(crate) commits: Option<Vec<LeavingCommit>>,
    pub(crate) own_commits: Option<Vec<OwnCommit>>,
    pub(crate) data: Option<Data>,
    /// Whether anything outside of the ledger was changed.
    pub(crate) has_changed: bool,
    /// The event that ended it.
    pub(crate) seq: Option<Seq>,
}

impl From<LayerWork> for Parts {
    fn from(mut work: LayerWork) -> Self {
        Self {
            effects: work.effects,
            // Going forward makes one restore. An undo or abort makes several, and reports them by itself.
            tree: work.tree.pop(),
            outside: work.outside,
            commits: work.commits,
            own_commits: work.own_commits,
            data: work.data,
            lost: None,
        }
    }
}

/// Whether the layers cover anything of the working tree.
pub(crate) fn has_tree(layers: &[Name]) -> bool {
    layers.contains(&Name::Files) || layers.contains(&Name::Git)
}

/// The event before which everything lies that a rollback did: the event that settled it, or else the greatest number.
pub(crate) fn until(snapshot: &Snapshot<'_>, remembered: &RollbackRecord, course: Course) -> Result<Seq> {
    match course {
        // What came after the settlement belongs to the undo itself or to others. A rollback that never settled has no
        // such event.
        Course::Undo | Course::Reapply => undo_preconditions::settled(snapshot, remembered).map(|event| event.seq),
        Course::Forward | Course::Abort => Ok(Seq::MAX),
    }
}
