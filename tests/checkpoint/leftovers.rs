//! What killed captures and restores leave: nothing that stays. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, Random, rounds, tell};
use rusqlite::Connection;

use crate::failures::Immutable;
use crate::project::{create, project, restore, tree};

const SECRET: &str = "correct-horse-battery-staple-0451";

fn caches(cli: &Cli) -> PathBuf {
    cli.beside("objects.cache")
}

/// What lies beside the stat caches and is neither one of them, nor a lock, nor the file system's clock, nor what retention notes.
fn left(cli: &Cli) -> Vec<PathBuf> {
    let all = fs::read_dir(caches(cli)).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    all.filter(|path| {
        let name = path.file_name().expect("a name").as_bytes();
        let is_cache = name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit);
        let is_lock = name.ends_with(b".lock") || name.ends_with(b".lock.turn");
        let tells_time = name.ends_with(b".clock");
        !is_cache && !is_lock && !tells_time && ![&b"looked"[..], b"pruned", b"unswept"].contains(&name)
    })
    .collect()
}

/// Whether a file of the store, of whatever kind, has these bytes.
fn is_in_the_store(cli: &Cli, bytes: &[u8]) -> Vec<PathBuf> {
    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { below(&path, found) } else { found.push(path) }
        }
    }
    let mut all = Vec::new();
    below(&cli.root().join(".ic"), &mut all);
    all.retain(|path| fs::read(path).expect("a file").windows(bytes.len()).any(|window| window == bytes));
    all
}

/// A database with a write-ahead log that its writer keeps open, larger than a capture copies in a moment.
fn living_database(cli: &Cli) -> Connection {
    let writer = Connection::open(cli.root().join("app.db")).expect("a database");
    writer
        .execute_batch(&format!(
            "PRAGMA journal_mode=wal; CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
             INSERT INTO t SELECT i, randomblob(30000) FROM n;
             PRAGMA wal_checkpoint(truncate); INSERT INTO t VALUES (1000, '{SECRET}');"
        ))
        .expect("rows");
    writer
}

/// Starts a call and kills it after `wait`; returns whether it had ended by itself.
fn killed(mut command: Command, wait: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    std::thread::sleep(wait);
    // It fails if the call has ended, which is what the status says.
    let _ = child.kill();
    child.wait().expect("wait for ic").code().is_none()
}

fn micros(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).expect("microseconds")
}

#[test]
fn what_killed_captures_of_a_living_database_left_goes_with_the_next_command() {
    let cli = project();
    let writer = living_database(&cli);
    let first = create(&cli);
    let started = Instant::now();
    create(&cli);
    let usual = micros(started);
    let mut random = Random::seeded();
    let (mut kills, mut copies) = (0, 0);
    for round in rounds(12) {
        writer.execute("UPDATE t SET v = ?1 WHERE id = 1000", [round.to_string()]).expect("a change");
        let call = ["checkpoint", "create", "--auto"];
        kills += usize::from(killed(cli.command(call), Duration::from_micros(random.below(usual))));
        let found = left(&cli);
        copies += found.len();
        let checks = cli.json(["health", "--json"])["checks"].clone();
        let named = checks.as_array().expect("checks").iter().find(|check| check["name"] == "leftovers");
        let named = named.expect("what health says of leftovers")["detail"].as_str().expect("text").to_owned();
        assert_eq!(named == "none", found.is_empty(), "round {round}: {named}: {found:?}");
        assert_eq!(left(&cli), found, "health changes nothing");
        match round % 3 {
            0 => drop(cli.ok(["checkpoint", "prune"])),
            1 => drop(cli.ok(["checkpoint", "diff", &first])),
            _ => drop(create(&cli)),
        }
        assert_eq!(left(&cli), Vec::<PathBuf>::new(), "round {round}");
    }
    tell(&format!("{kills} killed, {copies} copies left and removed"));
    assert!(copies > 0, "no kill came at a moment that matters");
}

#[test]
fn what_killed_restores_left_goes_with_the_next() {
    let cli = project();
    let mut states = Vec::new();
    for state in 0..2 {
        for i in 0..100 {
            fs::write(cli.root().join(format!("f{i}")), format!("{state} {i} ").repeat(40)).expect("a file");
        }
        states.push((create(&cli), tree(&cli)));
    }
    let started = Instant::now();
    restore(&cli, &states[0].0);
    let usual = micros(started);
    let mut random = Random::seeded();
    let (mut kills, mut met) = (0, 0);
    for round in rounds(8) {
        let (id, wanted) = &states[1 - round % 2];
        let call = ["checkpoint", "restore", id, "--yes"];
        kills += usize::from(killed(cli.command(call), Duration::from_micros(random.below(usual))));
        met += left(&cli).len();
        restore(&cli, id);
        assert_eq!(left(&cli), Vec::<PathBuf>::new(), "round {round}");
        let found = tree(&cli);
        found.assert_no_temporary(&format!("round {round}"));
        found.assert_is(wanted, &format!("round {round}"));
    }
    tell(&format!("{kills} killed, {met} leftovers met"));
    assert!(kills > 0, "no kill came early enough to matter");
}

/// What processes left that died before a file was whole, and something unknown.
fn plant_unfinished(cli: &Cli) {
    let above = caches(cli);
    for name in [".tmpAbCdEf", ".tmpGhIjKl"] {
        fs::create_dir(above.join(name)).expect("a directory");
        fs::write(above.join(name).join("copy.db"), format!("a page with {SECRET}")).expect("a copy");
        fs::write(above.join(name).join("copy.db-wal"), format!("a log with {SECRET}")).expect("a log");
    }
    fs::write(above.join(".tmpMnOpQr"), "half of a stat cache").expect("a file");
    fs::create_dir(above.join("unknown")).expect("a directory");
}

