//! Undos that fail: which others wait, which continue, and how the same call finishes.

use serde_json::json;

use super::{lines, logs, pairs, project, results, shell, states, status, text, undo};
use crate::support::Project;

/// Three steps; the second one's undo needs a file.
fn broken() -> Project {
    let project = project();
    logs(&project, "one");
    shell(&project, "two", "test -e repaired && echo two >> log || { echo no such host; exit 3; }", &[]);
    logs(&project, "three");
    project
}

#[test]
fn the_first_failure_stops_and_the_same_call_finishes() {
    let project = broken();
    let report = undo(&project, "", 4);
    assert_eq!(report["status"], "stopped");
    assert_eq!(results(&report), pairs(&[("three", "done"), ("two", "failed")]));
    assert_eq!(report["results"][1]["error"], "it ended with exit code 3: no such host");
    assert_eq!(report["compensations_left"].as_array().map(Vec::len), Some(2));
    assert_eq!(states(&project), pairs(&[("one", "armed"), ("two", "failed"), ("three", "done")]));
    assert_eq!(status(&project), "rolling_back");
    let run = text(&report["run_id"]);
    for line in ["run advance", "compensation add --step s --skip", "run cancel"] {
        let words: Vec<&str> = line.split(' ').collect();
        let (noun, rest) = words.split_at(2);
        let words = noun.iter().copied().chain([run.as_str()]).chain(rest.iter().copied());
        assert_eq!(project.refused_words(words), (1, "rolling_back".to_owned()), "{line}");
    }
    project.write("repaired", "");
    let resume = text(&report["resume"]);
    assert_eq!(resume, format!("ic compensation run {} --yes", &run[28..]));
    project.ok(resume.strip_prefix("ic ").expect("a call"));
    assert_eq!(lines(&project, "log"), ["three", "two", "one"], "only what was left");
    assert_eq!(status(&project), "active");
    project.ok("run advance @");
}

#[test]
fn undoing_something_else_does_not_open_the_run() {
    let project = broken();
    undo(&project, "", 4);
    let report = undo(&project, "--step one", 0);
    assert_eq!((&report["status"], &report["closed"]), (&json!("done"), &json!(true)));
    assert_eq!(status(&project), "rolling_back");
    let run = text(&report["run_id"]);
    let shown = project.ok(&format!("compensation run {run} --step one --yes --format text"));
    assert!(shown.contains("Nothing") && shown.contains("stays closed"), "{shown}");
    project.write("repaired", "");
    let report = undo(&project, "", 0);
    assert_eq!((results(&report), &report["closed"]), (pairs(&[("two", "done")]), &json!(false)));
    assert_eq!(status(&project), "active");
}

#[test]
fn the_others_can_go_on() {
    let project = broken();
    let report = undo(&project, "--policy continue", 4);
    assert_eq!(report["status"], "failed");
    assert_eq!(results(&report), pairs(&[("three", "done"), ("two", "failed"), ("one", "done")]));
    assert_eq!(report["compensations_left"], json!([report["results"][1]["id"]]));
    assert_eq!(status(&project), "rolling_back", "the result is still a failure");
    assert!(text(&report["resume"]).contains(" --policy continue "), "{report}");
    project.write("repaired", "");
    assert_eq!(results(&undo(&project, "", 0)), pairs(&[("two", "done")]));
    assert_eq!(
        (lines(&project, "log"), status(&project)),
        (vec!["three".to_owned(), "one".to_owned(), "two".to_owned()], "active".to_owned())
    );
}

#[test]
fn what_a_failed_undo_of_the_same_step_needs_stays() {
    let project = project();
    logs(&project, "other");
    shell(&project, "same", "echo first >> log", &[]);
    shell(&project, "same", "false", &[]);
    let report = undo(&project, "--policy continue", 4);
    assert_eq!(results(&report), pairs(&[("same", "failed"), ("other", "done")]));
    assert_eq!(report["compensations_left"].as_array().map(Vec::len), Some(2), "{report}");
    assert_eq!(lines(&project, "log"), ["other"]);
}

#[test]
fn it_is_tried_again_with_the_same_key() {
    let project = project();
    let line = "echo $IC_IDEMPOTENCY_KEY >> keys; test $(wc -l < keys) -ge 5";
    let id = shell(&project, "queue", line, &["--retries", "2", "--backoff", "10ms"]);
    let report = undo(&project, "", 4);
    assert_eq!(report["results"][0]["attempts"], json!(3), "one, and two more");
    let shown = project.ok("compensation list @ --format text");
    assert!(shown.contains("failed queue: it ended with exit code 1"), "{shown}");
    let report = undo(&project, "", 0);
    assert_eq!((&report["results"][0]["attempts"], &report["results"][0]["status"]), (&json!(5), &json!("done")));
    assert_eq!(lines(&project, "keys"), vec![id.clone(); 5]);
    let redone = shell(&project, "queue", "echo $IC_IDEMPOTENCY_KEY >> keys", &[]);
    undo(&project, "", 0);
    assert_eq!(lines(&project, "keys").last(), Some(&redone));
    assert_ne!(id, redone, "a step that is done again has another key");
}

#[test]
fn one_that_takes_too_long_is_ended() {
    let project = project();
    shell(&project, "hangs", "sleep 300 & echo $! > child; wait", &["--timeout", "200ms"]);
    let report = undo(&project, "", 4);
    assert_eq!(report["results"][0]["error"], "it timed out and was ended");
    let child = lines(&project, "child")[0].parse().expect("a number");
    assert!(!super::processes::is_alive(child), "with all that it started");
}

#[test]
fn a_program_that_is_not_there_is_a_failure_and_no_crash() {
    let project = project();
    project.ok("compensation add @ --step s --exec -- ./nowhere.sh now");
    let report = undo(&project, "", 4);
    assert!(text(&report["results"][0]["error"]).contains("./nowhere.sh"), "{report}");
}

#[test]
fn the_output_of_undos_is_kept() {
    let project = project();
    shell(&project, "queue", "echo deleting orders; echo slowly >&2", &[]);
    undo(&project, "", 0);
    let run = text(&project.json("run current")["id"]);
    let log = project.root().join(format!(".ic/logs/{run}/undo-0001.log"));
    assert_eq!(std::fs::read_to_string(log).expect("the log"), "deleting orders\nslowly\n");
}
