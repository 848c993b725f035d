//! What touches more than one owner of tables, in one transaction each. Owns `rollbacks`.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod advance;
pub mod agent;
pub mod artifact;
pub mod checkpoint;
mod closed;
pub mod compensation;
pub mod config;
pub mod consume;
pub mod dispatch;
mod force;
pub mod history;
mod home;
pub mod idle;
mod kernel;
pub mod point;
pub mod redact;
pub mod rewind;
pub mod rollback;
pub mod run;
pub mod status;

pub use force::Force;
pub use kernel::{Caller, Kernel};
