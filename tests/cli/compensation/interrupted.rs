//! Undos that another process makes at the same time, that are interrupted, or whose process dies in their middle.

use std::process::{Child, Command, Stdio};

use ic_testkit::{CliOutcome, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::processes::is_alive;
use super::{lines, logs, pairs, project, results, shell, states, status, undo};
use crate::support::Project;

/// An undo that hangs the first time: it writes its number and its child's into `pids`.
const HANGS_ONCE: &str = "echo begun >> log; if test -e pids; then echo undone >> log; else \
    sleep 300 & echo $! > pids.new; echo $$ >> pids.new; mv pids.new pids; wait; fi";

/// Starts an undo of everything that hangs, and waits until it does; returns it with the numbers of what it started.
fn hanging(project: &Project) -> (Child, Vec<u32>) {
    logs(project, "first");
    shell(project, "second", HANGS_ONCE, &[]);
    let mut command: Command = project.command(["compensation", "run", "@", "--yes", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    wait_for("the undo hangs", || lines(project, "pids").len() == 2);
    let pids = lines(project, "pids").iter().map(|pid| pid.parse().expect("a number")).collect();
    (child, pids)
}

fn has_ended(pids: &[u32]) -> bool {
    pids.iter().all(|pid| !is_alive(*pid))
}

#[test]
fn one_process_undoes_at_a_time() {
    let project = project();
    let (child, pids) = hanging(&project);
    assert_eq!(project.refused("compensation run @ --yes"), (1, "work_running".to_owned()));
    assert_eq!(project.refused("compensation run @ --yes --step first"), (1, "work_running".to_owned()));
    let looked = project.run("compensation run @ --dry-run");
    let planned = looked.json();
    assert_eq!((looked.code, planned["refusal"]["code"].as_str()), (Some(1), Some("work_running")));
    assert_eq!(results(&planned), pairs(&[("second", "running"), ("first", "armed")]), "looking is free");
    assert!(!has_ended(&pids), "no process was disturbed");
    // The shell first: it would go on when its child ends.
    for pid in pids.into_iter().rev() {
        let _ = kill_process(Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid"), Signal::KILL);
    }
    assert_eq!(CliOutcome::at_end_of(child).code, Some(4));
}

#[test]
fn after_a_crash_the_next_one_ends_what_was_left_running_and_finishes() {
    let project = project();
    let (mut child, pids) = hanging(&project);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    assert!(!has_ended(&pids), "what it had started still runs");
    assert_eq!(states(&project), pairs(&[("first", "armed"), ("second", "running")]));
    assert_eq!(status(&project), "rolling_back");
    assert_eq!(project.refused("run advance 0a000002"), (1, "rolling_back".to_owned()));
    let report = undo(&project, "", 0);
    assert!(has_ended(&pids), "it was ended first");
    assert_eq!(results(&report), pairs(&[("second", "done"), ("first", "done")]));
    assert_eq!(report["results"][0]["attempts"], json!(2));
    assert_eq!(lines(&project, "log"), ["begun", "begun", "undone", "first"]);
    assert_eq!(status(&project), "active");
}

#[test]
fn what_was_left_running_is_ended_before_anything_else_is_undone() {
    let project = project();
    let (mut child, pids) = hanging(&project);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    assert_eq!(results(&undo(&project, "--step first", 0)), pairs(&[("first", "done")]));
    assert!(has_ended(&pids));
    assert_eq!(results(&undo(&project, "", 0)), pairs(&[("second", "done")]));
}

#[test]
fn an_interruption_ends_the_undo_and_leaves_the_rest() {
    let project = project();
    let (child, pids) = hanging(&project);
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::INT).expect("Ctrl-C");
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report: Value = outcome.json();
    assert_eq!((&report["status"], results(&report)), (&json!("stopped"), pairs(&[("second", "failed")])));
    assert_eq!(report["results"][0]["error"], "it was interrupted");
    assert!(has_ended(&pids));
    assert_eq!(results(&undo(&project, "", 0)), pairs(&[("second", "done"), ("first", "done")]));
}

#[test]
fn the_undos_of_two_runs_do_not_meet() {
    let project = project();
    let (mut child, _pids) = hanging(&project);
    let other = project.ok("run create --goal Other --phases a,b");
    project.ok(&format!("compensation add {other} --step s --shell 'echo other >> other.log'"));
    project.ok(&format!("compensation run {other} --yes"));
    assert_eq!(lines(&project, "other.log"), ["other"]);
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    project.ok("compensation run 0a000002 --yes");
}
