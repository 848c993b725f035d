//! Every round trip of a call, broken before and after it, and every statement in another's way: the call is done once, or says what became of it.

use std::cell::Cell;
use std::time::Duration;

use ic_testkit::Cli;

use crate::cluster::{cluster, project_at};
use crate::proxy::{Break, Proxy};

/// A call that may be made again and again; each time it records one event of this kind.
struct Verb {
    kind: &'static str,
    /// What makes it possible again.
    before: &'static [&'static str],
    call: &'static [&'static str],
}

const VERBS: &[Verb] = &[
    Verb { kind: "run_created", before: &[], call: &["run", "create", "--goal", "g"] },
    Verb { kind: "advance", before: &[], call: &["run", "advance", "RUN"] },
    Verb {
        kind: "rollback",
        before: &["run", "advance", "RUN"],
        call: &["run", "rollback", "RUN", "--to-phase", "p0"],
    },
    Verb { kind: "dispatch_recorded", before: &[], call: &["dispatch", "record", "DISPATCH", "--file", "FILE"] },
    Verb {
        kind: "redacted",
        before: &["run", "create", "--goal", "secret"],
        call: &["events", "redact", "NEWEST", "--reason", "r"],
    },
    Verb { kind: "cursor", before: &[], call: &["events", "cursor", "commit", "c", "2"] },
];

/// The events of a kind, and the whole record.
fn count(cli: &Cli, kind: &str) -> usize {
    let events = cli.json(["events", "tail", "--all", "--json", "--limit", "10000"]);
    events.as_array().expect("events").iter().filter(|event| event["kind"] == kind).count()
}

struct World {
    near: Cli,
    run: String,
    dispatch: String,
    files: Cell<usize>,
}

impl World {
    fn words(&self, words: &[&'static str]) -> Vec<String> {
        let word = |word: &&str| match *word {
            "RUN" => self.run.clone(),
            "DISPATCH" => self.dispatch.clone(),
            "FILE" => {
                self.files.set(self.files.get() + 1);
                format!("f{}", self.files.get())
            }
            "NEWEST" => self.near.json(["events", "verify", "--json"])["chain_head"]["seq"].to_string(),
            word => word.to_owned(),
        };
        words.iter().map(word).collect()
    }

    /// Makes one disturbed call, and compares what it says with what is recorded.
    fn call(&self, verb: &Verb, disturbed: &Cli, how: &str, env: Option<(&str, &str)>) {
        if !verb.before.is_empty() {
            self.near.ok(self.words(verb.before));
        }
        let before = count(&self.near, verb.kind);
        let mut command = disturbed.command(self.words(verb.call));
        if let Some((name, value)) = env {
            command.env(name, value);
        }
        let outcome = ic_testkit::CliOutcome::of(&mut command);
        let more = count(&self.near, verb.kind) - before;
        let expected = usize::from(verb.kind != "cursor");
        match outcome.code {
            Some(0) => assert_eq!(more, expected, "{}, {how}: {outcome:?}", verb.kind),
            code => {
                assert_eq!((code, outcome.error().as_str()), (Some(2), "unreachable"), "{}, {how}", verb.kind);
                assert!(more <= expected, "{}, {how}: {more} times", verb.kind);
            }
        }
    }
}

fn world(near: Cli) -> World {
    let phases: Vec<String> = (0..200).map(|n| format!("p{n}")).collect();
    let run = near.ok(["run", "create", "--goal", "Port", "--phases", &phases.join(",")]);
    let dispatch = near.ok(["dispatch", "create", &run]);
    near.ok(["events", "tail", "--all", "--cursor", "c", "--limit", "1"]);
    World { near, run, dispatch, files: Cell::new(0) }
}

#[test]
fn a_call_whose_connection_breaks_at_any_round_trip_is_done_once_or_says_so() {
    let Some(cluster) = cluster(&[]) else { return };
    let world = world(cluster.project("shop"));
    let proxy = Proxy::to(&cluster, Duration::ZERO);
    let far = project_at(&proxy.url("shop"));
    let mut breaks = 0;
    for verb in VERBS {
        for how in [Break::Before, Break::After] {
            for trip in 1.. {
                proxy.break_trip(trip, how);
                world.call(verb, &far, &format!("{how:?} {trip}"), None);
                if !proxy.has_broken() {
                    break;
                }
                breaks += 1;
            }
        }
    }
    assert!(breaks > 20, "{breaks}");
    world.near.assert_sound("after all");
    ic_testkit::tell(&format!("server: {breaks} broken round trips, each call done once or refused"));
}

#[test]
fn a_call_that_is_in_the_way_of_another_at_any_statement_is_made_again_and_done_once() {
    let Some(cluster) = cluster(&[]) else { return };
    let world = world(cluster.project("shop"));
    let mut conflicts = 0;
    for verb in VERBS {
        for n in 1..100 {
            let met = || cluster.log().matches("in the way, for a test").count();
            let before = met();
            world.call(verb, &world.near, &format!("conflict {n}"), Some(("IC_TEST_CONFLICT", &n.to_string())));
            if met() == before {
                break;
            }
            conflicts += 1;
        }
    }
    assert!(conflicts > 15, "{conflicts}");
    world.near.assert_sound("after all");
}
