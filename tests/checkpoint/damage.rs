//! A damaged object store: every damage gives a named error, and nothing damaged is written.

use std::path::Path;
use std::process::Command;

use ic_testkit::{Cli, Random, rounds, tell};
use rusqlite::Connection;

use crate::forest::Forest;
use crate::project::{create, project, restore, tree};
use crate::snapshot::Node;

/// Replaces the directory `to` with a copy of `from`.
fn put_back(from: &Path, to: &Path) {
    if to.exists() {
        std::fs::remove_dir_all(to).expect("make room");
    }
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "copy the store");
}

/// Damages the object store in one of many ways and says how.
fn damage(objects: &Path, random: &mut Random) -> String {
    let connection = Connection::open(objects).expect("open the object store");
    let one = |sql: &str, random: &mut Random| -> i64 {
        let ids: Vec<i64> = connection
            .prepare(sql)
            .and_then(|mut s| s.query_map([], |row| row.get(0))?.collect())
            .expect("list the rows");
        ids[random.place_in(ids.len())]
    };
    let pack = one("SELECT id FROM packs", random);
    let rows: i64 = connection.query_row("SELECT count(*) FROM objects", [], |row| row.get(0)).expect("count");
    let row = random.below(u64::try_from(rows).expect("a count"));
    let object = format!("hash = (SELECT hash FROM objects ORDER BY hash LIMIT 1 OFFSET {row})");
    let number = random.below(5000);
    let sql = match random.below(11) {
        0..=2 => {
            let mut data: Vec<u8> = connection
                .query_row("SELECT data FROM packs WHERE id = ?1", [pack], |row| row.get(0))
                .expect("read a pack");
            for _ in 0..=random.below(4) {
                let at = random.place_in(data.len());
                data[at] ^= 1 << random.below(8);
            }
            connection.execute("UPDATE packs SET data = ?1 WHERE id = ?2", (data, pack)).expect("flip bits");
            return format!("bits flipped in pack {pack}");
        }
        3 => format!("UPDATE packs SET data = substr(data, 1, length(data) / 2) WHERE id = {pack}"),
        4 => format!("UPDATE packs SET size = size + {number} - 2500 WHERE id = {pack}"),
        5 => format!("DELETE FROM packs WHERE id = {pack}"),
        6 => format!("DELETE FROM objects WHERE {object}"),
        7 => format!("UPDATE objects SET start = start + {number} WHERE {object}"),
        8 => format!("UPDATE objects SET size = max(0, size + {number} - 2500) WHERE {object}"),
        9 => format!("UPDATE objects SET form = 1 - form, pack = {pack} WHERE {object}"),
        _ => format!("UPDATE objects SET start = -1, size = 9223372036854775807 WHERE {object}"),
    };
    connection.execute_batch(&sql).expect("damage it");
    sql
}

/// A failed call says which kind of failure it was.
fn assert_named(cli: &Cli, arguments: &[&str], how: &str) -> Option<i32> {
    let outcome = cli.run(arguments);
    assert!(!outcome.stderr.contains("panicked"), "{how}: {arguments:?}: {outcome:?}");
    match outcome.code {
        Some(0 | 4) => {}
        Some(1) if arguments[1] == "diff" || outcome.stderr.is_empty() => {}
        Some(2) => assert_eq!(outcome.error(), "corrupt", "{how}: {arguments:?}: {outcome:?}"),
        _ => panic!("{how}: {arguments:?}: {outcome:?}"),
    }
    outcome.code
}

#[test]
fn a_damaged_store_gives_named_errors_and_nothing_damaged_is_written() {
    let mut random = Random::seeded();
    let cli = project();
    let root = cli.root().to_owned();
    Forest::new(&root, &mut random).plant();
    // Names that stand in both states, with other content.
    for i in 0..30 {
        std::fs::write(root.join(format!("both{i}")), format!("one {i}").repeat(200)).expect("a file");
    }
    std::fs::write(root.join("large"), "one large".repeat(300_000)).expect("a file");
    let (one, wanted) = (create(&cli), tree(&cli));
    for i in 0..30 {
        std::fs::write(root.join(format!("both{i}")), format!("two {i}").repeat(200)).expect("a file");
    }
    std::fs::write(root.join("large"), "two large".repeat(300_000)).expect("a file");
    let two = create(&cli);
    let before = tree(&cli);
    let (store, saved) = (root.join(".ic"), cli.home().join("saved"));
    put_back(&store, &saved);
    let mut exits = std::collections::BTreeMap::new();
    for round in rounds(60) {
        let how = format!("round {round}: {}", damage(&store.join("objects.db"), &mut random));
        for read in [vec!["show", "--files", &two], vec!["list"], vec!["diff", &one, &two], vec!["cat", &one, "both1"]]
        {
            let arguments: Vec<&str> = ["checkpoint"].into_iter().chain(read).collect();
            assert_named(&cli, &arguments, &how);
        }
        let code = assert_named(&cli, &["checkpoint", "restore", &one, "--yes", "--json"], &how);
        *exits.entry(code).or_insert(0) += 1;
        let found = tree(&cli);
        found.assert_no_temporary(&how);
        if code == Some(0) {
            found.assert_is(&wanted, &how);
        }
        for path in found.paths().chain(before.paths()) {
            let (here, allowed) = (found.get(path), [before.get(path), wanted.get(path)]);
            let is_directory = matches!(here, Some(Node::Directory { .. }));
            assert!(allowed.contains(&here) || is_directory, "{how}: {:?}", String::from_utf8_lossy(path));
        }
        put_back(&saved, &store);
        // The cache of another store's time says nothing about this tree's files: they are read again.
        restore(&cli, &two);
        tree(&cli).assert_is(&before, &format!("{how}: mended"));
        put_back(&saved, &store);
    }
    tell(&format!("exits: {exits:?}"));
    assert!(exits.keys().any(|code| *code != Some(0)), "no damage was ever met");
}
