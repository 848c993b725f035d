//! A project, opened: its ledger, its configuration, the clock and ids, and on whose behalf a call writes.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod above;
pub mod closed;
pub mod config;
mod home;
mod idle;
mod kernel;
pub mod worker;

pub use above::{Above, StepLeft};
pub use home::require_own_project;
pub use idle::is_idle;
pub use kernel::{Caller, Kernel};
