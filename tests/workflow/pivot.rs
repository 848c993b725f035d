//! Steps that cannot be undone, and effects that are left as they are: what is said of them.

use serde_json::{Value, json};

use crate::calls::{Calls as _, pairs, status};
use crate::effects::Effects as _;
use crate::flow::{Flow as _, kill};
use crate::project::{plain, with_checkpoints};

const SEND: &str = "{id: send, run: 'ACT do', compensate: {pivot: mail is sent}}";
const FIRST: &str = "{id: first, run: 'ACT do', compensate: {shell: 'ACT undo'}}";
const FAILS: &str = "{id: last, run: 'test -e OUT/fixed', compensate: {shell: 'ACT undo'}}";

#[test]
fn beyond_a_pivot_nothing_is_undone_unless_by_force() {
    let world = with_checkpoints();
    world.steps(&[FIRST, SEND, FAILS]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "stopped", "it can only go on: {report}");
    let run = world.newest_run();
    assert_eq!(world.undone(), [""; 0]);
    let resume = format!("workflow resume {run} --on-failure rollback --yes");
    assert_eq!(world.report(&resume, 1)["status"], "stopped");
    assert_eq!(world.refused(&format!("workflow rollback {run} --yes")), "pivot");
    let report = world.report(&format!("compensation run {run} --yes"), 4);
    assert_eq!(report["compensations_left"].as_array().map(Vec::len), Some(2), "{report}");
    assert_eq!(world.undone(), ["last"], "what came after it is undone");
    assert_eq!(status(&world), "active");
    world.report(&format!("workflow rollback {run} --yes --force"), 0);
    assert_eq!(world.undone(), ["last", "first"]);
}

#[test]
fn a_pivot_that_was_killed_in_its_middle_may_have_succeeded() {
    let world = plain();
    world.steps(&[FIRST, SEND]);
    world.kill_at("workflow run flow.yaml", "do-send-after");
    let run = world.newest_run();
    let report = world.report(&format!("workflow resume {run} --on-failure rollback --yes"), 1);
    assert_eq!(report["status"], "stopped", "{report}");
    assert_eq!(world.undone(), [""; 0]);
    assert_eq!(world.refused(&format!("workflow rollback {run} --yes")), "pivot");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
}

#[test]
fn a_pivot_that_failed_by_itself_holds_nothing() {
    let world = plain();
    world.steps(&[FIRST, SEND]);
    world.outside.put("fail-do-send", "");
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(world.undone(), ["first"]);
}

#[test]
fn a_pivot_of_an_attempt_that_was_taken_back_holds_nothing_of_the_next() {
    let world = plain();
    world.steps(&[
        FIRST,
        "{id: middle, needs: [first], run: 'ACT do', compensate: {shell: 'ACT undo'}}",
        "{id: send, needs: [middle], run: 'ACT do', compensate: {pivot: mail is sent}}",
    ]);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.report(&format!("workflow rollback {run} --yes --force"), 0);
    assert_eq!(world.undone(), ["middle", "first"]);
    world.outside.put("spoil-do-middle", "");
    let report = world.report(&format!("workflow resume {run} --on-failure rollback"), 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    let stands = world.effects().into_iter().any(|(step, (done, undone))| step != "send" && done != undone);
    assert!(!stands, "{}", world.outside.text("log"));
}

#[test]
fn a_forced_rollback_that_was_killed_is_finished_by_resume() {
    let world = with_checkpoints();
    world.steps(&[FIRST, SEND]);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.kill_at(&format!("workflow rollback {run} --yes --force"), "undo-first-before");
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!(shown["status"], "rolling_back");
    let report = world.report(&format!("workflow resume {run} --yes"), 0);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(world.undone(), ["first"]);
}

#[test]
fn what_was_left_is_never_called_rolled_back() {
    let world = with_checkpoints();
    world.steps(&[
        "{id: look, run: 'true', compensate: {skip: it only looks}}",
        "{id: advise, run: 'true', compensate: retry}",
        FIRST,
        SEND,
    ]);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    let text = world.call(&format!("workflow rollback {run} --yes --force --format text"));
    assert_eq!(text.code, Some(0), "{text:?}");
    for line in text.stdout.lines().filter(|line| ["look", "advise", "send"].iter().any(|s| line.contains(s))) {
        let is_step = line.contains("succeeded") && line.contains("main");
        assert!(is_step || line.trim_start().starts_with("skipped"), "{line}");
    }
    let listed = world.cli.json(["compensation", "list", &run]);
    let of = |step: &str| -> Value {
        let all = listed.as_array().expect("a list");
        all.iter().find(|one| one["step"] == step).expect("the step").clone()
    };
    for step in ["look", "advise", "send"] {
        assert_eq!((&of(step)["status"], &of(step)["rolled_back_by"]), (&json!("skipped"), &Value::Null), "{step}");
    }
    assert_eq!(of("first")["status"], "done");
    assert!(of("first")["rolled_back_by"].is_string());
    let events = world.cli.json(["events", "tail", &run, "--limit", "200"]);
    let of_type = |name: &str| {
        let all = events.as_array().expect("a list").iter().filter(|event| event["kind"] == name);
        all.map(|event| event["payload"]["step"].as_str().unwrap_or("?").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of_type("compensation_skipped"), ["send", "advise", "look"]);
    assert_eq!(of_type("compensation_done"), ["first"]);
}

#[test]
fn an_undo_that_is_not_for_the_failed_step_itself() {
    let world = plain();
    world.steps(&[FIRST, "{id: last, run: 'ACT do', compensate: {shell: 'ACT undo', on-failure: false}}"]);
    world.outside.put("fail-do-last", "");
    world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(world.undone(), ["first"]);
    assert_eq!(world.compensations(), pairs(&[("first", "done"), ("last", "skipped")]));
    // It was killed in its middle: that it failed is not known.
    let world = plain();
    world.steps(&[FIRST, "{id: last, run: 'ACT do', compensate: {shell: 'ACT undo', on-failure: false}}"]);
    world.outside.put("hold-do-last-after", "");
    let mut child = world.start("workflow run flow.yaml");
    world.await_held("do-last-after");
    kill(&mut child);
    world.report(&format!("workflow resume {} --on-failure rollback --yes", world.newest_run()), 1);
    assert_eq!(world.undone(), ["last", "first"]);
}
