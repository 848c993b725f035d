//! Databases with logs, names of one file, and what no checkpoint holds: whole, or named.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use ic_testkit::TestWorld;
use rusqlite::Connection;
use serde_json::json;

use super::{asked_to_undo, did, mode, refused, stays, undo, undone, with_base};
use crate::project::{Work as _, in_git};

/// Writes rows into the database in the project; with `log`, the writer dies before they leave the log.
fn rows(world: &TestWorld, name: &str, log: bool) {
    let path = world.cli.root().join("app.db");
    let db = Connection::open(&path).expect("a database");
    db.pragma_update(None, "journal_mode", "wal").expect("a log");
    db.execute_batch("CREATE TABLE IF NOT EXISTS t (x); PRAGMA wal_autocheckpoint = 0;").expect("a table");
    db.execute("INSERT INTO t VALUES (?1)", [name]).expect("a row");
    if log {
        // The files as a writer leaves them that is killed.
        let names = ["app.db", "app.db-wal", "app.db-shm"];
        let kept = names.map(|name| std::fs::read(world.cli.root().join(name)).expect("a file"));
        drop(db);
        for (name, content) in names.iter().zip(kept) {
            std::fs::write(world.cli.root().join(name), content).expect("a file");
        }
    }
}

/// What a program finds in the database. The look changes no file.
fn found(world: &TestWorld) -> Vec<String> {
    let copy = world.cli.home().join("copy");
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir(&copy).expect("a directory");
    for name in ["app.db", "app.db-wal", "app.db-shm"] {
        let _ = std::fs::copy(world.cli.root().join(name), copy.join(name));
    }
    let db = Connection::open(copy.join("app.db")).expect("a database");
    let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(check, "ok");
    let mut query = db.prepare("SELECT x FROM t ORDER BY rowid").expect("a table");
    query.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("text")
}

#[test]
fn a_database_that_others_wrote_into_since_is_a_conflict_though_its_file_did_not_change() {
    let world = in_git().begun();
    rows(&world, "base", false);
    let first = did(&world, "first", || rows(&world, "first", false));
    did(&world, "second", || rows(&world, "second", true));
    refused(&world, &undo(&first, &[]), "file_conflict");
    assert_eq!(found(&world), ["base", "first", "second"]);

    // By decision it goes back whole: the log of others with it, which comes back with it.
    undone(&world, &first, &["--force-files"]);
    assert_eq!(found(&world), ["base"]);
    assert!(!world.cli.root().join("app.db-wal").exists());
    world.ic(&["redo", "--yes"]);
    assert_eq!(found(&world), ["base", "first", "second"]);
}

#[test]
fn a_database_that_it_made_and_others_wrote_into_is_no_work_of_its_own() {
    let world = in_git().begun();
    let first = did(&world, "first", || rows(&world, "first", false));
    did(&world, "second", || rows(&world, "second", true));
    refused(&world, &undo(&first, &[]), "file_conflict");
    assert_eq!(found(&world), ["first", "second"]);
}

#[test]
fn rows_that_it_left_in_a_log_go_with_the_log() {
    let world = in_git().begun();
    rows(&world, "base", false);
    let first = did(&world, "first", || rows(&world, "first", true));
    assert_eq!(found(&world), ["base", "first"]);
    undone(&world, &first, &[]);
    assert_eq!(found(&world), ["base"]);
    world.ic(&["redo", "--yes"]);
    assert_eq!(found(&world), ["base", "first"]);
}

#[test]
fn names_of_one_file_stay_so_and_what_no_checkpoint_holds_is_named() {
    let world = in_git().begun();
    world.write("one", "1\n");
    std::fs::hard_link(world.cli.root().join("one"), world.cli.root().join("two")).expect("a link");
    world.write(".env", "KEY=1\n");
    let first = did(&world, "first", || {
        use std::io::Write;
        let mut file = std::fs::File::options().append(true).open(world.cli.root().join("one")).expect("a file");
        file.write_all(b"more\n").expect("a line");
        world.write(".env", "KEY=2\n");
    });
    let (report, code) = asked_to_undo(&world, &first, &[]);
    assert_eq!((code, &report["status"]), (4, &json!("rolled_back")), "{report}");
    let inode = |name: &str| std::fs::metadata(world.cli.root().join(name)).expect("a file").ino();
    assert_eq!((world.read("two").as_deref(), inode("one")), (Some("1\n"), inode("two")));
    assert_eq!(stays(&report), [(".env".to_owned(), "secret".to_owned())], "{report}");
}

#[test]
fn an_undo_of_work_that_touched_no_name_of_a_file_says_nothing_of_them() {
    let world = with_base("f", "a\n");
    let at = |name: &str| world.cli.root().join(name);
    std::fs::hard_link(at("f"), at("g")).expect("another name");
    world.write("other", "z\n");
    world.commit("names");
    let first = did(&world, "first", || world.write("other", "zz\n"));
    did(&world, "second", || {
        std::fs::remove_file(at("g")).expect("no name");
        std::fs::copy(at("f"), at("g")).expect("a file of its own");
    });
    let before = [at("f"), at("g")].map(|path| path.metadata().expect("a file").ino());
    let report = undone(&world, &first, &[]);
    assert!(!report.to_string().contains("the same file"), "{report}");
    assert_eq!(world.read("other").as_deref(), Some("z\n"));
    assert_eq!([at("f"), at("g")].map(|path| path.metadata().expect("a file").ino()), before);
}

/// What was restored between an undo and its redo, and was undone itself, is no one's change: it took the tree to where others had left it.
#[test]
fn what_was_restored_and_undone_in_between_is_no_change_of_others() {
    let kinds = [
        ("lines", "echo second >> f", "echo third >> f", Some("a\nsecond\n")),
        ("modes", "chmod 755 f", "chmod 700 f", Some("a\n")),
        ("a removal", "echo second >> f", "rm f", Some("a\nsecond\n")),
    ];
    for (kind, second, third, left) in kinds {
        for is_redone in [true, false] {
            let world = with_base("f", "a\n");
            let shell = |line: &str| {
                let ran = Command::new("sh").args(["-c", line]).current_dir(world.cli.root()).status();
                assert!(ran.is_ok_and(|status| status.success()));
            };
            let phase = world.ic(&["run", "phase", &world.run]);
            let other = did(&world, "first", || world.write("n", "n\n"));
            world.ic(&["run", "advance", &world.run]);
            did(&world, "second", || shell(second));
            world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "mid"]);
            let work = did(&world, "third", || shell(third));
            world.ic(&["undo", &format!("phase:{phase}"), "--yes"]);
            world.ic(&["checkpoint", "restore", "--name", "mid", "--yes"]);
            world.ic(&["redo", "--yes"]);
            world.ic(&["redo", "--yes"]);
            undone(&world, &other, &[]);
            if is_redone {
                world.ic(&["redo", "--yes"]);
            }
            undone(&world, &work, &[]);
            assert_eq!(world.read("f").as_deref(), left, "{kind}, redone: {is_redone}");
            assert_eq!(mode(&world, "f") & 0o111 != 0, kind == "modes", "{kind}");
            assert_eq!(world.read("n").is_some(), is_redone, "{kind}");
        }
    }
}
