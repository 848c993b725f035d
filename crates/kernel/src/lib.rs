//! A project, opened: its ledger, its configuration, the clock and ids, and on whose behalf a call writes.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod closed_run;
pub mod config;
mod dependents;
mod home;
mod idle_runs;
pub mod journal;
mod kernel;
mod own_actor;
pub mod owner;

pub use dependents::{Above, StepLeft};
pub use home::require_own_project;
pub use idle_runs::standing;
pub use kernel::{Caller, Kernel};
