//! Aborting and killing what brings an older ledger to the newest schema.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::{Cli, Random, older_ledger, rounds, tell};
use rusqlite::Connection;

use crate::campaign::assert_sound;
use crate::init::essence;
use crate::kill::kill_after;

/// A project whose ledger has the first schema and something in it.
fn older() -> Cli {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    std::fs::create_dir(cli.root().join(".ic")).expect("the store");
    older_ledger(&cli.db());
    Connection::open(cli.db())
        .and_then(|ledger| {
            ledger.execute_batch("INSERT INTO event_cursors (name, scope, seq, updated_at) VALUES ('kept', '', 0, 1)")
        })
        .expect("something to be kept");
    cli
}

/// What a migration that nothing disturbed makes of it.
fn migrated() -> String {
    let cli = older();
    cli.ok(["run", "list"]);
    essence(&cli)
}

fn version(path: &Path) -> i32 {
    Connection::open(path)
        .and_then(|c| c.query_row("PRAGMA user_version", [], |row| row.get(0)))
        .expect("the version of the schema")
}

/// Asserts that each backup is a whole ledger of the first schema, and returns how many there are.
fn whole_backups(cli: &Cli) -> usize {
    let backups: Vec<PathBuf> = std::fs::read_dir(cli.root().join(".ic"))
        .expect("the store")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "backup"))
        .collect();
    for path in &backups {
        let copy = Connection::open(path).expect("open a backup");
        let found: String = copy.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("check it");
        assert_eq!((found.as_str(), version(path)), ("ok", 1), "{}", path.display());
        let kept: String = copy.query_row("SELECT name FROM event_cursors", [], |row| row.get(0)).expect("a row");
        assert_eq!(kept, "kept");
    }
    backups.len()
}

/// Asserts that the next call finds or makes the newest schema, and that nothing was lost.
fn assert_finished_by_the_next(cli: &Cli, expected: &str) {
    assert_sound(cli);
    assert_eq!(essence(cli), expected);
    let left = cli.root().join(".ic/ic.db.backup.partial");
    assert!(!left.exists(), "half a copy is left");
    let backups = whole_backups(cli);
    // One more than needed when the crash came after it was made.
    assert!((1..=2).contains(&backups), "{backups} backups");
}

#[test]
fn an_aborted_migration_leaves_the_old_schema_or_the_new_one() {
    let expected = migrated();
    for n in 1..100 {
        let cli = older();
        let log = cli.home().join("log");
        let mut command = cli.command(["run", "list"]);
        command.env("IC_TEST_ABORT_BEFORE", n.to_string()).env("IC_TEST_SQL_LOG", &log);
        let status = command.stderr(Stdio::null()).stdout(Stdio::null()).status().expect("start ic");
        if status.success() {
            // Log mode, begin, copy, its name, history, three migrations with their rows, marks, commit, the verb's own.
            assert!(n > 14, "a migration has only {n} steps");
            assert_eq!(whole_backups(&cli), 1);
            return;
        }
        let committed = std::fs::read_to_string(&log).unwrap_or_default().lines().any(|s| s == "COMMIT");
        let left = version(&cli.db());
        if committed {
            assert!(left > 1, "crash before {n}: schema {left}");
        } else {
            assert_eq!(left, 1, "crash before {n}");
        }
        assert_finished_by_the_next(&cli, &expected);
    }
    panic!("the migration never came to its end");
}

#[test]
fn a_killed_migration_is_finished_by_the_next() {
    let expected = migrated();
    let timed = older();
    let started = Instant::now();
    timed.ok(["run", "list"]);
    let usual = u64::try_from(started.elapsed().as_micros()).expect("microseconds");
    let mut random = Random::seeded();
    let mut killed = 0;
    for _ in rounds(40) {
        let cli = older();
        let ended = kill_after(cli.command(["run", "list"]), Duration::from_micros(random.below(usual)));
        killed += usize::from(!ended);
        let left = version(&cli.db());
        assert!(left == 1 || left == version(&timed.db()), "half migrated: {left}");
        assert_finished_by_the_next(&cli, &expected);
    }
    tell(&format!("{killed} migrations were killed"));
    assert!(killed > 0, "no kill came early enough to matter");
}
