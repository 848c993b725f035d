//! The archives of rollbacks: kept until their rows are back.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::TestWorld;
use serde_json::json;

use crate::data::task_named;
use crate::project::{WHOLE, Work as _, asked, in_git};
use crate::rows::Rows as _;
use crate::statements::dead_before;
use crate::story::{story, story_with_rows};

#[test]
fn the_archive_of_a_rollback_is_kept_until_its_rows_are_back() {
    let world = in_git().with_rows();
    let config = world.read(".ic.yaml").expect("the configuration");
    world.write(".ic.yaml", &format!("rollback: {{retention: {{max-age: 0s, keep-last: 1}}}}\n{config}"));
    let world = world.begun();
    world.task("before");
    world.ic(&["run", "advance", &world.run, "--no-checkpoint"]);
    world.task("since");
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,data", "--yes", "--json"];
    let id = world.cli.json(words)["rollback_id"].as_str().expect("an id").to_owned();
    let archive = world.cli.beside("rewinds").join(format!("{id}-0.db"));
    // What is not needed is pruned with a rewind.
    let rewind = || {
        let sql = "SELECT task_id FROM tasks WHERE task_id LIKE 'before %'";
        let task: String = world.connect().query_row(sql, [], |row| row.get(0)).expect("a task");
        world.task("newer");
        world.ic(&["rewind", "to", &task, "--no-git", "--yes"]);
    };
    rewind();
    assert!(archive.exists(), "its rows are not back");
    world.ic(&["redo", &id, "--yes"]);
    assert!(world.rows().contains("since") && archive.exists());
    rewind();
    assert!(!archive.exists(), "its rows are back");
    assert_eq!(asked(&world.cli, "SELECT count(*) FROM rollbacks WHERE status = 'undone'"), 1);
}

#[test]
fn without_its_archive_a_rollback_is_not_undone() {
    let world = story_with_rows();
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id");
    let archive = world.cli.beside("rewinds").join(format!("{id}-0.db"));
    let aside = world.cli.home().join("aside.db");
    std::fs::rename(&archive, &aside).expect("lose it");
    let words = ["redo", id, "--without-effects", "--yes", "--json"];
    let before = world.state();
    for yes in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(words.map(|word| if word == "--yes" { yes } else { word }));
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "corrupt"), "{outcome:?}");
        assert!(outcome.stderr.contains(archive.to_str().expect("text")), "{outcome:?}");
    }
    world.state().assert_is(&before, "refused");
    std::fs::rename(&aside, &archive).expect("find it");
    world.ic(&words);
    assert!(world.rows().contains("paid"));
}

#[test]
fn rows_that_are_back_already_are_told_of_though_the_application_cleared_its_log() {
    let world = story_with_rows();
    let before = world.rows();
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,data", "--yes", "--json"];
    let id = world.cli.json(words)["rollback_id"].as_str().expect("an id").to_owned();
    let undo = ["redo", &id, "--yes", "--json"];
    // It dies when the rows are back, and nothing says so but they themselves.
    dead_before(&world, &undo, 2);
    assert_eq!(world.rows(), before);
    world.connect().execute("DELETE FROM logs WHERE event_type LIKE 'ROLLBACK_%'", []).expect("it goes");
    let undone = world.cli.json(undo);
    assert_eq!(undone["data"]["restored_row_counts"]["tasks"], 2, "{undone}");
    assert_eq!((world.rows(), world.status()), (before, "active@d".to_owned()));
}

#[test]
fn rows_that_giving_up_passed_over_come_back_later_and_the_run_stays_where_it_is() {
    let world = story_with_rows();
    let (key, before) = (task_named(&world, "built"), world.rows());
    dead_before(&world, &world.all("a", &["--yes"]), 1);
    let mut killed = world.cli.command(["rollback", "abort", &world.run, "--yes"]);
    let killed = killed.env("IC_TEST_REWIND_ABORT_BEFORE", "20").output().expect("start ic");
    assert!(killed.status.signal().is_some(), "{killed:?}");
    // A row of another process is in their way.
    let row = (&key, 1_800_000_000_000_i64);
    world.connect().execute("INSERT INTO tasks VALUES (?1, 'mine', ?2)", row).expect("a row");
    let resume = ["rollback", "resume", &world.run, "--yes", "--json"];
    assert_eq!(world.cli.run(resume).code, Some(4));
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--reason", "later", "--yes"]);
    assert_eq!(world.status(), "active@d");
    world.connect().execute("DELETE FROM tasks WHERE title = 'mine'", []).expect("it goes");
    assert_ne!(world.rows(), before);

    world.save(&WHOLE);
    let id = world.cli.json(["rollback", "list", &world.run, "--json"])[0]["id"].clone();
    let undo = ["redo", id.as_str().expect("an id"), "--format"];
    let text = |last: &str| world.ic(&[&undo[..], &["text", last]].concat());
    let preview = text("--dry-run");
    assert!(preview.contains("would redo the rest of what"), "{preview}");
    let told = text("--yes");
    assert!(told.contains("redone: the rest of what") && told.contains("stays where it is"), "{told}");
    assert_eq!((world.rows().lines().count(), world.status()), (before.lines().count(), "active@d".to_owned()));
    world.reset(&WHOLE);
    let told = world.cli.json(undo.iter().chain(&["json", "--yes"]));
    assert_eq!((&told["status"], &told["course"]), (&json!("aborted"), &json!("undo")));
}

/// Prunes every checkpoint that nothing needs, and shows that one that is needed is not deleted.
fn prune(world: &TestWorld, needed: &serde_json::Value) {
    world.ic(&["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s"]);
    let id = needed.as_str().expect("a checkpoint");
    assert_eq!(world.cli.refused(["checkpoint", "delete", id]), (Some(1), "checkpoint_needed".to_owned()));
}

#[test]
fn the_checkpoints_of_a_way_back_are_kept_as_long_as_it_is_open() {
    for is_stopped in [true, false] {
        let world = story();
        let before = world.state();
        if is_stopped {
            world.effect("fails", &["exit 3"]);
        }
        world.effect("ruins", &["rm kept/plan.md; echo ruined > README"]);
        let rolled_back = world.cli.run(world.all("a", &["--yes"]));
        assert_eq!(rolled_back.code, Some(if is_stopped { 4 } else { 0 }), "{rolled_back:?}");
        let report = rolled_back.json();
        let kept = if is_stopped { "failed" } else { "done" };
        assert_eq!(report["steps"][0]["status"], kept);
        let id = report["rollback_id"].as_str().expect("an id");
        let shown = world.cli.json(["rollback", "show", id, "--json"]);
        prune(&world, &shown["steps"][0]["made"]["goes"][0]["before_checkpoint_id"]);
        if is_stopped {
            world.ic(&["rollback", "abort", id, "--yes"]);
        } else {
            world.ic(&["redo", id, "--without-effects", "--yes"]);
        }
        world.state().assert_outside_is(&before, "after the others were pruned");
        assert_eq!(world.status(), "active@d");
    }
}
