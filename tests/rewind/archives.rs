//! How long what a rewind needs is kept: archives, and the configuration that it began with.

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::project::{devs, devs_in_git};

/// Archives are pruned at once, except for the last one of a database.
const SHORT: &str =
    "rollback:\n  checkpointing: {auto: false}\n  retention: {max-age: 0s, keep-last: 1}\nrewind:\n  profile: devs\n";

fn to(world: &TestWorld, task: &str) -> String {
    let done = world.cli.json(["rewind", "to", task, "--yes"]);
    assert_eq!(done["status"], "done", "{done}");
    done["id"].as_str().expect("an id").to_owned()
}

/// For each rewind, newest first, whether its archive is there: by the record and on the disk.
fn kept(world: &TestWorld) -> Vec<bool> {
    let list = world.cli.json(["rewind", "list"]);
    let of = |entry: &Value| {
        let path =
            world.database.with_file_name("rewinds").join(format!("{}.db", entry["id"].as_str().expect("an id")));
        assert_eq!(path.exists(), !entry["archive"].is_null(), "{entry}");
        path.exists()
    };
    list.as_array().expect("a list").iter().map(of).collect()
}

#[test]
fn archives_are_given_up_with_their_age_and_the_last_ones_are_kept() {
    let world = devs();
    let old = to(&world, "T2");
    assert_eq!(kept(&world), [true]);
    world.write(".ic.yaml", SHORT);
    assert_eq!(kept(&world), [true], "nothing is pruned before the next rewind");
    let new = to(&world, "T1");
    assert_eq!(kept(&world), [false, true]);

    let refused = world.cli.run(["undo", &old, "--yes"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "nothing_to_undo"), "{refused:?}");
    assert!(refused.stderr.contains("no longer kept"), "{refused:?}");
    let rows = world.rows();
    let text = world.cli.ok(["rewind", "status", &old, "--format", "text"]);
    assert!(text.contains("no longer kept") && !text.contains("To put the rows back"), "{text}");
    let list = world.cli.ok(["rewind", "list", "--format", "text"]);
    assert_eq!(list.matches("not kept").count(), 1, "{list}");
    assert_eq!(world.cli.json(["rewind", "resume", &old, "--yes"])["status"], "done");
    assert_eq!(world.rows(), rows);
    world.cli.json(["undo", &new, "--yes"]);
}

#[test]
fn a_database_that_was_moved_is_asked_back_to_where_it_was_rewound() {
    let world = devs();
    let before = world.rows();
    let id = to(&world, "T1");
    let moved = world.root().join("moved.db");
    std::fs::rename(&world.database, &moved).expect("move it");
    let undo = ["undo", &id, "--yes", "--json"];
    let refused = world.cli.run(undo);
    let said = format!("move it back to {}", world.database.display());
    assert!(refused.stderr.contains(&said) && !refused.stderr.contains("rewind: database"), "{refused:?}");
    std::fs::rename(&moved, &world.database).expect("move it back");
    world.cli.json(undo);
    assert_eq!(world.rows(), before);
}

#[test]
fn an_unfinished_rewind_keeps_its_archive_and_an_undone_one_does_not() {
    let world = devs();
    let undone = to(&world, "T2");
    world.cli.json(["undo", &undone, "--yes"]);
    world.write(".ic.yaml", &format!("{SHORT}  vectors: {{exec: [sh, -c, 'test -e store']}}\n"));
    let stopped = world.cli.run(["rewind", "to", "T2", "--yes"]);
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let id = stopped.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(kept(&world), [true, true], "nothing is done yet");
    world.write("store", "");
    assert_eq!(world.cli.json(["rewind", "resume", &id, "--yes"])["status"], "done");
    assert_eq!(kept(&world), [false, true], "the last one that can be undone, and one that was");
    let logs = std::fs::read_dir(world.database.with_file_name("rewinds")).expect("a directory");
    let logs = logs.filter(|file| file.as_ref().is_ok_and(|f| f.path().extension().is_some_and(|e| e == "log")));
    assert_eq!(logs.count(), 1);
}

#[test]
fn the_last_ones_are_those_of_a_database() {
    let world = devs();
    world.write(".ic.yaml", SHORT);
    to(&world, "T2");
    to(&world, "T1");
    assert_eq!(kept(&world), [false, true]);
    // What is kept of one database says nothing of another.
    let other = world.root().join("other.db");
    std::fs::copy(&world.database, &other).expect("another database");
    let db = ic_testkit::connect(&other);
    db.execute_batch("INSERT INTO tasks VALUES ('T2', 'again', 'done', NULL, 200)").expect("a task");
    world.write(".ic.yaml", &format!("{SHORT}  database: other.db\n"));
    to(&world, "T1");
    assert_eq!(kept(&world), [false, true, true]);
}

