//! The profile `devs`: seed 002's four tables over real foreign keys.

use serde_json::json;

use crate::project::{audits, configure_vectors, devs, status};

#[test]
fn a_rewind_and_its_undo() {
    let world = devs();
    let before = world.rows();
    let preview = world.cli.json(["rewind", "to", "T1", "--dry-run"]);
    let counts = json!({"agent_logs": 3, "langgraph_checkpoints": 1, "requirements": 2, "tasks": 2});
    assert_eq!(preview["affected_row_counts"], counts);
    assert_eq!((&preview["snapshot_created_at"], &preview["git"]), (&json!(100), &json!(null)));
    assert!(preview["note"].as_str().expect("a note").contains("does not restore rows that were updated"));
    assert_eq!(world.rows(), before, "a preview changes nothing");
    assert!(audits(&world).is_empty());

    let done = world.cli.json(["rewind", "to", "T1", "--yes"]);
    assert_eq!((&done["status"], &done["stage"]), (&json!("done"), &json!("vector_done")));
    assert_eq!(done["deleted_row_counts"], counts);
    assert_eq!(audits(&world), ["ROLLBACK_COMPLETED"]);
    let left: Vec<String> = world.rows().lines().map(|l| l.split('|').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(left, ["agent_logs 1", "langgraph_checkpoints \"L1\"", "requirements \"R1\"", "tasks \"T1\""]);

    let id = done["id"].as_str().expect("an id");
    let undone = world.cli.json(["undo", id, "--yes"]);
    assert_eq!((&undone["status"], &undone["restored_row_counts"]), (&json!("undone"), &counts));
    assert_eq!(world.rows(), before);
    assert_eq!(audits(&world), ["ROLLBACK_COMPLETED", "ROLLBACK_UNDONE"]);
    world.cli.ok(["events", "verify"]);
}

#[test]
fn what_is_at_its_target_is_verified_and_left_alone() {
    let world = devs();
    world.cli.json(["rewind", "to", "T2", "--yes"]);
    let before = (world.rows(), audits(&world));
    let again = world.cli.json(["rewind", "to", "T2", "--yes"]);
    assert_eq!((&again["status"], &again["id"]), (&json!("nothing_to_do"), &json!(null)));
    assert_eq!((world.rows(), audits(&world)), before);
    assert_eq!(world.cli.json(["rewind", "list"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn an_unknown_task_begins_nothing() {
    let world = devs();
    let (ledger, rows) = (world.cli.dump(), world.rows());
    for task in ["T9", "t1", "", "T1 ", "' OR 1=1 --"] {
        for flag in ["--yes", "--dry-run"] {
            let (exit, code) = world.cli.refused(["rewind", "to", task, flag]);
            assert_eq!(exit, Some(3), "{task:?}");
            assert!(code == "unknown_task" || code == "invalid_value", "{task:?}: {code}");
        }
    }
    assert_eq!((world.cli.dump(), world.rows()), (ledger, rows));
}

#[test]
fn a_refused_transaction_is_the_error_itself_and_holds_nobody_up() {
    let world = devs();
    let rows = world.rows();
    let application = world.connect();
    application.execute_batch("BEGIN IMMEDIATE").expect("the application writes");
    let outcome = world.cli.run(["rewind", "to", "T1", "--yes", "--busy-timeout", "50ms"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"), "{outcome:?}");
    assert_eq!(world.rows(), rows);
    let status = status(&world);
    assert_eq!((&status["status"], &status["stage"]), (&json!("stopped"), &json!("planned")));
    assert_eq!(status["failure"]["code"], "busy");
    application.execute_batch("ROLLBACK").expect("the application is done");
    let stopped = status["id"].as_str().expect("an id").to_owned();
    assert_eq!(world.cli.json(["rewind", "to", "T2", "--yes"])["status"], "done");
    let resumed = world.cli.json(["rewind", "resume", &stopped, "--yes"]);
    assert_eq!((&resumed["status"], &resumed["task_id"]), (&json!("done"), &json!("T1")));
}

#[test]
fn a_row_that_would_lose_its_parent_stands_against_it_before_anything_is_begun() {
    let world = devs();
    world.sql("INSERT INTO requirements VALUES ('R9', 'T3', 'early', 50)");
    let rows = world.rows();
    for flag in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(["rewind", "to", "T1", flag]);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "row_conflict"), "{outcome:?}");
        assert!(outcome.stderr.contains("R9"), "{outcome:?}");
    }
    assert_eq!(world.rows(), rows);
    assert_eq!(world.cli.json(["rewind", "list"]), json!([]));
}

#[test]
fn rewinds_are_undone_one_by_one() {
    let world = devs();
    let before = world.rows();
    let ids = ["T2", "T1"]
        .map(|task| world.cli.json(["rewind", "to", task, "--yes"])["id"].as_str().expect("an id").to_owned());
    // The rows of the first one belong to a task that the second one took.
    let (exit, code) = world.cli.refused(["undo", &ids[0], "--yes"]);
    assert_eq!((exit, code.as_str()), (Some(1), "row_conflict"));
    for id in ids.iter().rev() {
        world.cli.json(["undo", id, "--yes"]);
    }
    assert_eq!(world.rows(), before);
}

#[test]
fn a_conflict_stops_an_undo_and_names_the_row() {
    let world = devs();
    let id = world.cli.json(["rewind", "to", "T1", "--yes"])["id"].as_str().expect("an id").to_owned();
    world.sql("INSERT INTO tasks VALUES ('T2', 'anew', 'open', NULL, 400)");
    let rows = world.rows();
    let outcome = world.cli.run(["undo", &id, "--yes"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "row_conflict"), "{outcome:?}");
    assert!(outcome.stderr.contains("T2"), "{outcome:?}");
    assert_eq!(world.rows(), rows);
    assert_eq!(status(&world)["status"], "done");
    world.sql("DELETE FROM tasks WHERE title = 'anew'");
    assert_eq!(world.cli.json(["undo", &id, "--yes"])["status"], "undone");
}

#[test]
fn the_preview_of_an_undo_is_the_undo() {
    let world = devs();
    let [first, last] = ["T2", "T1"]
        .map(|task| world.cli.json(["rewind", "to", task, "--yes"])["id"].as_str().expect("an id").to_owned());
    let (rows, ledger) = (world.rows(), world.cli.dump());
    // What stands in the way of the deed stands in the way of its preview.
    let outcomes = ["--dry-run", "--yes"].map(|how| world.cli.run(["undo", &first, how]));
    for outcome in &outcomes {
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "row_conflict"), "{outcome:?}");
    }
    assert_eq!(outcomes[0].stderr, outcomes[1].stderr);
    let preview = world.cli.json(["undo", &last, "--dry-run"]);
    assert_eq!((&preview["dry_run"], &preview["status"]), (&json!(true), &json!("done")));
    assert_eq!((world.rows(), world.cli.dump()), (rows, ledger));
    let undone = world.cli.json(["undo", &last, "--yes"]);
    assert_eq!(undone["restored_row_counts"], preview["restored_row_counts"]);
    assert!(preview["restored_row_counts"]["tasks"].as_u64().is_some_and(|rows| rows > 0), "{preview}");
    assert_eq!(undone["dry_run"], false);
    let again = world.cli.refused(["undo", &last, "--dry-run"]);
    assert_eq!(again, (Some(1), "nothing_to_undo".to_owned()));
}

#[test]
fn vectors_are_pruned_last_by_a_command_that_knows_the_rewind() {
    let world = devs();
    configure_vectors(
        &world,
        "echo $IC_REWIND $IC_TASK $IC_SNAPSHOT_CREATED_AT > pruned; sqlite3 --version > /dev/null; true",
    );
    let done = world.cli.json(["rewind", "to", "T1", "--yes"]);
    let id = done["id"].as_str().expect("an id");
    assert_eq!(world.text("pruned"), format!("{id} T1 100\n"));
}

#[test]
fn a_failed_command_leaves_the_rest_done_and_says_how_to_go_on() {
    let world = devs();
    configure_vectors(&world, "echo no such index; exit 7");
    let outcome = world.cli.run(["rewind", "to", "T1", "--yes"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let stopped = outcome.json();
    assert_eq!((&stopped["status"], &stopped["stage"]), (&json!("stopped"), &json!("db_done")));
    assert_eq!(stopped["stages_left"], json!(["vectors"]));
    let message = stopped["failure"]["message"].as_str().expect("a message");
    assert!(message.contains("exit code 7") && message.contains("no such index"), "{message}");
    let id = stopped["id"].as_str().expect("an id");
    assert_eq!(stopped["resume"], format!("ic rewind resume {} --yes", &id[28..]));
    let (exit, code) = world.cli.refused(["rewind", "to", "T2", "--yes"]);
    assert_eq!((exit, code.as_str()), (Some(1), "not_finished"), "an unfinished one is finished first");
    // What the configuration says now is of no account to a rewind that began before.
    let config = world.text(".ic.yaml").replace("exit 7", "exit 0");
    world.write(".ic.yaml", &config);
    assert_eq!(world.cli.run(["rewind", "resume", id, "--yes"]).code, Some(4));
    let undone = world.cli.json(["undo", id, "--yes"]);
    assert_eq!(undone["status"], "undone");
    assert_eq!(world.cli.json(["rewind", "to", "T2", "--yes"])["status"], "done");
}

#[test]
fn what_a_command_said_can_be_redacted() {
    let world = devs();
    world.write("key", "s3cret");
    configure_vectors(&world, "cat key; false");
    assert_eq!(world.cli.run(["rewind", "to", "T1", "--yes"]).code, Some(4));
    let events = world.cli.json(["events", "tail"]);
    let stopped = events.as_array().expect("events").iter().find(|event| event["kind"] == "rewind_stopped");
    let seq = stopped.expect("the event")["seq"].to_string();
    assert!(world.cli.dump().contains("s3cret"));
    world.cli.ok(["events", "redact", &seq, "--reason", "a key"]);
    assert!(!world.cli.dump().contains("s3cret"));
    assert_eq!(status(&world)["error"], json!(null));
    world.cli.ok(["events", "verify"]);
}

#[test]
fn the_configuration_is_added_to_and_never_overwritten() {
    let cli = ic_testkit::Cli::new(crate::project::BINARY);
    let path = cli.root().join(".ic.yaml");
    for (before, taken) in [
        ("", true),
        ("# of ours\nrollback:\n  enabled: false", true),
        ("rollback: {enabled: false}\n", true),
        ("{rollback: {enabled: false}}\n", false),
        ("rewind:\n", false),
        ("rewind: {profile: devs}\n", false),
        ("---\nrollback:\n...\n", false),
    ] {
        std::fs::write(&path, before).expect("a configuration");
        let outcome = cli.run(["rewind", "init", "--profile", "devs"]);
        let after = std::fs::read_to_string(&path).expect("a configuration");
        if taken {
            assert_eq!(outcome.code, Some(0), "{before:?}: {outcome:?}");
            assert!(after.starts_with(before) && after.ends_with("rewind:\n  profile: devs\n"), "{after}");
            cli.ok(["config", "show"]);
        } else {
            assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "config_not_changed"), "{before:?}");
            assert_eq!(after, before);
        }
    }
}

#[test]
fn tables_of_other_layouts_are_not_taken_for_the_profiles() {
    let cli = ic_testkit::Cli::new(crate::project::BINARY);
    let path = cli.root().join("app.db");
    let db = ic_testkit::connect(&path);
    db.execute_batch("CREATE TABLE tasks (id INTEGER PRIMARY KEY, done INTEGER)").expect("a table");
    let before = std::fs::read_to_string(cli.root().join(".ic.yaml")).expect("a configuration");
    for (profile, exit, code) in [("devs", 1, "table_conflict"), ("langgraph", 3, "invalid_config")] {
        let call = ["rewind", "init", "--profile", profile, "--database", "app.db"];
        assert_eq!(cli.refused(call), (Some(exit), code.to_owned()), "{profile}");
    }
    let tables: i64 =
        db.query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0)).expect("a count");
    assert_eq!(tables, 1);
    assert_eq!(std::fs::read_to_string(cli.root().join(".ic.yaml")).expect("a configuration"), before);
    let ledger = cli.db();
    let call = ["rewind", "init", "--profile", "devs", "--database", ledger.to_str().expect("a path")];
    assert_eq!(cli.refused(call).1, "foreign_database", "the ledger is never rewound");
}

#[test]
fn beyond_a_size_the_real_call_alone_looks_at_every_row() {
    let world = devs();
    world.sql("INSERT INTO requirements VALUES ('R9', 'T3', 'early', 50)");
    world.sql("CREATE TABLE large (bytes); INSERT INTO large VALUES (zeroblob(17 * 1024 * 1024))");
    let rows = world.rows();
    assert_eq!(world.cli.run(["rewind", "to", "T1", "--dry-run"]).code, Some(0));
    let outcome = world.cli.run(["rewind", "to", "T1", "--yes"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "row_conflict"), "{outcome:?}");
    assert_eq!((world.rows(), world.cli.json(["rewind", "list"])), (rows, json!([])));
}
