//! What is written from the code and must not drift from it: `docs/CLI.md`, `docs/schemas/`, `docs/errors/`, `plugins/`.
//!
//! `IC_UPDATE=1 cargo test -p ic --lib` writes the generated ones.

mod banned_phrases;
mod circles;
mod clients;
mod command_path;
mod errors;
mod files;
mod hints;
mod manual;
mod names;
mod plugins;
mod schemas;
mod verbs;
