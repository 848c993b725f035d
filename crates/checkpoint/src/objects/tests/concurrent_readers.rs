//! Reading while another process writes packs anew or removes them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ic_base::Timestamp;
use ic_ledger::OpenOptions;
use ic_ledger::events::Hash;

use super::{noise, store};
use crate::objects::{Objects, PIECE};

/// Keeps contents in one pack.
fn keep(objects: &Objects, contents: &[Vec<u8>]) -> Vec<Hash> {
    let writer = objects.writer(Timestamp(1)).unwrap();
    let names = contents.iter().map(|bytes| writer.put_reader(&mut bytes.as_slice()).unwrap().0).collect();
    writer.finish().unwrap();
    names
}

/// So much goes of a pack that it is written anew: what is kept lies elsewhere in it from then on.
fn sweep_all_but(objects: &Objects, live: &[Hash]) {
    let live: HashSet<Hash> = live.iter().copied().collect();
    assert!(objects.sweep(&live, Timestamp(i64::MAX)).unwrap().objects > 0);
}

#[test]
fn a_pack_that_was_written_anew_under_its_number_is_read_as_it_is_now() {
    let (_dir, reader) = store();
    let sweeper = Objects::open(reader.path(), OpenOptions::default()).unwrap();
    let large = noise(PIECE + 1_000, 9);
    let contents = [noise(40_000, 1), noise(3_000, 2), noise(30_000, 3), large, noise(2_000, 4)];
    let names = keep(&sweeper, &contents);
    // The reader remembers the packs.
    for (name, bytes) in names.iter().zip(&contents) {
        assert!(reader.read(name).unwrap() == *bytes);
    }
    let mut kept = reader.pieces(&names[3]).unwrap();
    kept.extend([names[1], names[3], names[4]]);
    sweep_all_but(&sweeper, &kept);
    for at in [1, 3, 4] {
        assert!(reader.read(&names[at]).unwrap() == contents[at], "content {at}");
    }
    assert_eq!(reader.pieces(&names[3]).unwrap().len(), 2);
    // What other content takes the number of a pack that went whole.
    sweep_all_but(&sweeper, &[]);
    let others = [noise(9_000, 5), noise(8_000, 6)];
    for (name, bytes) in keep(&sweeper, &others).iter().zip(&others) {
        assert!(reader.read(name).unwrap() == *bytes);
    }
}

/// What is kept last, and what it must be; `None`: there is no more.
type Newest = Mutex<Option<(Hash, Vec<u8>)>>;

/// Reads the newest of what is kept, as a process does that has only begun, until there is no more, and says what went wrong.
fn read_the_newest(path: &Path, newest: &Newest, reads: &AtomicU64) -> Result<(), String> {
    let reader = Objects::open(path, OpenOptions::default()).unwrap();
    loop {
        let now = newest.lock().unwrap().clone();
        let Some((name, bytes)) = now else { return Ok(()) };
        for _ in 0..20 {
            reader.forget_recent();
            let read = reader.read(&name);
            if read.as_ref().ok() != Some(&bytes) {
                *newest.lock().unwrap() = None;
                return Err(format!("{:?}", read.map(|read| read.len())));
            }
            reads.fetch_add(1, Relaxed);
        }
    }
}

#[test]
fn what_is_kept_is_readable_at_every_moment_of_sweeps() {
    let (_dir, sweeper) = store();
    let mut live = Vec::new();
    let mut keep_one = |seed: u64| {
        let bytes = noise(1_000, seed);
        let name = keep(&sweeper, &[noise(5_000, 1_000 + seed), bytes.clone()])[1];
        live.push(name);
        (live.clone(), (name, bytes))
    };
    let newest = Mutex::new(Some(keep_one(1).1));
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read_the_newest(sweeper.path(), &newest, &reads)));
        for seed in 2..50 {
            let (live, one) = keep_one(seed);
            if newest.lock().unwrap().replace(one).is_none() {
                break;
            }
            // It is being read when its pack is written anew.
            let before = reads.load(Relaxed);
            while reads.load(Relaxed) < before + 45 && newest.lock().unwrap().is_some() {
                std::thread::yield_now();
            }
            sweep_all_but(&sweeper, &live);
        }
        *newest.lock().unwrap() = None;
        for reader in readers {
            assert_eq!(reader.join().unwrap(), Ok(()));
        }
    });
    assert!(reads.load(Relaxed) > 48 * 45);
}
