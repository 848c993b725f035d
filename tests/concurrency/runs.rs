//! Advancing, recording and rolling back, on one run and on many.

use std::collections::HashMap;
use std::sync::Arc;

use ic_testkit::Cli;
use serde_json::Value;

use crate::crowd::{allowed, work};

/// A chain of phases so long that the test does not reach its end.
fn long_chain() -> String {
    (0..900).map(|i| format!("p{i}")).collect::<Vec<_>>().join(",")
}

fn project() -> Arc<Cli> {
    Arc::new(Cli::new(env!("CARGO_BIN_EXE_ic")))
}

/// One turn of a worker: look, then do one of the things that workers do.
fn turn(cli: &Cli, run: &str, worker: usize, turn: usize) {
    let status = cli.json(["run", "status", run]);
    let (phase, epoch) = (status["phase"].as_str().expect("a phase"), &status["epoch"]);
    match (worker + turn) % 8 {
        0..=3 => {
            let expected = format!("{phase}@{epoch}");
            allowed(cli, &["run", "advance", run, "--expect-phase", &expected], &["stale_phase"]);
        }
        4 => {
            allowed(cli, &["run", "artifact", "add", run, "--path", "x"], &[]);
        }
        5 => {
            let dispatch = cli.ok(["dispatch", "create", run]);
            allowed(cli, &["dispatch", "complete", &dispatch, "--verdict", "pass"], &["stale_dispatch"]);
            allowed(cli, &["dispatch", "record", &dispatch, "--commit", "abcdef1"], &[]);
        }
        6 => {
            allowed(cli, &["run", "agent", "add", run, "--type", "codex"], &[]);
        }
        _ => {
            // Whichever worker moved the run before, the rollback finds it beyond its first phase or at it.
            allowed(cli, &["run", "rollback", run, "--to-phase", "p0"], &["already_at_phase"]);
        }
    }
}

/// Per epoch and phase one move forward; replaying the moves gives the stored phase; the chain of hashes holds.
fn check_story(cli: &Cli, run: &str) {
    let events = cli.json(["run", "events", run]);
    let (mut phase, mut epoch) = ("p0".to_owned(), 0);
    let mut moves: HashMap<(i64, String), usize> = HashMap::new();
    for event in events.as_array().expect("a list") {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["kind"].as_str() {
            Some("advance") => {
                assert_eq!((text("from"), event["epoch"].as_i64()), (phase, Some(epoch)), "{event}");
                *moves.entry((epoch, text("from"))).or_default() += 1;
                phase = text("to");
            }
            Some("rollback") => {
                assert_eq!(text("from"), phase, "{event}");
                epoch += 1;
                phase = text("to");
            }
            _ => {}
        }
    }
    assert!(moves.values().all(|n| *n == 1), "two moves from one place: {moves:?}");
    let status: Value = cli.json(["run", "status", run]);
    assert_eq!((status["phase"].as_str(), status["epoch"].as_i64()), (Some(phase.as_str()), Some(epoch)));
}

fn crowd_on_one_run(workers: usize) {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "one", "--phases", &long_chain()]);
    let shared = run.clone();
    let calls = work(&cli, workers, move |cli, worker, number| turn(cli, &shared, worker, number));
    println!("{workers} workers on one run: {calls} turns");
    check_story(&cli, &run);
    cli.ok(["events", "verify"]);
    assert!(calls > workers, "every worker had a turn");
}

fn crowd_on_many_runs(workers: usize) {
    let cli = project();
    let runs: Vec<String> = (0..workers)
        .map(|i| cli.ok(["run", "create", "--goal", &format!("run {i}"), "--phases", &long_chain()]))
        .collect();
    let shared = runs.clone();
    let calls = work(&cli, workers, move |cli, worker, number| turn(cli, &shared[worker], worker, number));
    println!("{workers} workers on as many runs: {calls} turns");
    for run in &runs {
        check_story(&cli, run);
    }
    cli.ok(["events", "verify"]);
    assert!(calls > workers, "every worker had a turn");
}

#[test]
fn eight_on_one_run() {
    crowd_on_one_run(8);
}

#[test]
fn thirty_two_on_one_run() {
    crowd_on_one_run(32);
}

#[test]
fn eight_on_eight_runs() {
    crowd_on_many_runs(8);
}

#[test]
fn thirty_two_on_thirty_two_runs() {
    crowd_on_many_runs(32);
}

#[test]
fn of_many_who_expect_the_same_phase_one_wins() {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "race", "--phases", &long_chain()]);
    for round in 0..10 {
        let expected = format!("p{round}@0");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (cli, run, expected) = (Arc::clone(&cli), run.clone(), expected.clone());
                std::thread::spawn(move || {
                    allowed(&cli, &["run", "advance", &run, "--expect-phase", &expected], &["stale_phase"])
                })
            })
            .collect();
        let winners = threads.into_iter().map(|t| t.join().expect("a racer")).filter(|won| *won).count();
        assert_eq!(winners, 1, "round {round}");
    }
}
