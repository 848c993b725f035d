//! A store that is lost or damaged: `health` knows it, everything says what to do, and that ends.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use ic_testkit::Cli;
use rusqlite::Connection;
use serde_json::Value;

use crate::project::{create, list, project, restore, tree};
use crate::snapshot::Snapshot;

/// Three checkpoints, of which each has content of its own.
struct Three {
    cli: Cli,
    run: String,
    kept: Vec<(String, Snapshot)>,
}

fn world() -> Three {
    let cli = project();
    fs::create_dir(cli.root().join("below")).expect("a directory");
    fs::write(cli.root().join("below/same"), "in all of them").expect("a file");
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c,d,e,f"]);
    let mut kept = Vec::new();
    for n in 0..3 {
        fs::write(cli.root().join("own"), format!("only in {n}")).expect("a file");
        fs::create_dir_all(cli.root().join(format!("dir{n}"))).expect("a directory");
        fs::write(cli.root().join(format!("dir{n}/file")), format!("since {n}")).expect("a file");
        let id = create(&cli);
        kept.push((id, tree(&cli)));
        let _ = fs::remove_dir_all(cli.root().join(format!("dir{n}")));
    }
    fs::write(cli.root().join("own"), "now").expect("a file");
    Three { cli, run, kept }
}

fn objects(cli: &Cli) -> PathBuf {
    cli.beside("objects.db")
}

fn sql(cli: &Cli, statement: &str) {
    Connection::open(objects(cli)).and_then(|store| store.execute_batch(statement)).expect("damage the store");
}

/// What `health` says of the store, which must not be well.
fn ill(cli: &Cli, how: &str) -> String {
    let outcome = cli.run(["health", "--json"]);
    assert_eq!(outcome.code, Some(2), "{how}: {outcome:?}");
    let checks: Value = outcome.json()["checks"].clone();
    let store = checks.as_array().expect("checks").iter().find(|check| check["name"] == "store");
    let store = store.expect("the store is looked at").clone();
    assert_eq!(store["ok"], false, "{how}: {store}");
    store["detail"].as_str().expect("text").to_owned()
}

fn repair(cli: &Cli, how: &str) -> Value {
    let outcome = cli.run(["checkpoint", "verify", "--repair", "--json"]);
    assert_eq!(outcome.code, Some(0), "{how}: {outcome:?}");
    outcome.json()
}

/// Everything works again.
fn assert_well(world: &Three, how: &str) {
    let Three { cli, run, .. } = world;
    for arguments in [
        &["health"][..],
        &["checkpoint", "verify", "--read-data"],
        &["checkpoint", "list"],
        &["checkpoint", "prune", "--grace", "0s"],
        &["checkpoint", "verify", "--repair"],
        &["events", "verify"],
    ] {
        let outcome = cli.run(arguments);
        assert_eq!(outcome.code, Some(0), "{how}: {arguments:?}: {outcome:?}");
    }
    let moved = cli.json(["run", "advance", run, "--json"]);
    assert!(moved["checkpoint_id"].is_string(), "{how}: {moved}");
    let (id, wanted) = (create(cli), tree(cli));
    fs::write(cli.root().join("own"), "changed again").expect("a file");
    restore(cli, &id);
    tree(cli).assert_is(&wanted, how);
}

#[test]
fn a_lost_store_is_named_and_its_way_out_ends() {
    type Damage = fn(&Cli);
    let damages: [(&str, Damage); 4] = [
        ("removed", |cli| fs::remove_file(objects(cli)).expect("the store")),
        ("emptied", |cli| fs::write(objects(cli), "").expect("the store")),
        ("no database", |cli| {
            fs::write(objects(cli), "no database at all\n".repeat(900)).expect("the store");
        }),
        ("without rows", |cli| sql(cli, "DELETE FROM objects; DELETE FROM packs;")),
    ];
    for (how, damage) in damages {
        let world = world();
        let cli = &world.cli;
        damage(cli);
        let found = ill(cli, how);
        assert!(found.contains("ic checkpoint verify --repair"), "{how}: {found}");
        // The run moves on, and says what to do.
        let moved = cli.json(["run", "advance", &world.run, "--json"]);
        assert!(moved["checkpoint_id"].is_null(), "{how}: {moved}");
        let warning = moved["warnings"][0]["message"].as_str().expect("a warning");
        assert!(warning.contains("ic checkpoint verify --repair"), "{how}: {warning}");
        let refused = cli.run(["checkpoint", "create"]);
        assert_eq!(refused.code, Some(2), "{how}: {refused:?}");
        assert!(refused.stderr.contains("ic checkpoint verify --repair"), "{how}: {refused:?}");
        let report = repair(cli, how);
        let lost = report["repaired"]["lost_checkpoint_ids"].as_array().expect("a list").len();
        assert!(lost >= 3, "{how}: {report}");
        assert!(list(cli).is_empty(), "{how}");
        let events = cli.json(["events", "tail", "--json"]);
        let reasons = events.as_array().expect("events").iter();
        assert_eq!(reasons.filter(|event| event["reason"] == "lost").count(), lost, "{how}");
        let gone = cli.refused(["checkpoint", "restore", &world.kept[0].0, "--yes"]);
        assert_eq!(gone, (Some(3), "checkpoint_not_found".to_owned()), "{how}");
        assert_well(&world, how);
    }
}

