//! The archives of rollbacks: kept until their rows are back.

use crate::statements::dead_before;
use crate::world::{World, asked};

#[test]
fn the_archive_of_a_rollback_is_kept_until_its_rows_are_back() {
    let world = World::new().with_rows();
    let config = world.read(".ic.yaml").expect("the configuration");
    world.write(".ic.yaml", &format!("rollback: {{retention: {{max-age: 0s, keep-last: 1}}}}\n{config}"));
    let world = world.begun();
    world.task("before");
    world.ic(&["run", "advance", &world.run, "--no-checkpoint"]);
    world.task("since");
    let words =
        ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,data", "--yes", "--json"];
    let id = world.cli.json(words)["rollback_id"].as_str().expect("an id").to_owned();
    let archive = world.cli.db().with_file_name("rewinds").join(format!("{id}-0.db"));
    // Whatever is not needed is given up with a rewind.
    let rewind = || {
        let sql = "SELECT task_id FROM tasks WHERE task_id LIKE 'before %'";
        let task: String = world.database().query_row(sql, [], |row| row.get(0)).expect("a task");
        world.task("newer");
        world.ic(&["rewind", "to", &task, "--no-git", "--yes"]);
    };
    rewind();
    assert!(archive.exists(), "its rows are not back");
    world.ic(&["rollback", "undo", &id, "--yes"]);
    assert!(world.rows().contains("since") && archive.exists());
    rewind();
    assert!(!archive.exists(), "its rows are back");
    assert_eq!(asked(&world.cli, "SELECT count(*) FROM rollbacks WHERE status = 'undone'"), 1);
}

#[test]
fn without_its_archive_a_rollback_is_not_undone() {
    let world = World::story_with_rows();
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id");
    let archive = world.cli.db().with_file_name("rewinds").join(format!("{id}-0.db"));
    let aside = world.cli.home().join("aside.db");
    std::fs::rename(&archive, &aside).expect("lose it");
    let words = ["rollback", "undo", id, "--without-effects", "--yes", "--json"];
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
    let world = World::story_with_rows();
    let before = world.rows();
    let words =
        ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,data", "--yes", "--json"];
    let id = world.cli.json(words)["rollback_id"].as_str().expect("an id").to_owned();
    let undo = ["rollback", "undo", &id, "--yes", "--json"];
    // It dies when the rows are back, and nothing says so but they themselves.
    dead_before(&world, &undo, 2);
    assert_eq!(world.rows(), before);
    world.database().execute("DELETE FROM logs WHERE event_type LIKE 'ROLLBACK_%'", []).expect("it goes");
    let undone = world.cli.json(undo);
    assert_eq!(undone["data"]["restored_row_counts"]["tasks"], 2, "{undone}");
    assert_eq!((world.rows(), world.status()), (before, "active@d".to_owned()));
}
