//! Executors that die, and the calls that resume after them.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ic_testkit::{CliOutcome, Random, rounds, signals, wait_for};
use serde_json::json;

use super::{call, content, lines, project, run, states, status, step, touch, undone};
use crate::compensation::processes::is_alive;
use crate::support::{Project, args};

/// The second step hangs until `go` stands beside the project.
const HANGS: &str = "name: hangs
steps:
  - {id: one, phase: first, run: 'echo one >> ../ran; echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - id: two
    phase: second
    run: |
      echo two $IC_IDEMPOTENCY_KEY >> ../ran
      echo half > two.txt
      echo $$ > ../pid
      until test -e ../go; do sleep 0.02; done
    compensate: {shell: 'echo two >> ../undone'}
  - {id: three, run: 'echo three >> ../ran', compensate: {shell: 'echo three >> ../undone'}}
";

/// Starts a call that goes on by itself.
fn start(project: &Project, line: &str) -> Child {
    let mut command: Command = project.command(args(&format!("{line} --json")));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic")
}

/// Starts the workflow, and waits until its second step hangs; returns the executor and the step's process.
fn hanging(project: &Project) -> (Child, u32) {
    let child = start(project, "workflow run flow.yaml");
    wait_for("the step hangs", || lines(project, "pid").len() == 1);
    let pid = lines(project, "pid")[0].parse().expect("a number");
    (child, pid)
}

fn kill(mut child: Child) {
    child.kill().expect("kill -9");
    child.wait().expect("its end");
}

#[test]
fn after_a_crash_the_interrupted_step_runs_again_and_no_finished_one() {
    let project = project(HANGS);
    let (child, pid) = hanging(&project);
    kill(child);
    assert!(is_alive(pid), "the step did not die with it");
    let shown = call(&project, "workflow show @", 0);
    assert_eq!((&shown["status"], states(&shown)), (&json!("running"), vec!["succeeded", "running", "pending"]));
    // The definition is kept with the run.
    std::fs::remove_file(project.root().join("flow.yaml")).expect("the file");
    let second = start(&project, "workflow resume @");
    wait_for("the step runs again", || lines(&project, "ran").len() == 3);
    assert!(!is_alive(pid), "what was left running was ended first");
    touch(&project, "go");
    let outcome = CliOutcome::at_end_of(second);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let ran = lines(&project, "ran");
    assert_eq!((ran[0].as_str(), &ran[1], ran[3].as_str()), ("one", &ran[2], "three"), "with the same key: {ran:?}");
    assert_eq!(step(&outcome.json(), "two")["attempts"], json!(2));
    assert_eq!(project.json("events verify")["ok"], json!(true));
}

#[test]
fn after_a_crash_it_can_be_taken_back_instead() {
    for line in ["workflow rollback @ --yes", "workflow resume @ --on-failure rollback --yes"] {
        let project = project(HANGS);
        let (child, pid) = hanging(&project);
        kill(child);
        let report = call(&project, line, i32::from(line.contains("resume")));
        assert!(!is_alive(pid), "{line}");
        assert_eq!((&report["status"], undone(&report)), (&json!("rolled_back"), vec!["two", "one"]), "{line}");
        assert_eq!((content(&project, "one.txt"), content(&project, "two.txt")), (None, None), "{line}");
    }
}

#[test]
fn one_process_executes_a_workflow_at_a_time() {
    let project = project(HANGS);
    let (child, pid) = hanging(&project);
    for line in ["workflow resume @", "workflow rollback --yes", "workflow resume @ --on-failure rollback --yes"] {
        let outcome = project.run(line);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "work_running"), "{line}");
    }
    assert!(is_alive(pid));
    assert_eq!(call(&project, "workflow show @", 0)["status"], "running", "looking is free");
    touch(&project, "go");
    assert_eq!(CliOutcome::at_end_of(child).code, Some(0));
}

#[test]
fn a_signal_ends_the_step_and_stops_the_workflow() {
    for which in signals::that_end() {
        let project = project(HANGS);
        let (child, pid) = hanging(&project);
        signals::send_to(which, child.id());
        let outcome = CliOutcome::at_end_of(child);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let report = outcome.json();
        assert_eq!(report["status"], "stopped");
        assert_eq!(states(&report), ["succeeded", "interrupted", "pending"]);
        assert_eq!((&report["failed_step"], &report["error"]), (&json!("two"), &json!("it was interrupted")));
        assert!(!is_alive(pid));
        touch(&project, "go");
        assert_eq!(states(&call(&project, "workflow resume @", 0)), ["succeeded"; 3]);
    }
}

