//! The undo of a restore reaches past what came after it: newer checkpoints, and runs that began and moved since.

use std::fs;

use ic_testkit::Cli;

use crate::project::{create, list, project, restore, told, tree};

fn write(cli: &Cli, path: &str, text: &str) {
    fs::write(cli.root().join(path), text).expect("a file");
}

/// A tree that was restored to its first state, and worked in since, with checkpoints of a person and of a run.
fn worked_since() -> (Cli, String) {
    let cli = project();
    write(&cli, "both", "old");
    write(&cli, "gone", "old");
    let first = create(&cli);
    write(&cli, "both", "new");
    fs::remove_file(cli.root().join("gone")).expect("a file");
    write(&cli, "made", "new");
    restore(&cli, &first);
    assert!(!cli.root().join("made").exists());
    let run = cli.ok(["run", "create", "--goal", "later", "--phases", "a,b,c"]);
    write(&cli, "theirs", "later");
    create(&cli);
    cli.ok(["run", "advance", &run]);
    (cli, run)
}

#[test]
fn an_undo_past_newer_checkpoints_and_runs_changes_what_the_restore_changed_and_no_more() {
    let (cli, run) = worked_since();
    let known = list(&cli).len();
    let report = cli.json(["redo", "--yes", "--json"]);
    assert_eq!(report["status"], "restored", "{report}");
    let read = |path: &str| fs::read_to_string(cli.root().join(path)).ok();
    let now = ["both", "gone", "made", "theirs"].map(read);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(now, [text("new"), None, text("new"), text("later")], "{report}");
    assert!(list(&cli).len() > known, "no newer checkpoint went");
    let status = cli.json(["run", "status", &run, "--json"]);
    assert_eq!((&status["status"], &status["phase"]), (&"active".into(), &"b".into()), "{status}");
    let undone = tree(&cli);
    cli.ok(["undo", &cli.last_restore(), "--yes"]);
    assert_eq!(["both", "gone", "theirs"].map(read), ["old", "old", "later"].map(text));
    cli.ok(["redo", "--yes"]);
    tree(&cli).assert_is(&undone, "the undo, the redo and the undo");
}

#[test]
fn an_undo_of_what_later_work_changed_too_names_it_and_the_later_work_comes_back() {
    let (cli, _) = worked_since();
    write(&cli, "both", "later");
    create(&cli);
    let before = tree(&cli);
    let report = cli.json(["redo", "--yes", "--json"]);
    assert!(told(&report, "changes", "change").contains(&("both".to_owned(), "modify".to_owned())), "{report}");
    assert_eq!(fs::read_to_string(cli.root().join("both")).expect("a file"), "new");
    restore(&cli, report["safety_checkpoint_id"].as_str().expect("a safety checkpoint"));
    tree(&cli).assert_is(&before, "the safety checkpoint that the report names");
}
