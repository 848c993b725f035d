//! The cases that have names: which step fails, what is undone then and in which order, and what a failing undo leads to.

use ic_testkit::{CliOutcome, wait_for};
use serde_json::json;

use crate::calls::{Calls as _, pairs, states, status};
use crate::effects::Effects as _;
use crate::flow::{DIAMOND, Flow as _};
use crate::project::{plain, with_checkpoints};

/// A chain of three.
const CHAIN: [(&str, &[&str]); 3] = [("a", &[]), ("b", &["a"]), ("c", &["b"])];

const ROLLBACK: &str = "workflow run flow.yaml --on-failure rollback";

#[test]
fn b_fails_while_c_is_done_and_c_is_undone_before_a() {
    let world = plain();
    world.flow(&[("a", &[]), ("b", &["a"]), ("c", &["a"])]);
    world.outside.put("hold-do-b-before", "");
    world.outside.put("spoil-do-b", "");
    let child = world.start(&format!("{ROLLBACK} --jobs 2"));
    world.await_held("do-b-before");
    wait_for("c is done", || world.log().iter().any(|act| act.what == "done" && act.step == "c"));
    let shown = || states(&world.report(&format!("workflow show {}", world.newest_run()), 0));
    wait_for("c is recorded", || shown().contains(&("c".to_owned(), "succeeded".to_owned())));
    world.outside.remove("held-do-b-before");
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let report = outcome.json();
    assert_eq!((&report["status"], &report["failed_step"]), (&json!("rolled_back"), &json!("b")));
    let undone = world.undone();
    assert_eq!(undone.len(), 3, "{undone:?}");
    assert_eq!(undone[2], "a", "{undone:?}");
    assert_eq!(status(&world), "active");
}

#[test]
fn a_failure_at_the_last_step_undoes_all_in_reverse() {
    let world = with_checkpoints();
    world.flow(&DIAMOND);
    world.outside.put("spoil-do-d", "");
    let report = world.report(ROLLBACK, 1);
    assert_eq!(report["status"], "rolled_back");
    assert_eq!(world.undone(), ["d", "c", "b", "a"]);
    world.assert_nothing_stands(&DIAMOND, "the last step");
}

#[test]
fn a_failure_at_the_first_step_undoes_nothing_else() {
    let world = with_checkpoints();
    world.flow(&DIAMOND);
    world.outside.put("fail-do-a", "");
    let report = world.report(ROLLBACK, 1);
    assert_eq!(report["status"], "rolled_back");
    // Its own undo runs: how far it came is not known.
    assert_eq!(world.undone(), ["a"]);
    assert_eq!(world.compensations(), pairs(&[("a", "done")]));
}

#[test]
fn an_undo_is_tried_again_under_the_same_key() {
    let world = plain();
    world.steps(&[
        "{id: a, run: 'ACT do', compensate: {shell: 'ACT undo; test -e OUT/second || { touch OUT/second; exit 1; }', \
         retries: {max: 2, backoff: 10ms}}}",
        "{id: b, run: 'exit 3'}",
    ]);
    let report = world.report(ROLLBACK, 1);
    assert_eq!(report["status"], "rolled_back_in_part", "b declares no undo, and there is no checkpoint: {report}");
    assert_eq!(report["rollback"]["compensations"][0]["attempts"], 2);
    let undone: Vec<_> = world.log().into_iter().filter(|act| act.what == "undone").collect();
    assert_eq!(undone.len(), 2);
    assert_eq!(undone[0], undone[1], "both under the same key");
    world.assert_nothing_stands(&CHAIN, "retries");
}

#[test]
fn a_failing_undo_is_visible_and_the_next_call_finishes_what_is_left() {
    let world = with_checkpoints();
    world.flow(&DIAMOND);
    world.outside.put("spoil-do-d", "");
    world.outside.put("fail-undo-b", "");
    let report = world.report(ROLLBACK, 4);
    let run = world.newest_run();
    assert_eq!(report["status"], "rolling_back");
    assert_eq!(report["rollback"]["compensations_left"].as_array().map(Vec::len), Some(2), "{report}");
    assert!(report["resume"].as_str().is_some_and(|call| call.contains("workflow resume")), "{report}");
    assert_eq!(status(&world), "rolling_back");
    // d and c were undone; b failed; a waits because b depends on it, and the policy stops.
    assert_eq!(world.compensations(), pairs(&[("a", "armed"), ("b", "failed"), ("c", "done"), ("d", "done")]));
    for call in ["run advance", "run skip", "run cancel", "run set --complexity 2"] {
        let (verb, rest) = call.split_at(call.find(" --").unwrap_or(call.len()));
        let rest = if verb == "run skip" { " main --reason no" } else { rest };
        assert_eq!(world.refused(&format!("{verb} {run}{rest}")), "rolling_back", "{call}");
    }
    let again = world.report(&format!("workflow resume {run} --yes"), 4);
    assert_eq!(again["rollback"]["compensations"][0]["attempts"], 2, "{again}");
    world.outside.remove("fail-undo-b");
    let last = world.report(&format!("workflow resume {run} --yes"), 1);
    assert_eq!(last["status"], "rolled_back");
    let order: Vec<_> = world.log().into_iter().filter(|act| act.what == "undone").map(|act| act.step).collect();
    assert_eq!(order, ["d", "c", "b", "a"], "nothing is undone twice");
    assert_eq!(status(&world), "active");
}

