use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{ChildExit, Stage, argv, left_running, run, shell};
use ic_dispatch::process::{EndedProcess, end};

const SHORT: Option<Duration> = Some(Duration::from_millis(150));

#[test]
fn codes_and_signals_are_told_apart() {
    let stage = Stage::new();
    assert_eq!(stage.run(&argv(&["true"]), |_| {}).exit, ChildExit::Code(0));
    assert_eq!(stage.run(&argv(&["false"]), |_| {}).exit, ChildExit::Code(1));
    assert_eq!(stage.run(&shell("exit 42"), |_| {}).exit, ChildExit::Code(42));
    assert_eq!(stage.run(&shell("kill -KILL $$"), |_| {}).exit, ChildExit::Signal(9));
    assert_eq!(stage.run(&shell("kill -TERM $$"), |_| {}).exit, ChildExit::Signal(15));
}

#[test]
fn a_timeout_ends_the_command_and_what_it_started() {
    let stage = Stage::new();
    let program = shell("sleep 60 & echo $!; wait");
    let outcome = stage.run(&program, |command| command.timeout = SHORT);
    assert_eq!(outcome.exit, ChildExit::TimedOut);
    assert!(outcome.duration >= Duration::from_millis(150) && outcome.duration < Duration::from_secs(10));
    let pid = String::from_utf8(outcome.tail).unwrap().trim().parse().unwrap();
    assert_eq!(ic_dispatch::process::ProcessIdentity::of(pid).unwrap(), None);
}

#[test]
fn a_command_that_ignores_term_is_killed_after_the_grace_period() {
    let stage = Stage::new();
    let program = shell("trap 'echo no' TERM; while :; do sleep 0.05; done");
    let outcome = stage.run(&program, |command| command.timeout = SHORT);
    assert_eq!(outcome.exit, ChildExit::TimedOut);
    assert!(outcome.duration >= Duration::from_millis(450) && outcome.duration < Duration::from_secs(10));
    assert!(stage.log().contains("no\n"));
}

#[test]
fn what_a_command_says_and_does_on_term_counts() {
    let stage = Stage::new();
    let program = shell("trap 'echo cleaning; touch clean; exit 0' TERM; echo up; while :; do sleep 0.02; done");
    let ready = || stage.live.lock().unwrap().starts_with(b"up");
    let outcome = stage.run_until(&program, |command| command.grace = Duration::from_secs(20), &ready);
    assert_eq!(outcome.exit, ChildExit::Cancelled);
    // The shell may also say that its sleep was terminated.
    assert!(stage.log().starts_with("up\n") && stage.log().ends_with("cleaning\n"), "{}", stage.log());
    assert!(stage.path("clean").exists());
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_starts_nothing() {
    let stage = Stage::new();
    let outcome = stage.run_until(&argv(&["touch", "began"]), |_| {}, &|| true);
    assert_eq!(outcome.exit, ChildExit::Cancelled);
    assert!(!stage.path("began").exists() && stage.born.lock().unwrap().is_none());
}

#[test]
fn a_run_is_cancelled_at_once() {
    let stage = Stage::new();
    let flag = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::SeqCst);
        });
        let outcome = stage.run_until(&argv(&["sleep", "60"]), |c| c.timeout = None, &|| flag.load(Ordering::SeqCst));
        assert_eq!(outcome.exit, ChildExit::Cancelled);
        assert!(outcome.duration < Duration::from_secs(5));
    });
}

#[test]
fn a_command_that_is_killed_at_the_gate_ends_by_that_signal() {
    let stage = Stage::new();
    let program = argv(&["touch", "began"]);
    let log = stage.path("log");
    let mut kill = |identity: &_| end(identity, Duration::from_secs(5)).map(drop);
    let outcome = run(&stage.command(&program, &log), &mut kill, &mut |_| {}, &|| false).unwrap();
    assert_eq!(outcome.exit, ChildExit::Signal(15));
    assert!(!stage.path("began").exists());
}

#[test]
fn what_a_command_leaves_running_is_left_alone_and_not_waited_for() {
    let stage = Stage::new();
    let start = Instant::now();
    let outcome = stage.run(&shell("sleep 60 & echo $!"), |_| {});
    assert_eq!(outcome.exit, ChildExit::Code(0));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(end(&left_running(&outcome), Duration::from_secs(5)).unwrap(), EndedProcess::Terminated);
}

#[test]
fn what_is_written_a_little_after_the_end_is_read() {
    let stage = Stage::new();
    let outcome = stage.run(&shell("(sleep 0.05; echo late) & echo early"), |_| {});
    assert_eq!(outcome.exit, ChildExit::Code(0));
    assert_eq!(stage.log(), "early\nlate\n");
}

#[test]
fn a_daemon_that_writes_without_end_is_not_waited_for() {
    let stage = Stage::new();
    let start = Instant::now();
    let outcome = stage.run(&shell("yes & echo $! >pid"), |command| command.longest_log = 1000);
    assert_eq!(outcome.exit, ChildExit::Code(0));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_daemon_that_has_left_the_group_is_not_waited_for() {
    let stage = Stage::new();
    let start = Instant::now();
    let outcome = stage.run(&shell("setsid sleep 60 & echo $!; sleep 60"), |c| c.timeout = SHORT);
    assert_eq!(outcome.exit, ChildExit::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    end(&left_running(&outcome), Duration::from_secs(5)).unwrap();
}

#[test]
fn a_reader_that_hangs_delays_no_timeout() {
    let stage = Stage::new();
    let program = shell("echo; sleep 60");
    let log = stage.path("log");
    let mut command = stage.command(&program, &log);
    command.timeout = SHORT;
    let mut hang = |_: &[u8]| thread::sleep(Duration::from_secs(2));
    let outcome = run(&command, &mut |_| Ok(()), &mut hang, &|| false).unwrap();
    assert_eq!(outcome.exit, ChildExit::TimedOut);
    assert!(outcome.duration < Duration::from_millis(1500), "{:?}", outcome.duration);
}

#[test]
fn many_run_at_the_same_time() {
    let stage = Stage::new();
    thread::scope(|scope| {
        for worker in 0..8 {
            let stage = &stage;
            scope.spawn(move || {
                let log = stage.path(&worker.to_string());
                for round in 0..10 {
                    let program = shell(&format!("echo {worker} {round}; exit {round}"));
                    let command = stage.command(&program, &log);
                    let outcome = run(&command, &mut |_| Ok(()), &mut |_| {}, &|| false).unwrap();
                    assert_eq!(outcome.exit, ChildExit::Code(round));
                    assert_eq!(outcome.tail, format!("{worker} {round}\n").as_bytes());
                }
            });
        }
    });
}
