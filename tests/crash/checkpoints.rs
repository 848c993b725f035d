//! Aborting what captures and restores before each of its statements, in the ledger and in the object store.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use ic_testkit::{Cli, long};

use crate::campaign::assert_sound;

/// More statements than any of these verbs has: a loop that gets there never ended.
const TOO_MANY: usize = 400;

/// A project with two files and a checkpoint of them; then one changed, one gone, one new.
fn changed() -> (Cli, String, BTreeMap<String, String>) {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    write(&cli, "a.txt", "a\n");
    write(&cli, "sub/b.txt", "b\n");
    let target = cli.ok(["checkpoint", "create"]);
    let tree = files(cli.root());
    write(&cli, "a.txt", "changed\n");
    std::fs::remove_dir_all(cli.root().join("sub")).expect("remove a directory");
    write(&cli, "new.txt", "new\n");
    (cli, target, tree)
}

fn write(cli: &Cli, path: &str, content: &str) {
    let path = cli.root().join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, content).expect("a file");
}

/// Every file below a directory but the store's, with its content.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(root).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != ".ic" {
            all.extend(files(&path).into_iter().map(|(below, content)| (format!("{name}/{below}"), content)));
        } else if path.is_file() {
            all.insert(name, std::fs::read_to_string(&path).expect("a text"));
        }
    }
    all
}

/// Whether the call was aborted before its `n`-th statement.
fn aborted(cli: &Cli, arguments: &[&str], n: usize) -> bool {
    let mut command = cli.command(arguments);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    assert!(output.status.success() || output.status.signal().is_some(), "{arguments:?} before {n}: {output:?}");
    output.status.signal().is_some()
}

fn assert_readable(cli: &Cli) {
    assert_sound(cli);
    assert_eq!(cli.json(["checkpoint", "verify", "--read-data"])["ok"], true);
}

#[test]
fn an_aborted_capture_leaves_a_whole_checkpoint_or_none() {
    for n in 1..TOO_MANY {
        let (cli, _, _) = changed();
        if !aborted(&cli, &["checkpoint", "create", "--name", "second"], n) {
            assert!(n > 15, "a capture has only {n} statements");
            return;
        }
        assert_readable(&cli);
        let before = files(cli.root());
        cli.ok(["checkpoint", "create", "--name", "third"]);
        write(&cli, "a.txt", "lost\n");
        cli.ok(["checkpoint", "restore", "--name", "third", "--yes"]);
        assert_eq!(files(cli.root()), before, "before statement {n}");
    }
    panic!("a capture has more than {TOO_MANY} statements");
}

#[test]
fn an_aborted_restore_is_finished_by_the_next() {
    let (first, _, _) = changed();
    let changed_tree = files(first.root());
    for n in 1..TOO_MANY {
        let (cli, target, tree) = changed();
        if !aborted(&cli, &["checkpoint", "restore", &target, "--yes"], n) {
            assert!(n > 30, "a restore has only {n} statements");
            assert_eq!(files(cli.root()), tree);
            return;
        }
        assert_readable(&cli);
        cli.ok(["checkpoint", "restore", &target, "--yes"]);
        assert_eq!(files(cli.root()), tree, "before statement {n}");
        // Whatever was begun, what was there before is not lost.
        let kept = cli.json(["checkpoint", "list"]);
        let safety =
            kept.as_array().expect("a list").iter().find(|c| c["kind"] == "safety").expect("a safety checkpoint");
        let id = safety["id"].as_str().expect("an id");
        cli.ok(["checkpoint", "restore", id, "--yes"]);
        assert_eq!(files(cli.root()), changed_tree, "before statement {n}");
    }
    panic!("a restore has more than {TOO_MANY} statements");
}

#[test]
fn an_aborted_prune_loses_nothing_that_is_kept() {
    for n in 1..TOO_MANY {
        let (cli, _, _) = changed();
        for i in 0..3 {
            write(&cli, "a.txt", &format!("{i}\n").repeat(300));
            cli.ok(["checkpoint", "create", "--auto"]);
        }
        let prune = ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s"];
        let ended = !aborted(&cli, &prune, n);
        assert_readable(&cli);
        if ended {
            assert!(n > 10, "a prune has only {n} statements");
            return;
        }
    }
    panic!("a prune has more than {TOO_MANY} statements");
}

#[test]
fn an_aborted_repair_is_recorded_by_the_next() {
    // The marks of the store and of the ledger are more than four statements apart.
    for n in (1..TOO_MANY).step_by(if long() { 1 } else { 4 }) {
        let (cli, target, _) = changed();
        let shown = cli.json(["checkpoint", "show", &target, "--files", "--json"]);
        let of_file = shown["files"].as_array().expect("files").iter().find(|file| file["path"] == "a.txt");
        let hash = of_file.expect("the file")["sha256"].as_str().expect("a hash").to_owned();
        let store = rusqlite::Connection::open(cli.beside("objects.db")).expect("the store");
        store.execute("DELETE FROM objects WHERE lower(hex(hash)) = ?1", [&hash]).expect("lose a content");
        drop(store);
        let ended = !aborted(&cli, &["checkpoint", "verify", "--repair"], n);
        cli.ok(["checkpoint", "verify", "--repair"]);
        assert_readable(&cli);
        let complete = cli.json(["checkpoint", "show", &target, "--json"])["complete"].clone();
        let events = cli.json(["events", "tail", "--json"]);
        let of_it = events.as_array().expect("events").iter().filter(|event| event["kind"] == "content_lost");
        let named = of_it.filter(|event| event["payload"]["objects"][0] == hash.as_str()).count();
        assert!(complete == false && named > 0, "before statement {n}: {complete} {named}");
        if ended {
            assert!(n > 20, "a repair has only {n} statements");
            return;
        }
    }
    panic!("a repair has more than {TOO_MANY} statements");
}
