//! A ledger of a newer schema is named and left alone, by this program and by older ones.

use ic_testkit::TestWorld;
use rusqlite::Connection;

use crate::stores::{newest_schema, versions};

/// Calls that only read, and calls that write, each in its own way.
const CALLS: [&[&str]; 14] = [
    &["run", "list"],
    &["run", "create", "--goal", "g"],
    &["dispatch", "list"],
    &["events", "tail"],
    &["events", "verify"],
    &["checkpoint", "list"],
    &["checkpoint", "create"],
    &["redo", "--yes"],
    &["checkpoint", "prune", "--grace", "0s"],
    &["checkpoint", "purge", "README", "--yes"],
    &["rollback", "list"],
    &["rewind", "list"],
    &["workflow", "run", "flow.yaml"],
    &["init"],
];

/// The bytes of the store: the ledger and its content.
fn bytes(world: &TestWorld) -> Vec<Vec<u8>> {
    ["ic.db", "objects.db"].map(|name| std::fs::read(world.cli.beside(name)).expect("a file")).into()
}

/// Asserts that every call says `newer_schema`, and that nothing changed.
fn assert_refused(world: &TestWorld, when: &str) {
    let before = bytes(world);
    for words in CALLS {
        let outcome = world.cli.run(words);
        assert_eq!(outcome.code, Some(2), "{when}: {words:?}: {outcome:?}");
        assert_eq!(outcome.error(), "newer_schema", "{when}: {words:?}: {outcome:?}");
    }
    assert!(bytes(world) == before, "{when}: the store was written");
}

#[test]
fn a_newer_schema_is_named_and_not_touched() {
    for stores in versions("life") {
        let world = stores.world("life");
        world.cli.ok(["run", "list"]);
        let newer = newest_schema(&world) + 1;
        let ledger = Connection::open(world.cli.db()).expect("open the ledger");
        ledger.pragma_update(None, "user_version", newer).expect("a newer schema");
        drop(ledger);
        assert_refused(&world, &stores.name);
    }
}

/// Needs the older program: `IC_TEST_OLD=PATH`, a build of the version that made the newest stores.
#[test]
fn the_older_program_says_newer_schema() {
    let Some(old) = std::env::var_os("IC_TEST_OLD") else {
        println!("skipped: the_older_program_says_newer_schema needs IC_TEST_OLD, the path of an older ic");
        return;
    };
    let all = versions("life");
    let Some(stores) = all.last() else {
        println!("skipped: the_older_program_says_newer_schema needs the stores of a released version");
        return;
    };
    let world = stores.world("life");
    world.cli.ok(["run", "list"]);
    assert!(newest_schema(&world) > stores.schema, "this program has the schema of the older one");
    let world = TestWorld::around(world.cli.with_binary(old.to_str().expect("a plain path")));
    assert_refused(&world, &stores.name);
}
