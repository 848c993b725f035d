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

pub(crate) mod caller;
pub mod calls;
pub(crate) mod commits;
mod first_look;
pub mod guard;
pub mod places;
mod prompts;
mod queued_prompts;
mod sessions;
mod stop_gate;
pub mod subagents;
mod tool_call;
mod uncaptured_files;
mod undone_work;
mod unseen_prompts;

pub use caller::{Counted, Teller};
pub use prompts::{AskedPrompt, RecordedPrompt, prompt};
pub use sessions::{attach, calling, end, is_begun_by, project_of, situation, stop};
pub use stop_gate::hold;
pub use undone_work::{command, news, refusal};
pub use unseen_prompts::go_on;
