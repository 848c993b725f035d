//! See crates/fuzzing/src/config.rs.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ic_fuzzing::config(bytes));
