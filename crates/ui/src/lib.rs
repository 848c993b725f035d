//! The page of `ic ui`: shows the timeline of a place, runs, points and rollbacks, and undoes them.
//!
//! It is a thin layer: other crates read what it shows, and [`ic_undo`] does what it does, as for `ic undo` and `ic redo`. It has no
//! SQL, no rules and no plans of its own. Every request opens the ledger anew, on a thread that may block. So the page blocks no other
//! process, and shows the present state.
//!
//! Trust: a person with the key in the address may do what the user of the terminal may. Everything else is hostile: other programs and
//! users of this machine, other pages in the same browser, and every text in the ledger (`door.rs` and `text.rs`).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod acts;
mod app;
mod assets;
mod changes;
mod compare;
mod dispatch;
mod door;
mod event_stream;
mod events;
mod fail;
mod flags;
mod headers;
mod image;
mod layout;
mod lines;
mod listener;
mod log_row;
mod page_request;
mod params;
mod place_log;
mod plan;
mod point;
mod project;
mod rollback;
mod rollback_name;
mod routes;
mod run;
mod runs;
mod search;
mod server;
mod session;
mod text;
mod timeline;
mod undo;

pub use project::ShownProject;
pub use server::{ListenAddress, ServerOptions, serve};
