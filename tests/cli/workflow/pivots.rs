//! Steps that cannot be undone.

use serde_json::json;

use super::{call, content, lines, project, run, states, status, touch, undone};

/// Mail is sent after an order was made; a step after that fails until `fixed` stands beside the project.
const MAIL: &str = "name: mail
steps:
  - {id: order, phase: work, run: 'echo 1 > order.txt', compensate: {shell: 'echo order >> ../undone'}}
  - {id: send, run: 'true', compensate: {pivot: mail cannot be called back}}
  - {id: count, run: 'test -e ../fixed', compensate: {shell: 'echo count >> ../undone'}}
";

#[test]
fn what_was_done_before_a_pivot_is_not_undone() {
    let project = project(MAIL);
    let report = run(&project, "--on-failure rollback", 1);
    assert_eq!((&report["status"], undone(&report).len()), (&json!("stopped"), 0));
    let why = report["rollback"]["error"].as_str().expect("why");
    assert!(why.starts_with("The step send cannot be undone"), "{why}");
    assert_eq!(status(&project), ("active".to_owned(), "work".to_owned()));
    assert!(lines(&project, "undone").is_empty() && content(&project, "order.txt").is_some());
    touch(&project, "fixed");
    assert_eq!(states(&call(&project, "workflow resume @", 0)), ["succeeded"; 3], "it can only go forward");
}

#[test]
fn force_undoes_the_rest_all_the_same() {
    let project = project(MAIL);
    touch(&project, "fixed");
    run(&project, "", 0);
    assert_eq!(project.refused("workflow rollback --yes"), (1, "pivot".to_owned()));
    let hint = project.run("workflow rollback --yes --format text").stderr;
    assert!(hint.contains("--past-pivot") && !hint.contains("resume"), "{hint}");
    assert!(lines(&project, "undone").is_empty());
    let report = call(&project, "workflow rollback --force --yes", 0);
    assert_eq!((&report["status"], undone(&report)), (&json!("rolled_back"), vec!["count", "order"]));
    let send = &report["rollback"]["compensations"][1];
    assert_eq!((&send["step"], &send["status"]), (&json!("send"), &json!("skipped")), "it is not called undone");
    assert_eq!(content(&project, "order.txt"), None);
}

#[test]
fn a_pivot_that_was_not_begun_stands_in_no_way() {
    let project = project(&MAIL.replace("echo 1 > order.txt", "exit 1"));
    let report = run(&project, "--on-failure rollback", 1);
    assert_eq!((&report["status"], undone(&report)), (&json!("rolled_back"), vec!["order"]));
}

#[test]
fn a_pivot_that_failed_holds_nothing() {
    let project = project(&MAIL.replace("run: 'true'", "run: 'exit 1'"));
    let report = run(&project, "--on-failure rollback", 1);
    assert_eq!((&report["status"], undone(&report)), (&json!("rolled_back"), vec!["order"]));
}
