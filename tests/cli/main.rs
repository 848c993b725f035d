//! The command line as a script sees it: the real binary, a fixed clock and fixed ids, nothing else in the environment.
//!
//! Snapshots are beside these files; `INSTA_UPDATE=always cargo test -p ic --test cli` writes them.

mod agents;
mod artifacts;
mod bad_input;
mod bad_paths;
mod blame;
mod bounds;
mod compensation;
mod completions;
mod config;
mod consumers;
mod cursors;
mod error_pages;
mod forms;
mod found_by_fuzzing;
mod gates;
mod guides;
mod help;
mod hooks_excluded;
mod hooks_hold;
mod hooks_trusted;
mod late;
mod layers;
mod lists;
mod parser;
mod payloads;
mod plans;
mod record;
mod redaction;
mod references;
mod refusals;
mod release;
mod reliability;
mod restored;
mod rollback;
mod seeds;
mod skips;
mod statements;
mod support;
mod tail;
mod tokens;
mod verbs;
mod waits;
mod workflow;
mod worktrees;