#[test]
fn what_can_still_be_read_stays() {
    let world = world();
    let cli = &world.cli;
    let hash_of = |id: &str, path: &str| {
        let shown = cli.json(["checkpoint", "show", id, "--files", "--json"]);
        let files = shown["files"].as_array().expect("files").clone();
        let file = files.iter().find(|file| file["path"] == path).expect("its file");
        file["sha256"].as_str().expect("a hash").to_owned()
    };
    let [(first, _), (second, wanted_second), (third, _)] = world.kept.as_slice() else { panic!("three") };
    // One file of the first, one that the working tree still has, and a directory of the third.
    let (gone, here) = (hash_of(first, "own"), hash_of(first, "below/same"));
    let directory =
        cli.json(["checkpoint", "show", third, "--json"])["tree_sha256"].as_str().expect("a hash").to_owned();
    for hash in [&gone, &here, &directory] {
        sql(cli, &format!("DELETE FROM objects WHERE lower(hex(hash)) = '{hash}'"));
    }
    ill(cli, "partly");
    let verified = cli.run(["checkpoint", "verify", "--json"]);
    assert_eq!(verified.code, Some(2), "{verified:?}");
    let report = repair(cli, "partly");
    let repaired = &report["repaired"];
    assert_eq!(repaired["lost_checkpoint_ids"], serde_json::json!([third]), "{report}");
    assert_eq!(repaired["partial_checkpoint_ids"], serde_json::json!([first]), "{report}");
    assert_eq!(repaired["kept_again"], 1, "the tree still had it: {report}");
    // What is whole comes back exactly.
    restore(cli, second);
    tree(cli).assert_is(wanted_second, "a checkpoint that was whole");
    // What is not comes back but for what is gone, and that is named.
    let shown = cli.json(["checkpoint", "show", first, "--json"]);
    assert_eq!(shown["complete"], false, "{shown}");
    let restored = cli.run(["checkpoint", "restore", first, "--yes", "--json"]);
    assert_eq!(restored.code, Some(4), "{restored:?}");
    assert_eq!(restored.json()["skipped"][0]["path"], "own", "{restored:?}");
    let read = |path: &str| fs::read_to_string(cli.root().join(path)).expect("a file");
    assert_eq!((read("dir0/file").as_str(), read("own").as_str()), ("since 0", "only in 1"));
    assert_well(&world, "partly");
}

#[test]
fn damaged_bytes_are_told_from_whole_ones() {
    let world = world();
    let cli = &world.cli;
    let (second, wanted) = &world.kept[1];
    // The pack that the last checkpoint added.
    sql(cli, "UPDATE packs SET data = substr(data, 1, length(data) / 2) WHERE id = (SELECT max(id) FROM packs)");
    ill(cli, "a damaged pack");
    let report = repair(cli, "a damaged pack");
    let lost = report["repaired"]["lost_checkpoint_ids"].as_array().expect("a list");
    assert!(!lost.iter().any(|id| id == second), "{report}");
    restore(cli, second);
    tree(cli).assert_is(wanted, "a checkpoint that was whole");
    // Pages of the file itself.
    let store = objects(cli);
    let mut bytes = fs::read(&store).expect("the store");
    for page in bytes.chunks_mut(4096).skip(2) {
        page[..200].fill(0xA5);
    }
    fs::write(&store, bytes).expect("the store");
    ill(cli, "damaged pages");
    let report = repair(cli, "damaged pages");
    let aside = report["repaired"]["set_aside"].as_str().expect("a path");
    assert!(fs::metadata(aside).is_ok_and(|meta| meta.len() > 0), "the damaged file is kept: {report}");
    // What leaked may stand in it: a purge says so.
    let purged = cli.run(["checkpoint", "purge", "own", "--yes", "--json"]);
    assert!(purged.stdout.contains(aside), "{purged:?}");
    assert_well(&world, "damaged pages");
}

