//! What stands after a rollback was undone or aborted: what a person changes then is asked for, what is doubtful is run again, and what is
//! printed as the next command leads on.

use ic_testkit::TestWorld;

use crate::calls::{Calls as _, status};
use crate::effects::Effects as _;
use crate::flow::Flow as _;
use crate::project::with_checkpoints;

/// Two steps in files alone.
fn plain() -> (TestWorld, String) {
    let world = with_checkpoints();
    world.write("f", "base\n");
    world.steps(&[
        "{id: a, phase: one, compensate: skip, run: 'echo a > f'}",
        "{id: s, compensate: skip, run: 'echo s > s'}",
    ]);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    (world, run)
}

#[test]
fn what_a_person_changes_after_a_redo_is_asked_for_as_before_it() {
    let (world, run) = plain();
    for round in 0..2 {
        let refused = |world: &TestWorld| world.refused(&format!("workflow rollback {run} --yes"));
        world.write("f", "by hand\n");
        assert_eq!(refused(&world), "file_conflict", "round {round}");
        assert_eq!(world.text("f"), "by hand\n");
        world.write("f", "a\n");
        world.report(&format!("workflow rollback {run} --yes"), 0);
        assert_eq!(world.text("f"), "base\n");
        world.report(&format!("redo --run {run} --yes"), 0);
    }
    // No step ran again by that, so the newest goes alone.
    world.report(&format!("workflow rollback {run} --latest --yes"), 0);
    assert_eq!((world.text("f"), world.text("s")), ("a\n".to_owned(), String::new()));
}

#[test]
fn after_a_rollback_the_next_command_runs_the_workflow_again() {
    let (world, run) = plain();
    world.report(&format!("workflow rollback {run} --yes"), 0);
    let reason = &world.report("rollback list", 0)[0]["reason"];
    assert_eq!(reason, "rollback of the workflow flow", "it was not started by a failed step");
    let status = world.report(&format!("status {run}"), 0);
    let next = status["next"].as_str().expect("a command").to_owned();
    assert_eq!(status["unfinished"][0]["kind"], "workflow", "{status}");
    world.report(next.strip_prefix("ic ").expect("a command"), 0);
    assert_eq!(world.text("s"), "s\n");
    assert_eq!(world.report(&format!("status {run}"), 0)["unfinished"], serde_json::json!([]));
}

#[test]
fn the_preview_and_the_call_name_the_same_way_around_what_a_person_changed() {
    let world = with_checkpoints();
    world.write("file", "old\n");
    world.steps(&["{id: a, phase: one, compensate: skip, run: 'echo new > file'}"]);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.write("file", "mine\n");
    let preview = world.call(&format!("workflow rollback {run} --dry-run"));
    let call = world.call(&format!("workflow rollback {run} --yes"));
    assert_eq!((preview.code, call.code), (Some(1), Some(1)), "{preview:?} {call:?}");
    let plan = preview.json();
    let hint = plan["refusal"]["hint"].as_str().expect("a hint").to_owned();
    let said: serde_json::Value = serde_json::from_str(&call.stderr).expect("an error");
    assert_eq!(said["error"]["hint"], hint, "{plan}");
    assert!(!hint.contains("--keep-theirs"), "no option of this verb: {hint}");
}

/// The undo of a step is kept for all of its tries; its effect is of the last one.
#[test]
fn to_undo_the_try_that_succeeded_undoes_its_effect() {
    for (undo, alone) in [
        ("undo --yes", false),
        ("undo step:mail#2 --yes", false),
        ("undo --only ID --layer=workflow,effects --yes", true),
    ] {
        let world = with_checkpoints();
        world.steps(&["{id: mail, phase: sent, run: 'test -e OUT/ok && touch OUT/mail', \
             compensate: {shell: 'rm -f OUT/mail'}}"]);
        world.report("workflow run flow.yaml --on-failure stop", 1);
        let run = world.newest_run();
        world.outside.put("ok", "");
        assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
        assert!(world.outside.has("mail"));
        let last = world.report(&format!("workflow show {run}"), 0)["steps"][0]["dispatch_id"].clone();
        let undo = undo.replace("ID", last.as_str().expect("an id"));
        let plan = world.report(&format!("{} --run {run} --dry-run", undo.replace(" --yes", "")), 0);
        assert_eq!(plan["effects"]["results"].as_array().map(Vec::len), Some(1), "{undo}: {plan}");
        world.report(&format!("{undo} --run {run}"), 0);
        assert!(!world.outside.has("mail"), "{undo}");
        if !alone {
            assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
            assert!(world.outside.has("mail"), "{undo}: and it runs again");
        }
    }
}

