//! Checkpoints whose ids do not sort as their parents do: langchain-ai/langgraph#8550.

use ic_base::Code;

use super::fixture::{NOW, TestApp};
use crate::{Archive, Profile, Rewind, RewindTarget};

/// The tables as `langgraph-checkpoint-sqlite` makes them.
const TABLES: &str = "\
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
";

/// A thread of these checkpoints: namespace, id, parent, and for a subgraph the checkpoint of the graph. Each has a write. Another thread
/// has one checkpoint.
fn thread(rows: &[(&str, &str, &str, &str)]) -> TestApp {
    let app = TestApp::new(TABLES, |path| RewindTarget::of_profile(Profile::Langgraph, path));
    let put = |thread: &str, (ns, id, parent, outer): (&str, &str, &str, &str)| {
        let parent = if parent.is_empty() { "NULL".to_owned() } else { format!("'{parent}'") };
        let outer = if outer.is_empty() { String::new() } else { format!("\"\": \"{outer}\"") };
        app.sql(&format!(
            "INSERT INTO checkpoints VALUES ('{thread}', '{ns}', '{id}', {parent}, 'json', '{{}}', CAST('{{\"parents\": {{{outer}}}}}' AS BLOB));
             INSERT INTO writes VALUES ('{thread}', '{ns}', '{id}', 't', 0, 'x', NULL, NULL)"
        ));
    };
    for row in rows {
        put("t", *row);
    }
    put("other", ("", "z9", "", ""));
    app
}

/// What is left of the thread: the checkpoints, and those that have writes.
fn left(app: &TestApp) -> [String; 2] {
    ["checkpoints", "writes"].map(|table| {
        app.texts(&format!("SELECT checkpoint_ns || checkpoint_id FROM {table} WHERE thread_id = 't' ORDER BY 1"))
            .join(" ")
    })
}

#[test]
fn a_child_whose_id_sorts_before_its_parent_goes_with_what_came_after() {
    let rows = [("", "a5", "", ""), ("", "a3", "a5", ""), ("", "a7", "a3", "")];
    for (target, stay, written) in [("a5", "a5", ""), ("a3", "a3 a5", "a5"), ("a7", "a3 a5 a7", "a3 a5")] {
        let mut app = thread(&rows);
        let before = app.dump();
        let snapshot = app.engine().get_snapshot(target).unwrap();
        let (result, archive) = app.rewind(target).unwrap();
        assert_eq!(snapshot.affected_row_counts, result.deleted_row_counts, "{target}");
        assert_eq!(left(&app), [stay, written], "{target}");
        assert_eq!(app.texts("SELECT checkpoint_id FROM writes WHERE thread_id = 'other'"), ["z9"]);
        assert_eq!(
            app.engine().get_snapshot(target).unwrap().affected_row_counts.total(),
            0,
            "{target}: nothing is left to do"
        );
        app.undo(&archive).unwrap();
        assert_eq!(app.dump(), before, "{target}: undone");
    }
}

#[test]
fn what_is_neither_before_nor_after_the_target_is_refused() {
    // A fork at the first one: ids say nothing of which branch was first.
    let mut app = thread(&[("", "b5", "", ""), ("", "b3", "b5", ""), ("", "b7", "b5", "")]);
    let error = app.rewind("b3").unwrap_err();
    assert_eq!((error.code(), error.message().contains("b7")), (Code::NoOrder, true), "{error}");
    // To before the fork, both branches go.
    app.rewind("b5").unwrap();
    assert_eq!(left(&app), ["b5", ""]);
}

#[test]
fn a_thread_without_one_beginning_is_refused() {
    let missing = [("", "a1", "", ""), ("", "a2", "gone", ""), ("", "a3", "a2", "")];
    let null_in_the_middle = [("", "a1", "", ""), ("", "a2", "a1", ""), ("", "a3", "", ""), ("", "a4", "a3", "")];
    let circle = [("", "a1", "", ""), ("", "a2", "a3", ""), ("", "a3", "a2", ""), ("", "a4", "a1", "")];
    let only_a_circle = [("", "a1", "a2", ""), ("", "a2", "a1", "")];
    let of_itself = [("", "a1", "", ""), ("", "a2", "a2", "")];
    let in_a_subgraph = [("", "a1", "", ""), ("", "a4", "a1", ""), ("s", "a2", "gone", "a1"), ("s", "a3", "", "a1")];
    for (rows, target, named, why) in [
        (&missing[..], "a1", "a2", "missing"),
        (&null_in_the_middle, "a2", "a3", "have no parent"),
        (&circle, "a1", "a2, a3", "in a circle"),
        (&only_a_circle, "a1", "a1, a2", "in a circle"),
        (&of_itself, "a1", "a2", "in a circle"),
        (&in_a_subgraph, "a1", "a2 (s)", "missing"),
    ] {
        let mut app = thread(rows);
        let before = app.dump();
        let preview = app.engine().get_snapshot(target).unwrap_err();
        let error = app.rewind(target).unwrap_err();
        for error in [preview, error] {
            assert_eq!(error.code(), Code::NoOrder, "{why}: {error}");
            assert!(error.message().contains(why) && error.message().contains(named), "{why}: {error}");
        }
        assert_eq!(app.dump(), before, "{why}");
        // Another thread is not concerned.
        app.rewind("z9").unwrap();
    }
}

