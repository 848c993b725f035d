//! Nothing outside of the root is written: not through links that stand where directories were, not through links that
//! are put there while a restore runs, and not through names that no capture can have made.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ic_base::Timestamp;
use ic_checkpoint::attributes::Attributes;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::objects::Objects;
use ic_checkpoint::restore::plan::{self, RestoreAction, RestorePlan, RestoreStep};
use ic_checkpoint::tree::{TreeEntry, TreeNode, TreeObject};
use ic_ledger::OpenOptions;
use ic_testkit::{Cli, WorkerEnding, rounds};

use crate::project::{create, project, restore, restore_in_part, take_back, told, tree};
use crate::snapshot::Snapshot;

/// A directory beside the project, with the same names in it as the project's own.
fn outside(cli: &Cli) -> PathBuf {
    let place = fs::canonicalize(cli.home()).expect("its path").join("outside");
    fill(&place, "outside");
    place
}

fn fill(directory: &Path, text: &str) {
    fs::create_dir_all(directory.join("deep")).expect("a directory");
    for name in ["x", "y", "z", "deep/x", "deep/y"] {
        fs::write(directory.join(name), format!("{text} {name}")).expect("a file");
    }
}

fn assert_same(found: &Path, before: &Snapshot, when: &str) {
    let now = Snapshot::of(found);
    now.assert_is(before, when);
    now.assert_untouched_since(before, when);
}

#[test]
fn links_in_place_of_directories_are_replaced_and_not_followed() {
    let cli = project();
    let outside = outside(&cli);
    let root = cli.root();
    fill(&root.join("absolute"), "inside");
    fill(&root.join("upwards"), "inside");
    fill(&root.join("a/b/c"), "inside");
    let target = create(&cli);
    let wanted = tree(&cli);
    let before = Snapshot::of(&outside);
    for name in ["absolute", "upwards", "a"] {
        fs::remove_dir_all(root.join(name)).expect("make room");
    }
    symlink(&outside, root.join("absolute")).expect("a link");
    symlink("../outside", root.join("upwards")).expect("a link");
    fs::create_dir_all(root.join("a/b")).expect("a directory");
    symlink("../../../outside", root.join("a/b/c")).expect("a link");
    let linked = tree(&cli);
    restore(&cli, &target);
    tree(&cli).assert_is(&wanted, "the restore");
    assert_same(&outside, &before, "the restore");
    take_back(&cli);
    tree(&cli).assert_is(&linked, "the undo");
    assert_same(&outside, &before, "the undo");
    // Only a part of what lies below a link.
    let outcome = cli.run(["checkpoint", "restore", &target, "--path", "absolute/deep/x", "--yes"]);
    assert!(matches!(outcome.code, Some(0 | 4)), "{outcome:?}");
    assert_same(&outside, &before, "the restore of a part");
}

#[test]
fn a_link_in_place_of_a_file_is_replaced_and_not_written_through() {
    let cli = project();
    let outside = outside(&cli);
    let before = Snapshot::of(&outside);
    for name in ["file", "mode"] {
        fs::write(cli.root().join(name), "a file").expect("a file");
    }
    symlink(outside.join("x"), cli.root().join("link")).expect("a link");
    let target = create(&cli);
    let wanted = tree(&cli);
    for name in ["file", "mode"] {
        fs::remove_file(cli.root().join(name)).expect("make room");
        symlink(outside.join("y"), cli.root().join(name)).expect("a link");
    }
    fs::remove_file(cli.root().join("link")).expect("make room");
    fs::write(cli.root().join("link"), "a file").expect("a file");
    restore(&cli, &target);
    tree(&cli).assert_is(&wanted, "the restore");
    assert_same(&outside, &before, "the restore");
    take_back(&cli);
    assert_same(&outside, &before, "the undo");
}

