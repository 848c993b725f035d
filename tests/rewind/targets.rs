//! The tasks that a rewind can go to.

use ic_testkit::{Cli, connect};
use serde_json::{Value, json};

use crate::project::{BINARY, configure_vectors, devs, devs_in_git};

fn ids(targets: &Value) -> Vec<&str> {
    let tasks = targets.as_array().expect("a list").iter();
    tasks.map(|task| task["task_id"].as_str().expect("an id")).collect()
}

#[test]
fn each_target_can_be_rewound_to() {
    let (world, commits) = devs_in_git();
    let targets = world.cli.json(["rewind", "targets"]);
    assert_eq!(ids(&targets), ["T3", "T2", "T1"], "newest first");
    assert_eq!(targets[1], json!({"task_id": "T2", "snapshot_created_at": 200, "commit": commits[1], "scope": {}}));
    for task in targets.as_array().expect("a list") {
        let id = task["task_id"].as_str().expect("an id");
        let preview = world.cli.json(["rewind", "to", id, "--dry-run"]);
        assert_eq!(preview["snapshot_created_at"], task["snapshot_created_at"], "{id}");
    }
    assert_eq!(ids(&world.cli.json(["rewind", "targets", "--limit", "2"])), ["T3", "T2"]);
    world.cli.json(["rewind", "to", "T2", "--yes"]);
    assert_eq!(ids(&world.cli.json(["rewind", "targets"])), ["T2", "T1"], "what was deleted is no target");
}

#[test]
fn looking_changes_nothing_and_needs_no_finished_rewind() {
    let world = devs();
    configure_vectors(&world, "exit 7");
    assert_eq!(world.cli.run(["rewind", "to", "T2", "--yes"]).code, Some(4));
    assert_eq!(world.cli.refused(["rewind", "to", "T1", "--dry-run"]).1, "not_finished");
    let before = (std::fs::read(&world.database).expect("the database"), world.cli.dump());
    // The application writes at the same time: a reader of its database does not wait for it.
    let writer = world.connect();
    writer.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    assert_eq!(ids(&world.cli.json(["rewind", "targets"])), ["T2", "T1"]);
    writer.execute_batch("ROLLBACK").expect("its end");
    let after = (std::fs::read(&world.database).expect("the database"), world.cli.dump());
    assert!(before == after, "a look wrote something");
}

/// Tasks of two scopes, in a table of their own; some of them have nothing to compare with.
fn configured() -> Cli {
    let cli = Cli::new(BINARY);
    let config = "rewind:\n  database: app.db\n  anchor: {table: jobs, key: id, order: at, scope: [project]}\n  \
                  tables: [{name: jobs, order: at}]\n";
    std::fs::write(cli.root().join(".ic.yaml"), config).expect("a configuration");
    connect(&cli.root().join("app.db"))
        .execute_batch(
            "CREATE TABLE jobs (id INTEGER PRIMARY KEY, project, at);
             INSERT INTO jobs VALUES (1, 'x', 10), (2, 7, 20), (3, 'x', 20), (4, 'x', NULL), (5, 'x', x'00'), (6, 'x', 9e999), (7, 7, 30)",
        )
        .expect("fill it");
    cli
}

#[test]
fn a_configured_table_lists_its_scopes_and_leaves_out_what_has_no_order() {
    let cli = configured();
    assert_eq!(ids(&cli.json(["rewind", "targets"])), ["7", "3", "2", "1"]);
    assert_eq!(ids(&cli.json(["rewind", "targets", "--scope-id", "x"])), ["3", "1"]);
    assert_eq!(ids(&cli.json(["rewind", "targets", "--scope-id", "x", "--limit", "1"])), ["3"]);
    let seventh = cli.json(["rewind", "targets", "--scope-id", "7"]);
    assert_eq!(ids(&seventh), ["7", "2"], "a number, where the column has no type");
    assert_eq!(seventh[0]["scope"], json!({"project": 7}));
    assert_eq!(cli.json(["rewind", "targets", "--scope-id", "unknown"]), json!([]));
    let text = cli.run(["rewind", "targets", "--scope-id", "unknown", "--format", "text"]);
    assert_eq!((text.code, text.stdout.as_str()), (Some(0), "No tasks to rewind to.\n"));
}

