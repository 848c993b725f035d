//! The first opening: one process migrates however many come, and a kill is finished by the next.

use std::process::Stdio;

use ic_testkit::{Random, TestWorld, dump, long, tell};
use rusqlite::Connection;

use crate::stores::{Stores, newest_schema, versions};

fn version(world: &TestWorld) -> i64 {
    let connection = Connection::open(world.cli.db()).expect("open the ledger");
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("the version of the schema")
}

/// The copies that were laid beside the ledger before it was migrated.
fn backups(world: &TestWorld) -> usize {
    let store = world.cli.beside("");
    let names = std::fs::read_dir(store).expect("the store").map(|entry| entry.expect("an entry").path());
    names.filter(|path| path.extension().is_some_and(|end| end == "backup")).count()
}

/// The rows that an older version recorded: events and what they are about, under their own columns.
fn recorded(world: &TestWorld) -> Vec<String> {
    let tables = ["events|", "event_head|", "event_cursors|", "dispatch_files|", "run_skips|"];
    let dump = dump(&world.cli.db());
    dump.lines().filter(|row| tables.iter().any(|table| row.starts_with(table))).map(str::to_owned).collect()
}

/// Asserts that the ledger is migrated, once, and nothing of what was recorded is lost.
fn assert_migrated(stores: &Stores, world: &TestWorld, wanted: &[String], when: &str) {
    world.cli.assert_sound(when);
    assert_eq!(version(world), newest_schema(world), "{when}");
    assert_eq!(recorded(world), wanted, "{when}");
    let history: Vec<i64> = Connection::open(world.cli.db())
        .and_then(|ledger| {
            let mut statement = ledger.prepare("SELECT version FROM refinery_schema_history ORDER BY version")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
        .expect("the history of the schema");
    let all: Vec<i64> = (1..=newest_schema(world)).collect();
    assert_eq!(history, all, "{when}");
    assert!(backups(world) >= usize::from(is_older(stores, world)), "{when}: no copy was made");
}

fn is_older(stores: &Stores, world: &TestWorld) -> bool {
    stores.schema < newest_schema(world)
}

#[test]
fn eight_processes_open_it_first_and_one_migrates() {
    for stores in versions("life") {
        let world = stores.world("life");
        assert_eq!(version(&world), stores.schema);
        let wanted = recorded(&world);
        let mut children: Vec<_> = (0..8)
            .map(|_| world.cli.command(["run", "list"]).stdout(Stdio::null()).spawn().expect("start ic"))
            .collect();
        for child in &mut children {
            assert!(child.wait().expect("its end").success(), "{}", stores.name);
        }
        assert_migrated(&stores, &world, &wanted, &stores.name);
        assert_eq!(backups(&world), usize::from(is_older(&stores, &world)), "one of them migrated");
    }
}

#[test]
fn a_killed_migration_is_finished_by_the_next() {
    for stores in versions("life") {
        let (mut n, mut aborted) = (1, 0);
        let mut random = Random::seeded();
        loop {
            let world = stores.world("life");
            let wanted = recorded(&world);
            let mut command = world.cli.command(["run", "list"]);
            command.env("IC_TEST_ABORT_BEFORE", n.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
            let ended = command.status().expect("start ic").success();
            let when = format!("{} before statement {n}", stores.name);
            let left = version(&world);
            assert!(left == stores.schema || left == newest_schema(&world), "{when}: half migrated: {left}");
            assert_migrated(&stores, &world, &wanted, &when);
            if ended {
                break;
            }
            aborted += 1;
            n += if long() { 1 } else { 1 + random.below(5) };
        }
        tell(&format!("{aborted} of {n} statements of the first opening"));
        assert!(aborted > 0, "{}", stores.name);
    }
}
