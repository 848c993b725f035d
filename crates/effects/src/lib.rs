//! Compensations: actions that undo outside effects, registered before the action and run in reverse (seed 004).
//!
//! What undoes a step outlives the program that ran it: it is a row ([`compensation`]) with an [`action::EffectAction`] that
//! [`undo`] carries out.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod action;
pub mod child;
pub mod compensation;
pub mod coverage;
mod description;
pub mod order;
pub mod tail;
pub mod undo;

pub use action::EffectAction;
pub use compensation::{Compensation, CompensationState};
