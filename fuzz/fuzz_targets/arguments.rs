//! See crates/fuzzing/src/arguments.rs.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ic_fuzzing::arguments(bytes));
