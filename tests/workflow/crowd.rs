//! Other processes that act while a workflow is executed or rolled back, and two workflows in one tree.

use ic_testkit::{CliOutcome, TestWorld};

use crate::calls::{Calls as _, states, status};
use crate::effects::Effects as _;
use crate::flow::{DIAMOND, Flow as _};
use crate::project::{plain, with_checkpoints};

/// A diamond that is held in the middle of b.
fn held() -> (TestWorld, std::process::Child, String) {
    let world = with_checkpoints();
    world.flow(&DIAMOND);
    world.outside.put("hold-do-b-before", "");
    let child = world.start("workflow run flow.yaml --on-failure stop");
    world.await_held("do-b-before");
    let run = world.newest_run();
    (world, child, run)
}

#[test]
fn a_second_executor_is_refused_and_disturbs_nobody() {
    let (world, child, run) = held();
    for call in [
        format!("workflow resume {run}"),
        format!("workflow rollback {run} --yes"),
        format!("compensation run {run} --yes"),
        format!("run rollback {run} --to-phase main --include-target --layer=workflow,effects --yes"),
    ] {
        assert_eq!(world.refused(&call), "work_running", "{call}");
    }
    world.outside.remove("held-do-b-before");
    assert_eq!(CliOutcome::at_end_of(child).code, Some(0));
    world.assert_each_stands_once(&DIAMOND, "a second executor");
    world.assert_no_complaints();
}

#[test]
fn nobody_advances_a_run_that_is_being_taken_back() {
    let world = plain();
    world.flow(&DIAMOND);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.outside.put("hold-undo-c-after", "");
    let child = world.start(&format!("workflow rollback {run} --yes"));
    world.await_held("undo-c-after");
    assert_eq!(world.refused(&format!("run advance {run}")), "rolling_back");
    assert_eq!(world.refused(&format!("run rollback {run} --to-phase main")), "rolling_back");
    assert_eq!(world.refused(&format!("run cancel {run}")), "rolling_back");
    assert_eq!(world.refused(&format!("workflow resume {run} --yes")), "work_running");
    world.outside.remove("held-undo-c-after");
    assert_eq!(CliOutcome::at_end_of(child).code, Some(0));
    world.assert_nothing_stands(&DIAMOND, "an advance during a step");
}

#[test]
fn an_executor_whose_run_is_cancelled_stops_and_says_so() {
    let (world, child, run) = held();
    world.cli.ok(["run", "cancel", &run, "--reason", "enough"]);
    world.outside.remove("held-do-b-before");
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.error(), "run_not_active", "{outcome:?}");
    world.cli.assert_sound("afterwards");
    let effects = world.effects();
    assert!(!effects.contains_key("c") && !effects.contains_key("d"), "{}", world.outside.text("log"));
    assert_eq!(status(&world), "cancelled");
    assert_eq!(world.refused(&format!("workflow resume {run}")), "run_not_active");
    assert_eq!(world.refused(&format!("workflow rollback {run} --yes")), "run_not_active");
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!(shown["status"], "cancelled", "{shown}");
    // What it did can still be undone; it stays cancelled.
    world.report(&format!("compensation run {run} --yes"), 0);
    world.assert_nothing_stands(&DIAMOND, "cancelled");
    assert_eq!(status(&world), "cancelled");
    world.cli.assert_sound("afterwards");
}

#[test]
fn an_executor_whose_run_is_rolled_back_stops_and_says_so() {
    let world = with_checkpoints();
    world.steps(&[
        "{id: plan, phase: planned, run: 'true', compensate: skip}",
        "{id: a, phase: built, run: 'ACT do', compensate: {shell: 'ACT undo'}}",
        "{id: b, needs: [a], run: 'ACT do', compensate: {shell: 'ACT undo'}}",
        "{id: c, needs: [b], run: 'ACT do', compensate: {shell: 'ACT undo'}}",
    ]);
    world.outside.put("hold-do-b-before", "");
    let child = world.start("workflow run flow.yaml --on-failure stop");
    world.await_held("do-b-before");
    let run = world.newest_run();
    let status = world.cli.json(["run", "rollback", &run, "--to-phase", "planned"]);
    assert_eq!(status["status"], "rolled_back");
    world.outside.remove("held-do-b-before");
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.error(), "stale_phase", "{outcome:?}");
    assert!(!world.effects().contains_key("c"), "{}", world.outside.text("log"));
    world.cli.assert_sound("afterwards");
    // What was done before that rollback is undone too when the workflow is rolled back.
    let report = world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(report["status"], "completed", "{report}");
    world.report(&format!("workflow rollback {run} --yes"), 0);
    world.assert_nothing_stands(&[("a", &[]), ("b", &["a"]), ("c", &["b"])], "rolled back during a step");
    world.cli.assert_sound("afterwards");
}

