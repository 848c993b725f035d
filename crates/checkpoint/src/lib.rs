//! Snapshots of a project's working tree and of git's state beside it: captured cheaply, restored exactly.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod attributes;
mod caches;
pub mod capture;
pub mod diff;
pub mod git;
pub mod graft;
mod limit;
pub mod lock;
pub mod manifest;
mod names;
pub mod nested_work_trees;
pub mod objects;
pub mod outside_state;
mod pool;
pub mod record;
pub mod restore;
pub mod retention;
pub mod rootfs;
pub mod scratch;
pub mod tree;
pub mod unified_diff;
mod unreadable_files;
