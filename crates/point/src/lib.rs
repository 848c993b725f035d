//! Points: what a reference to one means, and where it lies.
//!
//! `created`, `phase:P`, `step:NAME` (or `step:NAME#2`), `dispatch:ID`, `prompt:ID`, `guard:ID`, `checkpoint:ID`; without a prefix, the end
//! of an id.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod beside;
mod elsewhere;
mod idle;
mod list;
pub mod log;
mod meant;
mod outside;
mod own;
mod place;
mod until;

pub use beside::{Beside, beside};
pub use elsewhere::elsewhere;
pub use ic_phase::resolve::moved_from;
pub use idle::{has_changed, is_idle, is_of_idle};
pub use list::{Listed, list};
pub use meant::{
    Meant, checkpoint_meant, checkpoint_named, earlier, last, meant, named_by_a_flag, only_sessions,
    run_here, run_or_newest,
};
pub use outside::{Outside, others_open, prompts_outside};
pub use place::{Goal, Place, checkpoint_at, place_of, reference, resolve, taken_back_by, work_of};
