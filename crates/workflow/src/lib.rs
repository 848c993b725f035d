//! Workflows: definitions, and the executor that runs their steps over the ledger (seed 000).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod begin;
mod begun_rollback;
pub mod definition;
mod dependents;
mod executor;
mod flow;
pub mod graph;
mod job;
mod options;
mod permission;
mod point;
mod preview;
mod redact;
mod report;
mod settle;
mod show;
pub mod table;
mod workflow_rollback;

pub use begin::{
    WorkflowSetup, is_rolling_back, is_rolling_back_a_failure, last, plan, require_startable, resume, rollback, run,
};
pub use definition::Definition;
pub use dependents::ABOVE;
pub use flow::WorkflowUi;
pub use options::{Overrides, check};
pub use point::{WorkflowPoint, point, points};
pub use preview::{WorkflowPlan, WorkflowPreview, Would, preview};
pub use redact::redact;
pub use report::{EffectUndone, Restored, StepReport, UndoneSteps, WorkflowRunReport, WorkflowStatus};
pub use show::{show, unfinished};
