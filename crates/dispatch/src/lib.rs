//! Work handed to agents. Owns `dispatches`, `dispatch_commits` and `dispatch_files`.
//!
//! [`status`], [`report`] and [`revert`] are pure; [`dispatch`], [`code`] and [`cancel`] read and write the tables, [`token_totals`]
//! sums them up. [`process`] recognises and ends a process, [`worker`] tells whether the one of a dispatch lives.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod cancel;
pub mod code;
pub mod dispatch;
pub mod process;
pub mod report;
pub mod revert;
pub mod status;
pub mod token_totals;
pub mod worker;

pub use cancel::cancel_by_phases;
pub use dispatch::Dispatch;
pub use status::{DispatchStatus, WorkVerdict};
