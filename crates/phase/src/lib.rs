//! Runs, their chains of phases, gates and skips. Owns `runs` and `run_skips`.
//!
//! [`chain`], [`gate`] and [`machine`] are pure; [`run`] and [`skip`] read and write the two tables.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod chain;
pub mod gate;
pub mod machine;
pub mod resolve;
pub mod run;
pub mod skip;

pub use chain::Chain;
pub use run::{Run, RunStatus};