/// What is named next must not undo the effect of a workflow that came to its end.
#[test]
fn a_step_that_ran_again_after_its_undo_had_failed_has_nothing_unfinished() {
    let world = with_checkpoints();
    world.steps(&["{id: mail, phase: sent, run: 'test -e OUT/ok && touch OUT/mail', \
         compensate: {shell: 'test ! -e OUT/stuck && rm -f OUT/mail'}}"]);
    world.outside.put("stuck", "");
    world.report("workflow run flow.yaml --on-failure rollback", 4);
    let run = world.newest_run();
    world.report(&format!("rollback abort {run} --yes"), 0);
    let status = || world.report(&format!("status {run}"), 0);
    // With the rollback its tries to undo the effect ended, too.
    let left = status();
    assert_eq!(left["unfinished"].as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left["next"], format!("ic workflow resume {}", left["run"]["short_id"].as_str().expect("an id")));
    world.outside.remove("stuck");
    world.outside.put("ok", "");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    assert_eq!(status()["unfinished"], serde_json::json!([]), "{}", status());
    assert!(world.outside.has("mail"));
    world.report(&format!("workflow rollback {run} --yes"), 0);
    assert!(!world.outside.has("mail"), "its undo is there as before");
}

#[test]
fn a_step_whose_effect_alone_was_undone_says_so_until_it_runs_again() {
    let world = with_checkpoints();
    world.flow(&[("a", &[]), ("b", &["a"])]);
    world.outside.put("spoil-do-b", "");
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    let shown = || {
        let report = world.report(&format!("workflow show {run}"), 0);
        let steps = report["steps"].as_array().expect("steps").clone();
        let text = world.call(&format!("workflow show {run} --format text")).stdout;
        let of_steps = steps.iter().map(|step| step["effect_undone"] == true).collect::<Vec<_>>();
        (of_steps, text.contains("its effect is undone"), text.contains("nothing is rolled back"))
    };
    assert_eq!(shown(), (vec![false, false], false, true));
    world.report(&format!("compensation run {run} --step a --yes"), 0);
    assert_eq!(shown(), (vec![true, false], true, false));
    world.outside.remove("spoil-do-b");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    assert_eq!(shown(), (vec![false, false], false, false));
    world.assert_each_stands_once(&[("a", &[]), ("b", &["a"])], "run again");
}

/// Whether its effect still stands when the process of an undo died is not known: the step makes it again, under a new key.
#[test]
fn a_step_whose_undo_was_cut_off_is_run_again() {
    let world = with_checkpoints();
    world.flow(&[("a", &[]), ("b", &["a"])]);
    world.outside.put("spoil-do-b", "");
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    world.kill_at(&format!("workflow rollback {run} --yes"), "undo-a-after");
    world.outside.remove("held-undo-a-after");
    world.call(&format!("rollback abort {run} --yes"));
    assert_eq!(status(&world), "active");
    let status = world.report(&format!("status {run}"), 0);
    let message = status["unfinished"][0]["message"].as_str().expect("a message");
    assert!(message.contains("the undo of the effect of a was interrupted, and its outcome is unknown"), "{status}");
    assert!(status["next"].as_str().is_some_and(|next| next.contains(" --step a ")), "{status}");
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert!(shown["steps"][0]["effect_undone"].is_null(), "not known: {shown}");
    let text = world.call(&format!("workflow show {run} --format text")).stdout;
    assert!(text.contains("its effect may be undone") && !text.contains("its effect is undone"), "{text}");
    world.outside.remove("spoil-do-b");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    world.assert_each_stands_once(&[("a", &[]), ("b", &["a"])], "run again");
    assert_eq!(world.effects()["a"].0.len(), 2, "a redone step has a new key: {}", world.outside.text("log"));
    assert_eq!(world.report(&format!("status {run}"), 0)["unfinished"], serde_json::json!([]));
    world.report(&format!("workflow rollback {run} --yes"), 0);
    world.assert_nothing_stands(&[("a", &[]), ("b", &["a"])], "rolled back");
}
