//! The append-only, hash-chained total order of everything that happened. Owns `events`, `event_head`, `event_cursors`.
//!
//! Append-only is held three ways: triggers in the database, no code that writes events but [`append`] (and
//! [`redact`], visibly), and a SHA-256 chain that [`verify`] walks.

mod append;
mod chain;
pub mod cursor;
mod cut;
mod event;
pub mod history;
mod list;
mod redact;
mod verify;

pub use crate::hash::{Hash, hex, parse_hex};
pub use append::{NewEvent, append};
pub use cut::Cut;
pub use event::{Event, EventSource, EventType};
pub use list::{
    EventFilter, author, before_newest, each_before, each_crossing_newest_first, each_of_run, each_since, entered, get,
    head,
};
pub use redact::redact;
pub use verify::{ChainReport, ExpectedHead, verify};

#[cfg(test)]
mod tests;
