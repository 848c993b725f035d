//! The page of `ic ui`: runs, points and rollbacks to look at, and their undo.
//!
//! A skin: what it shows is read by the owners' readers, what it does is done by [`ic_rollback`] as `ic undo` and `ic redo` do it. It has
//! no SQL, no rule and no plan of its own. Every request opens the ledger anew, on a thread that may block, so the page never holds anybody
//! up and shows what is so now.
//!
//! Trust: who has the key that the address carries may do what the user of the terminal may. Everything else is hostile: other programs
//! and users of this machine, other pages in the same browser, and every text that the ledger holds (`door.rs` and `text.rs`).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod acts;
mod app;
mod ask;
mod assets;
mod changes;
mod compare;
mod dispatch;
mod door;
mod events;
mod fail;
mod flags;
mod headers;
mod image;
mod layout;
mod lines;
mod listener;
mod named;
mod news;
mod params;
mod plan;
mod point;
mod project;
mod rollback;
mod routes;
mod run;
mod runs;
mod search;
mod server;
mod text;
mod timeline;
mod undo;

pub use project::Project;
pub use server::{Address, Options, serve};
