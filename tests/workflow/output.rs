//! Steps that say too much, leave something behind, close what they were given, or do not say text.

use std::time::{Duration, Instant};

use ic_testkit::{CliOutcome, TestWorld, long};
use serde_json::Value;

use crate::calls::{Calls as _, pairs, states};
use crate::flow::Flow as _;
use crate::project::plain;

/// The most memory that a child of this process ever held, in MiB: the executor writes it down itself.
fn peak_of(world: &TestWorld, call: &str) -> (Value, u64) {
    let mut command = world.command(call);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().expect("start ic");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("its state").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        peak = peak.max(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024);
        std::thread::sleep(Duration::from_millis(5));
    }
    (CliOutcome::at_end_of(child).json(), peak)
}

#[test]
fn an_endless_log_is_cut_and_takes_no_memory() {
    let world = plain();
    let megabytes = if long() { 1024 } else { 100 };
    world.steps(&[&format!(
        "{{id: a, run: 'echo first; head -c {megabytes}M /dev/zero | tr \"\\0\" x; echo; echo last; exit 1'}}"
    )]);
    let (report, peak) = peak_of(&world, "workflow run flow.yaml --on-failure stop");
    assert!(peak < 64, "{peak} MiB");
    assert_eq!(report["status"], "stopped");
    let error = report["error"].as_str().expect("an error");
    assert!(error.ends_with("last"), "{error}");
    let log = std::fs::File::open(report["steps"][0]["log"].as_str().expect("a log")).expect("the log");
    let length = log.metadata().expect("its length").len();
    assert!(length <= (64 << 20) + 200, "{length}");
}

#[test]
fn a_line_without_an_end_is_not_told_whole() {
    let world = plain();
    world.steps(&["{id: a, run: 'head -c 3M /dev/zero | tr \"\\0\" x; exit 1', compensate: {shell: 'head -c 3M /dev/zero; exit 1'}}"]);
    let outcome = world.call("workflow run flow.yaml --on-failure rollback");
    assert_eq!(outcome.code, Some(4));
    assert!(outcome.stdout.len() < 10_000, "{}", outcome.stdout.len());
    assert!(outcome.json()["rollback"]["compensations"][0]["error"].is_string());
}

#[test]
fn what_is_no_text_is_shown_as_far_as_it_is() {
    let world = plain();
    world.steps(&[
        "{id: a, run: 'printf \"ok \\377\\376\\n\"; printf \"A=1\\nB=\\377\\n\\377=3\\nno line\\nIC_RUN=x\\n\" >> $IC_OUTPUTS; exit 1', \
         compensate: {shell: 'echo \"$A $IC_RUN\" > OUT/known'}}",
    ]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert!(report["error"].as_str().expect("an error").contains("ok \u{fffd}"), "{report}");
    assert_eq!(world.outside.text("known"), format!("1 {}\n", world.newest_run()));
    let log = std::fs::read(report["steps"][0]["log"].as_str().expect("a log")).expect("the log");
    assert_eq!(log, b"ok \xff\xfe\n");
    let text = world.call(&format!("workflow show {} --format text", world.newest_run()));
    assert_eq!(text.code, Some(0), "{text:?}");
}

#[test]
fn a_step_that_closes_its_output_is_still_waited_for() {
    let world = plain();
    world.steps(&["{id: a, run: 'exec >&- 2>&-; sleep 0.3; touch OUT/ended'}", "{id: b, run: 'test -e OUT/ended'}"]);
    let report = world.report("workflow run flow.yaml", 0);
    assert_eq!(states(&report), pairs(&[("a", "succeeded"), ("b", "succeeded")]));
}

#[test]
fn a_daemon_that_keeps_the_output_open_holds_nobody_up() {
    let world = plain();
    world.steps(&[
        "{id: a, run: 'setsid sh -c \"echo \\$\\$ > OUT/daemon; sleep 300\" & while ! test -s OUT/daemon; do sleep 0.01; done; echo started'}",
        "{id: b, run: 'true'}",
    ]);
    let begin = Instant::now();
    let report = world.report("workflow run flow.yaml", 0);
    let took = begin.elapsed();
    let daemon = world.outside.text("daemon");
    let alive = std::process::Command::new("kill").args(["-9", daemon.trim()]).status().expect("kill");
    assert!(alive.success(), "what a step leaves running is left alone");
    assert_eq!(report["status"], "completed");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_step_that_ignores_sigterm_times_out_all_the_same() {
    let world = plain();
    world.steps(&[
        "{id: a, run: 'trap \"\" TERM; while :; do sleep 0.1; done', timeout: 100ms, compensate: {shell: 'touch OUT/undone'}}",
    ]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back");
    assert!(world.outside.has("undone"));
}

#[test]
fn an_undo_that_hangs_is_ended_and_said() {
    let world = plain();
    world.steps(&["{id: a, run: 'exit 1', compensate: {shell: 'test -e OUT/quick || sleep 300', timeout: 200ms}}"]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 4);
    let error = report["rollback"]["compensations"][0]["error"].as_str().expect("an error");
    assert!(error.contains("timed out"), "{error}");
    world.outside.put("quick", "");
    world.report(&format!("workflow resume {} --yes", world.newest_run()), 1);
}

#[test]
fn the_error_of_a_nested_call_is_told_once_and_never_as_cut_json() {
    let world = plain();
    let call = format!("{} workflow show 99999999 --format json", env!("CARGO_BIN_EXE_ic"));
    let ends = "{\\\"failed\\\":\\\"$(printf %0400d 7)\\\"}";
    for (run, told) in [
        (call.clone(), "run_not_found: There is no run 99999999. (hint: see: ic run list)"),
        (format!("echo \\\"{ends}\\\"; exit 1"), "its last line is 409 characters of JSON, which its log has"),
    ] {
        world.steps(&[&format!("{{id: a, compensate: skip, run: \"{run}\"}}")]);
        let text = world.call("workflow run flow.yaml --on-failure rollback --format text");
        let screen = format!("{}{}", text.stdout, text.stderr);
        assert_eq!(screen.matches(told).count(), 1, "{screen}");
        assert!(!screen.contains(['{', '}']), "{screen}");
        let report = world.report("workflow run flow.yaml --on-failure stop", 1);
        let error = report["steps"][0]["error"].as_str().expect("an error");
        assert!(error.ends_with(told) && !error.contains('{'), "{report}");
    }
}
