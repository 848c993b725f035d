//! Files of a store that were damaged, or put in each other's place: by hand, from a backup, from another project.

use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, one_file};

fn cli() -> Cli {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    cli.ok(["run", "create", "--goal", "first", "--phases", "a,b"]);
    cli
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn runs(cli: &Cli, count: usize) {
    for n in 0..count {
        cli.ok(["run", "create", "--goal", &format!("g{n}"), "--phases", "a,b"]);
    }
}

/// Copies files with their times.
fn copy(from: &[&Path], to: &Path) {
    let copied = Command::new("cp").arg("-p").args(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()));
}

/// Nothing is written until the older ledger is accepted, and `health` says so.
fn assert_behind(cli: &Cli, why: &str) {
    let health = cli.run(["health", "--format", "text"]);
    assert_eq!(health.code, Some(2), "{why}: {health:?}");
    assert!(health.stdout.contains("this store has held event"), "{why}: {health:?}");
    assert!(health.stdout.contains("--accept-older"), "{why}: {health:?}");
    let refused = cli.refused(["run", "create", "--goal", "n", "--phases", "a,b"]);
    assert_eq!(refused, (Some(2), "ledger_behind".to_owned()), "{why}");
    // A look ends as the call would.
    let previews: [&[&str]; 9] = [
        &["undo"],
        &["redo"],
        &["run", "rollback", "@", "--to-phase", "a"],
        &["redo", "0123456789"],
        &["rollback", "resume", "0123456789"],
        &["rollback", "abort", "0123456789"],
        &["compensation", "run", "@"],
        &["checkpoint", "restore", "--latest"],
        &["checkpoint", "prune", "--older-than", "1d"],
    ];
    for words in previews {
        let refused = cli.refused([words, &["--dry-run"]].concat());
        assert_eq!(refused, (Some(2), "ledger_behind".to_owned()), "{why}: {words:?}");
    }
    cli.ok(["health", "--accept-older"]);
    runs(cli, 1);
    assert!(cli.ok(["events", "verify"]).contains("\"ok\":true"), "{why}");
}

#[test]
fn a_log_that_lost_its_end_is_found_out() {
    for damage in ["cut", "flipped", "zeroed"] {
        let cli = cli();
        runs(&cli, 5);
        let log = beside(&cli.db(), "-wal");
        let mut bytes = std::fs::read(&log).expect("a log");
        let near_end = bytes.len() - 5_000;
        match damage {
            "cut" => bytes.truncate(bytes.len() - 1),
            "flipped" => bytes[near_end] ^= 4,
            _ => bytes[near_end..near_end + 4096].fill(0),
        }
        std::fs::write(&log, bytes).expect("a damaged log");
        assert_behind(&cli, damage);
    }
}

#[test]
fn an_older_ledger_with_its_log_and_their_times_is_found_out() {
    let cli = cli();
    runs(&cli, 2);
    let (db, log) = (cli.db(), beside(&cli.db(), "-wal"));
    copy(&[&db, &log], cli.home());
    runs(&cli, 4);
    copy(&[&cli.home().join("ic.db"), &cli.home().join("ic.db-wal")], db.parent().expect("the store"));
    assert_behind(&cli, "older");
}

#[test]
fn what_was_accepted_is_what_is_remembered() {
    let cli = cli();
    runs(&cli, 2);
    let copied = cli.home().join("copy.db");
    cli.ok(["backup", copied.to_str().expect("a plain path")]);
    runs(&cli, 3);
    let oldest = {
        std::fs::copy(cli.db(), cli.home().join("first.db")).expect("the file alone");
        cli.home().join("first.db")
    };
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(&cli.db(), suffix));
    }
    std::fs::copy(&copied, cli.db()).expect("the backup");
    cli.ok(["health", "--accept-older"]);
    // Older than what was accepted: its newest events stood in its log.
    std::fs::copy(&oldest, cli.db()).expect("the first file");
    assert_behind(&cli, "accepted");
}

#[test]
fn accepting_what_is_sound_loses_nothing() {
    let cli = cli().with_checkpoints();
    let content = cli.beside("objects.db");
    std::fs::write(cli.root().join("f"), "0").expect("a file");
    let kept = cli.ok(["checkpoint", "create"]);
    let older = one_file(&content);
    for n in 0..6 {
        if n == 3 {
            one_file(&content);
        }
        std::fs::write(cli.root().join(format!("f{n}")), format!("{n}").repeat(500)).expect("a file");
        cli.ok(["checkpoint", "create"]);
    }
    assert!(beside(&content, "-wal").exists(), "a log is left");
    cli.ok(["health", "--accept-older"]);
    std::fs::write(&content, older).expect("an older state");
    assert_eq!(cli.refused(["checkpoint", "create"]), (Some(2), "foreign_log".to_owned()));
    cli.run(["health", "--accept-older"]);
    assert_eq!(cli.ok(["checkpoint", "cat", &kept, "f"]), "0");
}