#[test]
fn with_the_policy_continue_only_what_the_failed_undo_depends_on_stays() {
    let world = plain();
    world.flow(&DIAMOND);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.outside.put("fail-undo-b", "");
    let report = world.report(&format!("compensation run {run} --policy continue --yes"), 4);
    assert_eq!(report["status"], "failed");
    assert_eq!(world.undone(), ["d", "c"]);
    assert_eq!(world.compensations(), pairs(&[("a", "armed"), ("b", "failed"), ("c", "done"), ("d", "done")]));
    assert_eq!(status(&world), "rolling_back");
    world.outside.remove("fail-undo-b");
    world.report(&format!("compensation run {run} --yes"), 0);
    assert_eq!(world.undone(), ["d", "c", "b", "a"]);
    assert_eq!(status(&world), "completed", "as it was before");
}

#[test]
fn partial_takes_the_failed_step_back_alone_and_it_is_redone_under_a_new_key() {
    let world = with_checkpoints();
    world.flow(&DIAMOND);
    world.outside.put("spoil-do-c", "");
    let report = world.report(&format!("{ROLLBACK} --strategy partial"), 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(world.undone(), ["c"]);
    assert_eq!(status(&world), "active");
    world.outside.remove("spoil-do-c");
    let run = world.newest_run();
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    assert_eq!(world.effects()["c"].0.len(), 2, "a redone step has a new key");
    world.assert_each_stands_once(&DIAMOND, "partial");
    world.report(&format!("workflow rollback {run} --yes --strategy full"), 0);
    world.assert_nothing_stands(&DIAMOND, "partial, then all");
}

#[test]
fn a_failed_step_that_is_resumed_keeps_its_key_also_without_an_undo() {
    let world = plain();
    world.steps(&["{id: a, run: 'ACT do'}"]);
    world.outside.put("spoil-do-a", "");
    world.report("workflow run flow.yaml --on-failure stop", 1);
    world.outside.remove("spoil-do-a");
    world.report(&format!("workflow resume {}", world.newest_run()), 0);
    assert_eq!(world.effects()["a"].0.len(), 1, "{}", world.outside.text("log"));
    // Without an undo of its own and without a checkpoint what it did stays: 4 says so.
    world.report(&format!("workflow rollback {} --yes", world.newest_run()), 4);
    world.report(&format!("workflow resume {}", world.newest_run()), 0);
    assert_eq!(world.effects()["a"].0.len(), 2, "a redone step has a new key: {}", world.outside.text("log"));
}

#[test]
fn a_step_whose_effect_was_undone_is_not_finished_any_more() {
    let world = plain();
    world.flow(&CHAIN);
    world.outside.put("fail-do-c", "");
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    world.report(&format!("compensation run {run} --yes"), 0);
    world.assert_nothing_stands(&CHAIN, "undone");
    world.outside.remove("fail-do-c");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    world.assert_each_stands_once(&CHAIN, "redone");
}

#[test]
fn a_resumed_step_has_all_its_retries_again() {
    let world = plain();
    world.steps(&["{id: a, run: 'echo . >> OUT/tries; test $(wc -l < OUT/tries) -ge 5', retries: {max: 2}}"]);
    let report = world.report("workflow run flow.yaml --on-failure stop", 1);
    assert_eq!(report["steps"][0]["attempts"], 3);
    let report = world.report(&format!("workflow resume {}", world.newest_run()), 0);
    assert_eq!(report["steps"][0]["attempts"], 5, "{report}");
}

#[test]
fn the_undo_knows_what_an_attempt_said_that_was_followed_by_another() {
    let world = plain();
    world.steps(&["{id: a, run: 'test -e OUT/made && exit 1; touch OUT/made; echo ID=17 >> $IC_OUTPUTS; exit 1', \
         retries: {max: 1}, compensate: {shell: 'echo deleted $ID > OUT/deleted'}}"]);
    world.report(ROLLBACK, 1);
    assert_eq!(world.outside.text("deleted"), "deleted 17\n");
}
