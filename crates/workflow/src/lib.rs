//! Workflows: definitions, and the executor that runs their steps over the ledger (seed 000).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod above;
mod back;
mod begin;
mod begun;
pub mod definition;
mod executor;
mod flow;
pub mod graph;
mod job;
mod may;
mod options;
mod point;
mod preview;
mod redact;
mod report;
mod settle;
mod show;
pub mod table;

pub use above::ABOVE;
pub use begin::{
    Setup, is_rolling_back, is_rolling_back_a_failure, last, plan, require_startable, resume, rollback, run,
};
pub use definition::Definition;
pub use flow::Ui;
pub use options::{Overrides, check};
pub use point::{Point, point, points};
pub use preview::{Plan, Preview, Would, preview};
pub use redact::redact;
pub use report::{EffectUndone, Report, Restored, Status, StepReport, TakenBack};
pub use show::{show, unfinished};