#[test]
fn the_log_of_another_projects_content_is_not_played_in() {
    let (own, other) = (cli().with_checkpoints(), cli().with_checkpoints());
    for n in 0..5 {
        std::fs::write(other.root().join(format!("g{n}")), format!("{n}").repeat(3_000)).expect("a file");
        other.ok(["checkpoint", "create"]);
    }
    std::fs::write(own.root().join("f"), "mine").expect("a file");
    let mine = own.ok(["checkpoint", "create"]);
    let content = own.beside("objects.db");
    one_file(&content);
    let before = std::fs::read(&content).expect("the content");
    std::fs::copy(beside(&other.beside("objects.db"), "-wal"), beside(&content, "-wal")).expect("its log");
    for words in [&["checkpoint", "create"][..], &["checkpoint", "verify", "--repair"]] {
        assert_eq!(own.refused(words), (Some(2), "foreign_log".to_owned()), "{words:?}");
    }
    assert_eq!(std::fs::read(&content).expect("the content"), before);
    own.run(["health", "--accept-older"]);
    assert_eq!(own.ok(["checkpoint", "cat", &mine, "f"]), "mine");
    own.ok(["checkpoint", "create"]);
}

#[test]
fn an_older_log_where_there_is_none_is_not_played_in() {
    let cli = cli();
    runs(&cli, 2);
    let log = beside(&cli.db(), "-wal");
    std::fs::copy(&log, cli.home().join("older.log")).expect("a log");
    let mut n = 0;
    while log.exists() {
        n += 1;
        assert!(n < 200, "the log is never folded in");
        runs(&cli, 1);
    }
    std::fs::copy(cli.home().join("older.log"), &log).expect("the older log");
    assert_eq!(cli.refused(["health"]), (Some(2), "foreign_log".to_owned()));
    cli.ok(["health", "--accept-older"]);
    assert_eq!(cli.json(["run", "list", "--json"]).as_array().map(Vec::len), Some(3 + n));
}

#[test]
fn a_note_that_cannot_be_written_is_named_by_health() {
    let cli = cli();
    let note = beside(&cli.db(), ".head");
    let _ = std::fs::remove_file(&note);
    std::fs::create_dir(&note).expect("something in its place");
    runs(&cli, 1);
    let health = cli.run(["health", "--format", "text"]);
    assert!(health.code == Some(2) && health.stdout.contains("ic.db.head cannot be read"), "{health:?}");
    std::fs::remove_dir(&note).expect("what was in its place");
    runs(&cli, 1);
    assert_eq!(cli.run(["health"]).code, Some(0));
}

#[test]
fn a_pipe_or_a_link_in_the_place_of_a_lock_holds_no_capture_up() {
    for name in ["objects.db.lock", "objects.db.lock.turn"] {
        let cli = cli().with_checkpoints();
        std::fs::write(cli.root().join("f"), "1").expect("a file");
        cli.ok(["checkpoint", "create"]);
        let lock = cli.beside(name);
        std::fs::remove_file(&lock).expect("the lock");
        assert!(Command::new("mkfifo").arg(&lock).status().is_ok_and(|status| status.success()));
        std::fs::write(cli.root().join("f"), "2").expect("a file");
        assert_eq!(cli.run(["checkpoint", "create"]).code, Some(2), "{name}: a pipe");
        std::fs::remove_file(&lock).expect("the pipe");
        let target = cli.home().join("target");
        std::os::unix::fs::symlink(&target, &lock).expect("a link");
        assert_eq!(cli.run(["checkpoint", "create"]).code, Some(2), "{name}: a link");
        assert!(!target.exists(), "{name}");
    }
}

#[test]
fn content_that_was_cut_off_within_a_page_can_be_repaired() {
    for at in [1_000, 4_096 * 3 + 17, 4_096 * 9 + 2_000] {
        let cli = cli().with_checkpoints();
        for n in 0..8 {
            for k in 0..3 {
                let path = cli.root().join(format!("x{n}{k}"));
                std::fs::write(path, format!("{n}{k}-").repeat(9_000)).expect("a file");
            }
            cli.ok(["checkpoint", "create"]);
        }
        let content = cli.beside("objects.db");
        one_file(&content);
        let file = std::fs::File::options().write(true).open(&content).expect("the content");
        file.set_len(at).expect("cut it off");
        let repaired = cli.run(["checkpoint", "verify", "--repair"]);
        assert_eq!(repaired.code, Some(0), "{at}: {repaired:?}");
        std::fs::write(cli.root().join("f"), "later").expect("a file");
        cli.ok(["checkpoint", "create"]);
        let health = cli.run(["health"]);
        assert_eq!(health.code, Some(0), "{at}: {health:?}");
    }
}

