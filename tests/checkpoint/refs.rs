//! Refs of ours in a repository go when nothing that can be undone needs them.

use ic_testkit::{Cli, TestWorld, git_in};

use crate::project::{create, restore};

fn commit(cli: &Cli, text: &str) {
    std::fs::write(cli.root().join("a"), text).expect("a file");
    git_in(cli.root(), &["add", "a"]);
    git_in(cli.root(), &["commit", "-qm", text]);
}

#[test]
fn refs_of_restores_go_when_they_cannot_be_undone_any_more() {
    let path = std::env::var_os("PATH").expect("a PATH");
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
    git_in(cli.root(), &["init", "-q"]);
    commit(&cli, "one");
    cli.ok(["init"]);
    let first = create(&cli);
    let mut kept = Vec::new();
    for text in ["two", "three", "four"] {
        commit(&cli, text);
        let report = restore(&cli, &first);
        kept.push(report["git"]["kept_below"].as_str().expect("where it is kept").to_owned());
    }
    // Whatever is not of this ledger is not ours to judge.
    git_in(cli.root(), &["update-ref", "refs/ic/rolled-back/other/heads/main", "HEAD"]);
    let refs = |below: &str| git_in(cli.root(), &["for-each-ref", "--format=%(refname)", below]);
    assert!(kept.iter().all(|below| !refs(below).is_empty()), "{kept:?}");
    cli.ok(["checkpoint", "prune", "--older-than", "0s", "--keep-last", "0", "--grace", "0s"]);
    assert_eq!([refs(&kept[0]), refs(&kept[1])], ["", ""]);
    assert_ne!(refs(&kept[2]), "", "it can be undone");
    assert_ne!(refs("refs/ic/rolled-back/other"), "");
    cli.ok(["redo", "--yes"]);
    assert_eq!(git_in(cli.root(), &["log", "-1", "--format=%s"]), "four");
}

#[test]
fn a_branch_that_another_work_tree_uses_stays_and_is_named() {
    let path = std::env::var_os("PATH").expect("a PATH");
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
    git_in(cli.root(), &["init", "-q"]);
    commit(&cli, "one");
    cli.ok(["init"]);
    let side = cli.home().join("side");
    let side = side.to_str().expect("text");
    git_in(cli.root(), &["worktree", "add", "-q", "-b", "w2", side]);
    let first = create(&cli);
    git_in(cli.root(), &["-C", side, "commit", "-q", "--allow-empty", "-m", "theirs"]);
    let theirs = git_in(cli.root(), &["rev-parse", "w2"]);
    let named = |report: &serde_json::Value| {
        let differs = report["differs"].as_array().expect("a list");
        assert_eq!(differs.len(), 1, "{report}");
        let reason = differs[0]["reason"].as_str().expect("why");
        assert!(reason.starts_with(&format!("the branch w2 is {}", &theirs[..8])), "{reason}");
        assert!(reason.ends_with("another work tree uses it, so it stays"), "{reason}");
    };
    // Nothing is to be restored, but the report still names the branch that differs.
    let nothing = restore(&cli, &first);
    assert_eq!(nothing["status"], "up_to_date");
    named(&nothing);
    commit(&cli, "two");
    let preview = cli.json(["checkpoint", "restore", &first, "--dry-run", "--json"]);
    named(&preview);
    let restored = restore(&cli, &first);
    assert_eq!(restored["status"], "restored");
    named(&restored);
    assert_eq!(git_in(cli.root(), &["log", "-1", "--format=%s"]), "one");
    assert_eq!(git_in(cli.root(), &["rev-parse", "w2"]), theirs);
    // And what comes there later is not taken along by an undo.
    git_in(cli.root(), &["-C", side, "commit", "-q", "--allow-empty", "-m", "theirs, later"]);
    let theirs = git_in(cli.root(), &["rev-parse", "w2"]);
    cli.ok(["redo", "--yes"]);
    assert_eq!(git_in(cli.root(), &["log", "-1", "--format=%s"]), "two");
    assert_eq!(git_in(cli.root(), &["rev-parse", "w2"]), theirs);
}

fn with_git() -> TestWorld {
    let path = std::env::var_os("PATH").expect("a PATH");
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
    git_in(cli.root(), &["init", "-q"]);
    commit(&cli, "one");
    cli.ok(["init"]);
    TestWorld::around(cli)
}

/// A checkpoint, a restore of it, and then commits: what the restore did not move stays where it is when it is undone and made again.
#[test]
fn undoing_a_restore_moves_no_branch_that_it_did_not_move() {
    let world = with_git();
    world.ic(&["checkpoint", "create", "--name", "here"]);
    world.write("later", "later\n");
    world.ic(&["checkpoint", "restore", "--name", "here", "--yes"]);
    world.write("work", "work\n");
    let mine = world.commit("work");
    for (verb, is_there) in [("redo", true), ("undo", false), ("redo", true)] {
        let said = world.ic(&[verb, &world.cli.last_restore(), "--yes", "--format", "text"]);
        assert!(!said.contains("work tree uses it") && !said.contains("not all of it"), "{verb}: {said}");
        assert_eq!((world.head(), world.read("later").is_some()), (mine.clone(), is_there), "{verb}");
        assert_eq!(world.text("work"), "work\n", "{verb}");
    }
}

#[test]
fn undoing_a_restore_refuses_to_move_a_branch_that_moved_since() {
    let world = with_git();
    world.ic(&["checkpoint", "create", "--name", "here"]);
    world.write("work", "work\n");
    let gone = world.commit("work");
    world.ic(&["checkpoint", "restore", "--name", "here", "--yes"]);
    assert_ne!(world.head(), gone);
    world.write("newer", "newer\n");
    let newer = world.commit("newer");
    let restore = world.cli.last_restore();
    for words in [&["redo", &restore, "--yes"][..], &["redo", "--yes"]] {
        assert_eq!(world.cli.refused(words), (Some(1), "foreign_commits".to_owned()), "{words:?}");
        assert_eq!((world.head(), world.read("work")), (newer.clone(), None));
    }
    world.ic(&["redo", "--yes", "--force"]);
    assert_eq!((world.head(), world.text("work")), (gone, "work\n".to_owned()));
    world.git(&["cat-file", "-e", &newer]);
}

#[test]
fn a_restore_that_moved_a_branch_moves_it_back_and_again() {
    let world = with_git();
    world.ic(&["checkpoint", "create", "--name", "here"]);
    let here = world.head();
    world.write("work", "work\n");
    let ahead = world.commit("work");
    world.ic(&["checkpoint", "restore", "--name", "here", "--yes"]);
    for (verb, head) in [("redo", &ahead), ("undo", &here), ("redo", &ahead), ("undo", &here)] {
        world.ic(&[verb, &world.cli.last_restore(), "--yes"]);
        assert_eq!(&world.head(), head, "{verb}");
        assert_eq!(world.read("work").is_some(), *head == ahead, "{verb}");
    }
    // A commit since the undo refuses it.
    world.ic(&["redo", "--yes"]);
    world.write("newer", "newer\n");
    let newer = world.commit("newer");
    assert_eq!(world.cli.refused(["undo", &world.cli.last_restore(), "--yes"]).1, "foreign_commits");
    assert_eq!(world.head(), newer);
}
