//! What a checkpoint promises, and where its promise is found again.

use std::fs;
use std::process::Command;

use ic_testkit::{Cli, CliOutcome};

use crate::project::project;

fn git(cli: &Cli, arguments: &[&str]) -> CliOutcome {
    let identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"];
    CliOutcome::of(Command::new("git").args(identity).args(arguments).current_dir(cli.root()))
}

fn commit(cli: &Cli, text: &str) {
    fs::write(cli.root().join("a"), text).expect("a file");
    for arguments in [&["add", "a"][..], &["commit", "-qm", text]] {
        let outcome = git(cli, arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
}

/// A project in a repository, for commands that find `git`.
fn repository() -> Cli {
    let path = std::env::var_os("PATH").expect("a PATH");
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
    assert_eq!(git(&cli, &["init", "-q"]).code, Some(0));
    commit(&cli, "one\n");
    cli.ok(["init"]);
    cli
}

/// The warning of a new checkpoint that a restore will not take git's state from it.
fn warned(cli: &Cli) -> (String, Option<String>) {
    let made = cli.json(["checkpoint", "create", "--json"]);
    let of_git =
        made["warnings"].as_array().into_iter().flatten().find(|warning| warning["code"] == "git_not_restorable");
    let message = of_git.map(|warning| warning["message"].as_str().expect("a message").to_owned());
    (made["id"].as_str().expect("an id").to_owned(), message)
}

#[test]
fn a_checkpoint_in_the_midst_of_a_merge_says_what_its_restore_refuses() {
    let cli = repository();
    assert_eq!(warned(&cli).1, None);
    assert_eq!(git(&cli, &["checkout", "-qb", "side"]).code, Some(0));
    commit(&cli, "side\n");
    assert_eq!(git(&cli, &["checkout", "-q", "main"]).code, Some(0));
    commit(&cli, "main\n");
    assert_eq!(git(&cli, &["merge", "-q", "side"]).code, Some(1), "they conflict");
    let (id, message) = warned(&cli);
    let message = message.expect("a warning");
    assert!(message.contains("a merge is in progress") && message.contains("files-only"), "{message}");
    // It is so.
    assert_eq!(git(&cli, &["merge", "--abort"]).code, Some(0));
    let refused = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!((refused.code, refused.error()), (Some(1), "git_in_progress".to_owned()), "{refused:?}");
    cli.ok(["checkpoint", "restore", &id, "--strategy", "files-only", "--yes", "--force"]);
    assert!(fs::read_to_string(cli.root().join("a")).expect("a file").contains("<<<<<<<"));
}

#[test]
fn a_checkpoint_of_a_sparse_checkout_says_what_its_restore_refuses() {
    let cli = repository();
    assert_eq!(git(&cli, &["sparse-checkout", "set", "src"]).code, Some(0));
    let (id, message) = warned(&cli);
    let message = message.expect("a warning");
    assert!(message.contains("the checkout is sparse") && message.contains("files-only"), "{message}");
    commit(&cli, "two\n");
    let refused = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!((refused.code, refused.error()), (Some(1), "git_unsupported".to_owned()), "{refused:?}");
}

#[test]
fn the_checkpoints_of_a_project_that_was_moved_are_named_and_restored() {
    let cli = project();
    let (old, new) = (cli.root().join("old"), cli.root().join("new"));
    fs::create_dir(&old).expect("a directory");
    fs::write(old.join("f"), "one\n").expect("a file");
    let at = |place: &std::path::Path, words: &[&str]| {
        let place = place.to_str().expect("text");
        cli.run([&["-C", place][..], words].concat())
    };
    assert_eq!(at(&old, &["init"]).code, Some(0));
    let made = at(&old, &["checkpoint", "create", "--json"]).json();
    let id = made["id"].as_str().expect("an id").to_owned();
    fs::rename(&old, &new).expect("move it");
    fs::write(new.join("f"), "two\n").expect("a file");

    let list = at(&new, &["checkpoint", "list", "--format", "text"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let shown = old.display().to_string();
    assert!(list.stderr.contains(&format!("1 checkpoint of {shown}, which is gone")), "{list:?}");
    let of_old = at(&new, &["checkpoint", "list", "--root", &shown, "--json"]).json();
    assert_eq!(of_old[0]["id"], id.as_str(), "{of_old}");
    let refused = at(&new, &["checkpoint", "restore", &id, "--yes", "--format", "text"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--into") && !refused.stderr.contains("ic -C"), "{refused:?}");
    let restored = at(&new, &["checkpoint", "restore", &id, "--into", "--yes", "--force"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(fs::read_to_string(new.join("f")).expect("a file"), "one\n");
    // The directory has checkpoints of its own now, so the hint is not given again.
    assert_eq!(at(&new, &["checkpoint", "list", "--format", "text"]).stderr, "");
}
