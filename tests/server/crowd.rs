//! Many processes at once, on one run and on many, while their connections are ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, Cluster};
use serde_json::Value;

use crate::cluster::cluster;

const WORKERS: usize = 32;

struct Story {
    acknowledged: AtomicUsize,
    unknown: AtomicUsize,
}

/// Workers that add an artifact each turn until the time is over, on one run and on runs of their own, while `disturb` runs.
fn work(cluster: &Cluster, cli: &Cli, most: Duration, disturb: impl Fn(&Cluster) + Sync) -> Story {
    let story = Story { acknowledged: AtomicUsize::new(0), unknown: AtomicUsize::new(0) };
    let shared = cli.ok(["run", "create", "--goal", "of all"]);
    let ends = AtomicBool::new(false);
    let end = Instant::now() + most;
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (story, shared) = (&story, &shared);
            scope.spawn(move || {
                let own = loop {
                    let made = cli.run(["run", "create", "--goal", &format!("of {worker}")]);
                    if made.code == Some(0) {
                        break made.stdout.trim_end().to_owned();
                    }
                };
                for turn in 0.. {
                    if Instant::now() > end {
                        break;
                    }
                    let run = if turn % 2 == 0 { shared } else { &own };
                    let outcome = cli.run(["run", "artifact", "add", run, "--path", &format!("{worker}-{turn}")]);
                    let counted = if outcome.code == Some(0) { &story.acknowledged } else { &story.unknown };
                    if outcome.code != Some(0) {
                        assert_eq!(outcome.error(), "unreachable", "{outcome:?}");
                    }
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (ends, disturb) = (&ends, &disturb);
        scope.spawn(move || {
            while !ends.load(Ordering::Relaxed) && Instant::now() < end {
                disturb(cluster);
            }
        });
    });
    ends.store(true, Ordering::Relaxed);
    story
}

/// What is recorded is what was acknowledged, and at most what was cut off before its answer; every artifact once.
fn check(cli: &Cli, story: &Story) {
    let mut recorded = 0;
    let runs = cli.json(["run", "list", "--json"]);
    for run in runs.as_array().expect("runs") {
        let artifacts = cli.json(["run", "artifact", "list", run["id"].as_str().expect("an id"), "--json"]);
        let mut paths: BTreeMap<String, usize> = BTreeMap::new();
        for artifact in artifacts.as_array().expect("artifacts") {
            *paths.entry(artifact["path"].as_str().expect("a path").to_owned()).or_default() += 1;
            recorded += 1;
        }
        assert!(paths.values().all(|n| *n == 1), "{paths:?}");
    }
    let (acknowledged, unknown) = (story.acknowledged.load(Ordering::Relaxed), story.unknown.load(Ordering::Relaxed));
    assert!(acknowledged > 20, "{acknowledged}");
    assert!(
        (acknowledged..=acknowledged + unknown).contains(&recorded),
        "{acknowledged} were acknowledged, {unknown} are not known, {recorded} are recorded"
    );
    cli.assert_sound("after all");
}

#[test]
fn nobody_is_locked_out_nothing_is_lost_and_a_cursor_sees_every_event_once() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let mut follower = cli.command(["events", "tail", "--all", "--follow", "--cursor", "c", "--format", "jsonl"]);
    let mut follower = follower.stdout(std::process::Stdio::piped()).spawn().expect("a follower");
    let mut output = follower.stdout.take().expect("its output");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut output, &mut text).expect("events");
        text
    });
    let story = work(&cluster, &cli, ic_testkit::time(Duration::from_secs(5)), |_| {
        std::thread::sleep(Duration::from_millis(50));
    });
    assert_eq!(story.unknown.load(Ordering::Relaxed), 0);
    check(&cli, &story);
    let last = cli.json(["events", "verify", "--json"])["chain_head"]["seq"].as_i64().expect("a seq");
    std::thread::sleep(Duration::from_secs(1));
    follower.kill().expect("end it");
    follower.wait().expect("its end");
    let text = reader.join().expect("its text");
    let seen: Vec<i64> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event")["seq"].as_i64().expect("a seq"))
        .collect();
    assert_eq!(seen, (1..=last).collect::<Vec<_>>());
    ic_testkit::tell(&format!("server: {last} events by {WORKERS} workers, none lost, each seen once"));
}

#[test]
fn connections_that_are_ended_and_a_server_that_crashes_lose_nothing_that_was_acknowledged() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let crashed = AtomicBool::new(false);
    let began = Instant::now();
    let most = ic_testkit::time(Duration::from_secs(6));
    let story = work(&cluster, &cli, most, |cluster| {
        if began.elapsed() > most / 2 && !crashed.swap(true, Ordering::Relaxed) {
            cluster.crash_and_restart();
        }
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ic'";
        cluster.psql_as("ic", end);
        std::thread::sleep(Duration::from_millis(100));
    });
    assert!(crashed.load(Ordering::Relaxed));
    check(&cli, &story);
}
