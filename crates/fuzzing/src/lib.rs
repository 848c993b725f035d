//! What must hold for any bytes at all, of whatever parses bytes that this program did not write or that a disk may have damaged.
//!
//! `fuzz/` hands these functions what a fuzzer finds; the test here, what lies near its seeds. Each panics where something does not
//! hold. Tests only.

#![allow(
    clippy::missing_panics_doc,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "panicking is what they are for, and numbers are made by chance"
)]

mod arguments;
mod config;
mod manifest;
mod objects;
mod report;
mod tree;
mod workflow;

pub use arguments::arguments;
pub use config::config;
pub use manifest::manifest;
pub use objects::objects;
pub use report::report;
pub use tree::tree;
pub use workflow::workflow;
