//! The decisions of a call about a workflow, and the options that follow from them, its file and earlier calls.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_kernel::journal::Force;

use crate::definition::{Definition, StepFailurePolicy, Strategy};
use crate::table::WorkflowOptions;

/// The decisions of a call, which override the file and the configuration.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// What a failed step leads to; if it is set, the person is not asked.
    pub on_failure: Option<StepFailurePolicy>,
    /// The part of the tree that a rollback restores.
    pub strategy: Option<Strategy>,
    /// The number of steps that may run at once.
    pub jobs: Option<usize>,
    /// The refusals of a rollback that the caller has decided to pass.
    pub force: Force,
    /// The checkpoint to which a rollback goes, one of [`crate::points`]; `None`: to before the first step.
    pub to: Option<CheckpointId>,
    /// The hash that the plan of the rollback must have, as in [`crate::WorkflowPreview`].
    pub expect_plan: Option<String>,
    /// Set by another thread: processes are ended, and no further step begins.
    pub interrupted: Arc<AtomicBool>,
}

/// Whether a workflow can be started with these decisions. Errors: those of [`crate::run`] before anything begins.
pub fn check(definition: &Definition, overrides: &Overrides) -> Result<()> {
    check_strategy(definition, &options(definition, overrides, None))
}

/// The options of a call; `before`: the options of the call before.
pub(crate) fn options(
    definition: &Definition,
    overrides: &Overrides,
    before: Option<&WorkflowOptions>,
) -> WorkflowOptions {
    // The options on record count before the file: they may be the decision of an earlier call.
    let known = before.map(|before| before.strategy).or(definition.strategy);
    WorkflowOptions {
        on_failure: overrides.on_failure.or(definition.on_failure),
        strategy: overrides.strategy.or(known).unwrap_or(Strategy::Full),
        // With 0 no step would ever start.
        jobs: overrides.jobs.or(before.map(|before| before.jobs)).unwrap_or(1).max(1),
    }
}

/// Errors: `invalid_value` for `partial` where steps may overlap, because such steps are restored together.
pub(crate) fn check_strategy(definition: &Definition, options: &WorkflowOptions) -> Result<()> {
    if options.strategy != Strategy::Partial || options.jobs == 1 {
        return Ok(());
    }
    let Some((a, b)) = crate::graph::StepOrder::of(definition).first_overlap() else { return Ok(()) };
    Err(Diagnosis::new(
        Code::InvalidValue,
        format!(
            "The steps {} and {} may run at once, and are restored together: the strategy partial cannot separate them.",
            definition.steps[a].id, definition.steps[b].id
        ),
    )
    .hint("use another strategy; or run such a workflow with --jobs 1"))
}
