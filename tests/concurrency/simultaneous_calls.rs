//! Calls that are made at the same time and wait for one another: what each of them expects is what it saw before it waited.

use std::path::PathBuf;
use std::process::Child;

use ic_testkit::{Cli, CliOutcome, wait_for};
use serde_json::Value;

/// Starts calls while the ledger is held, and lets them go once each of them waits for it.
fn at_once(cli: &Cli, count: usize, words: &[&str]) -> Vec<CliOutcome> {
    let held = cli.hold_writers();
    let log = |n: usize| -> PathBuf { cli.home().join(format!("{}-{n}.log", words[1])) };
    let children: Vec<Child> = (0..count)
        .map(|n| {
            let mut command = std::process::Command::new(cli.command(words).get_program());
            let known = cli.command(words);
            command.args(known.get_args()).current_dir(cli.root()).env_clear();
            command.envs(known.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
            command.env("IC_TEST_SQL_LOG", log(n));
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().expect("start ic")
        })
        .collect();
    // What a writer asks for first, of a file and of a server.
    let asks = |log: &str| log.contains("BEGIN IMMEDIATE") || log.contains("FOR UPDATE");
    for n in 0..count {
        wait_for("a call that waits", || std::fs::read_to_string(log(n)).is_ok_and(|log| asks(&log)));
    }
    drop(held);
    children.into_iter().map(CliOutcome::at_end_of).collect()
}

fn project() -> (Cli, String) {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c,d,e,f,g,h"]);
    (cli, run)
}

fn phase(cli: &Cli, run: &str) -> Value {
    cli.json(["run", "status", run, "--json"])["phase"].clone()
}

#[test]
fn of_advances_at_once_one_moves_and_the_others_are_stale() {
    let (cli, run) = project();
    for words in [&["run", "advance", &run][..], &["gate", "override", &run, "--reason", "why"]] {
        let before = phase(&cli, &run);
        let outcomes = at_once(&cli, 6, words);
        let moved = outcomes.iter().filter(|one| one.code == Some(0)).count();
        let stale = |one: &&CliOutcome| one.code == Some(1) && one.error() == "stale_phase";
        assert_eq!((moved, outcomes.iter().filter(stale).count()), (1, 5), "{outcomes:?}");
        assert_ne!(phase(&cli, &run), before);
    }
    assert_eq!(phase(&cli, &run), "c");
}

#[test]
fn of_rollbacks_at_once_to_one_phase_all_succeed() {
    let (cli, run) = project();
    for _ in 0..3 {
        cli.ok(["run", "advance", &run]);
    }
    let words = ["run", "rollback", &run, "--to-phase", "a"];
    let outcomes = at_once(&cli, 8, &words);
    assert!(outcomes.iter().all(|one| one.code == Some(0)), "{outcomes:?}");
    let said: Vec<Value> = outcomes.iter().map(CliOutcome::json).collect();
    let is = |word: &str| said.iter().filter(|one| one["status"] == word).count();
    assert_eq!((is("rolled_back"), is("already_there")), (1, 7), "{said:?}");
    let rollback = said.iter().find(|one| one["status"] == "rolled_back").expect("the one that did it");
    for one in &said {
        assert_eq!((&one["rollback_id"], &one["to_phase"]), (&rollback["rollback_id"], &Value::from("a")));
    }
    assert_eq!(phase(&cli, &run), "a");
    let events = cli.json(["run", "events", &run, "--json"]);
    let rollbacks = events.as_array().into_iter().flatten().filter(|event| event["kind"] == "rollback").count();
    assert_eq!(rollbacks, 1, "{events}");
    // A later call, which finds nothing to do, is told so.
    assert_eq!(cli.refused(words), (Some(1), "already_at_phase".to_owned()));
}
