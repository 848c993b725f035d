//! What the operating system and the C library of SQLite's vectors do for us. Unsafe code stands here, in small modules with tests of
//! their own, and in no other crate.
//!
//! What only Linux or macOS has stands beside a portable way, which is taken on every other system, and everywhere with the feature
//! `portable`: so the portable ways are tested on Linux. `build.rs` chooses.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod closed_streams;
pub mod descent;
pub mod directory_sync;
pub mod file_systems;
pub mod foreground;
pub mod handle;
pub mod lease;
pub mod memory_file;
pub mod memory_maps;
pub mod open_files;
pub mod processes;
pub mod signals;
pub mod stat;
pub mod vec0;
