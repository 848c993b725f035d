//! The Model Context Protocol: what an agent can ask of `ic`, and how it is answered.
//!
//! A tool is a command of the command line under a name that an agent understands: its arguments become the command's words, the command's
//! own parser reads them, and what the command prints as JSON is the answer. So there is no rule, no plan and no shape of its own here. What
//! is here: the catalogue of tools, the two steps of what takes work back, and the protocol in both of its eras, by `rmcp`.
//!
//! Calls are made one after the other, each as a process of the command line would make it: it opens the ledger anew, so that two servers and
//! the command line can work on one ledger at once. A call that fails is an answer; only a client that goes away, or a signal, ends the server.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod answer;
mod ask;
mod catalogue;
mod commands;
mod inputs;
mod lines;
mod prompts;
mod resources;
mod server;
mod stdio;
mod step;
mod words;

pub use commands::{Commands, Said};
pub use server::serve;
