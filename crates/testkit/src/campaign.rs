//! What campaigns (crashes, damage, crowds) share: how long they run, and chance that can be repeated.

use std::env::var_os;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Whether campaigns run at length: `IC_TEST_LONG=1`.
pub fn long() -> bool {
    var_os("IC_TEST_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

/// A small generator (xorshift64) whose seed is printed, so that a campaign can be repeated.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that begins at `IC_TEST_SEED`, else anywhere.
    ///
    /// # Panics
    /// If `IC_TEST_SEED` is not a number: a campaign that was to be repeated must not run with another seed.
    pub fn seeded() -> Self {
        let seed = match var_os("IC_TEST_SEED") {
            Some(text) => text.to_str().and_then(|t| t.parse().ok()).expect("IC_TEST_SEED is a number"),
            None => RandomState::new().build_hasher().finish(),
        };
        println!("IC_TEST_SEED={seed}");
        // Xorshift stays at 0 for ever.
        Self((seed ^ 0x9E37_79B9_7F4A_7C15).max(1))
    }

    /// Any number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }

    /// Any place in something of this length.
    ///
    /// # Panics
    /// Never: a length fits into 64 bits, and what is below it into a length.
    pub fn place_in(&mut self, length: usize) -> usize {
        let limit = u64::try_from(length).expect("a length fits into 64 bits");
        usize::try_from(self.below(limit)).expect("what is below a length is one")
    }
}
