//! What a call decides about a workflow, and what follows from that, its file and what was decided before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_journal::Force;

use crate::definition::{Definition, OnFailure, Strategy};
use crate::table::Options;

/// What a call decides, over what the file and the configuration say.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// What a failed step leads to; then nobody is asked.
    pub on_failure: Option<OnFailure>,
    /// What a rollback restores.
    pub strategy: Option<Strategy>,
    /// How many steps may run at once.
    pub jobs: Option<usize>,
    /// Which refusals of a rollback the caller has decided to pass.
    pub force: Force,
    /// The checkpoint that a rollback goes back to, one of [`crate::points`]; none: to before the first step.
    pub to: Option<CheckpointId>,
    /// What a rollback would do must have this hash, as [`crate::Preview`] has it.
    pub expect_plan: Option<String>,
    /// Set from elsewhere: children are ended, and nothing further begins.
    pub interrupted: Arc<AtomicBool>,
}

/// Whether a workflow can be started like this. Errors: as [`crate::run`] would give before anything begins.
pub fn check(definition: &Definition, overrides: &Overrides) -> Result<()> {
    check_strategy(definition, &options(definition, overrides, None))
}

/// What holds for a call; `before`: what held for the call before.
pub(crate) fn options(definition: &Definition, overrides: &Overrides, before: Option<&Options>) -> Options {
    let known = before.map(|before| before.strategy).or(definition.strategy);
    Options {
        on_failure: overrides.on_failure.or(definition.on_failure),
        strategy: overrides.strategy.or(known).unwrap_or(Strategy::Full),
        jobs: overrides.jobs.or(before.map(|before| before.jobs)).unwrap_or(1).max(1),
    }
}

/// Errors: `invalid_value` for `partial` where steps may overlap: they are restored together.
pub(crate) fn check_strategy(definition: &Definition, options: &Options) -> Result<()> {
    if options.strategy != Strategy::Partial || options.jobs == 1 {
        return Ok(());
    }
    let Some((a, b)) = crate::graph::Plan::of(definition).first_overlap() else { return Ok(()) };
    Err(Diagnosis::new(
        Code::InvalidValue,
        format!(
            "The steps {} and {} may run at once, and are restored together: the strategy partial cannot separate them.",
            definition.steps[a].id, definition.steps[b].id
        ),
    )
    .hint("use another strategy; or run such a workflow with --jobs 1"))
}
