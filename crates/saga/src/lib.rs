//! Compensations: actions that undo outside effects, registered before the action and run in reverse (seed 004).
//!
//! [`registry`] is the seed's own API, for compensations that live in the memory of one program. What must outlive the
//! program is a row ([`compensation`]) with an [`action::Action`] that [`undo`] carries out. [`order`] and [`coverage`] serve
//! both.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod action;
pub mod child;
pub mod compensation;
pub mod coverage;
pub mod order;
pub mod owner;
pub mod process;
pub mod registry;
pub mod tail;
pub mod undo;

pub use action::Action;
pub use compensation::{Compensation, State};