#[test]
fn where_older_checkpoints_were_pruned_the_oldest_is_the_first() {
    let mut app = thread(&[("", "a2", "a1", ""), ("", "a3", "a2", ""), ("", "a4", "a3", "")]);
    app.rewind("a3").unwrap();
    assert_eq!(left(&app), ["a2 a3", "a2"]);
}

#[test]
fn subgraphs_go_with_the_steps_in_which_they_ran() {
    // The graph: g5, g3, g7, with a subgraph in each of the steps after g5 and g3.
    let rows = [
        ("", "g5", "", ""),
        ("", "g3", "g5", ""),
        ("", "g7", "g3", ""),
        ("one", "k9", "", "g5"),
        ("one", "k8", "k9", "g5"),
        ("two", "m2", "", "g3"),
        ("two", "m1", "m2", "g3"),
    ];
    for (target, stay) in [
        ("g5", "g5"),
        ("g3", "g3 g5 onek8 onek9"),
        ("g7", "g3 g5 g7 onek8 onek9 twom1 twom2"),
        // Into a subgraph: what its graph did after that step goes too.
        ("m2", "g3 g5 onek8 onek9 twom2"),
    ] {
        let mut app = thread(&rows);
        if target == "m2" {
            // Nothing says which of two subgraphs was first but their graph, which a checkpoint names for itself alone.
            let error = app.rewind(target).unwrap_err();
            assert_eq!((error.code(), error.message().contains("k8 (one)")), (Code::NoOrder, true), "{error}");
            continue;
        }
        app.rewind(target).unwrap();
        assert_eq!(left(&app)[0], stay, "{target}");
    }
}

#[test]
fn a_position_is_no_target_where_ids_do_not_tell_the_order() {
    let app = thread(&[("", "a5", "", ""), ("", "a7", "a5", "")]);
    let mark = app.engine().mark().unwrap();
    app.sql("INSERT INTO checkpoints VALUES ('t', '', 'a6', 'a7', NULL, NULL, NULL)");
    let scope = [("thread_id".to_owned(), "t".into())];
    assert_eq!(app.engine().get_mark_snapshot(&mark, &scope).unwrap_err().code(), Code::NoOrder);
    let mut archive = Archive::at(app.file("m"));
    let rewind = Rewind { id: "m", now: NOW };
    let error = app.engine().rollback_to_mark(&mark, &scope, &rewind, &mut archive).unwrap_err();
    assert_eq!(error.code(), Code::NoOrder);
    app.sql("UPDATE checkpoints SET checkpoint_id = 'a8' WHERE checkpoint_id = 'a6'");
    assert_eq!(app.engine().get_mark_snapshot(&mark, &scope).unwrap().affected_row_counts.get("checkpoints"), Some(1));
}

#[test]
fn tasks_are_described_by_their_checkpointer() {
    let app = thread(&[("", "a5", "", ""), ("s", "a6", "", "a5")]);
    app.sql(
        "UPDATE checkpoints SET checkpoint = '{\"ts\": \"2026-01-01T00:00:01\"}', metadata = CAST('{\"step\": 4, \"source\": \"loop\"}' AS BLOB)
         WHERE checkpoint_id = 'a6'",
    );
    let tasks = app.engine().read_newest_tasks(Some("t"), 5).unwrap();
    let said = tasks[0].described.clone().unwrap();
    assert_eq!(
        (said.time.as_deref(), said.step, said.source.as_deref()),
        (Some("2026-01-01T00:00:01"), Some(4), Some("loop"))
    );
    assert_eq!((said.namespace.as_str(), tasks[1].described.clone().unwrap().time), ("s", None));
    assert_eq!(TestApp::devs().engine().read_all_tasks().unwrap()[0].described, None);
}
