//! The layers that a rollback goes through, each with one step in its journal.
//!
//! A preview and the deed are one code: a layer that is given no owner of the run says what it would do, and changes nothing. Every layer
//! can be gone through again after its process died: what is done already is left alone, and told of all the same.

mod effects;
mod rows;
mod run;
mod tree;

use ic_base::{Result, Seq};
use ic_journal::{Course, Force, Layer as Name, RollbackRecord, Step, StepKind};
use ic_kernel::Kernel;
use ic_store::Snapshot;
use ic_worktree::{Report, Settings, Watch};
use serde_json::Value;

use super::covered::Covered;
use super::leaving_commits::LeavingCommit;
use super::outcome::{Data, Effects, Parts};
use super::own_work::OwnCommit;
use super::undo_preconditions;
use crate::compensation::{Saga, Sink};

pub(super) use effects::plan as plan_effects;
pub use rows::has_mark;
pub(super) use rows::{decided_by_force, rows_that_stay};
pub(super) use run::end_of_undo;
pub(super) use tree::require_own;

/// A layer, or what of it lies outside of the ledger.
pub(super) trait Layer {
    /// Goes through it one way. What happened is added to `work`; what the step is remembered with is returned.
    ///
    /// Errors: what refuses it, or keeps it from its end; `work.has_changed` says whether anything was changed by then.
    fn go(&self, site: &mut Site<'_, '_>, step: &Step, course: Course, work: &mut Work) -> Result<Value>;
}

/// The layer of a step.
pub(super) fn of(kind: StepKind) -> &'static dyn Layer {
    match kind {
        StepKind::Effects => &effects::Outside,
        StepKind::Tree => &tree::Tree,
        StepKind::Data => &rows::Rows,
        StepKind::Settle => &run::Record,
    }
}

/// The steps of a rollback over these layers, in the order of going forward: effects first, because the programs that undo them lie in the
/// tree; the run last, because what it says must be so by then.
pub(super) fn kinds(layers: &[Name]) -> Vec<StepKind> {
    let has = |kind: &StepKind| match kind {
        StepKind::Effects => layers.contains(&Name::Effects),
        StepKind::Tree => has_tree(layers),
        StepKind::Data => layers.contains(&Name::Data),
        StepKind::Settle => true,
    };
    [StepKind::Effects, StepKind::Tree, StepKind::Data, StepKind::Settle].into_iter().filter(has).collect()
}

/// Whether the layers mean anything of the working tree.
pub(super) fn has_tree(layers: &[Name]) -> bool {
    layers.contains(&Name::Files) || layers.contains(&Name::Git)
}

/// Where a layer is gone through, and by whom.
pub(super) struct Site<'s, 'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) settings: &'k Settings,
    pub(super) covered: &'s Covered,
    /// Which refusals this call passes.
    pub(super) force: Force,
    /// The owner of the run; `None`: nothing is changed.
    pub(super) saga: Option<&'s Saga<'k>>,
    /// The plan that the caller insists on.
    pub(super) seen: Option<&'s Parts>,
    /// Who is told of each effect as it is undone.
    pub(super) sink: Option<&'s mut dyn Sink>,
    pub(super) watch: &'s Watch,
}

impl<'s, 'k> Site<'s, 'k> {
    /// Where nothing is changed.
    pub(super) fn to_look(
        kernel: &'k Kernel,
        settings: &'k Settings,
        covered: &'s Covered,
        watch: &'s Watch,
    ) -> Self {
        let force = Force::default();
        Self { kernel, settings, covered, force, saga: None, seen: None, sink: None, watch }
    }

    /// Where the owner of the run acts.
    pub(super) fn of_owner(saga: &'s Saga<'k>, covered: &'s Covered, watch: &'s Watch) -> Self {
        Self { saga: Some(saga), ..Self::to_look(saga.kernel, saga.settings, covered, watch) }
    }

    /// Whether it is only looked at.
    pub(super) fn is_dry(&self) -> bool {
        self.saga.is_none()
    }
}

/// What layers did, or would do.
#[derive(Default)]
pub(super) struct Work {
    pub(super) effects: Option<Effects>,
    /// A report for each restore, in the order in which they were made.
    pub(super) tree: Vec<Report>,
    pub(super) commits: Option<Vec<LeavingCommit>>,
    pub(super) own_commits: Option<Vec<OwnCommit>>,
    pub(super) data: Option<Data>,
    /// Whether anything outside of the ledger is other than it was.
    pub(super) has_changed: bool,
    /// The event of its end.
    pub(super) seq: Option<Seq>,
}

impl From<Work> for Parts {
    fn from(mut work: Work) -> Self {
        Self {
            effects: work.effects,
            tree: work.tree.pop(),
            commits: work.commits,
            own_commits: work.own_commits,
            data: work.data,
        }
    }
}

/// What a rollback did lies before this event: that with which it was settled, if it was.
pub(super) fn until(snapshot: &Snapshot<'_>, remembered: &RollbackRecord, course: Course) -> Result<Seq> {
    match course {
        Course::Undo | Course::Reapply => {
            undo_preconditions::settled(snapshot, remembered).map(|event| event.seq)
        }
        Course::Forward | Course::Abort => Ok(Seq::MAX),
    }
}
