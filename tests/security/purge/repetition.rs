//! Content that was purged and comes into git afterwards is kept by no checkpoint: not staged, not committed, not in the stash.

use ic_testkit::{Cli, git_in, write_in};

use super::{SECRET, forget, holders, purge, repository};

/// A repository whose file had a secret that was purged, and stands there still.
fn purged() -> Cli {
    let cli = repository();
    write_in(cli.root(), "tok", format!("{SECRET}\n"));
    cli.ok(["checkpoint", "create"]);
    purge(&cli, "tok");
    assert_eq!(holders(&cli), Vec::<String>::new());
    cli
}

/// Takes a checkpoint, which keeps nothing of the secret and says so; returns it.
fn captured(cli: &Cli, after: &str) -> String {
    let made = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(holders(cli), Vec::<String>::new(), "{after}");
    let codes: Vec<_> = made["warnings"].as_array().into_iter().flatten().map(|one| &one["code"]).collect();
    assert!(codes.iter().any(|code| *code == "purged_in_git"), "{after}: {made}");
    made["id"].as_str().expect("an id").to_owned()
}

/// Git's state of it is refused; its files come back, and the secret does not.
fn brings_no_secret(cli: &Cli, checkpoint: &str, after: &str) {
    let call = ["checkpoint", "restore", checkpoint, "--strategy", "full", "--yes"];
    assert_eq!(cli.refused(call), (Some(1), "git_unsupported".to_owned()), "{after}");
    write_in(cli.root(), "a", "changed\n");
    let files = cli.run(["checkpoint", "restore", checkpoint, "--strategy", "files-only", "--yes"]);
    assert!(matches!(files.code, Some(0 | 4)), "{after}: {files:?}");
    assert_eq!(std::fs::read_to_string(cli.root().join("a")).expect("a file"), "one\n", "{after}");
    assert_eq!(holders(cli), Vec::<String>::new(), "{after}");
}

#[test]
fn what_is_staged_committed_or_stashed_after_a_purge_is_not_kept() {
    let deeds: [(&str, &[&[&str]]); 3] = [
        ("staged", &[&["add", "tok"]]),
        ("committed", &[&["add", "tok"], &["commit", "-qm", "oops"]]),
        ("stashed", &[&["add", "tok"], &["stash", "-q"]]),
    ];
    for (after, deed) in deeds {
        let cli = purged();
        for words in deed {
            git_in(cli.root(), words);
        }
        let checkpoint = captured(&cli, after);
        // What git forgets is nowhere then.
        git_in(cli.root(), &["stash", "clear"]);
        git_in(cli.root(), &["reset", "-q", "--hard", "HEAD"]);
        if after == "committed" {
            git_in(cli.root(), &["reset", "-q", "--hard", "HEAD~1"]);
        }
        forget(&cli);
        brings_no_secret(&cli, &checkpoint, after);
    }
}

#[test]
fn the_commits_beside_it_are_kept_and_come_back() {
    let cli = purged();
    git_in(cli.root(), &["add", "tok"]);
    git_in(cli.root(), &["commit", "-qm", "oops"]);
    captured(&cli, "committed");
    git_in(cli.root(), &["rm", "-q", "--cached", "tok"]);
    git_in(cli.root(), &["commit", "-q", "--amend", "--allow-empty", "-m", "clean"]);
    std::fs::remove_file(cli.root().join("tok")).expect("remove it");
    write_in(cli.root(), "b", "kept\n");
    git_in(cli.root(), &["add", "b"]);
    git_in(cli.root(), &["commit", "-qm", "b"]);
    let clean = cli.json(["checkpoint", "create", "--json"]);
    let id = clean["id"].as_str().expect("an id");
    git_in(cli.root(), &["reset", "-q", "--hard", "HEAD~2"]);
    forget(&cli);
    cli.ok(["checkpoint", "restore", id, "--yes"]);
    assert_eq!(git_in(cli.root(), &["log", "--format=%s"]).lines().collect::<Vec<_>>(), ["b", "clean", "one"]);
    assert_eq!(holders(&cli), Vec::<String>::new());
}
