//! What a ledger on a server does not do yet is refused with a code, and changes nothing; what is not there is said.

use ic_testkit::Cluster;

use crate::cluster::{cluster, project_at, role_of_every_day};

#[test]
fn what_reaches_beyond_the_record_is_refused_and_changes_nothing() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop").with_checkpoints();
    std::fs::write(cli.root().join("a.txt"), "a").expect("a file");
    let flow =
        "name: f\nsteps:\n  - id: s\n    phase: plan\n    run: [touch, made]\n    compensate: {exec: [rm, made]}\n";
    std::fs::write(cli.root().join("f.yaml"), flow).expect("a workflow");
    let run = cli.ok(["run", "create", "--goal", "Port", "--phases", "plan,build,ship"]);
    cli.ok(["run", "advance", &run]);
    let before = cli.dump();
    for words in [
        &["checkpoint", "create"][..],
        &["checkpoint", "list"],
        &["redo", "--yes"],
        &["workflow", "run", "f.yaml"],
        &["compensation", "add", &run, "--step", "s", "--exec", "--", "true"],
        &["compensation", "run", &run, "--yes"],
        &["run", "rollback", &run, "--to-phase", "plan", "--layer=all", "--yes"],
        &["run", "rollback", &run, "--to-phase", "plan", "--layer=files", "--dry-run"],
        &["undo", "created", "--run", &run, "--yes"],
        &["rewind", "init", "--profile", "devs"],
        &["backup", "copy.db"],
    ] {
        let outcome = cli.run(words);
        assert_eq!((outcome.code, outcome.error()), (Some(1), "not_on_server".to_owned()), "{words:?}: {outcome:?}");
    }
    assert_eq!(cli.dump(), before);
    assert!(!cli.root().join(".ic.yaml").exists(), "nothing is configured that is refused");
    assert!(!cli.root().join("made").exists() && !cli.root().join("copy.db").exists());
    let kept: Vec<_> = std::fs::read_dir(cli.root().join(".ic"))
        .expect("the store")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name != "remote" && name != ".gitignore")
        .collect();
    assert!(kept.is_empty(), "no content is kept: {kept:?}");
    // The record alone goes back, and nothing more is offered.
    let preview = cli.ok(["run", "rollback", &run, "--to-phase", "plan", "--dry-run", "--format", "text"]);
    assert!(preview.contains("only the record is rolled back.") && !preview.contains("--layer"), "{preview}");
    cli.ok(["run", "rollback", &run, "--to-phase", "plan"]);
    cli.assert_sound("after the rollback");
}

#[test]
fn what_is_not_there_is_said_with_its_code() {
    let Some(cluster) = cluster(&[]) else { return };
    let none = project_at(&cluster.url("none"));
    assert_eq!(none.refused(["run", "list"]), (Some(3), "no_ledger".to_owned()));
    let database = cluster.url("shop").replace("/postgres?", "/nothing?");
    assert_eq!(project_at(&database).refused(["run", "list"]), (Some(3), "no_ledger".to_owned()));
    let shop = cluster.project("shop");
    cluster.psql("CREATE SCHEMA theirs; CREATE TABLE theirs.t (n int)");
    let theirs = project_at(&cluster.url("theirs"));
    assert_eq!(theirs.refused(["init"]), (Some(2), "foreign_database".to_owned()));
    assert!(!theirs.root().join(".ic/remote").exists());
    cluster.psql("CREATE ROLE eve LOGIN");
    let eves = project_at(&cluster.url("shop").replace("ic@", "eve@"));
    let refused = eves.run(["run", "list"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(2), "permission_denied"), "{refused:?}");
    cluster.stop("fast");
    let outcome = shop.run(["run", "list"]);
    assert_eq!((outcome.code, outcome.error()), (Some(2), "unreachable".to_owned()), "{outcome:?}");
}

#[test]
fn text_with_a_zero_character_and_paths_that_no_index_holds_are_refused() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    let before = cli.dump();
    let set = cli.run(["run", "set", &run, "--metadata-merge", "{\"a\": \"x\\u0000y\"}"]);
    assert_eq!(set.code, Some(0), "JSON escapes it: {set:?}");
    assert_ne!(cli.dump(), before);
    let dispatch = cli.ok(["dispatch", "create", &run]);
    // Random enough not to be compressed below what an index holds.
    let mut state = 7_u64;
    let name: String = (0..3900)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from(state >> 59).unwrap_or(0) % 26)
        })
        .collect();
    cli.ok(["dispatch", "record", &dispatch, "--file", &name]);
    cli.assert_sound("with a long path");
}

