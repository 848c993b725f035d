//! See crates/fuzzing/src/manifest.rs.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ic_fuzzing::manifest(bytes));
