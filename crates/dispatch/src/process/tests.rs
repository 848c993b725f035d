use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ic_base::Code;

use super::{EndedProcess, ProcessIdentity, end, end_group};

const GRACE: Duration = Duration::from_millis(300);

/// A shell that leads a group and has printed its first line; what it printed.
fn leader(script: &str) -> (Child, String) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().to_owned())
}

fn identity(pid: u32) -> ProcessIdentity {
    ProcessIdentity::of(pid).unwrap().expect("it runs")
}

fn stop(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_identity_is_the_same_as_long_as_the_process_lives() {
    let (child, _) = leader("echo; exec sleep 60");
    let found = identity(child.id());
    assert_eq!(found, identity(child.id()));
    assert!(found.is_alive());
    let written = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<ProcessIdentity>(&written).unwrap(), found);
    stop(child);
    assert!(!found.is_alive());
    assert_eq!(ProcessIdentity::of(found.pid).unwrap(), None);
    assert_eq!(end(&found, GRACE).unwrap(), EndedProcess::WasGone);
}

#[test]
fn a_zombie_is_gone() {
    let (mut child, _) = leader("echo; exit 0");
    let start = Instant::now();
    while ProcessIdentity::of(child.id()).unwrap().is_some() {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    child.wait().unwrap();
}

#[test]
fn numbers_without_a_process_have_no_identity() {
    for pid in [0, 4_194_305, u32::MAX] {
        assert_eq!(ProcessIdentity::of(pid).unwrap(), None, "{pid}");
    }
}

#[test]
fn term_ends_a_process_and_kill_one_that_ignores_it() {
    let (mut child, _) = leader("echo; exec sleep 60");
    assert_eq!(end(&identity(child.id()), GRACE).unwrap(), EndedProcess::Terminated);
    child.wait().unwrap();

    let (mut child, _) = leader("trap '' TERM; echo; while :; do sleep 0.05; done");
    let start = Instant::now();
    assert_eq!(end(&identity(child.id()), GRACE).unwrap(), EndedProcess::Killed);
    assert!(start.elapsed() >= GRACE);
    child.wait().unwrap();
}

#[test]
fn a_stopped_process_is_terminated() {
    let (mut child, _) = leader("trap 'exit 3' TERM; echo; kill -STOP $$; sleep 60");
    let found = identity(child.id());
    let stopped = |stat: String| stat.contains(") T ");
    while !std::fs::read_to_string(format!("/proc/{}/stat", found.pid)).is_ok_and(stopped) {}
    assert_eq!(end_group(&found, Duration::from_secs(20)).unwrap(), EndedProcess::Terminated);
    child.wait().unwrap();
}

#[test]
fn a_reused_pid_is_never_signalled() {
    let (mut child, _) = leader("echo; exec sleep 60");
    let found = identity(child.id());
    let others = [
        ProcessIdentity { start_time: found.start_time + 1, ..found.clone() },
        ProcessIdentity { start_time: found.start_time - 1, ..found.clone() },
        ProcessIdentity { boot_id: "another".to_owned(), ..found.clone() },
    ];
    for other in others {
        assert!(!other.is_alive());
        assert_eq!(end(&other, Duration::ZERO).unwrap(), EndedProcess::WasGone);
        assert_eq!(end_group(&other, Duration::ZERO).unwrap(), EndedProcess::WasGone);
    }
    assert_eq!(child.try_wait().unwrap(), None);
    stop(child);
}

#[test]
fn system_processes_and_ourselves_are_refused() {
    let own = identity(std::process::id());
    let group = u32::try_from(rustix::process::getpgrp().as_raw_nonzero().get()).unwrap();
    for pid in [0, 1, own.pid, u32::MAX] {
        let refused = ProcessIdentity { pid, ..own.clone() };
        assert_eq!(end(&refused, GRACE).unwrap_err().code(), Code::InvalidValue, "{pid}");
        assert_eq!(end_group(&refused, GRACE).unwrap_err().code(), Code::InvalidValue, "{pid}");
    }
    let own_group = ProcessIdentity { pid: group, ..own };
    assert_eq!(end_group(&own_group, GRACE).unwrap_err().code(), Code::InvalidValue);
}

#[test]
fn a_group_ends_with_the_grandchild_that_ignores_term() {
    let ignoring = r#"sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & wait"#;
    let (mut child, grandchild) = leader(ignoring);
    let grandchild = identity(grandchild.parse().unwrap());
    assert_eq!(end_group(&identity(child.id()), GRACE).unwrap(), EndedProcess::Killed);
    assert!(!grandchild.is_alive());
    child.wait().unwrap();
}

#[test]
fn a_group_is_ended_after_its_leader_has_gone() {
    let (mut child, left) = leader("sleep 60 >/dev/null & echo $!; kill -STOP $$");
    let left = identity(left.parse().unwrap());
    // A shell that has just printed may still run: its identity is taken before it is collected.
    let found = ProcessIdentity::of(child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let found = found.expect("a stopped shell");
    assert!(!found.is_alive() && left.is_alive());

    // A group whose members are older than the leader is another one.
    let later = ProcessIdentity { start_time: left.start_time + 1, ..found.clone() };
    assert_eq!(end_group(&later, GRACE).unwrap(), EndedProcess::WasGone);
    assert_eq!(end(&found, GRACE).unwrap(), EndedProcess::WasGone);
    assert!(left.is_alive());

    assert_eq!(end_group(&found, GRACE).unwrap(), EndedProcess::Terminated);
    assert!(!left.is_alive());
    assert_eq!(end_group(&found, GRACE).unwrap(), EndedProcess::WasGone);
}

#[test]
fn a_process_that_leads_no_group_is_ended_alone() {
    let (mut child, member) = leader("sleep 60 >/dev/null & echo $!; wait; sleep 60");
    let member = identity(member.parse().unwrap());
    assert_eq!(end_group(&member, GRACE).unwrap(), EndedProcess::Terminated);
    assert!(!member.is_alive());
    assert_eq!(child.try_wait().unwrap(), None);
    assert_eq!(end_group(&identity(child.id()), GRACE).unwrap(), EndedProcess::Terminated);
    child.wait().unwrap();
}

#[test]
fn a_thread_is_no_process() {
    let threads: Vec<u32> = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .map(|thread| thread.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    for thread in threads.into_iter().filter(|&thread| thread != std::process::id()) {
        // One that has just ended has no entry any more.
        if let Err(error) = ProcessIdentity::of(thread) {
            assert_eq!(error.code(), Code::InvalidValue);
        }
    }
}