/// Moves the content away, without its log, which is in it.
fn put_aside(content: &Path, aside: &Path) {
    one_file(content);
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(content, suffix));
    }
    std::fs::rename(content, aside).expect("move the content away");
}

#[test]
fn content_that_comes_back_is_not_written_over_by_the_log_of_what_stood_in_its_place() {
    for is_of_earlier_version in [false, true] {
        let cli = cli().with_checkpoints();
        let run = cli.json(["run", "list", "--json"])[0]["id"].as_str().expect("a run").to_owned();
        let (content, aside) = (cli.beside("objects.db"), cli.home().join("aside.db"));
        let kept: Vec<String> = (0..5)
            .map(|n| {
                std::fs::write(cli.root().join("f"), format!("{n}").repeat(300)).expect("a file");
                cli.ok(["checkpoint", "create", "--run", &run])
            })
            .collect();
        if is_of_earlier_version {
            let store = rusqlite::Connection::open(&content).expect("the store");
            store.execute("DROP TABLE made", []).expect("as it was made");
        }
        put_aside(&content, &aside);
        std::fs::write(cli.root().join("f"), "later").expect("a file");
        let later = cli.ok(["checkpoint", "create"]);
        std::fs::write(cli.root().join("f"), "last").expect("a file");
        cli.ok(["checkpoint", "create"]);
        let log = beside(&content, "-wal");
        assert!(std::fs::metadata(&log).is_ok_and(|log| log.len() > 32), "a log is left");
        std::fs::rename(&aside, &content).expect("move it back");
        let before = std::fs::read(&content).expect("the content");
        for words in [&["checkpoint", "create"][..], &["checkpoint", "diff", &later], &["blame", "f"]] {
            let outcome = cli.run(words);
            assert!(outcome.stderr.contains("foreign_log"), "{words:?}: {outcome:?}");
        }
        assert_eq!(std::fs::read(&content).expect("the content"), before);
        let health = cli.run(["health", "--format", "text"]);
        assert!(health.stdout.contains("--accept-older"), "{health:?}");
        cli.run(["health", "--accept-older"]);
        for (n, id) in kept.iter().enumerate() {
            assert_eq!(cli.ok(["checkpoint", "cat", id, "f"]), format!("{n}").repeat(300));
        }
        cli.ok(["checkpoint", "create"]);
    }
}

#[test]
fn a_ledger_of_another_course_of_events_is_not_written_over_by_a_log() {
    // How many events each of the two has beyond those that they share.
    for (one, other) in [(1, 1), (1, 4), (4, 1), (60, 2), (2, 60), (60, 80)] {
        let cli = cli();
        let run = cli.json(["run", "list", "--json"])[0]["id"].as_str().expect("a run").to_owned();
        let copy = cli.home().join("copy.db");
        cli.ok(["backup", copy.to_str().expect("a plain path")]);
        let add = |name: &str, count: usize| {
            for n in 0..count {
                cli.ok(["run", "artifact", "add", &run, "--path", &format!("{name}{n}")]);
            }
        };
        add("one", one);
        let kept = one_file(&cli.db());
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(beside(&cli.db(), suffix));
        }
        std::fs::copy(&copy, cli.db()).expect("the copy, in its place");
        cli.ok(["health", "--accept-older"]);
        add("other", other);
        std::fs::write(cli.db(), &kept).expect("the first one");
        for words in [&["run", "status", &run][..], &["run", "advance", &run]] {
            let refused = cli.refused(words.iter().copied());
            assert_eq!(refused, (Some(2), "foreign_log".to_owned()), "{one}, {other}: {words:?}");
        }
        assert_eq!(std::fs::read(cli.db()).expect("the file"), kept);
        cli.ok(["health", "--accept-older"]);
        assert!(cli.ok(["events", "verify"]).contains("\"ok\":true"), "{one}, {other}");
        let artifacts = cli.json(["run", "artifact", "list", &run, "--json"]);
        assert_eq!(artifacts.as_array().expect("a list").len(), one, "{one}, {other}");
        cli.ok(["run", "advance", &run]);
    }
}
