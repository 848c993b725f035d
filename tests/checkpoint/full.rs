//! What works on a disk that is full to its last byte: reading, and freeing space, each time that it is full.

use std::fs;
use std::io::Write;

use ic_testkit::{Cli, CliOutcome, one_file};
use serde_json::Value;

use crate::disk::{Tmpfs, assert_full, fill, free, noise, on_a_small_disk};
use crate::project::{create, list, restored_elsewhere, tree};
use crate::snapshot::Snapshot;

#[test]
fn what_only_reads_answers_on_a_disk_that_is_full_and_changes_nothing_there() {
    reads_of_a_full_disk(false);
}

#[test]
fn beside_the_logs_that_were_left_as_well() {
    reads_of_a_full_disk(true);
}

/// `with_logs`: those of ledger and store stand beside them, as calls leave them, with their shared memory; else nothing does.
fn reads_of_a_full_disk(with_logs: bool) {
    let Some((cli, _disk, point)) = on_a_small_disk(24) else { return };
    fs::write(cli.root().join("file"), "old").expect("a file");
    let id = create(&cli);
    fs::write(cli.root().join("file"), "new").expect("a file");
    create(&cli);
    let before = Snapshot::of(cli.root());
    let reads: [&[&str]; 9] = [
        &["checkpoint", "list", "--json"],
        &["checkpoint", "show", &id],
        &["checkpoint", "cat", &id, "file"],
        &["checkpoint", "diff", &id],
        &["checkpoint", "list", "--tree"],
        &["checkpoint", "restore", &id, "--dry-run"],
        &["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--dry-run"],
        &["events", "verify"],
        &["run", "list"],
    ];
    let with_room: Vec<CliOutcome> = reads.iter().map(|verb| cli.run(*verb)).collect();
    if !with_logs {
        for name in ["ic.db", "objects.db"] {
            one_file(&point.join(name));
        }
    }
    assert_eq!(point.join("ic.db-wal").exists() && point.join("objects.db-wal").exists(), with_logs);
    let ballast = fill(&point, 0);
    let said = |outcome: &CliOutcome| (outcome.code, outcome.stdout.clone());
    for (verb, expected) in reads.iter().zip(&with_room) {
        let outcome = cli.run(*verb);
        assert_eq!(expected.code, Some(0), "{verb:?} with room: {expected:?}");
        assert_eq!(said(&outcome), said(expected), "{verb:?} without: {outcome:?}");
    }
    // Each has the files for itself; so each waits for the others.
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| cli.run(reads[0]))).collect();
        for one in all {
            let outcome = one.join().expect("a thread");
            assert_eq!(said(&outcome), said(&with_room[0]), "{outcome:?}");
        }
    });
    // Who follows keeps others away only where there is no room for memory that is shared.
    let writes: [&[&str]; 2] = [&["checkpoint", "create", "--json"], &["events", "tail", "--follow", "--json"]];
    for verb in &writes[..if with_logs { 1 } else { 2 }] {
        let outcome = cli.run(*verb);
        assert_full(&outcome, "what writes, and what would keep all others away");
        let error: Value = serde_json::from_str(&outcome.stderr).expect("an error line");
        let hint = error["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("free some space") && hint.contains("ic checkpoint prune"), "{error}");
    }
    Snapshot::of(cli.root()).assert_untouched_since(&before, "what only reads");
    // No look used up the room that a prune needs.
    assert_eq!(free(&point), 0);
    cli.ok(["checkpoint", "delete", &id, "--grace", "0s"]);
    fs::remove_file(ballast).expect("the ballast");
    assert_eq!(list(&cli).len(), 1);
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn the_room_for_a_prune_serves_as_often_as_the_disk_is_full() {
    let Some((cli, _disk, point)) = on_a_small_disk(24) else { return };
    let mut ids = Vec::new();
    for i in 0..10 {
        fs::write(cli.root().join("noise"), noise(900_000, i + 1)).expect("a file");
        ids.push(create(&cli));
    }
    let wanted = tree(&cli);
    let last = ids.pop().expect("a checkpoint");
    // What is given back is taken by others at once, and nothing else is ever freed.
    for (round, id) in ids.iter().enumerate() {
        let mut ballast = fs::File::create(point.join(format!("ballast{round}"))).expect("the ballast");
        while ballast.write_all(&[0; 4_096]).is_ok() {}
        assert_eq!(free(&point), 0, "round {round}");
        let deleted = cli.json(["checkpoint", "delete", id, "--grace", "0s", "--json"]);
        assert!(deleted["freed_bytes"].as_u64() > Some(800_000), "round {round}: {deleted}");
        assert!(free(&point) > 800_000, "round {round}: {} free", free(&point));
    }
    for round in 0..9 {
        fs::remove_file(point.join(format!("ballast{round}"))).expect("the ballast");
    }
    restored_elsewhere(&cli, &last).assert_is(&wanted, "the one that is kept");
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn a_purge_that_finds_no_room_to_rebuild_says_what_it_did_and_is_made_again() {
    let Some((cli, _disk, point)) = on_a_small_disk(24) else { return };
    fs::write(cli.root().join("secret"), "the-password-of-all").expect("a file");
    fs::write(cli.root().join("noise"), noise(3_000_000, 1)).expect("a file");
    let id = create(&cli);
    let ballast = fill(&point, 200_000);
    let outcome = cli.run(["checkpoint", "purge", "secret", "--yes", "--json"]);
    assert_full(&outcome, "a purge without room");
    assert!(!outcome.stderr.contains("nothing was changed"), "{outcome:?}");
    assert!(outcome.stderr.contains("repeat the call"), "{outcome:?}");
    assert_eq!(cli.run(["checkpoint", "cat", &id, "secret"]).code, Some(3));
    fs::remove_file(ballast).expect("the ballast");
    cli.ok(["checkpoint", "purge", "secret", "--yes"]);
    let store = fs::read(point.join("objects.db")).expect("the store");
    assert!(!store.windows(12).any(|bytes| bytes == b"the-password"), "nothing of it is left");
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn a_backup_to_a_disk_that_is_full_leaves_nothing_there() {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let point = cli.home().join("small");
    let Some(_disk) = Tmpfs::mount(&point, 4) else { return };
    let copy = point.join("copy.db");
    let copy = copy.to_str().expect("a plain path");
    cli.ok(["backup", copy]);
    let before = fs::read(copy).expect("a copy");
    fill(&point, 0);
    let outcome = cli.run(["backup", "--replace", copy, "--json"]);
    assert_full(&outcome, "there is no room for the copy");
    assert!(outcome.stderr.contains("where the copy is to be"), "{outcome:?}");
    assert_eq!(fs::read(copy).expect("the copy before it"), before);
    let names = fs::read_dir(&point).expect("the disk").map(|entry| entry.expect("an entry").file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("ic-backup")));
}

#[test]
fn a_redo_that_finds_no_room_never_says_that_nothing_was_changed_where_something_was() {
    let Some((cli, _disk, point)) = on_a_small_disk(24) else { return };
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    let work = cli.ok(["dispatch", "create", &run]);
    cli.ok(["dispatch", "start", &work]);
    for at in 0..6 {
        fs::write(cli.root().join(format!("noise{at}")), noise(150_000, at)).expect("a file");
    }
    cli.ok(["dispatch", "complete", &work]);
    let whole = tree(&cli);
    cli.ok(["undo", "--yes"]);
    let (mut closed, mut unfinished) = (0, 0);
    for room in [0, 36_864, 120_000, 180_000, 300_000, 480_000, 600_000, 900_000] {
        let ballast = fill(&point, room);
        let outcome = cli.run(["redo", "--yes", "--json"]);
        fs::remove_file(ballast).expect("the ballast");
        let status = cli.json(["status", &run, "--json"]);
        let is_closed = status["run"]["status"] == "rolling_back";
        let is_open = status["unfinished"].as_array().is_some_and(|all| !all.is_empty());
        if outcome.code != Some(0) {
            let is_changed = is_closed || is_open || cli.root().join("noise0").exists();
            let says_so = outcome.stderr.to_lowercase().contains("nothing was changed");
            assert!(!(is_changed && says_so), "{room}: {outcome:?}\n{status}");
            if is_closed {
                assert!(
                    outcome.stderr.contains("the run stays closed; resume it: ic rollback resume"),
                    "{room}: {outcome:?}"
                );
            }
        }
        closed += usize::from(is_closed);
        unfinished += usize::from(is_open);
        if is_closed {
            cli.ok(["rollback", "resume", &run, "--yes"]);
        } else if outcome.code != Some(0) {
            cli.ok(["redo", "--yes"]);
        }
        tree(&cli).assert_is(&whole, &format!("{room}: redone"));
        cli.ok(["undo", "--yes"]);
    }
    assert!(closed > 0 && unfinished > 0, "{closed} closed, {unfinished} unfinished");
}

/// Where there is no room for the shared memory of a log, a call has the file for itself, and does not wait for itself.
#[test]
fn an_undo_says_that_there_is_no_room_and_not_that_another_writes() {
    // Too small for a reserve.
    let Some((cli, _disk, point)) = on_a_small_disk(3) else { return };
    fs::write(cli.root().join("file"), "old").expect("a file");
    create(&cli);
    fs::write(cli.root().join("file"), "new").expect("a file");
    let _ballast = fill(&point, 0);
    let outcome = cli.run(["undo", "--yes", "--json"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "disk_full"), "{outcome:?}");
    assert_eq!(fs::read_to_string(cli.root().join("file")).expect("it is there"), "new");
}
