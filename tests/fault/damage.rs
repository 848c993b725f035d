//! Flipped bytes and changed texts. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use ic_testkit::{Cli, Random, one_file, put_one_file, rounds, tell};
use rusqlite::Connection;

use crate::filled::Filled;
use crate::verbs::assert_graceful;

#[test]
fn flipped_bytes_end_in_an_answer_or_an_error_never_in_a_panic() {
    let filled = Filled::new();
    let whole = one_file(&filled.cli.db());
    let mut random = Random::seeded();
    let mut broken = 0;
    for round in rounds(25) {
        let mut damaged = whole.clone();
        for _ in 0..=round % 8 * 8 {
            let at = random.place_in(damaged.len());
            damaged[at] ^= 1 << random.below(8);
        }
        put_one_file(&filled.cli.db(), &damaged);
        for verb in filled.reads() {
            let outcome = filled.cli.run(&verb);
            assert_graceful(&verb, &outcome);
            broken += usize::from(outcome.code != Some(0));
        }
    }
    tell(&format!("{broken} calls met damage"));
    assert!(broken > 0, "no damage was ever met");
}

#[test]
fn a_changed_event_is_named() {
    let filled = Filled::new();
    Connection::open(filled.cli.db())
        .and_then(|c| {
            c.execute_batch("DROP TRIGGER events_are_not_changed; UPDATE events SET to_state = 'z' WHERE seq = 2;")
        })
        .expect("tamper");
    let outcome = filled.cli.run(["events", "verify"]);
    assert_eq!((outcome.code, outcome.error()), (Some(2), "chain_broken".to_owned()));
    assert_eq!(outcome.json()["first_bad"]["seq"], 2);
}

#[test]
fn an_unknown_status_is_named_with_its_table_and_row() {
    let filled = Filled::new();
    Connection::open(filled.cli.db())
        .and_then(|c| c.execute_batch("PRAGMA ignore_check_constraints=ON; UPDATE runs SET status = 'sleeping';"))
        .expect("tamper");
    let outcome = filled.cli.run(["run", "status", &filled.run]);
    assert_eq!((outcome.code, outcome.error()), (Some(2), "corrupt".to_owned()));
    for word in ["runs", "status", "sleeping", &filled.run] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
}

/// Byte 18 of the header: by which format the file may be written. SQLite finds a file sound that it only reads because of it.
#[test]
fn a_header_that_forbids_writing_is_named_by_health() {
    for (is_content, shown) in [(false, "quick_check"), (true, "store")] {
        let cli = Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints();
        cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
        let file = if is_content { cli.beside("objects.db") } else { cli.db() };
        // What stands in a log counts before the file.
        one_file(&file);
        let mut bytes = std::fs::read(&file).expect("a database");
        let healthy = bytes.clone();
        bytes[18] = 3;
        std::fs::write(&file, &bytes).expect("a damaged header");
        let health = cli.run(["health", "--format", "text"]);
        let line = health.stdout.lines().find(|line| line.starts_with(shown)).unwrap_or_default().to_owned();
        assert!(line.contains("BAD") && line.contains("byte 18"), "{health:?}");
        assert_ne!(health.code, Some(0));
        std::fs::write(cli.root().join("f"), "new content").expect("a file");
        let refused = cli.run(["checkpoint", "create", "--format", "json"]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.stderr.contains("ic health"), "{refused:?}");
        std::fs::write(&file, healthy).expect("the file as it was");
        cli.ok(["checkpoint", "create"]);
        assert_eq!(cli.run(["health"]).code, Some(0));
    }
}
