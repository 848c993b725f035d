//! A restore that dies at any of its changes leaves no database beside a log that is not its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use ic_base::{RestoreId, Timestamp};
use ic_ledger::OpenOptions;
use ic_testkit::TestDatabase as Sqlite;

use super::{ApplyProgress, apply};
use crate::manifest::PathText;
use crate::objects::Objects;
use crate::restore::plan::{PlannedDatabase, RestoreAction, RestoreNode, RestorePlan, RestoreStep};
use crate::rootfs::RootDir;
use crate::rootfs::tests::crash_injection;

/// The files of a database, by their names.
type Files = BTreeMap<String, Vec<u8>>;

const NAMES: [&str; 4] = ["app.db", "app.db-wal", "app.db-shm", "app.db-journal"];

fn files_in(directory: &Path) -> Files {
    let file = |name: &&str| Some(((*name).to_owned(), fs::read(directory.join(name)).ok()?));
    NAMES.iter().filter_map(file).collect()
}

/// A database whose writer died: `journal` says what it left, and `turn` what is in it.
fn left_behind(journal: &str, turn: i64) -> Files {
    let place = tempfile::tempdir().unwrap();
    let connection = Sqlite::open(&place.path().join("app.db"));
    let set_up = format!(
        "PRAGMA journal_mode={journal}; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=5;
         CREATE TABLE t (id INTEGER PRIMARY KEY, turn INTEGER, filler TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, {turn}, hex(zeroblob(300)) FROM n;",
        rows = 40 + turn * 20
    );
    connection.run(&set_up);
    if journal == "WAL" {
        connection.run("PRAGMA wal_checkpoint(RESTART); UPDATE t SET turn = turn + 100;");
    } else {
        connection.run("BEGIN IMMEDIATE; UPDATE t SET turn = -1, filler = hex(zeroblob(301));");
    }
    files_in(place.path())
}

fn closed(turn: i64) -> Files {
    let place = tempfile::tempdir().unwrap();
    for (name, content) in left_behind("WAL", turn) {
        fs::write(place.path().join(name), content).unwrap();
    }
    drop(rows(place.path()));
    files_in(place.path())
}

/// What a program reads that opens the database; `None` where there is none.
fn rows(directory: &Path) -> Option<String> {
    let path = directory.join("app.db");
    if !path.exists() {
        return None;
    }
    let database = Sqlite::open(&path);
    let check = database.first_row("PRAGMA integrity_check");
    Some(format!("{check}: rows and their sum {}", database.first_row("SELECT count(*), sum(turn) FROM t")))
}

fn plant(directory: &Path, files: &Files) {
    for name in NAMES {
        let _ = fs::remove_file(directory.join(name));
    }
    for (name, content) in files {
        fs::write(directory.join(name), content).unwrap();
        fs::set_permissions(directory.join(name), PermissionsExt::from_mode(0o644)).unwrap();
    }
}

fn rows_of(files: &Files) -> Option<String> {
    let place = tempfile::tempdir().unwrap();
    plant(place.path(), files);
    rows(place.path())
}

fn plan_between(objects: &Objects, before: &Files, after: &Files) -> RestorePlan {
    let writer = objects.writer(Timestamp(1)).unwrap();
    let node = |files: &Files, name: &str| {
        files.get(name).map(|content| {
            let (hash, size) = writer.put_reader(&mut content.as_slice()).unwrap();
            RestoreNode::File { hash, size, mode: 0o644, attributes: crate::attributes::Attributes::default() }
        })
    };
    let mut plan = RestorePlan::default();
    for name in ["app.db", "app.db-journal", "app.db-shm", "app.db-wal"] {
        let (before, after) = (node(before, name), node(after, name));
        if before != after {
            let path = PathText(name.into());
            plan.steps.push(RestoreStep::new(path, RestoreAction::Modify, before, after));
        }
    }
    writer.finish().unwrap();
    let sides = NAMES[1..].iter().map(|name| PathText((*name).into())).collect();
    plan.databases.push(PlannedDatabase { path: PathText(b"app.db".to_vec()), sides });
    plan
}

#[test]
fn a_restore_that_dies_at_any_step_leaves_no_database_beside_a_foreign_log() {
    let mut orphan = left_behind("WAL", 4);
    orphan.remove("app.db");
    let states = [
        ("a log", left_behind("WAL", 1)),
        ("another log", left_behind("WAL", 2)),
        ("a journal", left_behind("DELETE", 3)),
        ("closed", closed(5)),
        ("a log alone", orphan),
        ("nothing", Files::new()),
    ];
    let home = tempfile::tempdir().unwrap();
    let objects = Objects::open(&home.path().join("objects.db"), OpenOptions::default()).unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let root = RootDir::open(&tree).unwrap();
    let id = RestoreId::from_ledger("r1".to_owned());
    let carry_out = |plan: &RestorePlan| apply(&objects, &root, plan, &id, &ApplyProgress::default());
    let mut deaths = 0;
    for (from, before) in &states {
        for (to, after) in states.iter().filter(|(to, _)| to != from) {
            let plan = plan_between(&objects, before, after);
            let allowed = [rows_of(before), rows_of(after)];
            for moment in 0.. {
                plant(&tree, before);
                crash_injection::after(Some(moment));
                let died = catch_unwind(AssertUnwindSafe(|| carry_out(&plan))).is_err();
                crash_injection::after(None);
                let found = files_in(&tree);
                let when = format!("from {from} to {to}, moment {moment}: {:?}", found.keys());
                let seen = rows_of(&found);
                assert!(seen.is_none() || allowed.contains(&seen), "{when}: {seen:?}, not one of {allowed:?}");
                let outcome = carry_out(&plan);
                assert_eq!(outcome.failed, [], "{when}: the restore is finished");
                assert!(files_in(&tree) == *after, "{when}: finished, it is not as it should be");
                if !died {
                    break;
                }
                deaths += 1;
            }
        }
    }
    println!("{deaths} deaths");
    assert!(deaths > 60, "{deaths} deaths");
}

/// Files that are written at the same time: neighbours of the same content; names of one file, which two threads come to at about one moment;
/// a directory that its owner may not write into.
#[test]
fn files_that_are_written_at_the_same_time_are_all_as_the_plan_leaves_them() {
    for (closed, tied) in [(false, false), (false, true), (true, false), (true, true)] {
        let home = tempfile::tempdir().unwrap();
        let tree = home.path().join("tree");
        let objects = Objects::open(&home.path().join("objects.db"), OpenOptions::default()).unwrap();
        let writer = objects.writer(Timestamp(1)).unwrap();
        let node = |content: &str| {
            let (hash, size) = writer.put_reader(&mut content.as_bytes()).unwrap();
            Some(RestoreNode::File { hash, size, mode: 0o644, attributes: crate::attributes::Attributes::default() })
        };
        let mut plan = RestorePlan::default();
        for number in 0..120 {
            let name = format!("{}/{number:03}", if number < 40 { "few" } else { "many" });
            let path = tree.join(&name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let before = if tied && (60..100).contains(&number) { number - 60 } else { number };
            if before == number {
                fs::write(&path, number.to_string()).unwrap();
            } else {
                fs::hard_link(tree.join(format!("few/{before:03}")), &path).unwrap();
            }
            fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            let (before, after) = (node(&before.to_string()), node(&format!("after {}", number % 3)));
            plan.steps.push(RestoreStep::new(PathText(name.into_bytes()), RestoreAction::Modify, before, after));
        }
        writer.finish().unwrap();
        if closed {
            plan.closed.push((PathText(b"many".to_vec()), 0o555));
            fs::set_permissions(tree.join("many"), PermissionsExt::from_mode(0o555)).unwrap();
        }

        let (id, progress) = (RestoreId::from_ledger("r1".to_owned()), ApplyProgress::default());
        let outcome = apply(&objects, &RootDir::open(&tree).unwrap(), &plan, &id, &progress);

        assert_eq!(outcome.failed, [], "closed: {closed}, tied: {tied}");
        assert_eq!((outcome.done, progress.done.load(Relaxed)), (120, 120));
        for (number, step) in plan.steps.iter().enumerate() {
            let path = tree.join(ic_ledger::path_from_bytes(&step.path.0));
            let found = fs::read_to_string(&path).unwrap();
            assert_eq!(found, format!("after {}", number % 3), "{}", path.display());
        }
        let left = |directory: &str| fs::read_dir(tree.join(directory)).unwrap().count();
        assert_eq!((left("few"), left("many")), (40, 80), "nothing else lies there");
        let mode = fs::metadata(tree.join("many")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode == 0o555, closed, "{mode:o}");
    }
}
