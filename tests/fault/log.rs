//! The log that a call leaves beside its ledger: one flush a call, bounded, and never taken for another file's.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, CliOutcome, long, one_file};

/// Two calls of a run of a hundred phases are two commits.
fn with_run() -> (Cli, String) {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let phases: Vec<String> = (0..100).map(|n| format!("p{n}")).collect();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", &phases.join(",")]);
    (cli, run)
}

/// The same, with a copy of it.
fn with_copy() -> (Cli, String, PathBuf) {
    let (cli, run) = with_run();
    let copy = cli.home().join("copy.db");
    cli.ok(["backup", copy.to_str().expect("a plain path")]);
    (cli, run, copy)
}

fn beside(cli: &Cli, suffix: &str) -> PathBuf {
    let mut name = cli.db().as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// A library that notes every flush of a program; `None` where no compiler is at hand.
fn counter(place: &Path) -> Option<PathBuf> {
    let source = place.join("count.c");
    std::fs::write(
        &source,
        "#include <fcntl.h>\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
         static void note(void) {\n\
             int to = open(getenv(\"FLUSHES\"), O_WRONLY | O_APPEND | O_CREAT, 0600);\n\
             if (to >= 0) { if (write(to, \".\", 1)) {} close(to); }\n\
         }\n\
         int fsync(int fd) { note(); return syscall(SYS_fsync, fd); }\n\
         int fdatasync(int fd) { note(); return syscall(SYS_fdatasync, fd); }\n",
    )
    .expect("the source");
    let library = place.join("count.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    built.is_ok_and(|status| status.success()).then_some(library)
}

#[test]
fn a_call_that_finds_a_log_flushes_once_and_one_that_reads_never() {
    let (cli, run) = with_run();
    let Some(library) = counter(cli.home()) else { return };
    let noted = cli.home().join("flushes");
    let flushes = |words: &[&str]| {
        let _ = std::fs::remove_file(&noted);
        let status = cli.command(words).env("LD_PRELOAD", &library).env("FLUSHES", &noted).status();
        assert!(status.is_ok_and(|status| status.success()), "{words:?}");
        length(&noted)
    };
    cli.ok(["run", "advance", &run]);
    assert!(length(&beside(&cli, "-wal")) > 32, "a log is left");
    assert_eq!(flushes(&["run", "advance", &run]), 1);
    assert_eq!(flushes(&["run", "status", &run]), 0);
    // Without a log: its header, its directory, and the commit.
    one_file(&cli.db());
    assert_eq!(flushes(&["run", "advance", &run]), 3);
}

/// A workflow of many steps, each of which needs the one before.
fn workflow(cli: &Cli, steps: u64) -> PathBuf {
    let flow = cli.home().join("flow.yaml");
    let step = |n| {
        let needs = if n == 0 { String::new() } else { format!(", needs: [s{}]", n - 1) };
        format!("  - {{id: s{n}, phase: work, run: ['true'], compensate: skip{needs}}}\n")
    };
    let all: String = (0..steps).map(step).collect();
    std::fs::write(&flow, format!("name: long\nsteps:\n{all}")).expect("a workflow");
    flow
}

#[test]
fn a_log_that_a_reader_keeps_long_is_told_by_health_and_short_again_when_that_has_ended() {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    let reader = rusqlite::Connection::open(cli.db()).expect("a reader");
    reader.execute_batch("BEGIN; SELECT count(*) FROM events;").expect("a read that stays open");
    cli.ok(["workflow", "run", workflow(&cli, 100).to_str().expect("a plain path")]);
    assert!(length(&beside(&cli, "-wal")) > 32 + 1125 * 4120, "it has grown");
    let health = || cli.ok(["health", "--format", "text"]);
    assert!(health().contains("it grows while a program reads the ledger for long"), "{}", health());
    drop(reader);
    cli.ok(["run", "create", "--goal", "g2", "--phases", "a,b"]);
    assert!(length(&beside(&cli, "-wal")) <= 32 + 128 * 4120, "it is short again");
    assert!(!health().contains("it grows"), "{}", health());
}

/// A step is three commits, and its log passes the length at which it is folded in several times.
#[test]
fn a_process_that_lives_long_flushes_once_a_write_and_folds_its_log_in_now_and_then() {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let Some(library) = counter(cli.home()) else { return };
    let (steps, flow) = (150, workflow(&cli, 150));
    let noted = cli.home().join("flushes");
    let words = ["workflow", "run", flow.to_str().expect("a plain path"), "--json"];
    let outcome = CliOutcome::of(cli.command(words).env("LD_PRELOAD", &library).env("FLUSHES", &noted));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let events: u64 = cli.sql("SELECT count(*) FROM events").parse().expect("a number");
    assert!(events > 2 * steps, "{events} events");
    let flushes = length(&noted);
    assert!((3 * steps..3 * steps + 60).contains(&flushes), "{flushes} flushes for {steps} steps");
}

#[test]
fn lone_commits_never_make_the_log_longer_than_its_bound() {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let commits = if long() { 10_000 } else { 120 };
    let (mut longest, mut folds, mut before) = (0, 0, 0);
    for n in 0..commits {
        cli.ok(["run", "create", "--goal", &format!("g{n}"), "--phases", "a,b"]);
        let now = length(&beside(&cli, "-wal"));
        longest = longest.max(now);
        folds += u32::from(now < before);
        before = now;
    }
    assert!(longest <= 32 + 128 * 4120, "{longest} bytes");
    assert!(folds > commits / 40, "{folds} folds of {commits}");
    cli.ok(["events", "verify"]);
}

#[test]
fn an_older_copy_in_the_ledgers_place_is_read_with_a_warning_and_written_when_it_is_accepted() {
    let (cli, run, copy) = with_copy();
    cli.ok(["run", "advance", &run]);
    std::fs::rename(&copy, cli.db()).expect("the copy, in its place");
    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(beside(&cli, suffix)).expect("the log");
    }
    let read = cli.run(["run", "phase", &run, "--format", "text"]);
    assert_eq!((read.code, read.stdout.contains("p0")), (Some(0), true), "{read:?}");
    assert!(read.stderr.starts_with("warning"), "{read:?}");
    // A script learns of it as well, beside the answer; a call that fails says it in its one line.
    let read = cli.run(["run", "status", &run, "--json"]);
    let warning: serde_json::Value = serde_json::from_str(&read.stderr).expect("one line of JSON");
    assert_eq!((read.code, warning["warning"]["code"].as_str()), (Some(0), Some("ledger_behind")), "{read:?}");
    assert_eq!(cli.run(["run", "status", &run, "--json", "--quiet"]).stderr, "");
    let lost = cli.run(["run", "status", "abcdef12", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&lost.stderr).expect("one line of JSON");
    assert_eq!(error["error"]["code"], "run_not_found", "{lost:?}");
    assert_eq!(error["error"]["details"]["ledger_behind"], true, "{lost:?}");
    let hint = error["error"]["hint"].as_str().expect("a hint");
    assert!(hint.starts_with("The ledger") && hint.contains("--accept-older; "), "and its own hint: {hint}");
    assert_eq!(cli.refused(["run", "advance", &run]), (Some(2), "ledger_behind".to_owned()));
    assert_eq!(cli.run(["health"]).code, Some(2));
    cli.ok(["health", "--accept-older"]);
    cli.ok(["run", "advance", &run]);
    assert_eq!(cli.run(["run", "phase", &run, "--format", "text"]).stderr, "");
}

#[test]
fn a_log_is_never_played_into_another_file() {
    let (cli, run) = with_run();
    let older = one_file(&cli.db());
    cli.ok(["run", "advance", &run]);
    let newest = one_file(&cli.db());
    cli.ok(["run", "advance", &run]);
    let log = std::fs::read(beside(&cli, "-wal")).expect("a log");
    std::fs::write(cli.db(), &older).expect("an older state");
    for words in [&["run", "status", &run][..], &["run", "advance", &run], &["health"]] {
        assert_eq!(cli.refused(words.iter().copied()), (Some(2), "foreign_log".to_owned()), "{words:?}");
    }
    assert_eq!(std::fs::read(cli.db()).expect("the file"), older);
    assert_eq!(std::fs::read(beside(&cli, "-wal")).expect("the log"), log);
    // Its own file again: nothing was lost.
    std::fs::write(cli.db(), &newest).expect("its own file");
    assert!(cli.ok(["run", "phase", &run]).contains("p2"));
    // Or the older one is kept, and the log beside it.
    std::fs::write(cli.db(), &older).expect("an older state");
    cli.ok(["health", "--accept-older"]);
    assert!(cli.ok(["run", "phase", &run]).contains("p0"));
    let aside = std::fs::read_dir(cli.db().parent().expect("its directory")).expect("a directory");
    let mut names = aside.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert!(names.any(|name| name.contains("-wal.aside-")), "the log is kept");
}

#[test]
fn a_store_that_is_copied_or_moved_whole_is_the_same_ledger() {
    let (cli, run) = with_run();
    cli.ok(["run", "advance", &run]);
    let moved = cli.home().join("moved");
    let store = cli.db().parent().expect("its directory").to_owned();
    let copied = Command::new("cp").arg("-r").arg(&store).arg(&moved).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let copy = moved.join("ic.db").to_string_lossy().into_owned();
    for words in [["run", "phase"], ["run", "advance"], ["run", "phase"]] {
        let outcome = cli.run(["--db", &copy, words[0], words[1], &run]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{words:?}: {outcome:?}");
    }
    assert!(cli.ok(["--db", &copy, "run", "phase", &run]).contains("p2"));
    assert!(cli.ok(["run", "phase", &run]).contains("p1"));
}

#[test]
fn a_backup_beside_eight_writers_is_a_sound_ledger() {
    let (cli, _) = with_run();
    let copy = cli.home().join("copy.db").to_string_lossy().into_owned();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let cli = &cli;
            scope.spawn(move || {
                for _ in 0..5 {
                    cli.ok(["run", "create", "--goal", &format!("g{n}"), "--phases", "a,b"]);
                }
            });
        }
        for _ in 0..5 {
            cli.ok(["backup", "--replace", "--content", &copy]);
            for words in [&["health"][..], &["events", "verify"]] {
                let outcome = cli.run([&["--db", &copy], words].concat());
                assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
            }
        }
    });
}

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn the_log_of_the_content_is_never_played_into_a_restored_store() {
    let (cli, _) = with_run();
    let (copy, content) = (cli.home().join("copy.db"), cli.beside("objects.db"));
    let made = |suffix: &str| content.with_file_name(format!("objects.db{suffix}"));
    let mut first = String::new();
    for n in 0..4 {
        std::fs::write(cli.root().join(format!("f{n}")), format!("{n}").repeat(200)).expect("a file");
        let made = cli.ok(["checkpoint", "create"]);
        first = if n == 0 { made } else { first };
    }
    cli.ok(["backup", "--content", copy.to_str().expect("a plain path")]);
    // The log begins anew after what the copy has, and then has more.
    std::fs::write(cli.root().join("large"), noise(6 << 20)).expect("a file");
    for n in 0..6 {
        std::fs::write(cli.root().join("f0"), format!("later {n}").repeat(300)).expect("a file");
        cli.ok(["checkpoint", "create"]);
    }
    assert!(std::fs::metadata(made("-wal")).expect("a log").len() > 0);
    std::fs::copy(cli.home().join("copy.db.objects.db"), &content).expect("the copy, in its place");
    let health = cli.run(["health"]);
    assert_eq!((health.code, health.stdout.contains("--accept-older")), (Some(2), true), "{health:?}");
    assert_eq!(cli.refused(["checkpoint", "create"]), (Some(2), "foreign_log".to_owned()));
    assert!(made("-wal").exists());
    cli.run(["health", "--accept-older"]);
    let names = std::fs::read_dir(content.parent().expect("the store")).expect("the store");
    let mut names = names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert!(names.any(|name| name.starts_with("objects.db-wal.aside-")), "the log is kept");
    // What the copy has is whole.
    assert_eq!(cli.ok(["checkpoint", "cat", &first, "f0"]), "0".repeat(200));
    cli.ok(["checkpoint", "create"]);
}

#[test]
fn an_older_file_under_a_log_that_was_left_long_is_not_opened() {
    let (cli, run, copy) = with_copy();
    for n in 0..20 {
        cli.ok(["run", "artifact", "add", &run, "--path", &format!("a{n}")]);
    }
    one_file(&cli.db());
    cli.ok(["status"]);
    // Beside a reader the log grows past what is left at rest.
    let mut reader =
        cli.command(["events", "tail", "--follow"]).stdout(std::process::Stdio::null()).spawn().expect("a reader");
    for n in 0..40 {
        cli.ok(["run", "artifact", "add", &run, "--path", &format!("b{n}")]);
    }
    reader.kill().expect("a reader");
    reader.wait().expect("a reader");
    let before = std::fs::read(beside(&cli, "-wal")).expect("a log");
    std::fs::copy(&copy, cli.db()).expect("an older file, in its place");
    assert_eq!(cli.refused(["run", "advance", &run]), (Some(2), "foreign_log".to_owned()));
    assert_eq!(std::fs::read(beside(&cli, "-wal")).expect("the log"), before);
    cli.ok(["health", "--accept-older"]);
    assert!(cli.ok(["events", "verify"]).contains("\"ok\":true"));
}

#[test]
fn what_others_put_in_the_place_of_an_unfinished_copy_gets_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let (cli, _) = with_run();
    let at = |name: &str| cli.home().join(name);
    std::fs::write(at("thesis"), "mine").expect("a file");
    std::os::unix::fs::symlink(at("thesis"), at(".m.db.ic-backup")).expect("a link");
    std::fs::write(at(".n.db.ic-backup"), "").expect("a file");
    std::fs::set_permissions(at(".n.db.ic-backup"), std::fs::Permissions::from_mode(0o666)).expect("its mode");
    for name in ["m.db", "n.db"] {
        let said = cli.run(["backup", at(name).to_str().expect("a plain path")]);
        assert_ne!(said.code, Some(0), "{said:?}");
        assert!(!at(name).exists(), "{name}");
    }
    assert_eq!(std::fs::read_to_string(at("thesis")).expect("it"), "mine");
    assert_eq!(std::fs::read_to_string(at(".n.db.ic-backup")).expect("it"), "");
}

#[test]
fn a_pipe_in_the_place_of_the_log_holds_nobody_up() {
    let (cli, run) = with_run();
    let log = beside(&cli, "-wal");
    let _ = std::fs::remove_file(&log);
    assert!(std::process::Command::new("mkfifo").arg(&log).status().expect("mkfifo").success());
    let said = cli.run(["run", "status", &run]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("\"code\""), "{said:?}");
}

#[test]
fn a_backup_that_dies_leaves_no_copy_of_that_name() {
    let (cli, _) = with_run();
    let (copy, content) = (cli.home().join("copy.db"), cli.home().join("copy.db.objects.db"));
    std::fs::write(cli.root().join("a"), "a").expect("a file");
    cli.ok(["checkpoint", "create"]);
    let words = ["backup", "--content", copy.to_str().expect("a plain path")];
    let mut deaths = 0;
    loop {
        let dies = (deaths + 1).to_string();
        let status = cli.command(words).env("IC_TEST_ABORT_BEFORE", dies).status().expect("the program");
        if status.success() {
            break;
        }
        deaths += 1;
        assert!(!copy.exists(), "death {deaths}: a copy of the ledger that is there is whole");
        if content.exists() {
            // It has its name first, and is whole; the next copy is told to replace it.
            std::fs::remove_file(&content).expect("the content");
        }
    }
    assert!(deaths > 3, "{deaths} deaths");
    assert!(copy.exists() && content.exists());
    let left = std::fs::read_dir(cli.home()).expect("the directory").map(|entry| entry.expect("one").file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("ic-backup")), "nothing unfinished");
    let copied = cli.run(["--db", words[2], "events", "verify"]);
    assert_eq!((copied.code, copied.stdout.contains("\"ok\":true")), (Some(0), true), "{copied:?}");
}

/// Whether calls of another user can be made here.
fn can_be_another() -> bool {
    let can = rustix::process::geteuid().is_root();
    if !can {
        println!("skipped: this needs root, to be another user");
    }
    can
}

/// A call of another user.
fn as_other(cli: &Cli, words: &[&str]) -> CliOutcome {
    use std::os::unix::process::CommandExt;
    // Others reach the project through it.
    for above in [cli.home(), cli.root()] {
        std::fs::set_permissions(above, PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    let mut command = cli.command(words);
    CliOutcome::of(command.uid(OTHER).gid(OTHER))
}

const OTHER: u32 = 4321;

/// Gives a store to another user, who may do no more with it than the modes of its directory and files say.
fn give(store: &Path, directory: u32, file: u32) {
    for entry in std::fs::read_dir(store).expect("the store").flatten() {
        std::os::unix::fs::chown(entry.path(), Some(OTHER), Some(OTHER)).expect("an owner");
        if entry.path().is_file() {
            std::fs::set_permissions(entry.path(), PermissionsExt::from_mode(file)).expect("a mode");
        }
    }
    std::os::unix::fs::chown(store, Some(OTHER), Some(OTHER)).expect("an owner");
    std::fs::set_permissions(store, PermissionsExt::from_mode(directory)).expect("a mode");
}

#[test]
fn a_ledger_that_may_only_be_read_is_read_with_its_log_and_a_write_is_refused() {
    if !can_be_another() {
        return;
    }
    let (cli, run) = with_run();
    cli.ok(["run", "advance", &run]);
    assert!(length(&beside(&cli, "-wal")) > 32, "the advance is in the log");
    give(cli.db().parent().expect("the store"), 0o500, 0o400);
    let read = as_other(&cli, &["run", "status", &run, "--json"]);
    assert_eq!((read.code, &read.json()["phase"]), (Some(0), &serde_json::json!("p1")), "{read:?}");
    let log = std::fs::read(beside(&cli, "-wal")).expect("the log");
    let refused = as_other(&cli, &["run", "advance", &run, "--json"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(2), "permission_denied"), "{refused:?}");
    assert_eq!(std::fs::read(beside(&cli, "-wal")).expect("the log"), log, "nothing was written");
    give(cli.db().parent().expect("the store"), 0o700, 0o600);
    let done = as_other(&cli, &["run", "advance", &run, "--json"]);
    assert_eq!((done.code, &done.json()["to_phase"]), (Some(0), &serde_json::json!("p2")), "{done:?}");
}

#[test]
fn a_log_that_another_user_left_is_not_passed_over() {
    if !can_be_another() {
        return;
    }
    let (cli, run) = with_run();
    cli.ok(["run", "advance", &run]);
    give(cli.db().parent().expect("the store"), 0o700, 0o600);
    // Without it the run would seem to be a phase back.
    std::os::unix::fs::chown(beside(&cli, "-wal"), Some(0), Some(0)).expect("an owner");
    for words in [["run", "status", &run, "--json"], ["run", "advance", &run, "--json"]] {
        let outcome = as_other(&cli, &words);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "permission_denied"), "{outcome:?}");
    }
    std::os::unix::fs::chown(beside(&cli, "-wal"), Some(OTHER), Some(OTHER)).expect("an owner");
    let read = as_other(&cli, &["run", "status", &run, "--json"]);
    assert_eq!(read.json()["phase"], "p1", "{read:?}");
}

#[test]
fn a_log_of_a_newer_program_is_not_played_by_an_older_one() {
    let (cli, run) = with_run();
    cli.ok(["run", "advance", &run]);
    one_file(&cli.db());
    // A newer program is killed after it has changed the schema: that is in the log alone.
    let newer = rusqlite::Connection::open(cli.db()).expect("the ledger");
    newer
        .execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE newer (one); PRAGMA user_version = 4242")
        .expect("a newer schema");
    let [file, log] = ["", "-wal"].map(|suffix| std::fs::read(beside(&cli, suffix)).expect("bytes"));
    drop(newer);
    let _ = std::fs::remove_file(beside(&cli, "-shm"));
    for (suffix, bytes) in [("", &file), ("-wal", &log)] {
        std::fs::write(beside(&cli, suffix), bytes).expect("as it was killed");
    }
    for words in [["run", "status", &run, "--json"], ["run", "advance", &run, "--json"]] {
        let outcome = cli.run(words);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "newer_schema"), "{outcome:?}");
    }
    // The newer program finds all that it wrote.
    let newer = rusqlite::Connection::open(cli.db()).expect("the ledger");
    let version: i64 = newer.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version");
    let tables: i64 = newer.query_row("SELECT count(*) FROM newer", [], |row| row.get(0)).expect("its table");
    let phase: String = newer.query_row("SELECT phase FROM runs", [], |row| row.get(0)).expect("the run");
    assert_eq!((version, tables, phase.as_str()), (4242, 0, "p1"));
}
