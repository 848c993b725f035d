//! What a restore says of git's tree is what git itself says, though git is not always asked for its status.

use std::fs;

use ic_testkit::{Cli, git_in};
use serde_json::Value;

use crate::project::create;

/// What is done between the checkpoint and the restore, beside the work itself.
type Between = fn(&Cli);

/// A repository with a clean tree, a checkpoint of it, and work after it: a commit, something staged, something neither.
fn worked(between: Between) -> (Cli, String) {
    let path = std::env::var_os("PATH").expect("a PATH");
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
    git_in(cli.root(), &["init", "-q"]);
    for name in ["a", "b", "c"] {
        fs::write(cli.root().join(name), format!("{name}\r\n")).expect("a file");
    }
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "clean"]);
    cli.ok(["init"]);
    let clean = create(&cli);
    for (name, staged, committed) in [("a", true, true), ("b", true, false), ("c", false, false)] {
        fs::write(cli.root().join(name), format!("{name} is changed\n")).expect("a file");
        if staged {
            git_in(cli.root(), &["add", name]);
        }
        if committed {
            git_in(cli.root(), &["commit", "-qm", "work"]);
        }
    }
    between(&cli);
    (cli, clean)
}

/// What the restore left, as its checkpoint has it.
fn left(cli: &Cli, words: &[&str]) -> Value {
    let outcome = cli.run([&["checkpoint", "restore"], words, &["--yes", "--json"]].concat());
    let restored = outcome.json()["restored_checkpoint_id"].as_str().expect("a checkpoint").to_owned();
    cli.json(["checkpoint", "show", &restored, "--json"])["git"].clone()
}

#[test]
fn a_restored_tree_is_called_clean_where_git_calls_it_clean() {
    let nothing: Between = |_| {};
    let attributes: Between = |cli| {
        let info = cli.root().join(".git/info");
        fs::create_dir_all(&info).expect("a directory");
        fs::write(info.join("attributes"), "* text\n").expect("attributes");
    };
    let moved_on: Between = |cli| {
        // A restore does not move the checkpoint's branch if another work tree has it checked out.
        git_in(cli.root(), &["checkout", "-q", "--detach"]);
    };
    let intended: Between = |cli| {
        fs::write(cli.root().join("new"), "new\n").expect("a file");
        git_in(cli.root(), &["add", "-N", "new"]);
    };
    let assumed: Between = |cli| {
        git_in(cli.root(), &["update-index", "--assume-unchanged", "c"]);
    };
    for (what, between, is_clean) in [
        ("nothing else", nothing, true),
        ("line ends are converted now", attributes, false),
        ("HEAD was detached", moved_on, true),
        ("a file is to be added", intended, true),
        ("a file is assumed to be unchanged", assumed, true),
    ] {
        let (cli, clean) = worked(between);
        let git = left(&cli, &[&clean]);
        let said = git_in(cli.root(), &["status", "--porcelain", "--untracked-files=no"]);
        assert_eq!(said.is_empty(), is_clean, "{what}: git says {said}");
        assert_eq!(git["dirty"], !is_clean, "{what}: {git}");
        // And so says the next checkpoint, which believes what was told.
        let next = create(&cli);
        assert_eq!(cli.json(["checkpoint", "show", &next, "--json"])["git"], git, "{what}");
        fs::write(cli.root().join("b"), "changed since\n").expect("a file");
        let after = create(&cli);
        assert_eq!(cli.json(["checkpoint", "show", &after, "--json"])["git"]["dirty"], true, "{what}");
    }
}

#[test]
fn a_tree_in_which_a_file_could_not_be_restored_is_not_called_clean() {
    let in_the_way: Between = |cli| {
        // A directory that is not empty stands where a file was, and what is in it is hidden by a rule.
        fs::write(cli.root().join(".git/info/exclude"), "hidden\n").expect("a rule");
        fs::remove_file(cli.root().join("c")).expect("the file");
        fs::create_dir(cli.root().join("c")).expect("a directory");
        fs::write(cli.root().join("c/hidden"), "precious\n").expect("a file");
    };
    let (cli, clean) = worked(in_the_way);
    let git = left(&cli, &[&clean, "--force"]);
    let said = git_in(cli.root(), &["status", "--porcelain", "--untracked-files=no"]);
    assert_eq!(git["dirty"], !said.is_empty(), "git says {said}, the checkpoint {git}");
}