/// As `nohup` starts it: it is to continue after the terminal is closed.
#[test]
fn a_workflow_that_ignores_the_end_of_its_terminal_goes_on() {
    let project = project(HANGS);
    let ic = project.command(args("workflow run flow.yaml --json"));
    let mut shell = Command::new("sh");
    shell.env_clear().envs(ic.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(ic.get_program()).args(ic.get_args());
    shell.current_dir(project.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().expect("start ic");
    wait_for("the step hangs", || lines(&project, "pid").len() == 1);
    signals::send_to("HUP", child.id());
    let pid = lines(&project, "pid")[0].parse().expect("a number");
    assert!(is_alive(pid));
    touch(&project, "go");
    // Had it been heard, the third step would not begin.
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!((outcome.code, &outcome.json()["status"]), (Some(0), &json!("completed")));
}

#[test]
fn an_interruption_is_no_failure_that_the_rest_goes_on_after() {
    let project = project(HANGS);
    let child = start(&project, "workflow run flow.yaml --on-failure continue");
    wait_for("the step hangs", || lines(&project, "pid").len() == 1);
    signals::send_to("INT", child.id());
    let report = CliOutcome::at_end_of(child).json();
    assert_eq!((&report["status"], states(&report)), (&json!("stopped"), vec!["succeeded", "interrupted", "pending"]));
}

#[test]
fn a_step_that_waits_for_its_next_attempt_is_given_up_when_somebody_interrupts() {
    let project = project(
        "name: waits
steps:
  - {id: a, phase: work, run: 'echo a >> ../ran; test -e ../go', retries: {max: 5, backoff: 1h}, compensate: {shell: 'echo a >> ../undone'}}
",
    );
    let child = start(&project, "workflow run flow.yaml");
    wait_for("it failed once", || lines(&project, "ran").len() == 1);
    wait_for("it waits", || call(&project, "workflow show @", 0)["steps"][0]["exit_code"] == json!(1));
    signals::send_to("INT", child.id());
    let report = CliOutcome::at_end_of(child).json();
    assert_eq!((&report["status"], states(&report)), (&json!("stopped"), vec!["interrupted"]));
    assert_eq!(report["error"], "it ended with exit code 1");
    touch(&project, "go");
    assert_eq!(states(&call(&project, "workflow resume @", 0)), ["succeeded"]);
    assert_eq!(lines(&project, "ran").len(), 2);
}

#[test]
fn a_rollback_that_was_killed_is_finished() {
    let project = project(
        "name: undo
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'true', compensate: {shell: 'echo two $IC_IDEMPOTENCY_KEY >> ../undone; echo $$ > ../pid; until test -e ../go; do sleep 0.02; done'}}
  - {id: three, run: 'true', compensate: {shell: 'echo three >> ../undone'}}
",
    );
    run(&project, "", 0);
    let child = start(&project, "workflow rollback --yes");
    wait_for("the undo hangs", || lines(&project, "pid").len() == 1);
    kill(child);
    assert_eq!(status(&project).0, "rolling_back");
    touch(&project, "go");
    let report = call(&project, "workflow resume @ --yes", 0);
    assert_eq!((&report["status"], undone(&report)), (&json!("rolled_back"), vec!["two", "one"]));
    let undone = lines(&project, "undone");
    assert_eq!((undone[0].as_str(), &undone[1], undone[3].as_str()), ("three", &undone[2], "one"), "{undone:?}");
    assert_eq!((content(&project, "one.txt"), status(&project)), (None, ("active".to_owned(), "first".to_owned())));
}

#[test]
fn killed_anywhere_it_reaches_its_end_and_does_nothing_finished_twice() {
    let steps: Vec<String> = (0..5)
        .map(|n| {
            let phase = if n < 3 { "first" } else { "second" };
            format!("  - {{id: s{n}, phase: {phase}, run: 'echo s{n} >> ../ran; echo {n} > {n}.txt; sleep 0.02', compensate: {{shell: 'echo s{n} >> ../undone'}}}}\n")
        })
        .collect();
    let flow = format!("name: kills\nsteps:\n{}", steps.concat());
    let mut random = Random::seeded();
    for round in rounds(4) {
        let project = project(&flow);
        let mut line = "workflow run flow.yaml".to_owned();
        for _ in 0..8 {
            let child = start(&project, &line);
            std::thread::sleep(Duration::from_millis(random.below(500)));
            kill(child);
            // Nothing is known about a run that was not recorded.
            let Some(run) = project.json("run list")[0]["id"].as_str().map(str::to_owned) else { continue };
            line = format!("workflow resume {run}");
            let shown = call(&project, &format!("workflow show {run}"), 0);
            let ran = lines(&project, "ran");
            for (n, state) in states(&shown).into_iter().enumerate() {
                let times = ran.iter().filter(|line| **line == format!("s{n}")).count();
                let attempts = step(&shown, &format!("s{n}"))["attempts"].as_u64().unwrap_or(0);
                assert!(u64::try_from(times).is_ok_and(|times| times <= attempts), "round {round}: {ran:?} {shown:#}");
                assert!(state != "succeeded" || times > 0, "round {round}: {ran:?} {shown:#}");
            }
        }
        let last = project.run(&format!("{line} --json"));
        assert!(last.code == Some(0) || last.error() == "nothing_to_resume", "round {round}: {last:?}");
        let runs = project.json("run list");
        assert_eq!(runs[0]["status"], "completed", "round {round}");
        assert_eq!(project.json("events verify")["ok"], json!(true), "round {round}");
        let report = call(&project, "workflow rollback --yes", 0);
        assert_eq!(undone(&report), ["s4", "s3", "s2", "s1", "s0"], "round {round}");
        assert_eq!(lines(&project, "undone").len(), 5, "round {round}");
        assert_eq!(content(&project, "0.txt"), None, "round {round}");
    }
}
