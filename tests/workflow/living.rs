//! What outlives its executor: a step or an undo that still runs, and processes that only have the number of one.

use std::process::{Command, Stdio};
use std::time::Duration;

use ic_testkit::{CliOutcome, TestWorld, wait_for};
use rustix::process::{Pid, test_kill_process};

use crate::calls::Calls as _;
use crate::effects::Effects as _;
use crate::flow::{Flow as _, kill};
use crate::project::{plain, with_checkpoints};

/// Whether a process runs: a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    if let Ok(stat) = stat {
        return !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z');
    }
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    !std::path::Path::new("/proc/self/stat").exists() && test_kill_process(pid).is_ok()
}

fn pid_in(world: &TestWorld, name: &str) -> u32 {
    world.outside.text(name).trim().parse().expect("a number")
}

/// A step that hangs the first time, at its point `do-a-before`.
fn hanging() -> (TestWorld, u32) {
    let world = plain();
    world.flow(&[("a", &[])]);
    world.kill_at("workflow run flow.yaml", "do-a-before");
    let pid = pid_in(&world, "at-do-a-before");
    assert!(is_alive(pid), "the step outlives its executor");
    (world, pid)
}

#[test]
fn resume_ends_the_living_copy_first() {
    let (world, pid) = hanging();
    world.report(&format!("workflow resume {}", world.newest_run()), 0);
    assert!(!is_alive(pid));
    world.assert_no_complaints();
    world.assert_each_stands_once(&[("a", &[])], "resume");
}

#[test]
fn rollback_ends_the_living_copy_first() {
    let (world, pid) = hanging();
    world.report(&format!("workflow rollback {} --yes", world.newest_run()), 0);
    assert!(!is_alive(pid));
    world.assert_no_complaints();
    assert_eq!(world.undone(), ["a"]);
}

#[test]
fn compensations_end_the_living_copy_first() {
    let (world, pid) = hanging();
    world.report(&format!("compensation run {} --yes", world.newest_run()), 0);
    assert!(!is_alive(pid), "a step acts while it is undone");
    world.assert_no_complaints();
    world.report(&format!("workflow resume {}", world.newest_run()), 0);
    world.assert_each_stands_once(&[("a", &[])], "after the compensation");
}

#[test]
fn a_rollback_of_the_run_ends_the_living_copy_first() {
    let world = with_checkpoints();
    world.steps(&[
        "{id: plan, phase: planned, run: 'true', compensate: skip}",
        "{id: a, phase: built, run: 'ACT do', compensate: {shell: 'ACT undo'}}",
    ]);
    world.kill_at("workflow run flow.yaml", "do-a-before");
    let pid = pid_in(&world, "at-do-a-before");
    let run = world.newest_run();
    world.report(&format!("run rollback {run} --to-phase planned --layer=workflow,effects --yes"), 0);
    assert!(!is_alive(pid), "a step acts while it is undone");
    world.assert_no_complaints();
    assert_eq!(world.undone(), ["a"]);
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
}

#[test]
fn a_step_that_ignores_sigterm_is_killed_before_it_runs_again() {
    let world = plain();
    world.steps(&[
        "{id: a, run: 'trap \"\" TERM; exec 9>>OUT/lock; flock -n 9 || echo twice >> OUT/complaints; echo $$ > OUT/pid; \
         if mv OUT/hold OUT/held; then while :; do sleep 0.1; done; fi'}",
    ]);
    world.outside.put("hold", "");
    let mut child = world.start("workflow run flow.yaml");
    wait_for("it hangs", || world.outside.has("held"));
    kill(&mut child);
    let pid = pid_in(&world, "pid");
    world.report(&format!("workflow resume {}", world.newest_run()), 0);
    assert!(!is_alive(pid));
    world.assert_no_complaints();
}

#[test]
fn commits_of_an_attempt_that_was_killed_are_known() {
    let world = with_checkpoints();
    let git = |arguments: &str| {
        let status = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments.split(' '))
            .current_dir(world.cli.root())
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("git").success(), "{arguments}");
    };
    git("init -q");
    git("commit -q --allow-empty -m first");
    world.steps(&[
        "{id: a, run: 'test -e work || { echo 1 > work; git add work; git -c user.name=t -c user.email=t@example.org commit -qm work; }; \
         ACT do', compensate: {shell: 'ACT undo'}}",
    ]);
    world.kill_at("workflow run flow.yaml", "do-a-before");
    let run = world.newest_run();
    world.report(&format!("workflow resume {run}"), 0);
    let code = world.cli.json(["run", "rollback", &run, "--layer=code"]);
    let commits = code["revert_order"].as_array().map(Vec::len);
    assert_eq!(commits, Some(1), "{code}");
}

/// A process that is not ours to end.
pub(crate) struct Bystander(pub(crate) std::process::Child);

impl Bystander {
    pub(crate) fn start() -> Self {
        Self(Command::new("sleep").arg("300").spawn().expect("a process"))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_was_given_the_number_of_another_is_not_ended() {
    let world = plain();
    let other = Bystander::start();
    let pid = other.0.id();
    // The file is older than the process that has the number now.
    world.steps(&[
        &format!("{{id: serve, run: 'echo {pid} > server.pid; touch -d @1000000000 server.pid', compensate: {{kill-process: server.pid}}}}"),
        "{id: last, run: 'exit 1'}",
    ]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back_in_part", "last declares no undo, and there is no checkpoint: {report}");
    assert!(is_alive(pid));
}

#[test]
fn a_server_that_ran_before_the_step_is_not_ended() {
    let world = plain();
    let other = Bystander::start();
    let pid = other.0.id();
    std::thread::sleep(Duration::from_millis(20));
    world.write("server.pid", &format!("{pid}\n"));
    // The step fails before it has a server of its own.
    world.steps(&["{id: serve, run: 'exit 1', compensate: {kill-process: server.pid}}"]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert!(is_alive(pid));
}

#[test]
fn a_server_that_the_step_started_is_ended_with_what_it_started() {
    let world = plain();
    world.steps(&[
        "{id: serve, run: 'setsid sh -c \"echo \\$\\$ > server.pid; sleep 300 & echo \\$! > OUT/worker; wait\" >/dev/null 2>&1 & \
         while ! test -s OUT/worker; do sleep 0.01; done', compensate: {kill-process: server.pid}}",
        "{id: last, run: 'cp server.pid OUT/pid; exit 1'}",
    ]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back_in_part", "last declares no undo, and there is no checkpoint: {report}");
    assert!(!is_alive(pid_in(&world, "pid")) && !is_alive(pid_in(&world, "worker")));
}

#[test]
fn an_interrupted_executor_ends_its_steps_and_can_be_resumed() {
    use rustix::process::{Signal, kill_process};
    let world = plain();
    world.flow(&[("a", &[]), ("b", &["a"])]);
    world.outside.put("hold-do-b-after", "");
    let child = world.start("workflow run flow.yaml");
    world.await_held("do-b-after");
    let executor = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(executor, Signal::TERM).expect("a signal");
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.json()["status"], "stopped");
    assert!(!is_alive(pid_in(&world, "at-do-b-after")));
    world.report(&format!("workflow resume {}", world.newest_run()), 0);
    world.assert_each_stands_once(&[("a", &[]), ("b", &["a"])], "interrupted");
}
