//! What `ic undo ID` and `ic redo ID` undo: restores, rollbacks and rewinds, each by its id; and plain `ic redo`, the newest first.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ic_testkit::tree;
use serde_json::Value;

use crate::agents::in_git;
use crate::blame::read;
use crate::support::{Project, assert_shape};
use crate::timeline::writes;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn safety_of(report: &Value) -> String {
    text(&report["safety_checkpoint_id"])
}

/// The command that a hint or a report names last, without `ic`.
fn last_command(said: &str) -> String {
    let (_, command) = said.rsplit_once("ic ").expect("a command");
    command.lines().next().expect("a line").to_owned()
}

/// A restore of two files and of one that was made since, with the trees before and after it.
fn restored() -> (Project, Value, [BTreeMap<PathBuf, String>; 2]) {
    let project = in_git();
    project.write("f.txt", "old\n");
    project.write("gone.txt", "old\n");
    let checkpoint = project.ok("checkpoint create --name old");
    project.write("f.txt", "new\n");
    std::fs::remove_file(project.root().join("gone.txt")).expect("a file");
    project.write("made.txt", "new\n");
    let before = tree(project.root());
    let report = project.json(&format!("checkpoint restore {checkpoint} --yes"));
    let after = tree(project.root());
    assert_ne!(before, after);
    (project, report, [before, after])
}

#[test]
fn restore_is_undone_and_made_again_and_again() {
    for names in [["redo", "undo"], ["undo", "redo"]] {
        let (project, report, [before, after]) = restored();
        let mut safety = safety_of(&report);
        for turn in 0..2 {
            let plan = project.json(&format!("{} {safety} --dry-run", names[0]));
            assert_eq!(tree(project.root()), after, "a dry run changes nothing");
            let undone = project.json(&format!("{} {safety} --yes", names[0]));
            assert_shape("restore", &undone);
            assert_eq!((text(&undone["undoes"]).as_str(), &undone["changes"]), ("restore", &plan["changes"]));
            assert_eq!(undone["of_restore"]["checkpoint_id"], report["checkpoint_id"], "{undone}");
            assert_eq!(tree(project.root()), before, "turn {turn}");
            // The same call again, as after a lost answer, does no second thing.
            for verb in names {
                assert_eq!(project.refused(&format!("{verb} {safety} --yes")), (1, "nothing_to_undo".to_owned()));
            }
            assert_eq!(tree(project.root()), before, "turn {turn}");
            let again = project.json(&format!("{} {} --yes", names[1], safety_of(&undone)));
            assert_eq!((text(&again["undoes"]).as_str(), &again["of_restore"]), ("restore", &undone["of_restore"]));
            assert_eq!(tree(project.root()), after, "turn {turn}");
            safety = safety_of(&again);
        }
        // The restore stands again, so its own names mean it, too.
        let own = text(&project.json("redo --dry-run")["of_restore"]["id"]);
        project.json(&format!("{} {own} --yes", names[0]));
        assert_eq!(tree(project.root()), before);
    }
}

#[test]
fn each_way_back_that_is_printed_leads_back() {
    let (project, _, [before, after]) = restored();
    let said = project.ok("redo --yes --format text");
    assert_eq!(tree(project.root()), before);
    let said = project.ok(&format!("{} --yes --format text", last_command(&said)));
    assert_eq!(tree(project.root()), after);
    let back = last_command(&said);
    project.ok(&format!("{back} --yes"));
    assert_eq!(tree(project.root()), before);
    // A refusal names the command for the opposite.
    let refused = project.run(&format!("{back} --yes --format text"));
    assert_eq!((refused.code, tree(project.root()) == before), (Some(1), true), "{refused:?}");
    project.ok(&last_command(&refused.stderr));
    assert_eq!(tree(project.root()), after);
}

#[test]
fn edit_by_hand_since_a_restore_is_saved_or_stays() {
    let (project, report, _) = restored();
    project.write("f.txt", "by hand\n");
    project.write("mine.txt", "by hand\n");
    let undone = project.json(&format!("redo {} --yes", safety_of(&report)));
    let shown = ["f.txt", "made.txt", "mine.txt"].map(|file| read(&project, file));
    assert_eq!(shown, ["new\n", "new\n", "by hand\n"]);
    let kept = project.ok(&format!("checkpoint cat {} f.txt", safety_of(&undone)));
    assert_eq!(kept, "by hand");
    project.json(&format!("undo {} --yes", safety_of(&undone)));
    let shown = ["f.txt", "gone.txt", "mine.txt"].map(|file| read(&project, file));
    assert_eq!(shown, ["old\n", "old\n", "by hand\n"], "as the restore left it");
}

