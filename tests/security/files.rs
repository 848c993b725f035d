//! Everything that is made is for the user alone, and nothing is written through what others put in its place.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, CliOutcome, git_in, older_ledger, write_in};

use crate::project::{bare, below, ends, give_away, is_root, pipe, project};

/// Runs a call under an umask that takes nothing away.
fn freely(cli: &Cli, arguments: &[&str]) -> CliOutcome {
    let call = cli.command(arguments);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(call.get_program()).args(call.get_args());
    shell.current_dir(cli.root()).env_clear().envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    CliOutcome::of(&mut shell)
}

/// What others may look at or change.
fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    let is_open = |path: &PathBuf| {
        let mode = std::fs::symlink_metadata(path).expect("its state").permissions().mode();
        mode & 0o077 != 0
    };
    below(directory).into_iter().filter(is_open).collect()
}

#[test]
fn everything_in_the_store_is_private() {
    let cli = bare();
    let ok = |arguments: &[&str]| {
        let outcome = freely(&cli, arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    };
    ok(&["init"]);
    git_in(cli.root(), &["init", "-q"]);
    write_in(
        cli.root(),
        "w.yaml",
        "name: w\nsteps:\n  - id: a\n    phase: p\n    run: 'echo x=1 >> $IC_OUTPUTS; echo said; exit 1'\n    compensate: {shell: 'echo undone'}\n",
    );
    let run = ok(&["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    let artifact = write_in(cli.root(), "plan.md", "plan");
    ok(&["run", "artifact", "add", &run, "--path", &artifact.to_string_lossy()]);
    ok(&["run", "advance", &run]);
    ok(&["checkpoint", "create", "--name", "n"]);
    write_in(cli.root(), "plan.md", "another");
    ok(&["checkpoint", "restore", "--name", "n", "--yes"]);
    assert_eq!(freely(&cli, &["workflow", "run", "w.yaml", "--on-failure", "rollback"]).code, Some(1));
    ok(&["checkpoint", "prune", "--older-than", "0s"]);
    let store = cli.root().join(".ic");
    let names: Vec<String> = below(&store).iter().map(|path| path.display().to_string()).collect();
    for made in ["ic.db", "objects.db", "objects.cache/", "owners/", "logs/", ".outputs", ".lock"] {
        assert!(names.iter().any(|name| name.contains(made)), "{made} is not among {names:?}");
    }
    assert_eq!(open_to_others(&store), Vec::<PathBuf>::new());
}

#[test]
fn the_copy_before_a_migration_is_private() {
    let cli = bare();
    let store = cli.home().join("store");
    std::fs::create_dir(&store).expect("a directory");
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o700)).expect("its mode");
    older_ledger(&store.join("ic.db"));
    let cli = cli.with_db(store.join("ic.db"));
    assert_eq!(freely(&cli, &["run", "list"]).code, Some(0));
    let copies = below(&store).into_iter().filter(|path| path.to_string_lossy().ends_with(".backup"));
    assert_eq!(copies.count(), 1);
    assert_eq!(open_to_others(&store), Vec::<PathBuf>::new());
}

#[test]
fn nothing_is_written_through_a_link_that_was_planted() {
    let cli = bare();
    let victim = write_in(cli.home(), "victim", "precious\n");
    git_in(cli.root(), &["init", "-q"]);
    // The temporary name of the pointer to a store has the number of the process.
    let script = "ln -s \"$1\" \".git/ic.$$.new\" && exec \"$0\" init --store \"$2\"";
    let call = cli.command(["version"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).arg(call.get_program()).arg(&victim).arg(cli.home().join("elsewhere"));
    let outcome = CliOutcome::of(shell.current_dir(cli.root()));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(&victim).expect("the victim"), "precious\n");
    assert!(cli.root().join(".git/ic").is_file());
}

#[test]
fn pipes_and_devices_in_the_place_of_files_hold_nobody_up() {
    for place in [".git", ".ic", ".ic.yaml", "w.yaml", ".git/commondir", ".ic/ic.db"] {
        for kind in ["pipe", "/dev/zero"] {
            let cli = bare();
            if place.starts_with(".git/") {
                git_in(cli.root(), &["init", "-q"]);
            } else if let Some((directory, _)) = place.split_once('/') {
                std::fs::create_dir(cli.root().join(directory)).expect("a directory");
            }
            let path = cli.root().join(place);
            if kind == "pipe" {
                pipe(&path);
            } else {
                symlink(kind, &path).expect("a link");
            }
            for call in [&["where"][..], &["config", "show"], &["run", "list"], &["workflow", "validate", "w.yaml"]] {
                let outcome = ends(&cli, call);
                assert!(outcome.code.is_some_and(|code| code <= 3), "{place} {kind} {call:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn a_capture_waits_for_no_pipe_and_follows_no_link() {
    let cli = project();
    let secret = write_in(cli.home(), "secret", "of another user");
    for name in ["journaled.db", "logged.db"] {
        let database = rusqlite::Connection::open(cli.root().join(name)).expect("a database");
        let mode = if name == "logged.db" { "wal" } else { "delete" };
        database.pragma_update(None, "journal_mode", mode).expect("its mode");
        database.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").expect("a table");
    }
    pipe(&cli.root().join("journaled.db-journal"));
    pipe(&cli.root().join("logged.db-wal"));
    pipe(&cli.root().join(".gitignore"));
    symlink(&secret, cli.root().join("link")).expect("a link");
    let made = ends(&cli, &["checkpoint", "create", "--json"]).json();
    let skipped = made["skipped"].to_string();
    assert!(skipped.contains("journaled.db\",\"reason\":\"unreadable"), "{skipped}");
    assert!(skipped.contains("logged.db\",\"reason\":\"unreadable"), "{skipped}");
    let id = made["id"].as_str().expect("an id");
    let files = cli.json(["checkpoint", "show", id, "--files", "--json"]);
    let link = files["files"].as_array().expect("files").iter().find(|file| file["path"] == "link");
    assert_eq!(link.expect("the link")["kind"], "symlink");
}

/// A database's journal may name a file that SQLite looks at, and removes, when it plays the journal back: one that was
/// prepared must not name what it likes.
#[test]
fn a_journal_that_was_prepared_removes_nothing() {
    let cli = project();
    let victim = write_in(cli.home(), "victim", "precious\n");
    let (made, tree) = (cli.home().join("made.db"), cli.root().join("app.db"));
    let database = rusqlite::Connection::open(&made).expect("a database");
    database.pragma_update(None, "cache_size", 1).expect("a small cache");
    database.execute_batch("CREATE TABLE t (x); BEGIN;").expect("a table");
    for number in 0..2000 {
        database.execute("INSERT INTO t VALUES (?1)", [number]).expect("a row");
    }
    database.execute_batch("COMMIT; BEGIN; UPDATE t SET x = x + 1;").expect("a change");
    let mut journal = std::fs::read(cli.home().join("made.db-journal")).expect("its journal");
    std::fs::copy(&made, &tree).expect("a copy");
    let name = victim.to_string_lossy().into_owned().into_bytes();
    let sum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
    journal.extend_from_slice(&(0x4000_0000_u32 / 4096 + 1).to_be_bytes());
    journal.extend_from_slice(&name);
    journal.extend_from_slice(&u32::try_from(name.len()).expect("a length").to_be_bytes());
    journal.extend_from_slice(&sum.to_be_bytes());
    journal.extend_from_slice(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    std::fs::write(cli.root().join("app.db-journal"), journal).expect("a journal");
    assert_eq!(ends(&cli, &["checkpoint", "create"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&victim).expect("the victim"), "precious\n");
}

#[test]
fn a_restore_lends_nobody_the_rights_of_who_restores() {
    if !is_root() {
        return;
    }
    let cli = project();
    let mode_of = |path: &Path| std::fs::metadata(path).expect("its state").permissions().mode() & 0o7777;
    for directory in ["mine", "theirs"] {
        let file = write_in(cli.root(), format!("{directory}/program"), "one");
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o6755)).expect("its mode");
    }
    for path in ["theirs", "theirs/program"] {
        give_away(cli.root().join(path));
    }
    std::fs::set_permissions(cli.root().join("theirs/program"), std::fs::Permissions::from_mode(0o6755))
        .expect("its mode");
    let made = cli.ok(["checkpoint", "create"]);
    write_in(cli.root(), "mine/program", "two");
    write_in(cli.root(), "theirs/program", "two");
    let outcome = cli.run(["checkpoint", "restore", &made, "--yes", "--json"]);
    assert!(outcome.code.is_some(), "{outcome:?}");
    for directory in ["mine", "theirs"] {
        let path = cli.root().join(directory).join("program");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "one", "{outcome:?}");
        let owner = std::fs::metadata(&path).expect("its state").uid();
        // Theirs lends what is theirs, and no group: it may be one that they are not in.
        let expected = if directory == "mine" { (0o6755, 0) } else { (0o4755, 12345) };
        assert_eq!((mode_of(&path), owner), expected, "{outcome:?}");
    }
}
