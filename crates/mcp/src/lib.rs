//! The server of the Model Context Protocol, by which agents call `ic`.
//!
//! A tool is a command of the command line under a name that an agent understands: its arguments become the command's words, the command's
//! own parser reads them, and what the command prints as JSON is the answer. So this crate has no rules, plans or JSON shapes of its own.
//! It has the catalogue of tools, the two steps of undo and redo, and the protocol, older and newer, by `rmcp`.
//!
//! Calls run one after the other. Each opens the ledger anew, as a command does, so that two servers and the command line can work on one
//! ledger at once. A call that fails is an answer; only a client that goes away, or a signal, ends the server.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod answer;
mod catalogue;
mod command_words;
mod commands;
mod elicitation;
mod inputs;
mod lines;
mod prompts;
mod resources;
mod server;
mod stdio;
mod step;

pub use commands::{Commands, Said};
pub use server::serve;