#[test]
fn unfinished_files_of_the_dead_go_too() {
    for verb in ["create", "prune", "diff"] {
        let cli = project();
        let id = create(&cli);
        plant_unfinished(&cli);
        let of = (verb == "diff").then_some(id);
        cli.ok(["checkpoint", verb].map(str::to_owned).into_iter().chain(of));
        assert_eq!(left(&cli), [caches(&cli).join("unknown")], "{verb}");
    }
}

/// How many purges are on record.
fn purges(cli: &Cli) -> usize {
    let events = cli.ok(["events", "tail", "--all", "--since", "0", "--format", "jsonl"]);
    events.lines().filter(|line| line.contains("\"content_purged\"")).count()
}

#[test]
fn a_purge_clears_copies_of_what_it_purges_and_is_recorded() {
    let cli = project();
    let writer = living_database(&cli);
    create(&cli);
    drop(writer);
    plant_unfinished(&cli);
    // A copy whose owner was killed: its lock is free.
    let dead = caches(&cli).join("AbCdEf.scratch");
    fs::create_dir(&dead).expect("a directory");
    fs::write(dead.join("copy.db"), SECRET).expect("a copy");
    for wal in ["app.db-wal", "app.db-shm"] {
        let _ = fs::remove_file(cli.root().join(wal));
    }
    fs::remove_file(cli.root().join("app.db")).expect("the file goes");
    let before = purges(&cli);
    cli.ok(["checkpoint", "purge", "app.db", "--yes"]);
    assert_eq!(purges(&cli), before + 1);
    assert_eq!(left(&cli), [caches(&cli).join("unknown")]);
    assert_eq!(is_in_the_store(&cli, SECRET.as_bytes()), Vec::<PathBuf>::new());
    // And so is the next, which finds nothing more.
    cli.ok(["checkpoint", "purge", "app.db", "--yes"]);
    assert_eq!(purges(&cli), before + 2);
}

#[test]
fn a_purge_is_recorded_though_a_copy_cannot_be_removed() {
    let cli = project();
    fs::write(cli.root().join("token"), SECRET).expect("a file");
    let id = create(&cli);
    let dead = caches(&cli).join("AbCdEf.scratch");
    fs::create_dir(&dead).expect("a directory");
    fs::write(dead.join("copy.db"), "a copy").expect("a copy");
    let Some(_held) = Immutable::new(&dead.join("copy.db")) else { return };
    let before = purges(&cli);
    let report = cli.json(["checkpoint", "purge", "token", "--yes", "--json"]);
    let left = report["left"].as_array().expect("what is left").iter().find(|left| left["place"] == "copies");
    assert!(left.expect("the copy is named").to_string().contains("AbCdEf.scratch"), "{report}");
    assert_eq!(purges(&cli), before + 1);
    assert_ne!(cli.run(["checkpoint", "cat", &id, "token"]).code, Some(0));
}

/// What `health` says of leftovers.
fn leftovers_named(cli: &Cli) -> String {
    let checks = cli.json(["health", "--json"])["checks"].clone();
    let named = checks.as_array().expect("checks").iter().find(|check| check["name"] == "leftovers");
    named.expect("what health says of leftovers")["detail"].as_str().expect("text").to_owned()
}

#[test]
fn copies_of_an_index_and_stores_that_were_set_aside_are_named_and_prune_removes_what_is_nobodys() {
    let cli = project();
    let said = Command::new("git").args(["init", "-q"]).current_dir(cli.root()).status().expect("run git");
    assert!(said.success());
    assert_eq!(leftovers_named(&cli), "none");
    let [dead, living] = ["dead", "living"].map(|name| cli.root().join(format!(".git/ic-index-{name}")));
    for place in [&dead, &living] {
        fs::create_dir(place).expect("a directory");
        fs::write(place.join("owner"), "").expect("a file");
        fs::write(place.join("index"), SECRET).expect("a file");
    }
    let owner = fs::File::open(living.join("owner")).expect("the owner's file");
    owner.try_lock().expect("its lock");
    let aside = cli.beside("objects.damaged");
    fs::write(&aside, SECRET).expect("a file");
    let named = leftovers_named(&cli);
    assert!(named.contains("1 copy of git's index") && named.contains("ic checkpoint prune"), "{named}");
    assert!(named.contains(&format!("rm {}", aside.display())), "{named}");
    assert!(dead.exists() && living.exists(), "health changes nothing");
    cli.ok(["checkpoint", "prune"]);
    assert!(!dead.exists() && living.exists(), "what its owner uses stays");
    let named = leftovers_named(&cli);
    assert!(!named.contains("index") && named.contains("objects.damaged"), "{named}");
    fs::remove_file(aside).expect("remove it");
    assert_eq!(leftovers_named(&cli), "none");
}

#[test]
fn objects_that_leave_their_room_in_the_store_are_counted() {
    let cli = project();
    fs::write(cli.root().join("large"), "0123456789abcdef".repeat(4000)).expect("a file");
    fs::write(cli.root().join("small"), "one").expect("a file");
    let first = create(&cli);
    fs::write(cli.root().join("small"), "two").expect("a file");
    create(&cli);
    let call = ["checkpoint", "delete", &first, "--grace", "0s", "--format", "text"];
    let text = cli.ok(call);
    assert!(text.contains("objects removed") && !text.contains("0 B freed"), "{text}");
}