#[test]
fn redo_takes_an_undo_and_a_restore_in_turn() {
    let project = in_git();
    project.write("a.txt", "a\n");
    project.write("r.txt", "old\n");
    let checkpoint = project.ok("checkpoint create");
    project.write("r.txt", "new\n");
    let work = writes(&project, "A", "one", &[("a.txt", "of A\n")]);
    let first = tree(project.root());
    let report = project.json(&format!("checkpoint restore {checkpoint} --path r.txt --yes"));
    let second = tree(project.root());
    let undo = project.json(&format!("undo {work} --only --yes"));
    let third = tree(project.root());
    assert_eq!((read(&project, "a.txt").as_str(), read(&project, "r.txt").as_str()), ("a\n", "old\n"));
    // By its id, the restore has to wait, and the hint names the undo as a whole.
    let refused = project.run(&format!("redo {} --yes", safety_of(&report)));
    let id = text(&undo["rollback_id"]);
    let first_then = format!("ic redo {} --dry-run", &id[id.len() - 8..]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "not_undoable"));
    assert!(refused.stderr.contains(&first_then), "{refused:?}");
    assert_eq!(tree(project.root()), third);
    for is_named in [true, false] {
        let undone = project.json(&if is_named { format!("undo {id} --yes") } else { "redo --yes".to_owned() });
        assert_shape("rollback-undone", &undone);
        assert_eq!((text(&undone["undoes"]), text(&undone["status"])), ("rollback".to_owned(), "undone".to_owned()));
        assert_eq!(tree(project.root()), second, "named: {is_named}");
        assert_eq!(project.json(&format!("dispatch show {work}"))["rolled_back_by"], Value::Null);
        if is_named {
            assert_eq!(project.refused(&format!("undo {id} --yes")), (1, "nothing_to_undo".to_owned()));
            project.json(&format!("undo {work} --only --yes"));
            assert_eq!(tree(project.root()), third);
        }
    }
    let undone = project.json("redo --yes");
    assert_eq!((text(&undone["undoes"]).as_str(), tree(project.root())), ("restore", first));
    assert_eq!(project.refused("redo --yes"), (1, "nothing_to_undo".to_owned()));
}

#[test]
fn older_restore_waits_for_the_newer_one() {
    let (project, first, [before, after]) = restored();
    project.write("f.txt", "newer\n");
    let middle = tree(project.root());
    let second = project.json("checkpoint restore --name old --yes");
    let older = format!("redo {} --yes", safety_of(&first));
    let refused = project.run(&older);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "not_undoable"));
    let newer = safety_of(&second);
    assert!(refused.stderr.contains(&format!("ic redo {} --dry-run", &newer[newer.len() - 8..])), "{refused:?}");
    let undone = project.json(&format!("redo {newer} --yes"));
    assert_eq!(tree(project.root()), middle);
    let undone_first = project.json(&older);
    assert_eq!((read(&project, "f.txt"), tree(project.root())), ("new\n".to_owned(), before));
    // They are made again in the other order.
    let again = |report: &Value| format!("undo {} --yes", safety_of(report));
    assert_eq!(project.refused(&again(&undone)), (1, "not_undoable".to_owned()));
    project.json(&again(&undone_first));
    assert_eq!(tree(project.root()), after);
    assert_eq!(project.json(&again(&undone))["status"], "up_to_date");
}

#[test]
fn entries_need_no_run_to_be_named() {
    let (project, report, [before, _]) = restored();
    for goal in ["one", "two"] {
        // Fixed ids count on by one for a run, and by more for what asks about checkpoints.
        project.ok("checkpoint list");
        project.ok(&format!("run create --goal {goal} --phases a,b"));
    }
    assert_eq!(project.refused("redo --yes"), (3, "ambiguous_run".to_owned()));
    project.json(&format!("redo {} --yes", safety_of(&report)));
    assert_eq!(tree(project.root()), before);
}

#[test]
fn restore_of_another_work_tree_is_named_with_its_place() {
    let project = Project::without_ledger();
    project.write("f.txt", "old\n");
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "one"]] {
        ic_testkit::git_in(project.root(), words);
    }
    project.ok("init");
    project.ok("checkpoint create --name old");
    project.write("f.txt", "new\n");
    let before = tree(project.root());
    let report = project.json("checkpoint restore --name old --yes");
    let after = tree(project.root());
    let beside = project.cli.home().join("beside");
    let place = beside.to_str().expect("a plain path");
    ic_testkit::git_in(project.root(), &["worktree", "add", "-q", place]);
    let elsewhere = format!("-C {place} redo {} --yes", safety_of(&report));
    assert_eq!(project.refused(&elsewhere), (1, "foreign_root".to_owned()));
    assert_eq!(tree(project.root()), after);
    let refused = project.run(&format!("{elsewhere} --format text"));
    project.ok(&format!("{} --yes", last_command(&refused.stderr)));
    assert_eq!(tree(project.root()), before);
}

#[test]
fn rewind_is_undone_by_either_verb() {
    for verb in ["undo", "redo"] {
        let project = Project::new();
        crate::verbs::rewind::with_tasks(&project);
        let rows = || {
            let db = rusqlite::Connection::open(project.cli.beside("state.db")).expect("the database");
            db.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0)).expect("a number")
        };
        let done = project.json("rewind to T1 --yes");
        assert_eq!(rows(), 1);
        // No plain redo restores rows.
        assert_eq!(project.refused("redo --yes"), (1, "nothing_to_undo".to_owned()));
        let id = text(&done["id"]);
        assert_eq!(project.refused(&format!("{verb} {id}")), (3, "confirmation_required".to_owned()));
        let undone = project.json(&format!("{verb} {id} --yes"));
        assert_shape("rewind", &undone);
        assert_eq!((text(&undone["undoes"]).as_str(), rows()), ("rewind", 3));
        assert_eq!(done["undoes"], Value::Null);
        assert_eq!(project.refused(&format!("{verb} {id} --yes")), (1, "nothing_to_undo".to_owned()));
    }
}