#[test]
fn a_directory_that_is_swapped_for_a_link_meanwhile_leads_nowhere() {
    let cli = project();
    let outside = outside(&cli);
    let (here, away) = (cli.root().join("d"), outside.with_file_name("away"));
    let ids: Vec<String> = ["one", "two"]
        .iter()
        .map(|text| {
            fill(&here, text);
            for i in 0..40 {
                fs::write(here.join(format!("deep/{i}")), format!("{text} {i}")).expect("a file");
            }
            create(&cli)
        })
        .collect();
    for i in 0..40 {
        fs::write(outside.join(format!("deep/{i}")), "outside").expect("a file");
    }
    let before = Snapshot::of(&outside);
    let (is_over, mut codes) = (AtomicBool::new(false), std::collections::BTreeMap::new());
    std::thread::scope(|scope| {
        let _end = WorkerEnding(&is_over);
        scope.spawn(|| {
            let mut swaps = 0;
            while !is_over.load(Ordering::Relaxed) {
                // A restore may make a directory there at any moment.
                if fs::rename(&here, &away).is_ok() {
                    let _ = symlink(&outside, &here);
                    std::thread::sleep(std::time::Duration::from_micros(300));
                    let _ = fs::remove_file(&here);
                    while fs::rename(&away, &here).is_err() {
                        let _ = fs::remove_dir_all(&here);
                        let _ = fs::remove_file(&here);
                    }
                    swaps += 1;
                }
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
            println!("{swaps} swaps");
        });
        for round in rounds(40) {
            let outcome = cli.run(["checkpoint", "restore", &ids[round % 2], "--yes", "--json"]);
            assert!(!outcome.stderr.contains("panicked"), "round {round}: {outcome:?}");
            assert!(matches!(outcome.code, Some(0 | 1 | 2 | 4)), "round {round}: {outcome:?}");
            *codes.entry(outcome.code).or_insert(0) += 1;
        }
    });
    println!("exits: {codes:?}");
    assert_same(&outside, &before, "restores during swaps");
}

fn objects(cli: &Cli) -> Objects {
    Objects::open(&cli.beside("objects.db"), OpenOptions::default()).expect("the object store")
}

/// Keeps some bytes and returns their name.
pub(crate) fn keep(cli: &Cli, bytes: &[u8]) -> [u8; 32] {
    let objects = objects(cli);
    let writer = objects.writer(Timestamp(1_700_000_000_000)).expect("a writer");
    let (hash, _) = writer.put_reader(&mut { bytes }).expect("keep bytes");
    writer.finish().expect("make it durable");
    hash
}

fn entry(name: &[u8], node: TreeNode) -> TreeEntry {
    TreeEntry { name: name.to_vec(), node, attributes: Attributes::default() }
}

#[test]
fn a_forged_tree_is_refused_by_name() {
    let names: [&[u8]; 9] = [b"..", b"../outside/x", b".", b"", b"/tmp/x", b"a/b", b".git", b".GIT", b"a\0b"];
    for name in names {
        let cli = project();
        let outside = outside(&cli);
        let before = Snapshot::of(&outside);
        let id = create(&cli);
        let file = keep(&cli, b"forged");
        let inner = TreeObject {
            mode: 0o755,
            entries: vec![entry(b"x", TreeNode::File { hash: file, size: 6, mode: 0o644 })],
            ..TreeObject::default()
        };
        let inner = keep(&cli, &inner.encode().bytes);
        for node in [TreeNode::Directory(inner), TreeNode::File { hash: file, size: 6, mode: 0o644 }] {
            let forged = TreeObject { mode: 0o755, entries: vec![entry(name, node)], ..TreeObject::default() };
            let forged = keep(&cli, &forged.encode().bytes);
            cli.sql(&format!("UPDATE checkpoints SET tree = {} WHERE id = '{id}'", cli.bytes(&forged)));
            let here = tree(&cli);
            let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
            let shown = String::from_utf8_lossy(name);
            match outcome.code {
                // It is left out, and named.
                Some(4) if name == b".GIT" => {
                    assert_eq!(outcome.json()["skipped"][0]["reason"], "git_name", "{outcome:?}");
                }
                Some(2) => assert_eq!(outcome.error(), "corrupt", "{shown:?}: {outcome:?}"),
                Some(4) => assert!(outcome.stdout.contains("impossible path"), "{shown:?}: {outcome:?}"),
                _ => panic!("{shown:?}: {outcome:?}"),
            }
            tree(&cli).assert_is(&here, &format!("{shown:?}"));
            assert_same(&outside, &before, &format!("{shown:?}"));
        }
    }
}

#[test]
fn a_forged_plan_of_an_interrupted_restore_is_refused() {
    let cli = project();
    let outside = outside(&cli);
    let before = Snapshot::of(&outside);
    fs::write(cli.root().join("x"), "one").expect("a file");
    let id = create(&cli);
    fs::write(cli.root().join("x"), "two").expect("a file");
    restore(&cli, &id);
    let file = keep(&cli, b"forged");
    let absolute = outside.join("x").into_os_string().into_encoded_bytes();
    let paths = [b"../outside/x".to_vec(), absolute, b"d/../../outside/x".to_vec(), b".git/hooks/post-commit".to_vec()];
    let node = plan::RestoreNode::File { hash: file, size: 6, mode: 0o644, attributes: Attributes::default() };
    let make =
        |path: &Vec<u8>| RestoreStep::new(PathText(path.clone()), RestoreAction::Create, None, Some(node.clone()));
    let remove = |path: &Vec<u8>| RestoreStep {
        action: RestoreAction::Delete,
        before: Some(plan::RestoreNode::File { hash: file, size: 6, mode: 0o644, attributes: Attributes::default() }),
        after: None,
        ..make(path)
    };
    let steps = paths.iter().map(make).chain(paths.iter().map(remove)).collect();
    let plan = serde_json::to_vec(&RestorePlan { steps, ..RestorePlan::default() }).expect("a plan");
    let plan = keep(&cli, &plan);
    cli.sql(&format!("UPDATE restores SET state = 'applying', plan = {}", cli.bytes(&plan)));
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert!(matches!(outcome.code, Some(0 | 2 | 4)), "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    assert_same(&outside, &before, "the forged plan");
    assert!(!cli.root().join(".git").exists(), "{outcome:?}");
    assert!(!outside.with_file_name("project").join("d").exists(), "{outcome:?}");
}

#[test]
fn a_name_that_some_file_system_takes_for_git_is_named_when_it_is_captured_and_never_promised() {
    let cli = project();
    for name in ["fixtures/.GIT/config", "git~1", "a/.git.", "a/.g\u{200c}it"] {
        let path = cli.root().join(name);
        fs::create_dir_all(path.parent().expect("a directory above")).expect("its directory");
        fs::write(path, "precious").expect("a file");
    }
    fs::write(cli.root().join("fixtures/.Git-not"), "x").expect("a file");
    let id = create(&cli);
    let shown = cli.json(["checkpoint", "show", &id, "--json"]);
    let named = ["a/.git.", "a/.g\u{200c}it", "fixtures/.GIT", "git~1"].map(|n| (n.to_owned(), "git_name".to_owned()));
    assert_eq!(told(&shown, "skipped", "reason"), named, "{shown}");
    assert_eq!(shown["complete"], false, "{shown}");
    // No checkpoint has their content: they stay, though the target does not have the directory around them.
    let empty = {
        fs::rename(cli.root().join("fixtures"), cli.home().join("fixtures")).expect("move it away");
        let empty = create(&cli);
        fs::rename(cli.home().join("fixtures"), cli.root().join("fixtures")).expect("move it back");
        empty
    };
    restore_in_part(&cli, &empty);
    assert_eq!(fs::read(cli.root().join("fixtures/.GIT/config")).expect("it stays"), b"precious");
    fs::remove_dir_all(cli.root().join("fixtures")).expect("remove it");
    let promised = cli.run(["checkpoint", "restore", &id, "--dry-run", "--json"]).json();
    let done = restore_in_part(&cli, &id);
    assert_eq!(promised["changes"], done["changes"], "the preview promises what is done");
    assert!(cli.root().join("fixtures/.Git-not").exists() && !cli.root().join("fixtures/.GIT").exists());
}
