//! What campaigns (crashes, damage, crowds) share: how long they run, what they came to, and chance that can be repeated.

use std::env::{current_exe, var, var_os};
use std::fs::OpenOptions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::time::{Duration, Instant};

/// Whether campaigns run at length: `IC_TEST_LONG=1`.
pub fn long() -> bool {
    var_os("IC_TEST_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

/// How long a campaign of chance goes on: `short`, or at length 40 seconds (`IC_TEST_SECONDS`).
///
/// # Panics
/// If `IC_TEST_SECONDS` is not a number.
pub fn time(short: Duration) -> Duration {
    if !long() {
        return short;
    }
    Duration::from_secs(var("IC_TEST_SECONDS").map_or(40, |text| text.parse().expect("IC_TEST_SECONDS is a number")))
}

/// The rounds of a campaign, numbered from 0: `short` of them, and at length as many as fit into its [`time`], but no fewer. At
/// length it tells at its end how many there were.
pub fn rounds(short: usize) -> Rounds {
    Rounds { next: 0, short, started: Instant::now(), time: time(Duration::ZERO) }
}

/// See [`rounds`].
#[derive(Debug)]
pub struct Rounds {
    next: usize,
    short: usize,
    started: Instant,
    time: Duration,
}

impl Iterator for Rounds {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let fits = self.started.elapsed() < self.time;
        (self.next < self.short || fits).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if !self.time.is_zero() && !std::thread::panicking() {
            tell(&format!("{} rounds in {} s", self.next, self.started.elapsed().as_secs()));
        }
    }
}

/// How many cases a property is tried with: `short`, or at length `long`.
pub fn cases(short: u32, long: u32) -> u32 {
    if !self::long() {
        return short;
    }
    tell(&format!("{long} cases"));
    long
}

/// Says what a campaign came to: in the output of the test, and in the file `IC_TEST_FIGURES` under the test's name.
///
/// # Panics
/// If that file cannot be written.
pub fn tell(figures: &str) {
    println!("{figures}");
    let Some(path) = var_os("IC_TEST_FIGURES") else { return };
    let binary = current_exe().expect("the test's program");
    let stem = binary.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let binary = stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name);
    let thread = std::thread::current();
    let line = format!("{binary} {}\t{figures}\n", thread.name().unwrap_or("?"));
    // One write, because other tests append to the same file at the same time.
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("write IC_TEST_FIGURES");
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
        Self::of(seed)
    }

    /// A generator that begins at this seed.
    pub fn of(seed: u64) -> Self {
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
