//! `ic dispatch wait`: the report of each way in which work ends.

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
    let mut command = project.command(["dispatch", "wait", dispatch, "--json"]);
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

fn outcome(child: Child) -> CliOutcome {
    let output = child.wait_with_output().expect("its end");
    CliOutcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The exit code, and what the record says of the work and of the wait.
fn said(outcome: &CliOutcome) -> Value {
    let record = outcome.json();
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
        assert_eq!(said(&outcome(waiter)), expected, "{call}, during the wait");
        let dump = project.dump();
        let later = project.run(&format!("dispatch wait {dispatch} --json"));
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
    let waited = project.run(&format!("dispatch wait {dispatch} --json"));
    assert_eq!(said(&waited), json!([1, "completed", true, null]));
}

#[test]
fn a_process_that_goes_without_a_word_ends_the_wait() {
    let project = project();
    let (dispatch, worker) = with_process(&project);
    let waiter = waiter(&project, &dispatch);
    let dump = project.dump();
    end(worker);
    let heard = outcome(waiter);
    assert_eq!(said(&heard), json!([1, "running", false, "process_gone"]));
    assert_eq!(heard.json()["alive"], false);
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
        assert_eq!(said(&outcome(waiter)), json!([0, "completed", false, null]));
    }
}

#[test]
fn an_executor_records_the_end_of_a_step_whose_process_is_gone() {
    let project = project();
    let run = project.ok("run current");
    let (dispatch, worker) = with_process(&project);
    end(worker);
    let wait = format!("dispatch wait {dispatch} --timeout 200ms --json");
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
        let waited = project.run(&format!("dispatch wait {dispatch} --timeout {timeout} --json"));
        assert_eq!(said(&waited), json!([1, "running", false, "timed_out"]), "{timeout}");
    }
    for signal in signals::that_end() {
        let waiter = waiter(&project, &dispatch);
        signals::send_to(signal, waiter.id());
        let heard = outcome(waiter);
        assert_eq!((heard.code, heard.stdout.as_str(), heard.stderr.as_str()), (Some(130), "", ""));
    }
    end(worker);
    let unknown = project.run("dispatch wait 99999999 --json");
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
        let waited = project.run(&format!("dispatch wait {dispatch} --timeout 120ms --json"));
        assert_eq!(said(&waited), json!([1, "running", false, "timed_out"]), "{elsewhere}");
        assert_eq!(waited.json()["alive"], "unknown");
        let shown = project.run(&format!("dispatch show {dispatch} --json"));
        assert_eq!(shown.json()["alive"], "unknown", "{elsewhere}");
    }
    // An earlier boot of this machine is over, and so is what ran in it.
    project.cli.sql(&format!("UPDATE dispatches SET pid_boot_id = '11111111-2222-3333-4444-555555555555 {place}'"));
    let waited = project.run(&format!("dispatch wait {dispatch} --json"));
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
    let waited = project.run(&format!("dispatch wait {dispatch} --timeout 120ms --json"));
    assert_eq!(said(&waited), json!([1, "running", false, "timed_out"]));
    assert_eq!(waited.json()["alive"], "unknown");
}
