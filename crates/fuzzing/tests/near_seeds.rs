//! What lies near the seeds in `fuzz/seeds`: a fuzzer's work for a second, without a fuzzer. `IC_TEST_LONG=1` goes on for longer.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ic_testkit::{Random, tell, time};

/// Tries the seeds of a target as they are, then what chance makes of them.
fn near_seeds(target: &str, holds: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut seeds: Vec<Vec<u8>> = match fs::read_dir(&directory) {
        Ok(files) => files.map(|file| fs::read(file.expect("a seed").path()).expect("a seed")).collect(),
        Err(_) => Vec::new(),
    };
    seeds.sort_unstable();
    for seed in &seeds {
        holds(seed);
    }
    seeds.push(Vec::new());
    let mut random = Random::seeded();
    let until = Instant::now() + time(Duration::from_secs(1));
    let mut tried = 0_u64;
    while Instant::now() < until {
        let bytes = changed(&seeds, &mut random);
        // So that a failure shows its input.
        let shown = Shown(&bytes);
        holds(&bytes);
        std::mem::forget(shown);
        tried += 1;
    }
    tell(&format!("{tried} inputs"));
    assert!(tried > 10, "{target}: only {tried} inputs");
}

/// A seed with a few changes: bytes turned, taken out, put in, doubled, or those of another seed.
fn changed(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.place_in(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.place_in(bytes.len() + 1);
        let end = (at + random.place_in(40)).min(bytes.len());
        match random.below(6) {
            0 => bytes.splice(at..end, []).for_each(drop),
            1 => bytes.insert(at, u8::try_from(random.below(256)).expect("a byte")),
            2 => bytes.splice(at..at, b"\"{}[]:,-\n\t\\\0/.0123456789"[random.place_in(24)..].to_vec()).for_each(drop),
            3 => {
                let twice = bytes[at..end].to_vec();
                bytes.splice(at..at, twice).for_each(drop);
            }
            4 => {
                let other = &seeds[random.place_in(seeds.len())];
                let from = random.place_in(other.len() + 1);
                let piece = other[from..(from + random.place_in(80)).min(other.len())].to_vec();
                bytes.splice(at..end, piece).for_each(drop);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    bytes
}

/// Prints what it holds if it is dropped: when what was tried has panicked.
struct Shown<'b>(&'b [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        println!("the input: {:?}", String::from_utf8_lossy(self.0));
        println!("its bytes: {:?}", self.0);
    }
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            near_seeds(stringify!($target), ic_fuzzing::$target);
        })*
    };
}

targets! { arguments config manifest objects report tree workflow }
