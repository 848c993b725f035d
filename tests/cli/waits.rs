//! `ic wait`: the report of each way in which work and runs end; heartbeats.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{CliOutcome, signals};
use serde_json::{Value, json};

use crate::support::{Project, chain};

fn project() -> Project {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    project
}

fn running(project: &Project) -> String {
    let dispatch = project.ok("dispatch create @");
    project.ok(&format!("dispatch start {dispatch}"));
    dispatch
}

/// Running work with a process, which the caller ends.
fn with_process(project: &Project) -> (String, Child) {
    let dispatch = project.ok("dispatch create @");
    let worker = Command::new("sleep").arg("1000").spawn().expect("a worker");
    project.ok(&format!("dispatch start {dispatch} --pid {}", worker.id()));
    (dispatch, worker)
}

fn end(mut worker: Child) {
    worker.kill().and_then(|()| worker.wait()).expect("end the worker");
}

/// A wait in the background.
fn waiter(project: &Project, dispatch: &str) -> Child {
    let mut command = project.command(["wait", dispatch, "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    // It listens for signals once it waits; before, a signal would end it as it ends any process.
    let signals = || std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let started = Instant::now();
    let listens = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
    };
    while !listens(&signals()) {
        assert!(started.elapsed() < Duration::from_secs(20), "it waits within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// The exit code, and what the record says of the work and of the wait.
fn said(outcome: &CliOutcome) -> Value {
    let record = &outcome.json()[0];
    json!([outcome.code, record["status"], record["rolled_back_by"].is_string(), record["code"]])
}

#[test]
fn each_end_of_work_ends_the_wait_with_its_own_answer() {
    for (call, expected) in [
        ("dispatch complete {}", json!([0, "completed", false, null])),
        ("dispatch fail {} --error e", json!([1, "failed", false, null])),
        ("dispatch fail {} --error e --timed-out", json!([1, "timed_out", false, null])),
        ("dispatch cancel {}", json!([1, "cancelled", false, null])),
        ("run cancel @", json!([1, "cancelled", false, null])),
        ("run rollback @ --to-phase a", json!([1, "cancelled", true, null])),
    ] {
        let project = project();
        let dispatch = running(&project);
        let waiter = waiter(&project, &dispatch);
        project.ok(&call.replace("{}", &dispatch));
        assert_eq!(said(&CliOutcome::at_end_of(waiter)), expected, "{call}, during the wait");
        let dump = project.dump();
        let later = project.run(&format!("wait {dispatch} --json"));
        assert_eq!(said(&later), expected, "{call}, before the wait");
        assert_eq!(project.dump(), dump, "a wait writes nothing");
    }
}

#[test]
fn completed_work_that_was_rolled_back_is_not_waited_for_and_is_no_success() {
    let project = project();
    let dispatch = running(&project);
    project.ok(&format!("dispatch complete {dispatch}"));
    project.ok("run rollback @ --to-phase a");
    let waited = project.run(&format!("wait {dispatch} --json"));
    assert_eq!(said(&waited), json!([1, "completed", true, null]));
}

#[test]
fn a_process_that_goes_without_a_word_ends_the_wait() {
    let project = project();
    let (dispatch, worker) = with_process(&project);
    let waiter = waiter(&project, &dispatch);
    let dump = project.dump();
    end(worker);
    let heard = CliOutcome::at_end_of(waiter);
    assert_eq!(said(&heard), json!([1, "running", false, "process_gone"]));
    assert_eq!(project.dump(), dump, "only the worker decides how its work ended");
}

#[test]
fn a_process_that_reports_and_goes_at_once_has_completed_its_work() {
    let project = project();
    for _ in 0..10 {
        let dispatch = project.ok("dispatch create @");
        let line = format!("read line; \"$IC\" dispatch complete {dispatch} >/dev/null");
        let command = project.command(["version"]);
        let ic = command.get_program().to_owned();
        let mut worker = Command::new("sh");
        worker.arg("-c").arg(line).env("IC", ic).stdin(Stdio::piped());
        command.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
            worker.env(name, value);
        });
        worker.current_dir(project.root());
        let mut worker = worker.spawn().expect("a worker");
        project.ok(&format!("dispatch start {dispatch} --pid {}", worker.id()));
        let waiter = waiter(&project, &dispatch);
        drop(worker.stdin.take());
        let ended = worker.wait().expect("its end");
        assert!(ended.success(), "{ended:?}");
        assert_eq!(said(&CliOutcome::at_end_of(waiter)), json!([0, "completed", false, null]));
    }
}

#[test]
fn an_executor_records_the_end_of_a_step_whose_process_is_gone() {
    let project = project();
    let run = project.ok("run current");
    let (dispatch, worker) = with_process(&project);
    end(worker);
    let wait = format!("wait {dispatch} --timeout 200ms --json");
    assert_eq!(said(&project.run(&wait)), json!([1, "running", false, "process_gone"]));
    let owners = project.cli.beside("owners");
    std::fs::create_dir_all(&owners).expect("a directory");
    let lock = File::create(owners.join(run)).expect("a lock");
    lock.lock().expect("lock it");
    assert_eq!(said(&project.run(&wait)), json!([1, "running", false, "timed_out"]));
}

#[test]
fn a_wait_ends_when_its_time_is_over_or_when_it_is_interrupted() {
    let project = project();
    let (dispatch, worker) = with_process(&project);
    for timeout in ["0s", "120ms"] {
        let waited = project.run(&format!("wait {dispatch} --timeout {timeout} --json"));
        assert_eq!(said(&waited), json!([1, "running", false, "timed_out"]), "{timeout}");
    }
    for signal in signals::that_end() {
        let waiter = waiter(&project, &dispatch);
        signals::send_to(signal, waiter.id());
        let heard = CliOutcome::at_end_of(waiter);
        assert_eq!((heard.code, heard.stdout.as_str(), heard.stderr.as_str()), (Some(130), "", ""));
    }
    end(worker);
    let unknown = project.run("wait 99999999 --json");
    assert_eq!((unknown.code, unknown.error()), (Some(3), "dispatch_not_found".to_owned()));
}

#[test]
fn a_process_of_another_machine_or_container_is_never_gone() {
    let project = project();
    let (dispatch, worker) = with_process(&project);
    let recorded = project.cli.sql("SELECT pid_boot_id FROM dispatches");
    let (boot, place) = recorded.trim().split_once(' ').expect("a boot and a place");
    let (machine, space) = place.split_once(' ').expect("a machine and a namespace");
    end(worker);
    for elsewhere in [
        // Another container of this machine, and another machine.
        format!("{boot} {machine} 1{space}"),
        format!("11111111-2222-3333-4444-555555555555 0123456789abcdef {space}"),
    ] {
        project.cli.sql(&format!("UPDATE dispatches SET pid_boot_id = '{elsewhere}'"));
        let waited = project.run(&format!("wait {dispatch} --timeout 120ms --json"));
        assert_eq!(said(&waited), json!([1, "running", false, "timed_out"]), "{elsewhere}");
        let shown = project.run(&format!("dispatch show {dispatch} --json"));
        assert_eq!(shown.json()["alive"], "unknown", "{elsewhere}");
    }
    // An earlier boot of this machine is over, and so is what ran in it.
    project.cli.sql(&format!("UPDATE dispatches SET pid_boot_id = '11111111-2222-3333-4444-555555555555 {place}'"));
    let waited = project.run(&format!("wait {dispatch} --json"));
    assert_eq!(said(&waited), json!([1, "running", false, "process_gone"]));
}

#[test]
fn a_number_alone_is_nobody_who_could_be_gone() {
    let project = project();
    let (dispatch, worker) = with_process(&project);
    project
        .cli
        // As where the process could not be looked up.
        .sql("UPDATE dispatches SET pid_start_time = NULL, pid_boot_id = NULL");
    end(worker);
    let waited = project.run(&format!("wait {dispatch} --timeout 120ms --json"));
    assert_eq!(said(&waited), json!([1, "running", false, "timed_out"]));
    assert_eq!(project.json(&format!("dispatch show {dispatch}"))["alive"], "unknown");
}

/// The states and codes of all that was waited for.
fn each(outcome: &CliOutcome) -> Value {
    let records = outcome.json();
    let records = records.as_array().expect("a list");
    json!([outcome.code, records.iter().map(|one| json!([one["status"], one["code"]])).collect::<Vec<_>>()])
}

#[test]
fn all_is_as_good_as_each_and_any_as_the_first() {
    let project = project();
    let (one, two, three) = (running(&project), running(&project), running(&project));
    let all = format!("wait {three} {one} {two} {one} --timeout 100ms --json");
    project.ok(&format!("dispatch complete {two}"));
    let (running, done, failed) = (["running", "timed_out"], json!(["completed", null]), json!(["failed", null]));
    assert_eq!(each(&project.run(&all)), json!([1, [running, running, done]]));
    let any = format!("wait {one} {two} {three} --any --json");
    let beside = ["running", "not_finished"];
    assert_eq!(each(&project.run(&any)), json!([0, [beside, done, beside]]));
    project.ok(&format!("dispatch complete {one}"));
    project.ok(&format!("dispatch complete {three}"));
    assert_eq!(each(&project.run(&all)), json!([0, [done, done, done]]));
    let four = self::running(&project);
    let waiting = waiter(&project, &four);
    project.ok(&format!("dispatch fail {four} --error e"));
    assert_eq!(each(&CliOutcome::at_end_of(waiting)), json!([1, [failed]]));
    assert_eq!(each(&project.run(&format!("wait {one} {four} --all --json"))), json!([1, [done, failed]]));
}

#[test]
fn without_a_reference_all_that_is_under_way_is_meant() {
    let project = project();
    let nothing = project.run("wait --json");
    assert_eq!((nothing.code, nothing.stdout.trim()), (Some(0), "[]"));
    let (own, one, two) = (running(&project), running(&project), running(&project));
    project.ok("dispatch create @");
    // The work in which the call is made does not wait for itself.
    let waited = project.run_with("IC_DISPATCH", &own, "wait --timeout 0s --json");
    assert_eq!(each(&waited), json!([1, [["running", "timed_out"], ["running", "timed_out"]]]));
    assert_eq!(waited.json()[0]["id"], json!(project.json(&format!("dispatch show {one}"))["id"]));
    project.ok(&format!("dispatch complete {own}"));
    project.ok(&format!("dispatch complete {one}"));
    let last = project.run("wait --timeout 0s --json");
    assert_eq!(each(&last), json!([1, [["running", "timed_out"]]]));
    project.ok(&format!("dispatch complete {two}"));
    assert_eq!(each(&project.run("wait --json")), json!([0, []]));
}

#[test]
fn a_run_is_waited_for_until_it_is_completed_or_cancelled() {
    let project = project();
    let run = project.ok("run current");
    let waiting = waiter(&project, &run);
    project.ok("run advance @");
    assert_eq!(each(&CliOutcome::at_end_of(waiting)), json!([0, [["completed", null]]]));
    chain(&project, "a,b", "a");
    assert_eq!(each(&project.run("wait @ --timeout 0s --json")), json!([1, [["active", "timed_out"]]]));
    let other = project.ok("run current");
    project.ok("run cancel @");
    assert_eq!(
        each(&project.run(&format!("wait {other} {run} --json"))),
        json!([1, [["cancelled", null], ["completed", null]]])
    );
}

#[test]
fn a_workflow_that_stops_ends_the_wait_for_its_run() {
    let project = project();
    project.ok("run cancel @");
    std::fs::write(project.root().join("w.yaml"), "steps: [{run: \"false\"}]\n").expect("a file");
    let ran = project.run("workflow run w.yaml --on-failure stop --json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let run = ran.json()["run_id"].as_str().expect("a run").to_owned();
    let waited = project.run(&format!("wait {run} --json"));
    assert_eq!((waited.code, &waited.json()[0]["kind"]), (Some(1), &json!("run")));
    assert_eq!(waited.json()[0]["code"], "not_finished", "{waited:?}");
}

/// Without the clock of tests, which stands still: beats are due by the clock of the machine.
fn at_this_time(project: &Project, line: &str) -> CliOutcome {
    let mut command = project.command(line.split(' '));
    CliOutcome::of(command.env_remove("IC_TEST_CLOCK"))
}

#[test]
fn work_that_is_silent_for_too_long_is_lost_until_it_beats() {
    let project = project();
    let dispatch = project.ok("dispatch create @");
    let refused = at_this_time(&project, &format!("dispatch beat {dispatch} --ttl 1h --json"));
    assert_eq!((refused.code, refused.error()), (Some(3), "invalid_value".to_owned()));
    at_this_time(&project, &format!("dispatch start {dispatch} --ttl 1h"));
    let wait = format!("wait {dispatch} --timeout 0s --json");
    assert_eq!(said(&at_this_time(&project, &wait)), json!([1, "running", false, "timed_out"]));
    let alive = || at_this_time(&project, &format!("dispatch show {dispatch} --json")).json()["alive"].clone();
    assert_eq!(alive(), true);
    at_this_time(&project, &format!("dispatch beat {dispatch} --ttl 1ms"));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(said(&at_this_time(&project, &format!("wait {dispatch} --json"))), json!([1, "running", false, "lost"]));
    assert_eq!(alive(), "lost");
    let status = at_this_time(&project, "status --format text");
    assert!(
        status
            .stdout
            .contains(&format!("dispatch {}, begun just now, lost (no beat)", &dispatch[dispatch.len() - 8..])),
        "{status:?}"
    );
    // A later beat brings it back, and its end ends it as any other.
    at_this_time(&project, &format!("dispatch beat {dispatch} --ttl 1h"));
    assert_eq!(said(&at_this_time(&project, &wait)), json!([1, "running", false, "timed_out"]));
    at_this_time(&project, &format!("dispatch complete {dispatch}"));
    assert_eq!(said(&at_this_time(&project, &wait)), json!([0, "completed", false, null]));
    assert_eq!(alive(), Value::Null);
    let ended = at_this_time(&project, &format!("dispatch beat {dispatch} --json"));
    assert_eq!((ended.code, ended.error()), (Some(1), "dispatch_finished".to_owned()));
}

#[test]
fn a_beat_of_undone_work_tells_its_worker() {
    let project = project();
    let dispatch = running(&project);
    let unknown = at_this_time(&project, &format!("dispatch beat {dispatch} --json"));
    assert_eq!((unknown.code, unknown.error()), (Some(3), "invalid_value".to_owned()));
    project.ok("run rollback @ --to-phase a");
    let stale = at_this_time(&project, &format!("dispatch beat {dispatch} --ttl 1h --json"));
    assert_eq!((stale.code, stale.error()), (Some(1), "stale_dispatch".to_owned()));
}
