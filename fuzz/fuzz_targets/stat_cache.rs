//! The stat cache's file, torn or damaged: it is read or not believed, and a record that is read is written the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ic_checkpoint::capture::fuzz::stat_cache(bytes));
