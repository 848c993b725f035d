//! Another process holds the ledger's lock.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::filled::Filled;

#[test]
fn a_held_lock_is_busy_after_the_timeout_and_disturbs_no_reader() {
    let filled = Filled::new();
    let holder = Connection::open(filled.cli.db()).expect("open the ledger");
    holder.execute_batch("BEGIN IMMEDIATE").expect("hold the write lock");
    for verb in filled.writes().into_iter().filter(|verb| verb[1] != "tail") {
        let started = Instant::now();
        let outcome = filled.cli.run(verb.iter().copied().chain(["--busy-timeout", "150ms"]));
        assert_eq!((outcome.code, outcome.error()), (Some(2), "busy".to_owned()), "{verb:?}");
        let waited = started.elapsed();
        assert!(waited >= Duration::from_millis(100), "{verb:?} gave up after {waited:?}");
        assert!(waited < Duration::from_secs(5), "{verb:?} waited {waited:?}");
    }
    for verb in filled.reads() {
        let outcome = filled.cli.run(&verb);
        assert!(matches!(outcome.code, Some(0 | 1)), "{verb:?}: {outcome:?}");
    }
    holder.execute_batch("ROLLBACK").expect("let go");
    filled.cli.ok(["run", "advance", &filled.run]);
}

#[test]
fn a_waiting_writer_goes_on_as_soon_as_it_can() {
    let filled = Filled::new();
    let holder = Connection::open(filled.cli.db()).expect("open the ledger");
    holder.execute_batch("BEGIN IMMEDIATE").expect("hold the write lock");
    let mut waiting = filled.cli.command(["run", "advance", &filled.run]).spawn().expect("start ic");
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiting.try_wait().expect("look at it").is_none(), "it did not wait");
    holder.execute_batch("ROLLBACK").expect("let go");
    assert_eq!(waiting.wait().expect("wait").code(), Some(0));
}
