//! Forks: linked work trees in which work goes on apart, to be adopted into this one or dropped.
//!
//! ```text
//!   ic fork ──▶ UNFINISHED ── its files are there, and captured ──▶ FORK ── ic drop ──▶ gone
//!                    └────────────────── ic drop ──────────────────────────────────────▶ gone
//! ```
//!
//! A file in git's directory of the work tree says that it is a fork, and names the checkpoint with which it began: what it became since then
//! can be adopted. It is written last, and goes with the work tree. Work trees that people made have none, so no command here touches them.

mod adoption;
mod creation;
mod fork;
mod looks;
mod removal;

pub use adoption::{Adoption, adopt, sweep};
pub use creation::make;
pub(crate) use fork::name_at;
pub use fork::{Fork, find, free_name, of_here, require_finished};
pub use removal::{DroppedFork, finish_removal, remove};