#[test]
fn what_cannot_be_listed_is_refused_as_a_rewind_is() {
    let world = devs();
    assert_eq!(world.cli.refused(["rewind", "targets", "--scope-id", "x"]).1, "invalid_value");
    for limit in ["0", "-1", "x", "100001"] {
        let refused = world.cli.refused(["rewind", "targets", &format!("--limit={limit}")]);
        assert_eq!(refused, (Some(3), "invalid_value".to_owned()), "{limit}");
    }
    let bare = Cli::new(BINARY);
    assert_eq!(bare.refused(["rewind", "targets"]), bare.refused(["rewind", "to", "T1", "--dry-run"]));
    assert_eq!(bare.refused(["rewind", "targets"]), (Some(3), "invalid_config".to_owned()));
}

#[test]
fn the_points_of_a_langgraph_thread() {
    let cli = Cli::new(BINARY);
    cli.ok(["rewind", "init", "--profile", "langgraph", "--database", "threads.sqlite"]);
    connect(&cli.root().join("threads.sqlite"))
        .execute_batch(
            "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
               parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
             CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
               task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
               PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
             INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('42', '1f0a0001-0000-6000-8000-000000000000'),
               ('43', '1f0a0002-0000-6000-8000-000000000000'), ('42', '1f0a0003-0000-6000-8000-000000000000')",
        )
        .expect("fill it");
    let thread = cli.json(["rewind", "targets", "--scope-id", "42"]);
    let point = "1f0a0001-0000-6000-8000-000000000000";
    assert_eq!(ids(&thread), ["1f0a0003-0000-6000-8000-000000000000", point]);
    assert_eq!(thread[1]["scope"], json!({"thread_id": "42"}));
    let preview = cli.json(["rewind", "to", point, "--scope", "thread_id=42", "--dry-run"]);
    assert_eq!(preview["affected_row_counts"]["checkpoints"], 1);
    // A UUID says nothing: what the checkpointer wrote of it does.
    connect(&cli.root().join("threads.sqlite"))
        .execute_batch(
            "UPDATE checkpoints SET type = 'msgpack', checkpoint = x'82a17604a27473aa323032362d30312d3031',
               metadata = CAST('{\"source\": \"loop\", \"step\": 3, \"parents\": {}}' AS BLOB) WHERE checkpoint_id LIKE '1f0a0003%'",
        )
        .expect("describe it");
    let thread = cli.json(["rewind", "targets", "--scope-id", "42"]);
    let said = ["time", "step_number", "source", "namespace"].map(|key| thread[0][key].clone());
    assert_eq!(said, [json!("2026-01-01"), json!(3), json!("loop"), json!("")]);
    let text = cli.run(["rewind", "targets", "--format", "text"]).stdout;
    assert!(text.contains("TIME") && text.contains("2026-01-01  3     loop"), "{text}");
}

/// langchain-ai/langgraph#8550: a child whose id sorts before its parent's still comes after it.
#[test]
fn a_rewind_follows_parents_and_not_ids() {
    let cli = Cli::new(BINARY);
    cli.ok(["rewind", "init", "--profile", "langgraph", "--database", "threads.sqlite"]);
    let database = connect(&cli.root().join("threads.sqlite"));
    database
        .execute_batch(
            "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
               parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
             CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
               task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
               PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
             INSERT INTO checkpoints (thread_id, checkpoint_id, parent_checkpoint_id) VALUES ('t', 'aa5', NULL), ('t', 'aa3', 'aa5'), ('t', 'aa7', 'aa3')",
        )
        .expect("fill it");
    let left = || -> String {
        database
            .query_row("SELECT group_concat(checkpoint_id, ' ') FROM checkpoints", [], |row| row.get(0))
            .expect("the rest")
    };
    cli.json(["rewind", "to", "aa5", "--yes"]);
    assert_eq!(left(), "aa5");
    database
        .execute_batch(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, parent_checkpoint_id) VALUES ('t', 'aa6', 'gone')",
        )
        .expect("an orphan");
    let outcome = cli.run(["rewind", "to", "aa5", "--yes"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "no_order"));
    assert!(outcome.stderr.contains("aa6"), "{}", outcome.stderr);
    assert_eq!(left(), "aa5 aa6", "nothing was changed");
}
