//! What the operating system and the C library of SQLite's vectors do for us. Unsafe code stands here, in small modules with tests of
//! their own, and in no other crate.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod closed_streams;
pub mod directory_sync;
pub mod foreground;
pub mod lease;
pub mod vec0;
