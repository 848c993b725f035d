//! How attempts to undo effects go on record: each before its command runs, and its outcome before the next command does.

use serde_json::Value;

use crate::project::{Work as _, asked, in_git};

const STEPS: [&str; 4] = ["first", "second", "third", "fourth"];

#[test]
fn a_command_finds_the_outcomes_before_it_and_its_own_beginning_on_record() {
    let world = in_git().begun();
    world.advance();
    let ic = env!("CARGO_BIN_EXE_ic");
    let seen = |step: &str| world.cli.home().join(format!("seen-{step}"));
    for step in STEPS {
        let look = format!("{ic} compensation list $IC_RUN --json > {}", seen(step).display());
        world.effect(step, &[&look]);
    }
    world.roll_back("a", &[]);
    for (at, step) in STEPS.iter().enumerate() {
        let text = std::fs::read_to_string(seen(step)).expect("what it saw");
        let all: Vec<Value> = serde_json::from_str(&text).expect("a list");
        let states: Vec<&str> = all.iter().map(|one| one["status"].as_str().expect("a state")).collect();
        // The newest effect is undone first.
        let expected: Vec<&str> = (0..STEPS.len())
            .map(|other| match other.cmp(&at) {
                std::cmp::Ordering::Less => "armed",
                std::cmp::Ordering::Equal => "running",
                std::cmp::Ordering::Greater => "done",
            })
            .collect();
        assert_eq!(states, expected, "while {step} was undone");
    }
}

/// One transaction has one moment; two, with a process begun between them, hardly ever have.
#[test]
fn an_outcome_and_the_next_beginning_are_one_transaction() {
    let world = in_git().begun();
    world.advance();
    for step in STEPS {
        world.effect(step, &[]);
    }
    world.roll_back("a", &[]);
    let together = "SELECT count(*) FROM events begun JOIN events done ON done.seq = begun.seq - 1 \
        WHERE begun.type = 'compensation_started' AND done.type = 'compensation_done' \
        AND begun.created_at = done.created_at";
    assert_eq!(asked(&world.cli, together), 3);
}