/// A world in git whose first commit has no configuration.
fn configured_late() -> (TestWorld, [String; 3]) {
    let (world, commits) = devs_in_git();
    let config = world.text(".ic.yaml");
    let mut new: Vec<String> = Vec::new();
    world.git(&["checkout", "-q", "--orphan", "late"]);
    world.git(&["rm", "-rfq", "--cached", "."]);
    std::fs::remove_file(world.root().join(".ic.yaml")).expect("no configuration");
    for task in ["T1", "T2", "T3"] {
        world.write("a.txt", task);
        if task == "T3" {
            world.write(".ic.yaml", &config);
        }
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "-m", task]);
        new.push(world.head());
    }
    let db = world.connect();
    for (old, new) in commits.iter().zip(&new) {
        db.execute("UPDATE tasks SET git_commit_hash = ?2 WHERE git_commit_hash = ?1", (old, new)).expect("a commit");
    }
    let new = new.try_into().expect("three commits");
    (world, new)
}

#[test]
fn a_tree_without_configuration_can_be_taken_further_back_and_forth() {
    let (world, commits) = configured_late();
    let before = world.rows();
    let first = to(&world, "T2");
    assert!(!world.root().join(".ic.yaml").exists());
    let preview = world.cli.json(["rewind", "to", "T1", "--dry-run"]);
    assert_eq!(preview["warnings"][0]["code"], "config_of_rewind", "{preview}");
    let done = world.cli.json(["rewind", "to", "T1", "--yes"]);
    assert_eq!(done["warnings"][0]["code"], "config_of_rewind", "{done}");
    assert_eq!(world.head(), commits[0]);
    let again = world.cli.run(["rewind", "to", "T1", "--yes", "--format", "text"]);
    assert!(again.code == Some(0) && again.stderr.contains("taken from the rewind"), "{again:?}");
    // An undo needs no configuration at all, and leaves the tree.
    world.cli.json(["undo", done["id"].as_str().expect("an id"), "--yes"]);
    world.cli.json(["undo", &first, "--yes"]);
    assert_eq!((world.rows(), world.head()), (before, commits[0].clone()));
    let last = to(&world, "T2");
    world.cli.json(["undo", &last, "--yes"]);

    // A person moved the tree here, not a rewind, so the configuration is not taken from a rewind.
    world.git(&["checkout", "-q", "-b", "other"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "on"]);
    assert_eq!(world.cli.refused(["rewind", "to", "T1", "--yes"]), (Some(3), "invalid_config".to_owned()));
}

#[test]
fn the_configuration_of_an_old_tree_stands_in_nobodys_way() {
    let (world, commits) = configured_late();
    world.git(&["checkout", "-q", "--detach", &commits[1]]);
    world.write(".ic.yaml", "rewind: [of another age\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "a configuration that cannot be read"]);
    let (odd, rows) = (world.head(), world.rows());
    world.git(&["checkout", "-q", "late"]);
    world.connect().execute("UPDATE tasks SET git_commit_hash = ?1 WHERE task_id = 'T2'", [&odd]).expect("a commit");
    let application = world.connect();
    application.execute_batch("BEGIN IMMEDIATE").expect("the application writes");
    let stopped = world.cli.run(["rewind", "to", "T2", "--yes", "--busy-timeout", "50ms"]);
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    assert_eq!(world.head(), odd);
    application.execute_batch("ROLLBACK").expect("the application is done");
    let id = stopped.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(world.cli.json(["rewind", "resume", &id, "--yes"])["status"], json!("done"));
    assert_eq!(world.cli.json(["rewind", "status"])["status"], "done");
    world.cli.json(["undo", &id, "--yes"]);
    assert_eq!(world.rows(), rows.replace(&commits[1], &odd));
}

#[test]
fn a_project_that_was_moved_took_its_archives_along() {
    let world = devs();
    let before = world.rows();
    let id = to(&world, "T1");
    let moved = world.cli.home().join("elsewhere");
    std::fs::rename(world.root(), &moved).expect("move it");
    let call = |arguments: &[&str]| {
        let mut command = std::process::Command::new(crate::project::BINARY);
        ic_testkit::CliOutcome::of(command.args(arguments).current_dir(&moved)).json()
    };
    assert!(!call(&["rewind", "status"])["archive"].is_null());
    let undone = call(&["undo", &id, "--yes"]);
    assert_eq!(undone["status"], "undone", "{undone}");
    std::fs::rename(&moved, world.root()).expect("move it back");
    assert_eq!(world.rows(), before);
}

#[test]
fn the_archive_of_another_rewind_is_not_put_back() {
    let world = devs();
    let first = world.cli.json(["rewind", "to", "T1", "--yes"]);
    world.cli.json(["undo", first["id"].as_str().expect("an id"), "--yes"]);
    let second = world.cli.json(["rewind", "to", "T2", "--yes"]);
    let path = |done: &Value| done["archive"].as_str().expect("a path").to_owned();
    let kept = std::fs::read(path(&second)).expect("an archive");
    std::fs::copy(path(&first), path(&second)).expect("the wrong one");
    let rows = world.rows();
    let id = second["id"].as_str().expect("an id");
    assert_eq!(world.cli.refused(["undo", id, "--yes"]), (Some(2), "corrupt".to_owned()));
    assert_eq!(world.rows(), rows);
    std::fs::write(path(&second), kept).expect("the right one");
    world.cli.json(["undo", id, "--yes"]);
}
