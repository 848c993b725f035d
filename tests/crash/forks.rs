//! Commands as work, and forks, aborted before each of their statements and killed between git's steps: nothing is lost, the same call then
//! does what it was to do, and undos take out exactly the rest.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use ic_testkit::{Cli, dies_with_its_git, git_in, long, tree};

use crate::campaign::assert_sound;

/// More statements than any of these verbs has: a loop that gets there never ended.
const TOO_MANY: usize = 400;

/// A project of git with a ledger in git's directory, and files that are not committed.
fn project() -> Cli {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints();
    git_in(cli.root(), &["init", "-q"]);
    std::fs::write(cli.root().join("f"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n").expect("a file");
    git_in(cli.root(), &["add", "-A"]);
    git_in(cli.root(), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
    cli.ok(["init"]);
    std::fs::write(cli.root().join("untracked"), "u\n").expect("a file");
    cli
}

fn fork(cli: &Cli) -> PathBuf {
    cli.root().with_file_name("project.forks").join("x")
}

/// Whether the call was aborted before its `n`-th statement.
fn aborted(cli: &Cli, arguments: &[&str], n: usize) -> bool {
    let output = cli.command(arguments).env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    assert!(output.status.success() || output.status.signal().is_some(), "{arguments:?} before {n}: {output:?}");
    output.status.signal().is_some()
}

/// Tries a call aborted before each statement, or in a short run before every 13th; `then` looks at what it left.
fn aborted_everywhere(arguments: &[&str], prepare: impl Fn(&Cli), then: impl Fn(&Cli, usize)) {
    let step = if long() { 1 } else { 13 };
    for n in (1..TOO_MANY).step_by(step) {
        let cli = project();
        prepare(&cli);
        if !aborted(&cli, arguments, n) {
            assert!(n > 20, "{arguments:?} has only {n} statements");
            return;
        }
        assert_sound(&cli);
        then(&cli, n);
        assert_sound(&cli);
    }
    panic!("{arguments:?} has more than {TOO_MANY} statements");
}

/// Undoes all that there is to undo.
fn undo_all(cli: &Cli) {
    while cli.run(["undo", "--yes"]).code == Some(0) {}
}

#[test]
fn aborted_command_runs_once_or_not_and_is_undone() {
    aborted_everywhere(
        &["exec", "--", "sh", "-c", "echo x >> made"],
        |_| {},
        |cli, n| {
            let made = std::fs::read_to_string(cli.root().join("made")).unwrap_or_default();
            assert!(matches!(made.as_str(), "" | "x\n"), "before {n}: {made}");
            cli.ok(["exec", "--", "sh", "-c", "echo later > later"]);
            assert_eq!(cli.json(["dispatch", "list", "--status", "running"]), serde_json::json!([]), "before {n}");
            cli.ok(["undo", "--yes"]);
            assert!(!cli.root().join("later").exists(), "before {n}");
            assert_eq!(std::fs::read_to_string(cli.root().join("made")).unwrap_or_default(), made, "before {n}");
        },
    );
}

/// A fork is made after whatever a killed call left of it.
fn assert_made_again(cli: &Cli, when: &str) {
    // What is there may be whole, or unfinished; in both cases it can be dropped.
    if cli.json(["compare"]).as_array().is_some_and(|forks| !forks.is_empty()) {
        cli.ok(["drop", "x"]);
    }
    assert_eq!(cli.ok(["fork", "--name", "x"]), fork(cli).display().to_string(), "{when}");
    let read = |name: &str| std::fs::read_to_string(fork(cli).join(name)).ok();
    assert_eq!((read("untracked").as_deref(), read("f").map(|text| text.len())), (Some("u\n"), Some(18)), "{when}");
    assert_eq!(git_in(&fork(cli), &["status", "--short"]), git_in(cli.root(), &["status", "--short"]), "{when}");
    assert!(cli.json(["adopt", "x"])["dispatch_id"].is_null(), "{when}");
}

#[test]
fn aborted_fork_is_made_again() {
    aborted_everywhere(&["fork", "--name", "x"], |_| {}, |cli, n| assert_made_again(cli, &format!("before {n}")));
}

#[test]
fn fork_that_was_killed_with_its_git_is_made_again() {
    for at in ["worktree", "read-tree"] {
        for leaves in ["", "git \"$@\""] {
            let cli = project();
            let before = tree(cli.root());
            dies_with_its_git(&mut cli.command(["fork", "--name", "x"]), cli.home(), at, leaves);
            assert_sound(&cli);
            assert_made_again(&cli, &format!("{at}, {leaves:?}"));
            assert_eq!(tree(cli.root()), before);
        }
    }
}

fn change_fork(cli: &Cli) {
    cli.ok(["fork", "--name", "x"]);
    std::fs::write(fork(cli).join("f"), "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n").expect("a file");
    for name in ["a", "b", "c"] {
        std::fs::write(fork(cli).join(name), name).expect("a file");
    }
    std::fs::write(cli.root().join("f"), "1\n2\n3\n4\n5\n6\n7\neight\n9\n").expect("a file");
}

#[test]
fn aborted_adoption_is_done_by_the_same_call_and_undone_whole() {
    aborted_everywhere(&["adopt", "x"], change_fork, |cli, n| {
        cli.ok(["adopt", "x"]);
        let read = |name: &str| std::fs::read_to_string(cli.root().join(name)).unwrap_or_default();
        assert_eq!(read("f"), "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n", "before {n}");
        assert_eq!(["a", "b", "c"].map(read), ["a", "b", "c"], "before {n}");
        let left = std::fs::read_dir(cli.root()).expect("a directory").flatten();
        let names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert!(names.into_iter().all(|name| !name.starts_with(".ic-restore-")), "before {n}");
        undo_all(cli);
        assert_eq!(read("f"), "1\n2\n3\n4\n5\n6\n7\neight\n9\n", "before {n}");
        assert!(["a", "b", "c"].iter().all(|name| !cli.root().join(name).exists()), "before {n}");
        assert_eq!(read("untracked"), "u\n", "before {n}");
    });
}

/// The last state of the fork is in a checkpoint, and its commit has a ref.
fn assert_dropped(cli: &Cli, head: &str, when: &str) {
    if fork(cli).exists() {
        cli.ok(["drop", "x"]);
    }
    assert!(!fork(cli).exists(), "{when}");
    let root = fork(cli).display().to_string();
    let kept = cli.json(["checkpoint", "list", "--root", root.as_str()]);
    let last =
        kept.as_array().and_then(|all| all.last()).expect("a checkpoint")["id"].as_str().expect("an id").to_owned();
    assert_eq!(cli.ok(["checkpoint", "cat", &last, "made"]), "last", "{when}");
    let refs = git_in(cli.root(), &["for-each-ref", "--format=%(objectname)", "refs/ic/forks"]);
    assert!(refs.lines().any(|one| one == head), "{when}: {refs}");
}

fn commit_in_fork(cli: &Cli) -> String {
    cli.ok(["fork", "--name", "x"]);
    std::fs::write(fork(cli).join("made"), "first").expect("a file");
    git_in(&fork(cli), &["add", "-A"]);
    git_in(&fork(cli), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "made"]);
    std::fs::write(fork(cli).join("made"), "last").expect("a file");
    git_in(&fork(cli), &["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
fn aborted_drop_is_done_by_the_same_call() {
    let head = std::cell::RefCell::new(String::new());
    let prepare = |cli: &Cli| drop(head.replace(commit_in_fork(cli)));
    aborted_everywhere(&["drop", "x"], prepare, |cli, n| assert_dropped(cli, &head.borrow(), &format!("before {n}")));
}

#[test]
fn drop_that_was_killed_with_its_git_is_done_by_the_same_call() {
    for at in ["update-ref", "worktree"] {
        for leaves in ["", "git \"$@\""] {
            let cli = project();
            let head = commit_in_fork(&cli);
            dies_with_its_git(&mut cli.command(["drop", "x"]), cli.home(), at, leaves);
            assert_sound(&cli);
            assert_dropped(&cli, &head, &format!("{at}, {leaves:?}"));
        }
    }
}