#[test]
fn a_failing_step_of_a_run_that_was_rolled_back_or_cancelled_takes_nothing_back() {
    for call in ["run cancel", "run rollback"] {
        let world = with_checkpoints();
        world.steps(&[
            "{id: plan, phase: planned, run: 'true', compensate: skip}",
            "{id: a, phase: built, run: 'ACT do', compensate: {shell: 'ACT undo'}}",
        ]);
        world.outside.put("hold-do-a-before", "");
        world.outside.put("spoil-do-a", "");
        let child = world.start("workflow run flow.yaml --on-failure rollback");
        world.await_held("do-a-before");
        let run = world.newest_run();
        let (rest, code) =
            if call == "run cancel" { ("", "run_not_active") } else { (" --to-phase planned", "stale_phase") };
        assert_eq!(world.call(&format!("{call} {run}{rest}")).code, Some(0));
        world.outside.remove("held-do-a-before");
        let outcome = CliOutcome::at_end_of(child);
        assert_eq!((outcome.code, outcome.error()), (Some(1), code.to_owned()), "{call}: {outcome:?}");
        assert_eq!(world.undone(), [""; 0], "{call}");
        world.report(&format!("compensation run {run} --yes"), 0);
        assert_eq!(world.undone(), ["a"], "{call}");
        world.cli.assert_sound("afterwards");
    }
}

#[test]
fn two_workflows_in_one_tree() {
    let world = with_checkpoints();
    for name in ["one", "two"] {
        let first =
            format!("{{id: {name}-a, run: 'ACT do; echo {name} > {name}.txt', compensate: {{shell: 'ACT undo'}}}}");
        let last = format!(
            "{{id: {name}-b, needs: [{name}-a], run: 'echo half > {name}-b.txt; ACT do', compensate: {{shell: 'ACT undo'}}}}"
        );
        world.workflow(name, &[&first, &last]);
    }
    world.outside.put("hold-do-one-b-before", "");
    world.outside.put("hold-do-two-b-before", "");
    world.outside.put("hold-do-one-a-before", "");
    let first = world.start("workflow run one.yaml");
    world.await_held("do-one-a-before");
    let one = world.newest_run();
    let second = world.start("workflow run two.yaml --on-failure rollback");
    world.await_held("do-two-b-before");
    world.outside.remove("held-do-one-a-before");
    world.await_held("do-one-b-before");
    world.outside.put("spoil-do-two-b", "");
    // The second is rolled back while a step of the first runs in the same tree.
    world.outside.remove("held-do-two-b-before");
    let outcome = CliOutcome::at_end_of(second);
    world.outside.remove("held-do-one-b-before");
    let other = CliOutcome::at_end_of(first);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert_eq!(states(&other.json()).iter().filter(|(_, state)| state == "succeeded").count(), 2);
    assert_eq!((outcome.code, &outcome.json()["status"]), (Some(1), &"stopped".into()), "{outcome:?}");
    let why = outcome.json()["rollback"]["error"].as_str().expect("an error").to_owned();
    assert!(why.contains("still works here"), "{why}");
    assert_eq!((world.text("one.txt"), world.text("one-b.txt")), ("one\n".into(), "half\n".into()));
    let two = outcome.json()["run_id"].as_str().expect("an id").to_owned();
    // No process works there any more, and yet what the other one made is not undone.
    let again = world.report(&format!("workflow resume {two} --on-failure rollback --yes"), 1);
    assert_eq!(again["status"], "stopped", "{again}");
    let why = again["rollback"]["error"].as_str().expect("an error");
    assert!(why.contains("may be its work"), "{why}");
    assert_eq!(world.refused(&format!("workflow rollback {two} --yes")), "file_conflict");
    assert_eq!((world.text("one.txt"), world.text("one-b.txt")), ("one\n".into(), "half\n".into()));
    // Here is no git whose state could be restored alone.
    assert_eq!(world.refused(&format!("workflow rollback {two} --strategy git-only --yes")), "git_unsupported");
    let stands = |step: &str| world.effects()[step].0 != world.effects()[step].1;
    assert!(stands("one-a") && stands("one-b") && stands("two-a"), "a refusal undoes nothing");
    world.cli.assert_sound("afterwards");
    world.report(&format!("workflow show {one}"), 0);
}
