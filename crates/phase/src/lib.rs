//! Runs, their chains of phases, gates, skips and points. Owns `runs`, `run_skips` and `points`.
//!
//! [`chain`], [`gate`] and [`machine`] are pure; [`run`], [`skip`] and [`point`] read and write the tables.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod chain;
pub mod gate;
pub mod machine;
pub mod point;
pub mod run;
pub mod run_reference;
pub mod skip;

pub use chain::Chain;
pub use run::{Run, RunStatus};
