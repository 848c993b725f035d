//! Cancelling a run: which processes still work for it, and which of them `--stop` ends.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ic_testkit::{CliOutcome, TestWorld, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::calls::{Calls as _, status};
use crate::effects::Effects as _;
use crate::flow::{Flow as _, kill};
use crate::living::{Bystander, is_alive};
use crate::project::{plain, with_checkpoints};

/// A step that starts a process beside itself, and would be tried again; one that would follow.
const TWO: [&str; 2] = [
    "{id: slow, run: 'sleep 300 & echo $! > OUT/worker; ACT do', retries: {max: 3, backoff: 1s}, compensate: {shell: 'ACT undo'}}",
    "{id: next, needs: [slow], run: 'ACT do', compensate: {shell: 'ACT undo'}}",
];

/// A workflow that is held in its first step, its executor, its run, and the process beside the step.
fn held() -> (TestWorld, Child, String, u32) {
    let world = plain();
    world.steps(&TWO);
    world.outside.put("hold-do-slow-before", "");
    let child = world.start("workflow run flow.yaml --on-failure rollback");
    world.await_held("do-slow-before");
    let (run, worker) = (world.newest_run(), number(&world, "worker"));
    (world, child, run, worker)
}

fn number(world: &TestWorld, name: &str) -> u32 {
    world.outside.text(name).trim().parse().expect("a process number")
}

/// The processes of a list: what each does, its number, and its step.
fn workers(report: &Value, list: &str) -> Vec<(Value, Value, Value)> {
    let all = report[list].as_array().expect("a list").iter();
    all.map(|one| (one["kind"].clone(), one["pid"].clone(), one["step"].clone())).collect()
}

fn assert_ended_as_cancelled(child: Child) {
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!((outcome.code, outcome.error()), (Some(1), "run_not_active".to_owned()), "{outcome:?}");
}

#[test]
fn cancelling_names_the_processes_that_still_work_and_leaves_them_alone() {
    let (world, child, run, worker) = held();
    let step = world.cli.json(["dispatch", "list", &run])[0]["pid"].clone();
    let report = world.report(&format!("run cancel {run} --reason enough"), 0);
    assert_eq!(report["changed"], true);
    assert_eq!(workers(&report, "stopped"), []);
    let expected = [(json!("executor"), json!(child.id()), json!(null)), (json!("step"), step, json!("slow"))];
    assert_eq!(workers(&report, "still_running"), expected, "{report}");
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_alive(worker) && is_alive(child.id()), "nothing was signalled");
    world.outside.remove("held-do-slow-before");
    assert_ended_as_cancelled(child);
    assert!(!world.outside.text("log").contains("next"), "{}", world.outside.text("log"));
}

#[test]
fn stop_ends_the_steps_and_what_they_started_and_no_further_one_begins() {
    let (world, child, run, worker) = held();
    let report = world.report(&format!("run cancel {run} --stop --reason enough"), 0);
    assert!(!is_alive(worker), "the whole group of the step is gone when the command returns");
    assert_eq!(workers(&report, "still_running"), [], "{report}");
    let stopped = workers(&report, "stopped");
    assert_eq!((stopped.len(), &stopped[0].2), (1, &json!("slow")), "{report}");
    assert_ended_as_cancelled(child);
    assert_eq!(world.outside.text("log"), "", "neither the step, nor another attempt, nor an undo did anything");
    assert_eq!(status(&world), "cancelled");
    let again = world.report(&format!("run cancel {run} --stop"), 0);
    assert_eq!((&again["changed"], workers(&again, "stopped")), (&json!(false), vec![]), "{again}");
    // What it did so far is undone, and it can be made active again and resumed.
    world.report(&format!("compensation run {run} --yes"), 0);
    assert!(world.outside.text("log").contains("undoing slow"), "{}", world.outside.text("log"));
    world.report(&format!("run reopen {run} --reason again"), 0);
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    world.assert_no_complaints();
}

