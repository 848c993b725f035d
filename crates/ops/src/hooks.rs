//! What the hooks of a coding agent record: a prompt is a dispatch that ends when the agent stops, and work that was undone goes no
//! further.
//!
//! ```text
//!   prompt ──▶ RUNNING ── stop ──▶ (completed)          a rollback at any time: its calls are refused until the next prompt
//!                 └── next prompt ──▶ (cancelled: interrupted)
//! ```
//!
//! The tree is looked at before the transaction that begins or ends a prompt. A repeated hook (a client that has two installations of it)
//! finds what the first one recorded.

pub mod calls;
mod commits;
pub mod guard;
mod hold;
mod prompts;
mod queued;
mod sessions;
pub mod subagents;
mod teller;
mod told;
mod undone;

pub use hold::hold;
pub use prompts::{Asked, Recorded, prompt};
pub use sessions::{attach, calling, end, is_begun_by, project_of, situation, stop};
pub use teller::{Counted, Teller};
pub use undone::{command, news, refusal};
