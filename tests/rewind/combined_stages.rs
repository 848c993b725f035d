//! Applications that write during a rewind, and rewinds at the same time.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::project::{configure_vectors, devs, status};

#[test]
fn an_application_that_writes_meanwhile_loses_nothing() {
    let world = devs();
    world.sql("PRAGMA journal_mode=WAL");
    let stop = AtomicBool::new(false);
    let written: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (world, stop) = (&world, &stop);
                scope.spawn(move || {
                    let db = world.connect();
                    let mut written = Vec::new();
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        n += 1;
                        let id = format!("w{writer}-{n}");
                        let row = (&id, 1000 + n);
                        db.execute("INSERT INTO requirements VALUES (?1, 'T1', 'w', ?2)", row).expect("a row");
                        written.push(id);
                    }
                    written
                })
            })
            .collect();
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(50));
            let outcome = world.cli.run(["rewind", "to", "T1", "--yes", "--busy-timeout", "30s"]);
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    // Every acknowledged row is there or in the archive of the one rewind that took it.
    for entry in world.cli.json(["rewind", "list"]).as_array().expect("a list") {
        world.cli.ok(["undo", entry["id"].as_str().expect("an id"), "--yes"]);
    }
    let db = world.connect();
    let found: i64 =
        db.query_row("SELECT count(*) FROM requirements WHERE body = 'w'", [], |row| row.get(0)).expect("a count");
    assert_eq!(found, i64::try_from(written.len()).expect("a count"));
    assert!(written.len() > 5, "{} rows", written.len());
}

#[test]
fn two_rewinds_do_not_run_at_once() {
    let world = devs();
    configure_vectors(&world, "touch begun; while ! test -e go; do sleep 0.01; done");
    let mut first = world
        .cli
        .command(["rewind", "to", "T2", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start ic");
    let started = Instant::now();
    while !world.root().join("begun").exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "the command for vectors never began");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status(&world)["status"], "in_progress");
    let id = status(&world)["id"].as_str().expect("an id").to_owned();
    for call in [vec!["rewind", "to", "T1"], vec!["rewind", "resume", &id], vec!["undo", &id]] {
        let call = call.into_iter().chain(["--yes", "--busy-timeout", "100ms"]);
        assert_eq!(world.cli.refused(call), (Some(2), "busy".to_owned()));
    }
    world.write("go", "");
    assert!(first.wait().expect("its end").success());
    assert_eq!(status(&world)["status"], "done");
    assert_eq!(world.cli.json(["rewind", "to", "T1", "--yes"])["deleted_row_counts"]["tasks"], json!(1));
}

#[test]
fn a_writer_that_holds_the_database_makes_it_busy_and_nothing_is_changed() {
    let world = devs();
    let rows = world.rows();
    let db = world.connect();
    db.execute_batch("BEGIN IMMEDIATE").expect("hold the database");
    let outcome = world.cli.run(["rewind", "to", "T1", "--yes", "--busy-timeout", "100ms"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"), "{outcome:?}");
    db.execute_batch("ROLLBACK").expect("let it go");
    assert_eq!(world.rows(), rows);
    assert_eq!(world.cli.json(["rewind", "to", "T1", "--yes"])["status"], "done");
}
