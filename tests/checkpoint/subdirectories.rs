//! The ledger of another project lies in the tree, or lay there: what is done to the tree leaves it and its store as they are.

use std::fs;
use std::path::Path;

use ic_testkit::Cli;
use rusqlite::Connection;
use serde_json::Value;

use crate::ledgers::{assert_whole, bytes_of, fill, prune_all, store_of, with_ledger};
use crate::project::{create, project, told};

/// The paths of files that a checkpoint has content of.
fn held(cli: &Cli, id: &str) -> Vec<String> {
    let shown = cli.json(["checkpoint", "show", id, "--files", "--json"]);
    let files = shown["files"].as_array().expect("files").iter().filter(|file| file["kind"] == "file");
    files.map(|file| file["path"].as_str().expect("a path").to_owned()).collect()
}

fn paths(report: &Value, list: &str) -> Vec<String> {
    told(report, list, "path").into_iter().map(|(path, _)| path).collect()
}

/// From the root of the tree.
fn within(cli: &Cli, path: &Path) -> String {
    path.strip_prefix(cli.root()).expect("it lies in the tree").to_str().expect("text").to_owned()
}

/// One call, which may end with what it left and named.
fn report(cli: &Cli, arguments: &[&str], codes: &[i32]) -> Value {
    let outcome = cli.run(arguments);
    assert!(outcome.code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {outcome:?}");
    outcome.json()
}

#[test]
fn a_ledger_in_the_tree_is_left_alone_though_checkpoints_have_plain_files_of_its_names() {
    for place in ["inner/.ic/ic.db", "inner/team.db", "ledger"] {
        let outer = project();
        let ledger = outer.root().join(place);
        let names = [within(&outer, &ledger), within(&outer, &store_of(&ledger))];
        fs::create_dir_all(ledger.parent().expect("a directory")).expect("the directory");
        for name in &names {
            fs::write(outer.root().join(name), format!("no {name}")).expect("a plain file");
        }
        let plain = create(&outer);
        assert!(names.iter().all(|name| held(&outer, &plain).contains(name)), "{place}");
        for name in &names {
            fs::remove_file(outer.root().join(name)).expect("a plain file");
        }
        let inner = with_ledger(&ledger);
        let filled = fill(&inner, place);
        fs::write(outer.root().join("own"), "of the outer one").expect("a file");
        let beside = create(&outer);
        assert!(!names.iter().any(|name| held(&outer, &beside).contains(name)), "{place}: no ledger is kept");
        let files = || {
            let mut files = bytes_of(ledger.parent().expect("a directory"));
            files.retain(|path, _| !path.ends_with("own"));
            files
        };
        let before = files();
        assert!(before.len() > 3, "{place}: {:?}", before.keys());
        let unharmed = |when: &str| assert!(files() == before, "{place}, {when}: {:?}", files().keys());
        let restored = report(&outer, &["checkpoint", "restore", &plain, "--yes", "--json"], &[4]);
        assert!(names.iter().all(|name| paths(&restored, "skipped").contains(name)), "{place}: {restored}");
        unharmed("restored");
        report(&outer, &["redo", "--yes", "--json"], &[0]);
        unharmed("undone");
        report(&outer, &["undo", &outer.last_restore(), "--yes", "--json"], &[0, 4]);
        unharmed("restored again");
        report(&outer, &["checkpoint", "purge", &names[0], "--yes", "--json"], &[0]);
        unharmed("purged by its name");
        report(&outer, &["checkpoint", "restore", &beside, "--yes", "--json"], &[0]);
        unharmed("restored to where it is");
        assert_eq!(prune_all(&outer).code, Some(0));
        unharmed("pruned");
        assert_whole(&inner, &filled, place);
        inner.ok(["events", "verify"]);
        assert_eq!(prune_all(&inner).code, Some(0));
        assert_eq!(outer.json(["checkpoint", "verify", "--read-data", "--json"])["ok"], true, "{place}");
    }
}

#[test]
fn files_of_the_user_beside_a_ledger_in_the_root_are_captured() {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints();
    let ledger = cli.root().join("ic.db");
    let cli = cli.with_db(&ledger);
    cli.ok(["init"]);
    let others = ["ic.db-notes", "ic.db.txt", "ic.dbx", "ic.db2", "objects.json", "objects-list", "objects.txt.lock"];
    for name in others {
        fs::write(cli.root().join(name), name).expect("a file");
    }
    create(&cli);
    let held = held(&cli, &create(&cli));
    let ours = |name: &&String| !others.contains(&name.as_str());
    assert_eq!(held.iter().filter(ours).collect::<Vec<_>>(), Vec::<&String>::new(), "no file of the ledger");
    assert_eq!(held.len(), others.len(), "{held:?}");
}

#[test]
fn a_checkpoint_that_holds_a_ledger_as_a_plain_file_leaves_the_ledger_that_it_became() {
    let outer = project();
    let ledger = outer.root().join("inner/team.db");
    fs::create_dir(outer.root().join("inner")).expect("a directory");
    let names = [within(&outer, &ledger), within(&outer, &store_of(&ledger))];
    let inner = with_ledger(&ledger);
    let first = fill(&inner, "first");
    // As a dump of it makes it: its marks are missing until it is opened.
    let unmarked = Connection::open(&ledger).expect("open the ledger");
    unmarked.execute_batch("PRAGMA application_id = 0; PRAGMA user_version = 0").expect("no marks");
    drop(unmarked);
    let id = create(&outer);
    assert!(names.iter().all(|name| held(&outer, &id).contains(name)), "{:?}", held(&outer, &id));
    inner.ok(["events", "verify"]);
    let second = fill(&inner, "second");
    // It is a ledger by now, and not what the checkpoint has.
    let restored = report(&outer, &["checkpoint", "restore", &id, "--yes", "--json"], &[4]);
    assert!(names.iter().all(|name| paths(&restored, "skipped").contains(name)), "{restored}");
    assert_whole(&inner, &first, "restored, the first");
    assert_whole(&inner, &second, "restored, the second");
    // Nothing was changed, and so nothing is undone.
    assert_eq!(outer.refused(["redo", "--yes"]), (Some(1), "nothing_to_undo".to_owned()));
    // It is gone, and comes back as it was then, with its store.
    fs::remove_dir_all(outer.root().join("inner")).expect("the inner one");
    report(&outer, &["checkpoint", "restore", &id, "--yes", "--json"], &[0]);
    assert_whole(&inner, &first, "restored");
    inner.ok(["events", "verify"]);
    // It was used since and so is a ledger again: undoing the restore that made it does not remove it.
    let undone = report(&outer, &["redo", "--yes", "--json"], &[0, 4]);
    assert!(ledger.exists(), "{undone}");
    assert_whole(&inner, &first, "what brought it was undone");
    report(&outer, &["checkpoint", "purge", &names[1], "--yes", "--json"], &[0]);
    assert_eq!(prune_all(&outer).code, Some(0));
    assert_whole(&inner, &first, "pruned and purged");
    assert_eq!(outer.json(["checkpoint", "verify", "--read-data", "--json"])["ok"], true);
}