#[test]
fn what_was_changed_from_outside_is_named_and_never_taken_for_a_missing_ledger() {
    let Some(cluster) = cluster(&[]) else { return };
    let broken = |sql: &str| {
        let cli = cluster.project("shop");
        let run = cli.ok(["run", "create", "--goal", "Port"]);
        assert_eq!(cli.json(["health", "--json"])["ok"], true);
        cluster.psql(sql);
        let health = cli.run(["health", "--json"]);
        let listed = cli.run(["run", "status", &run]);
        cluster.psql("DROP SCHEMA IF EXISTS shop CASCADE");
        (health, listed)
    };
    for sql in [
        "DROP TRIGGER events_are_not_deleted ON shop.events",
        "ALTER TABLE shop.events ENABLE REPLICA TRIGGER events_are_not_changed",
        "ALTER TABLE shop.events DISABLE TRIGGER events_are_not_changed",
        "ALTER TABLE shop.runs DROP COLUMN goal",
        "DROP TABLE shop.run_agents CASCADE",
    ] {
        let (health, listed) = broken(sql);
        assert_eq!(health.code, Some(2), "{sql}: {health:?}");
        assert!(health.stdout.contains("changed from outside"), "{sql}: {health:?}");
        if listed.code != Some(0) {
            assert_eq!((listed.code, listed.error().as_str()), (Some(2), "corrupt"), "{sql}: {listed:?}");
            assert!(!listed.stderr.contains("There is no ledger"), "{sql}: {listed:?}");
        }
    }
}

#[test]
fn a_database_that_cannot_hold_every_text_gets_no_ledger() {
    let Some(cluster) = cluster(&[]) else { return };
    cluster.psql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    let latin = project_at(&cluster.url("shop").replace("/postgres?", "/latin?"));
    let refused = latin.run(["init"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"), "{refused:?}");
    assert!(refused.stderr.contains("LATIN1") && refused.stderr.contains("UTF8"), "{refused:?}");
}

#[test]
fn a_reader_who_is_held_up_and_a_writer_that_is_stopped_end_within_their_time() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    cli.ok(["run", "create", "--goal", "Port"]);
    let mut holder = hold_events(&cluster, 60);
    let outcome = cli.run(["--busy-timeout", "300ms", "events", "tail"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"), "{outcome:?}");
    cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()");
    holder.wait().expect("its end");
    // A role whose statements are bounded by default reads the record also where that takes longer than its bound.
    let mut holder = hold_events(&cluster, 2);
    cluster.psql("ALTER ROLE ic SET statement_timeout = '500ms'");
    assert_eq!(cli.run(["events", "verify"]).code, Some(0));
    holder.wait().expect("its end");
}

/// Another session that keeps every reader from the events for some seconds. It has the lock when this returns.
fn hold_events(cluster: &Cluster, seconds: u32) -> std::process::Child {
    let sql = format!("BEGIN; LOCK TABLE shop.events IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds})");
    let mut holder = std::process::Command::new("psql");
    holder.args(["-XAtq", "-U", "ic", "-d", "postgres", "-c", &sql, "-h"]).arg(cluster.socket());
    let holder = holder.stdout(std::process::Stdio::null()).spawn().expect("a holder");
    ic_testkit::wait_for("the lock", || {
        cluster.psql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'shop.events'::regclass") != "0"
    });
    holder
}

#[test]
fn a_server_that_can_only_be_read_says_so() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    role_of_every_day(&cluster, "ann", "ALTER ROLE ann SET default_transaction_read_only = on");
    let anns = project_at(&cluster.url("shop").replace("ic@", "ann@"));
    let refused = anns.run(["--busy-timeout", "100ms", "run", "create", "--goal", "Port"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(2), "unreachable"), "{refused:?}");
    assert!(refused.stderr.contains("can only be read"), "{refused:?}");
    let health = anns.run(["health", "--json"]);
    assert!(health.code == Some(2) && health.stdout.contains("can only be read"), "{health:?}");
    drop(cli);
}

#[test]
fn a_clock_that_is_far_off_is_named() {
    let Some(cluster) = cluster(&[]) else { return };
    let off = cluster.project("shop").with_env("IC_TEST_CLOCK", "1771606515000");
    let health = off.run(["health", "--json"]);
    assert_eq!(health.code, Some(2), "{health:?}");
    assert!(health.stdout.contains("this machine's clock is -"), "{health:?}");
    // It records anyway.
    off.ok(["run", "create", "--goal", "Port"]);
    off.ok(["events", "verify"]);
}

#[test]
fn a_store_on_a_server_that_lacks_its_bits_is_mended_and_named_as_what_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let Some(cluster) = cluster(&[]) else { return };
    let cli = ic_testkit::Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    assert_eq!(cli.run(["--db", &cluster.url("shop"), "init"]).code, Some(0));
    std::fs::set_permissions(cli.root().join(".ic"), std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let again = cli.json(["init", "--json"]);
    assert!(again["db"].as_str().is_some_and(|db| db.contains("ledger=shop")), "{again}");
    assert_eq!(again["created"], false, "{again}");
    let mode = std::fs::metadata(cli.root().join(".ic")).expect("the store").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
