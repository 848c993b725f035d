//! Aborting what declares and makes undos before each of its statements, in the ledger and in the object store.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::Cli;

use crate::campaign::assert_sound;

/// More statements than any of these verbs has: a loop that gets there never ended.
const TOO_MANY: usize = 400;

/// A project with a run and a file.
fn begun() -> Cli {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    cli.ok(["run", "create", "--goal", "crash", "--phases", "a,b"]);
    std::fs::write(cli.root().join("settings"), "old").expect("a file");
    cli
}

fn read(cli: &Cli, name: &str) -> String {
    std::fs::read_to_string(cli.root().join(name)).unwrap_or_default()
}

/// Whether the call was aborted before its `n`-th statement.
fn aborted(cli: &Cli, arguments: &[&str], n: usize) -> bool {
    let mut command = cli.command(arguments);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    let ended = output.status.success() || output.status.signal().is_some();
    assert!(ended, "{arguments:?} before {n}: {output:?}");
    output.status.signal().is_some()
}

fn states(cli: &Cli) -> Vec<String> {
    let all = cli.json(["compensation", "list", "@"]);
    let all = all.as_array().expect("a list");
    all.iter().map(|one| one["status"].as_str().expect("a state").to_owned()).collect()
}

#[test]
fn an_aborted_declaration_is_whole_or_was_not_made() {
    let add = ["compensation", "add", "@", "--step", "settings", "--restore-file", "settings"];
    for n in 1..TOO_MANY {
        let cli = begun();
        let is_over = !aborted(&cli, &add, n);
        assert_sound(&cli);
        let declared = states(&cli);
        assert!(declared.is_empty() || declared == ["armed"], "before statement {n}: {declared:?}");
        if declared.is_empty() {
            cli.ok(add);
        }
        std::fs::write(cli.root().join("settings"), "new").expect("a file");
        cli.ok(["compensation", "run", "@", "--yes"]);
        assert_eq!(read(&cli, "settings"), "old", "before statement {n}");
        if is_over {
            assert!(n > 10, "a declaration has only {n} statements");
            return;
        }
    }
    panic!("a declaration has more than {TOO_MANY} statements");
}

#[test]
fn an_aborted_undo_is_finished_by_the_next() {
    let run = ["compensation", "run", "@", "--yes"];
    for n in 1..TOO_MANY {
        let cli = begun();
        let shell = |step: &str| {
            let line = format!("echo {step} >> log");
            cli.ok(["compensation", "add", "@", "--step", step, "--shell", &line]);
        };
        shell("first");
        cli.ok(["compensation", "add", "@", "--step", "settings", "--restore-file", "settings"]);
        cli.ok(["compensation", "add", "@", "--step", "build", "--skip"]);
        shell("last");
        std::fs::write(cli.root().join("settings"), "new").expect("a file");
        let is_over = !aborted(&cli, &run, n);
        assert_sound(&cli);
        cli.ok(run);
        assert_eq!(states(&cli), ["done", "done", "skipped", "done"], "before statement {n}");
        // At least once each, and in order.
        let log = read(&cli, "log");
        let mut order: Vec<&str> = log.lines().collect();
        order.dedup();
        assert_eq!(order, ["last", "first"], "before statement {n}");
        assert_eq!(read(&cli, "settings"), "old", "before statement {n}");
        assert_eq!(cli.json(["run", "status", "@"])["status"], "active", "before statement {n}");
        if is_over {
            assert!(n > 20, "an undo has only {n} statements");
            return;
        }
    }
    panic!("an undo has more than {TOO_MANY} statements");
}
