//! The layers that a rollback goes through, each with one step in its journal.
//!
//! A preview and the rollback itself are one code: a layer that is given no owner of the run says what it would do, and changes nothing.
//! Every layer can be executed again after its process died: what is done already is left alone, and reported anyway.

mod effects;
mod layer;
mod rows;
mod run;
mod tree;

use ic_kernel::journal::{LayerName as Name, StepKind};

pub(super) use effects::plan as plan_effects;
pub(super) use layer::{LayerDriver, LayerWork, Site, has_tree, until};
pub use rows::has_mark;
pub(super) use rows::{decided_by_force, rows_that_stay};
pub(super) use run::end_of_undo;
pub(super) use tree::{detail_of_skipped, require_own};

/// The layer of a step.
pub(super) fn of(kind: StepKind) -> &'static dyn LayerDriver {
    match kind {
        StepKind::Effects => &effects::EffectsLayer,
        StepKind::Tree => &tree::TreeLayer,
        StepKind::Data => &rows::RowsLayer,
        StepKind::Settle => &run::RunLayer,
    }
}

/// The steps of a rollback over these layers, in the order of going forward. Effects come first, because the programs that undo them are in
/// the tree. The run comes last, because its record must not say more than was done.
pub(super) fn kinds(layers: &[Name]) -> Vec<StepKind> {
    let has = |kind: &StepKind| match kind {
        StepKind::Effects => layers.contains(&Name::Effects),
        StepKind::Tree => has_tree(layers),
        StepKind::Data => layers.contains(&Name::Data),
        StepKind::Settle => true,
    };
    [StepKind::Effects, StepKind::Tree, StepKind::Data, StepKind::Settle].into_iter().filter(has).collect()
}
