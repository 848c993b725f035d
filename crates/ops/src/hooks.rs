//! What the hooks of a coding agent record: a prompt is a dispatch that ends when the agent stops, and work that was undone goes no
//! further.
//!
//! ```text
//!   prompt ──▶ RUNNING ── stop ──▶ (completed)          a rollback at any time: its calls are refused until the next prompt
//!                 └── next prompt ──▶ (cancelled: interrupted)
//! ```
//!
//! A prompt is recorded before the tree is looked at, and its work begins with that look. Its end is looked at before it is recorded. A repeated hook (a client that has two installations of it)
//! finds what the first one recorded.

pub mod calls;
mod commits;
mod first_look;
pub mod guard;
mod hold;
pub mod places;
mod prompts;
mod queued;
mod sessions;
pub mod subagents;
mod teller;
mod told;
mod uncaptured_files;
mod undone;
mod unseen;

pub use hold::hold;
pub use prompts::{Asked, Recorded, prompt};
pub use sessions::{attach, calling, end, is_begun_by, project_of, situation, stop};
pub use teller::{Counted, Teller};
pub use undone::{command, news, refusal};
pub use unseen::go_on;
