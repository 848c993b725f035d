//! kill -9 at random moments. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::Cli;

use crate::campaign::{Ledger, long};

/// A small generator, so that a campaign can be repeated: xorshift64.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let seed = std::env::var("IC_TEST_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| u64::from(std::process::id()) << 16 | 1);
        println!("IC_TEST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// Starts a call, kills it after `wait`, and returns whether it had ended by itself.
fn kill_after(cli: &Cli, verb: &[&str], wait: Duration) -> bool {
    let mut child = cli.command(verb).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    let end = Instant::now() + wait;
    // A sleep is too coarse: the whole call takes a few milliseconds.
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    // It fails if the call has ended, which is what the status says.
    let _ = child.kill();
    child.wait().expect("wait for ic").code().is_some()
}

#[test]
fn a_killed_rollback_is_done_or_not_begun() {
    let ledger = Ledger::new();
    ledger.save();
    let run = ledger.run.as_str();
    let verb = ["run", "rollback", run, "--to-phase", "a"];
    ledger.reset();
    let started = Instant::now();
    ledger.cli.ok(verb);
    let usual = u64::try_from(started.elapsed().as_micros()).expect("microseconds");
    let mut random = Random::seeded();
    let rounds = if long() { 2_000 } else { 200 };
    let (mut old, mut new) = (0, 0);
    for round in 0..rounds {
        ledger.reset();
        let wait = Duration::from_micros(random.below(usual + usual / 4));
        kill_after(&ledger.cli, &verb, wait);
        let status = ledger.cli.json(["run", "status", run]);
        let marked = |noun: &str| {
            let list = ledger.cli.json(["run", noun, "list", run]);
            list.as_array().expect("a list").iter().filter(|row| !row["rolled_back_by"].is_null()).count()
        };
        let dispatches = ledger.cli.json(["dispatch", "list", run]);
        let stale =
            dispatches.as_array().expect("a list").iter().filter(|row| row["rolled_back"] == true).count();
        let found =
            (status["phase"].as_str(), status["epoch"].as_i64(), marked("artifact"), marked("agent"), stale);
        match found {
            (Some("c"), Some(0), 0, 0, 0) => {
                old += 1;
                ledger.cli.ok(verb);
            }
            (Some("a"), Some(1), 10, 3, 3) => {
                new += 1;
                assert_eq!(ledger.cli.refused(verb), (Some(1), "already_at_phase".to_owned()));
            }
            _ => panic!("round {round}, killed after {wait:?}: half rolled back: {found:?}"),
        }
        ledger.cli.ok(["events", "verify"]);
    }
    println!("{rounds} kills: {old} before, {new} after");
    assert!(old > 0, "no kill came early enough to matter");
}

#[test]
fn a_killed_init_is_finished_by_the_next() {
    let mut random = Random::seeded();
    for _ in 0..if long() { 500 } else { 40 } {
        let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
        kill_after(&cli, &["init"], Duration::from_micros(random.below(20_000)));
        cli.ok(["init"]);
        cli.ok(["run", "create", "--goal", "after a crash"]);
        assert_eq!(cli.json(["health"])["ok"], true);
    }
}
