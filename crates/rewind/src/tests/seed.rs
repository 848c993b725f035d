//! Seed 002, by its own sentences.

use ic_base::Code;

use super::fixture::{NOW, TestApp};
use crate::{Archive, Rewind, RowCounts, UnknownTaskError, faults};

fn counts(counts: &RowCounts) -> Vec<(&str, u64)> {
    counts.iter().collect()
}

#[test]
fn rollback_to_task_deletes_what_is_newer_in_all_four_tables() {
    let mut app = TestApp::devs();
    let (result, _) = app.rewind("T2").unwrap();
    assert_eq!(
        counts(&result.deleted_row_counts),
        [("agent_logs", 2), ("langgraph_checkpoints", 1), ("requirements", 2), ("tasks", 1)]
    );
    assert_eq!(app.texts("SELECT task_id FROM tasks ORDER BY 1"), ["T1", "T2"], "the target's own row stays");
    assert_eq!(app.texts("SELECT log_id FROM agent_logs WHERE event_type IS NOT 'ROLLBACK_COMPLETED'"), ["1", "2"]);
    assert_eq!(app.texts("SELECT req_id FROM requirements"), ["R1"]);
    assert_eq!(app.texts("SELECT checkpoint_id FROM langgraph_checkpoints"), ["L1"]);
}

#[test]
fn all_deletions_are_one_transaction() {
    let mut app = TestApp::devs();
    app.sql("CREATE TRIGGER no BEFORE DELETE ON requirements BEGIN SELECT raise(ABORT, 'not these'); END");
    let requirements = app.target.tables.iter_mut().find(|t| t.name == "requirements").unwrap();
    requirements.triggers = crate::Triggers::Fire;
    let before = app.full_dump();
    let error = app.rewind("T1").unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("not these"), "{error}");
    assert_eq!(app.full_dump(), before);
}

#[test]
fn read_all_tasks_returns_only_tasks_up_to_the_target() {
    let mut app = TestApp::devs();
    app.rewind("T2").unwrap();
    let tasks = app.engine().read_all_tasks().unwrap();
    assert_eq!(tasks.iter().map(|t| t.task_id.as_str()).collect::<Vec<_>>(), ["T1", "T2"]);
    assert_eq!(tasks[0].commit.as_deref(), Some("c1"));
    assert_eq!(tasks[1].commit, None);
}

#[test]
fn unknown_task_error_before_anything_is_begun() {
    let mut app = TestApp::devs();
    let before = app.full_dump();
    let mut engine = app.engine();
    let mut archive = Archive::at(app.file("archive"));
    faults::fail_before(0);
    let error = engine.rollback_to_task("T9", &Rewind { id: "x", now: NOW }, &mut archive).unwrap_err();
    assert!(!faults::log().iter().any(|sql| sql.contains("BEGIN") || sql.contains("DELETE")));
    assert_eq!(error.code(), Code::UnknownTask);
    let source = std::error::Error::source(&error).and_then(|e| e.downcast_ref::<UnknownTaskError>()).unwrap();
    assert_eq!(source, &UnknownTaskError { task_id: "T9".to_owned(), table: "tasks".to_owned() });
    assert!(!archive.exists().unwrap());
    assert_eq!(app.full_dump(), before);
    assert_eq!(engine.get_snapshot("T9").unwrap_err().code(), Code::UnknownTask);
    assert_eq!(app.rewind("T9").unwrap_err().code(), Code::UnknownTask);
}

#[test]
fn rollback_to_task_twice_is_once_and_keeps_both_audits() {
    let mut app = TestApp::devs();
    app.rewind("T2").unwrap();
    let once = app.dump();
    let (again, _) = app.rewind("T2").unwrap();
    assert_eq!(again.deleted_row_counts.total(), 0);
    assert_eq!(app.dump(), once);
    assert_eq!(app.audits().len(), 2);
    app.rewind("T1").unwrap();
    assert_eq!(app.audits().len(), 3, "an earlier rewind keeps them too");
}

#[test]
fn newer_logs_of_the_target_itself_are_trimmed() {
    let mut app = TestApp::devs();
    app.rewind("T1").unwrap();
    assert_eq!(app.texts("SELECT log_id FROM agent_logs WHERE task_id = 'T1'"), ["1"]);
}

#[test]
fn get_snapshot_previews_without_changing_anything() {
    let mut app = TestApp::devs();
    let before = app.full_dump();
    let snapshot = app.engine().get_snapshot("T2").unwrap();
    assert_eq!(
        serde_json::to_string(&snapshot).unwrap(),
        r#"{"task_id":"T2","snapshot_created_at":200,"affected_row_counts":{"agent_logs":2,"langgraph_checkpoints":1,"requirements":2,"tasks":1}}"#
    );
    assert_eq!(app.full_dump(), before);
    let (result, _) = app.rewind("T2").unwrap();
    assert_eq!(result.deleted_row_counts, snapshot.affected_row_counts);
    assert_eq!(result.deleted_row_counts.get("tasks"), Some(1));
    assert_eq!(result.deleted_row_counts.get("others"), None);
}

#[test]
fn rollback_completed_is_written_last_in_the_same_transaction() {
    let mut app = TestApp::devs();
    faults::fail_before(0);
    let (result, _) = app.rewind("T2").unwrap();
    let log = faults::log();
    let place = |wanted: &str| log.iter().position(|sql| sql.contains(wanted)).unwrap();
    assert!(place("BEGIN IMMEDIATE") < place("DELETE FROM main.\"agent_logs\""));
    let last_commit = log.iter().rposition(|sql| sql == "COMMIT").unwrap();
    assert!(log[last_commit - 1].starts_with("INSERT OR ABORT INTO main.\"agent_logs\""), "{}", log[last_commit - 1]);
    let payload = app.texts("SELECT payload FROM agent_logs WHERE event_type = 'ROLLBACK_COMPLETED'");
    assert_eq!(payload, [serde_json::to_string(&result).unwrap()]);
    assert!(payload[0].starts_with(r#"{"rewind_id":"rewind-1","task_id":"T2","snapshot_created_at":200,"#));
}

#[test]
fn children_go_before_parents_and_every_delete_has_a_condition() {
    let mut app = TestApp::devs();
    app.target.tables.reverse();
    faults::fail_before(0);
    app.rewind("T1").unwrap();
    let deletes: Vec<String> = faults::log().into_iter().filter(|sql| sql.contains("DELETE")).collect();
    assert_eq!(deletes.len(), 4);
    assert!(deletes[3].contains("\"tasks\""), "{deletes:?}");
    assert!(deletes.iter().all(|sql| sql.contains(" WHERE ") && sql.contains("?1")), "{deletes:?}");
}

#[test]
fn undo_gives_the_identical_dump() {
    let mut app = TestApp::devs();
    let before = app.dump();
    let (result, archive) = app.rewind("T1").unwrap();
    assert_ne!(app.dump(), before);
    let report = app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    assert_eq!(report.restored_row_counts.total(), result.deleted_row_counts.total());
    assert_eq!(app.audits(), ["ROLLBACK_COMPLETED", "ROLLBACK_UNDONE"]);
    assert_eq!(app.undo(&archive).unwrap_err().code(), Code::NothingToUndo);
    app.rewind("T1").unwrap();
}
