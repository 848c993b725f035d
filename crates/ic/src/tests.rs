//! What is written from the code and must not drift from it: `docs/CLI.md`, `docs/schemas/`, `docs/errors/`, `plugins/`.
//!
//! `IC_UPDATE=1 cargo test -p ic --lib` writes the generated ones.

mod circles;
mod errors;
mod files;
mod hints;
mod manual;
mod named;
mod names;
mod plugins;
mod schemas;
mod verbs;
mod words;
