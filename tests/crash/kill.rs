//! kill -9 at random moments. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, Random, rounds, tell};

use crate::campaign::{Ledger, assert_sound};
use crate::init::essence;

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic")
}

/// Waits a moment; a sleep is too coarse where a whole call takes a few milliseconds.
fn spin(wait: Duration) {
    let end = Instant::now() + wait;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Starts a call, kills it after `wait`, and returns whether it had ended by itself.
pub(crate) fn kill_after(command: Command, wait: Duration) -> bool {
    let mut child = start(command);
    spin(wait);
    end(&mut child)
}

fn end(child: &mut Child) -> bool {
    // It fails if the call has ended, which is what the status says.
    let _ = child.kill();
    child.wait().expect("wait for ic").code().is_some()
}

#[test]
fn a_killed_rollback_is_done_or_not_begun() {
    let ledger = Ledger::new();
    let verb = ["run", "rollback", ledger.run.as_str(), "--to-phase", "a"];
    let before = ledger.cli.dump();
    let started = Instant::now();
    assert!(ledger.command(verb).stdout(Stdio::null()).status().expect("start ic").success());
    let usual = u64::try_from(started.elapsed().as_micros()).expect("microseconds");
    let clean = ledger.cli.dump();
    let mut random = Random::seeded();
    let (mut old, mut new, mut killed) = (0, 0, 0);
    for round in rounds(150) {
        ledger.reset();
        let wait = Duration::from_micros(random.below(usual + usual / 4));
        let ended = kill_after(ledger.command(verb), wait);
        killed += usize::from(!ended);
        assert_sound(&ledger.cli);
        let found = ledger.cli.dump();
        if found == before {
            assert!(!ended, "round {round}: it said that it was done, and nothing is");
            old += 1;
            assert!(ledger.command(verb).stdout(Stdio::null()).status().expect("start ic").success());
            assert_eq!(ledger.cli.dump(), clean, "round {round}: the retry");
        } else {
            assert_eq!(found, clean, "round {round}, killed after {wait:?}: half rolled back");
            new += 1;
            assert_eq!(ledger.cli.refused(verb), (Some(1), "already_at_phase".to_owned()));
            assert_eq!(ledger.cli.dump(), clean, "round {round}: the retry changed something");
        }
    }
    tell(&format!("{killed} killed: {old} before it was done, {new} after"));
    assert!(old > 0, "no kill came early enough to matter");
}

#[test]
fn killed_inits_are_finished_by_the_next() {
    let untouched = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let whole = essence(&untouched);
    let mut random = Random::seeded();
    let mut killed = 0;
    for round in rounds(40) {
        let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
        // Several at once, so that one takes over what another one, killed, had begun.
        let mut starters: Vec<Child> = (0..=(round % 4)).map(|_| start(cli.command(["init"]))).collect();
        for child in &mut starters {
            spin(Duration::from_micros(random.below(15_000)));
            killed += usize::from(!end(child));
        }
        cli.ok(["init"]);
        assert_sound(&cli);
        assert_eq!(essence(&cli), whole, "round {round}");
        cli.ok(["run", "create", "--goal", "after a crash"]);
    }
    tell(&format!("{killed} inits were killed"));
    assert!(killed > 0, "no kill came early enough to matter");
}