#[test]
fn a_run_that_was_cancelled_before_is_stopped_afterwards() {
    let (world, child, run, worker) = held();
    world.report(&format!("run cancel {run}"), 0);
    let events = world.cli.json(["events", "tail", &run]).as_array().map(Vec::len);
    let said = world.call(&format!("--format text run cancel {run} --stop"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let expected = format!("{} was cancelled before.\n  stopped        step slow, pid ", &run[28..]);
    assert!(said.stdout.starts_with(&expected), "{said:?}");
    assert!(!is_alive(worker));
    assert_ended_as_cancelled(child);
    assert_eq!(world.cli.json(["events", "tail", &run]).as_array().map(Vec::len), events, "nothing is recorded twice");
    assert_eq!(world.refused(&format!("run cancel {run}")), "run_not_active", "without --stop it is an expected no");
}

#[test]
fn steps_that_a_killed_executor_left_behind_are_named_and_stopped() {
    let (world, mut child, run, worker) = held();
    kill(&mut child);
    let report = world.report(&format!("run cancel {run}"), 0);
    let left = workers(&report, "still_running");
    assert_eq!((left.len(), &left[0].0), (1, &json!("step")), "an executor that is dead is not named: {report}");
    let report = world.report(&format!("run cancel {run} --stop"), 0);
    assert_eq!(workers(&report, "still_running"), [], "{report}");
    assert!(!is_alive(worker));
}

#[test]
fn a_run_without_living_processes_says_that_none_was_running() {
    let world = plain();
    let run = world.cli.ok(["run", "create", "--goal", "g"]).trim().to_owned();
    let said = world.call(&format!("--format text run cancel {run} --stop"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("no process of its workflow was running"), "{said:?}");
}

#[test]
fn the_process_of_a_dispatch_is_named_and_never_signalled() {
    let world = plain();
    let run = world.cli.ok(["run", "create", "--goal", "g"]).trim().to_owned();
    let other = Bystander::start();
    let dispatch = world.cli.ok(["dispatch", "create", &run]).trim().to_owned();
    world.cli.ok(["dispatch", "start", &dispatch, "--pid", &other.0.id().to_string()]);
    for words in ["", "--stop"] {
        let report = world.report(&format!("run cancel {run} {words}"), 0);
        let expected =
            json!([{"kind": "dispatch", "pid": other.0.id(), "step": null, "dispatch_id": dispatch, "error": null}]);
        assert_eq!(report["still_running"], expected, "{words}");
        assert!(is_alive(other.0.id()));
    }
}

#[test]
fn a_step_that_cancels_its_own_run_lives_to_tell_it() {
    let world = plain();
    let ic = env!("CARGO_BIN_EXE_ic");
    world.steps(&[
        &format!("{{id: own, run: 'code=0; {ic} run cancel \"$IC_RUN\" --stop > OUT/told || code=$?; echo $code > OUT/code', compensate: skip}}"),
        "{id: next, needs: [own], run: 'ACT do', compensate: {shell: 'ACT undo'}}",
    ]);
    assert_ended_as_cancelled(world.start("workflow run flow.yaml --on-failure rollback"));
    assert_eq!(world.outside.text("code"), "4\n", "{}", world.outside.text("told"));
    let told: Value = serde_json::from_str(&world.outside.text("told")).expect("a record");
    assert_eq!(workers(&told, "stopped"), []);
    assert_eq!(told["still_running"][1]["error"], "this command runs in it", "{told}");
    assert_eq!(world.outside.text("log"), "", "no step follows");
}

/// A step was begun and its process is not on record yet: it must never run once the run is cancelled.
#[test]
fn a_step_that_is_about_to_run_while_its_run_is_cancelled_never_does() {
    let world = plain();
    let step = |at: usize| format!("{{id: s{at}, run: 'echo s{at} >> OUT/ran', compensate: skip}}");
    let steps: Vec<String> = (0..400).map(step).collect();
    world.steps(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    let mut command: Command = world.command("workflow run flow.yaml");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    wait_for("a step has run", || world.outside.has("ran"));
    let (run, executor) = (world.newest_run(), Pid::from_child(&child));
    let mut about_to_run = None;
    wait_for("a step is about to run", || {
        kill_process(executor, Signal::STOP).expect("the executor is stopped");
        let begun = world.call(&format!("dispatch list {run} --status running")).json();
        let begun = begun.as_array().and_then(|all| all.first()).filter(|one| one["pid"].is_null());
        about_to_run = begun.map(|one| one["name"].as_str().expect("a name").to_owned());
        // It may have been stopped in the middle of a write.
        let is_cancelled =
            about_to_run.is_some() && world.call(&format!("run cancel {run} --busy-timeout 100ms")).code == Some(0);
        kill_process(executor, Signal::CONT).expect("the executor continues");
        is_cancelled
    });
    assert_eq!(child.wait().ok().and_then(|status| status.code()), Some(1));
    let about_to_run = about_to_run.expect("a step");
    assert!(
        !world.outside.text("ran").lines().any(|line| line == about_to_run),
        "{about_to_run}: {}",
        world.outside.text("ran")
    );
}

#[test]
fn a_run_is_not_reopened_beside_its_living_executor() {
    let (world, child, run, worker) = held();
    world.report(&format!("run cancel {run}"), 0);
    let reopen = format!("run reopen {run} --reason again");
    assert_eq!(world.refused(&reopen), "work_running");
    assert_eq!(status(&world), "cancelled");
    assert!(is_alive(worker) && is_alive(child.id()), "nothing was signalled");
    world.outside.remove("held-do-slow-before");
    assert_ended_as_cancelled(child);
    assert_eq!(world.report(&reopen, 0)["status"], "active");
}

/// A workflow whose last step failed, after `rollback`: what it undid, the files, and where the run is.
fn rolled_back(rollback: &str, is_cancelled: bool) -> Value {
    let world = with_checkpoints();
    world.steps(&[
        "{id: a, phase: one, run: 'ACT do; echo a > a.txt', compensate: {shell: 'ACT undo'}}",
        "{id: b, phase: two, run: 'ACT do; echo b > b.txt', compensate: {shell: 'ACT undo'}}",
        "{id: c, phase: three, run: 'exit 7', compensate: skip}",
    ]);
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    if is_cancelled {
        world.report(&format!("run cancel {run} --reason wrong"), 0);
        world.report(&format!("run reopen {run} --reason right"), 0);
    }
    world.report(&format!("{rollback} {run} --yes"), 0);
    let phase = world.cli.ok(["run", "phase", &run]);
    let files = [world.text("a.txt"), world.text("b.txt")];
    let steps = world.report(&format!("workflow show {run}"), 0)["steps"].clone();
    let states: Vec<Value> =
        steps.as_array().expect("steps").iter().map(|step| json!([step["id"], step["status"]])).collect();
    json!([world.undone(), files, phase.trim(), status(&world), states])
}

#[test]
fn a_rollback_after_a_reopening_works_as_if_the_run_had_not_been_cancelled() {
    for rollback in ["workflow rollback", "run rollback --to-phase one --layer=all", "run rollback --to-phase one"] {
        let expected = rolled_back(rollback, false);
        assert_eq!(expected[3], "active", "{rollback}: {expected}");
        assert_eq!(rolled_back(rollback, true), expected, "{rollback}");
    }
}