#[test]
fn pruning_a_store_with_a_damaged_directory_sweeps_nothing() {
    let Three { cli, kept, .. } = world();
    let tree =
        cli.json(["checkpoint", "show", &kept[1].0, "--json"])["tree_sha256"].as_str().expect("a hash").to_owned();
    sql(&cli, &format!("DELETE FROM objects WHERE lower(hex(hash)) = '{tree}'"));
    let count = || {
        Connection::open(objects(&cli))
            .and_then(|store| store.query_row("SELECT count(*) FROM objects", [], |row| row.get::<_, i64>(0)))
    };
    let before = count().expect("a count");
    let pruned = cli.json(["checkpoint", "prune", "--grace", "0s", "--json"]);
    assert_eq!(pruned["warnings"][0]["code"], "not_swept", "{pruned}");
    assert_eq!(count().expect("a count"), before, "{pruned}");
}

#[test]
fn deleting_in_a_damaged_store_succeeds_and_says_that_nothing_was_swept() {
    let world = world();
    fs::remove_file(objects(&world.cli)).expect("the store");
    for (id, _) in &world.kept {
        let deleted = world.cli.run(["checkpoint", "delete", id, "--force", "--json"]);
        assert_eq!(deleted.code, Some(0), "{deleted:?}");
        assert_eq!(deleted.json()["checkpoint_ids"], serde_json::json!([id]), "{deleted:?}");
        assert!(deleted.stdout.contains("ic checkpoint verify --repair"), "{deleted:?}");
    }
}

#[test]
fn an_interrupted_restore_that_needs_lost_content_is_named_and_ends() {
    let mut met = 0;
    for n in (1..400).step_by(4) {
        let world = world();
        let cli = &world.cli;
        let (id, _) = &world.kept[0];
        let mut command = cli.command(["checkpoint", "restore", id, "--yes"]);
        let status = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic").status;
        if status.signal().is_none() {
            break;
        }
        if cli.sql("SELECT count(*) FROM restores WHERE state <> 'applied'") == "0" {
            continue;
        }
        met += 1;
        fs::remove_file(objects(cli)).expect("the store");
        let before = tree(cli);
        let stuck = cli.run(["redo", "--yes"]);
        assert_eq!((stuck.code, stuck.error().as_str()), (Some(2), "corrupt"), "{stuck:?}");
        assert!(stuck.stderr.contains("ic checkpoint verify --repair"), "{stuck:?}");
        let report = repair(cli, "interrupted");
        assert_eq!(report["repaired"]["restore_ids"].as_array().map(Vec::len), Some(1), "{report}");
        tree(cli).assert_is(&before, "a repair leaves the tree alone");
        assert_eq!(cli.refused(["redo", "--yes"]), (Some(1), "nothing_to_undo".to_owned()));
        assert_well(&world, "interrupted");
        if met == 3 {
            break;
        }
    }
    assert!(met > 0, "no restore was interrupted once it was begun");
}

#[test]
fn an_interrupted_rollback_that_needs_lost_content_is_named_and_ends() {
    let mut met = 0;
    for n in (1..800).step_by(9) {
        let world = world();
        let (cli, run) = (&world.cli, world.run.as_str());
        cli.ok(["run", "advance", run]);
        fs::write(cli.root().join("own"), "after the advance").expect("a file");
        let arguments = ["run", "rollback", run, "--to-phase", "a", "--layer=all", "--yes"];
        let mut command = cli.command(arguments);
        let status = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic").status;
        if status.signal().is_none() {
            break;
        }
        if cli.json(["run", "status", run])["status"] != "rolling_back" {
            continue;
        }
        met += 1;
        fs::remove_file(objects(cli)).expect("the store");
        let named = cli.run(["rollback", "resume", run, "--yes"]);
        assert!(
            named.code == Some(0) || format!("{named:?}").contains("ic checkpoint verify --repair"),
            "before {n}: {named:?}"
        );
        repair(cli, "a rollback");
        let resumed = cli.run(["rollback", "resume", run, "--yes"]);
        if resumed.code != Some(0) {
            let abandoned = cli.run(["rollback", "abort", run, "--yes"]);
            assert_eq!(abandoned.code, Some(0), "before {n}: {resumed:?} {abandoned:?}");
        }
        assert_ne!(cli.json(["run", "status", run])["status"], "rolling_back", "before {n}");
        if met == 4 {
            break;
        }
    }
    assert!(met > 0, "no rollback was interrupted");
}
