//! Names of one file: what was one file is one again, what was not is none, and nothing is written through a name.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ic_testkit::{Cli, Random, TestDatabase, rounds};
use serde_json::Value;

use crate::project::{create, make_again, project, restore, take_back, told};

fn at(cli: &Cli, name: &str) -> PathBuf {
    cli.root().join(name)
}

fn write(cli: &Cli, name: &str, content: &str) {
    let path = at(cli, name);
    fs::create_dir_all(path.parent().expect("a directory above")).expect("its directory");
    // Another file each time: what has more names is not written through one of them.
    let _ = fs::remove_file(&path);
    fs::write(path, content).expect("a file");
}

fn link(cli: &Cli, old: &str, new: &str) {
    let path = at(cli, new);
    fs::create_dir_all(path.parent().expect("a directory above")).expect("its directory");
    let _ = fs::remove_file(&path);
    fs::hard_link(at(cli, old), path).expect("another name");
}

/// Content and mode of every file of these that is there, and the first of these that is the same file.
fn files(cli: &Cli, names: &[&str]) -> BTreeMap<String, (Vec<u8>, u32, String)> {
    let inode = |path: &Path| fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.ino());
    let there = names.iter().filter_map(|name| Some((*name, inode(&at(cli, name))?)));
    let there: Vec<(&str, u64)> = there.collect();
    let look = |(name, ino): &(&str, u64)| {
        let first = there.iter().find(|(_, other)| other == ino).expect("itself").0;
        let mode = fs::metadata(at(cli, name)).expect("a file").permissions().mode();
        ((*name).to_owned(), (fs::read(at(cli, name)).expect("a file"), mode, first.to_owned()))
    };
    there.iter().map(look).collect()
}

