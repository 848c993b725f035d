//! Writing the files of a plan, on every core: most of what a file takes are its pack, which is opened, and the disk.

use std::sync::atomic::Ordering::Relaxed;

use ic_base::Diagnosis;
use rayon::prelude::*;

use super::super::plan::{RestoreNode, RestorePlan, RestoreStep};
use super::{Applier, ApplyProgress, pass};
use crate::pool;
use crate::rootfs::{EntryState, MAKE};

/// Writes each file of the plan that did not fail before, and each link.
pub(super) fn write(
    applier: &Applier<'_>,
    plan: &RestorePlan,
    failed: &mut [Option<Diagnosis>],
    progress: &ApplyProgress,
) {
    let write = |step: &RestoreStep| {
        let result = applier.write(step);
        progress.done.fetch_add(1, Relaxed);
        result
    };
    let files = plan.steps.iter().filter(|step| matches!(step.after, Some(RestoreNode::File { .. }))).count();
    if files < 2 || opens_any_up(plan) {
        return pass(plan, failed, false, &write);
    }
    let write_beside_others = |(step, failed): (&RestoreStep, &mut Option<Diagnosis>)| {
        // `true` lets a file that has other names wait until all threads are done.
        if failed.is_some() || applier.is_known_elsewhere(step) {
            return failed.is_none();
        }
        *failed = write(step).err();
        false
    };
    let steps = plan.steps.par_iter().zip(failed.par_iter_mut());
    let waits: Vec<bool> = pool::run(|| steps.map(write_beside_others).collect());
    for ((step, failed), _) in plan.steps.iter().zip(failed).zip(waits).filter(|(_, waits)| *waits) {
        *failed = write(step).err();
    }
}

/// Whether a directory is opened up while something is written into it. Then files are written one after the other: a second thread could
/// find the directory closed again.
fn opens_any_up(plan: &RestorePlan) -> bool {
    let is_closed = |node: &RestoreNode| matches!(node, RestoreNode::Directory { mode, .. } if mode & MAKE != MAKE);
    let is_any = |step: &RestoreStep| [&step.before, &step.after].into_iter().flatten().any(is_closed);
    !plan.closed.is_empty() || plan.steps.iter().any(is_any)
}

impl Applier<'_> {
    /// Whether the file that stands there has other names: each of them that changes changes its inode, and to close one ends the locks on
    /// all.
    fn is_known_elsewhere(&self, step: &RestoreStep) -> bool {
        matches!(self.root.state(&step.path.0), Ok(EntryState::File(stat)) if stat.names > 1)
    }
}