fn actions(report: &Value) -> Vec<(String, String)> {
    told(report, "changes", "change")
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

#[test]
fn two_names_of_one_file_come_back_as_one() {
    let cli = project();
    write(&cli, "d/b", "one");
    link(&cli, "d/b", "a");
    write(&cli, "e", "one");
    let names = ["a", "d/b", "e"];
    let before = files(&cli, &names);
    let id = create(&cli);
    for changed in ["both", "first", "tie", "other", "gone"] {
        match changed {
            "both" => fs::write(at(&cli, "a"), "through a name").expect("a write"),
            "first" => write(&cli, "a", "another file"),
            // Another file with the same content.
            "tie" => write(&cli, "a", "one"),
            "other" => link(&cli, "d/b", "e"),
            _ => fs::remove_dir_all(at(&cli, "d")).expect("it goes"),
        }
        let state = files(&cli, &names);
        assert_ne!(state, before, "{changed}");
        let diff = cli.json(["checkpoint", "diff", &id, "--json"]);
        assert!(!told(&diff, "changes", "change").is_empty(), "{changed}: {diff}");
        let preview = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
        let report = restore(&cli, &id);
        assert_eq!(files(&cli, &names), before, "{changed}: {report}");
        assert_eq!(preview["changes"], report["changes"], "{changed}");
        assert_eq!(report["not_kept"], serde_json::json!([]), "{changed}: {report}");
        take_back(&cli);
        assert_eq!(files(&cli, &names), state, "{changed}: after the undo");
        make_again(&cli);
        assert_eq!(files(&cli, &names), before, "{changed}: after the redo");
    }
}

#[test]
fn looks_are_not_changed_through_another_name() {
    let cli = project();
    write(&cli, "a", "same");
    write(&cli, "b", "same");
    let names = ["a", "b"];
    let id = create(&cli);
    let apart = files(&cli, &names);
    link(&cli, "a", "b");
    fs::set_permissions(at(&cli, "a"), fs::Permissions::from_mode(0o600)).expect("its mode");
    let tied = files(&cli, &names);
    restore(&cli, &id);
    assert_eq!(files(&cli, &names), apart);
    take_back(&cli);
    assert_eq!(files(&cli, &names), tied);
    // One file that gets another mode stays the one that it is.
    let second = create(&cli);
    let ino = fs::metadata(at(&cli, "a")).expect("a file").ino();
    fs::set_permissions(at(&cli, "b"), fs::Permissions::from_mode(0o644)).expect("its mode");
    let report = restore(&cli, &second);
    assert_eq!(actions(&report), pairs(&[("a", "chmod"), ("b", "chmod")]), "{report}");
    assert_eq!(files(&cli, &names), tied);
    assert_eq!(fs::metadata(at(&cli, "a")).expect("a file").ino(), ino, "in its place");
}

#[test]
fn a_restore_of_one_name_leaves_the_other_and_says_so() {
    let cli = project();
    write(&cli, "a", "one");
    link(&cli, "a", "b");
    let id = create(&cli);
    fs::write(at(&cli, "a"), "two").expect("through one name");
    let report = cli.json(["checkpoint", "restore", &id, "--path", "a", "--yes", "--json"]);
    let text = |name: &str| fs::read_to_string(at(&cli, name)).expect("a file");
    assert_eq!((text("a").as_str(), text("b").as_str()), ("one", "two"), "{report}");
    assert_eq!(told(&report, "not_kept", "reason")[0].0, "a", "{report}");
    let whole = restore(&cli, &id);
    assert_eq!(actions(&whole), pairs(&[("b", "modify")]), "{whole}");
    let inodes = ["a", "b"].map(|name| fs::metadata(at(&cli, name)).expect("a file").ino());
    assert_eq!(inodes[0], inodes[1], "they are one file again");
}

#[test]
fn a_name_outside_of_the_tree_is_not_written_through_and_is_named() {
    let cli = project();
    write(&cli, "a", "one");
    let outside = cli.home().join("outside");
    fs::hard_link(at(&cli, "a"), &outside).expect("a name outside");
    let id = create(&cli);
    let mode = |path: &Path| fs::metadata(path).expect("a file").mode() & 0o7777;
    fs::set_permissions(at(&cli, "a"), fs::Permissions::from_mode(0o600)).expect("its mode");
    for content in ["one", "two"] {
        fs::write(at(&cli, "a"), content).expect("content");
        let report = restore(&cli, &id);
        assert_eq!((fs::read(at(&cli, "a")).expect("a file"), mode(&at(&cli, "a"))), (b"one".to_vec(), 0o644));
        assert_eq!((fs::read_to_string(&outside).expect("a file").as_str(), mode(&outside)), (content, 0o600));
        assert_eq!(told(&report, "not_kept", "reason")[0].0, "a", "{report}");
        take_back(&cli);
        fs::remove_file(at(&cli, "a")).expect("it goes");
        fs::hard_link(&outside, at(&cli, "a")).expect("one file again");
    }
}

#[test]
fn a_restore_of_gits_state_alone_ties_nothing() {
    let cli = project();
    let git = |arguments: &[&str]| {
        let mut call = std::process::Command::new("git");
        call.current_dir(cli.root()).args(["-c", "user.name=n", "-c", "user.email=e@x"]).args(arguments);
        assert!(call.output().expect("git").status.success(), "{arguments:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    write(&cli, "a", "one");
    link(&cli, "a", "b");
    git(&["add", "a", "b"]);
    git(&["commit", "-q", "-m", "one"]);
    let id = create(&cli);
    git(&["branch", "other"]);
    write(&cli, "b", "one");
    let apart = files(&cli, &["a", "b"]);
    let report = cli.json(["checkpoint", "restore", &id, "--strategy", "git-only", "--yes", "--json"]);
    assert_eq!(actions(&report), pairs(&[]), "{report}");
    assert_eq!(files(&cli, &["a", "b"]), apart);
}

/// What chance does to a few names.
fn change(cli: &Cli, random: &mut Random, names: &[&str]) {
    let name = names[random.place_in(names.len())];
    match random.below(5) {
        0 => write(cli, name, ["one", "two"][random.place_in(2)]),
        1 => {
            let _ = fs::remove_file(at(cli, name));
        }
        2 if at(cli, name).exists() => {
            let mode = [0o644, 0o600][random.place_in(2)];
            fs::set_permissions(at(cli, name), fs::Permissions::from_mode(mode)).expect("its mode");
        }
        _ => {
            let other = names[random.place_in(names.len())];
            if at(cli, name).exists() && other != name {
                link(cli, name, other);
            }
        }
    }
}

#[test]
fn whatever_was_tied_and_cut_comes_back() {
    let mut random = Random::seeded();
    let names = ["a", "b", "c/d", "c/e", "f"];
    for round in rounds(6) {
        let cli = project();
        let mut states = Vec::new();
        for _ in 0..3 {
            for _ in 0..4 {
                change(&cli, &mut random, &names);
            }
            states.push((create(&cli), files(&cli, &names)));
        }
        for _ in 0..4 {
            for _ in 0..random.below(3) {
                change(&cli, &mut random, &names);
            }
            let before = files(&cli, &names);
            let (id, state) = &states[random.place_in(states.len())];
            let report = restore(&cli, id);
            assert_eq!(files(&cli, &names), *state, "round {round}: {before:?}: {report}");
            if report["status"] != "up_to_date" {
                take_back(&cli);
                assert_eq!(files(&cli, &names), before, "round {round}: the undo of {report}");
            }
        }
    }
}

#[test]
fn a_database_that_comes_with_its_log_is_tied_to_its_other_names_or_named() {
    // Which of two names of one database has a log beside it when it is restored.
    for logs in [&["a.db"][..], &["b.db"], &["a.db", "b.db"]] {
        let cli = project();
        TestDatabase::open(&at(&cli, "a.db")).run("CREATE TABLE t (v); INSERT INTO t VALUES (1);");
        link(&cli, "a.db", "b.db");
        let id = create(&cli);
        let wanted = files(&cli, &["a.db", "b.db"]);
        for name in ["a.db", "b.db"] {
            fs::remove_file(at(&cli, name)).expect("remove it");
        }
        for name in logs {
            TestDatabase::open(&at(&cli, name)).run("CREATE TABLE other (v);");
            write(&cli, &format!("{name}-wal"), "what a dead program left");
        }
        let preview = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
        let report = restore(&cli, &id);
        let named = told(&report, "not_kept", "reason");
        assert_eq!(told(&preview, "not_kept", "reason"), named, "{logs:?}: the preview is the plan");
        let now = files(&cli, &["a.db", "b.db"]);
        for name in ["a.db", "b.db"] {
            assert_eq!((&now[name].0, now[name].1), (&wanted[name].0, wanted[name].1), "{logs:?}: {name}");
            assert!(!at(&cli, &format!("{name}-wal")).exists(), "{logs:?}: {name}");
        }
        let is_tied = now["b.db"].2 == "a.db";
        let is_named: Vec<&str> = named.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(is_named, if is_tied { vec![] } else { vec!["b.db"] }, "{logs:?}: {report}");
        assert_eq!(is_tied, logs.len() == 1, "{logs:?}: one that has no log is tied to the other");
    }
}
