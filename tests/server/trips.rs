//! How many round trips a call costs: that is what a server at a distance costs.

use std::time::Duration;

use ic_testkit::{Cli, Cluster};

use crate::cluster::{cluster, project_at};
use crate::proxy::Proxy;

/// How far away the server is, each way. On a machine under load a client is held up in the midst of what it sends together: where the
/// answer to its first part comes in that time, one trip seems to be two. What does wait for an answer waits at every distance.
const DISTANCES: [Duration; 4] =
    [Duration::from_millis(12), Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(600)];

#[test]
fn calls_cost_few_round_trips_however_many_rows_they_change() {
    let Some(cluster) = cluster(&[]) else { return };
    let mut over = Vec::new();
    for distance in DISTANCES {
        over = over_their_bound(&cluster, distance);
        if over.is_empty() {
            return;
        }
    }
    panic!("{over:?}");
}

/// The calls that cost more round trips than they may, where the server is that far away.
fn over_their_bound(cluster: &Cluster, distance: Duration) -> Vec<String> {
    let ledger = &format!("shop{}", distance.as_millis());
    let near = cluster.project(ledger);
    let run = near.ok(["run", "create", "--goal", "Port", "--phases", "plan,build,ship"]);
    near.ok(["run", "advance", &run]);
    for n in 0..50 {
        near.ok(["dispatch", "create", &run, "--name", &format!("d{n}")]);
        near.ok(["run", "artifact", "add", &run, "--path", &format!("p{n}")]);
        near.ok(["run", "agent", "add", &run, "--type", "codex"]);
    }
    let proxy = Proxy::to(cluster, distance);
    let far: Cli = project_at(&proxy.url(ledger));
    let mut over = Vec::new();
    let mut call = |words: &[&str], most: usize| {
        proxy.trips();
        let outcome = far.run(words);
        assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
        // One is the connection's own.
        let trips = proxy.trips() - 1;
        if trips > most {
            over.push(format!("{words:?}: {trips} round trips"));
        }
        outcome.stdout.trim_end().to_owned()
    };
    call(&["run", "status", &run], 3);
    call(&["run", "rollback", &run, "--to-phase", "plan"], 10);
    // It looks at the run before it waits for others, and expects it there.
    call(&["run", "advance", &run, "--no-checkpoint"], 7);
    let dispatch = call(&["dispatch", "create", &run], 5);
    call(&["dispatch", "start", &dispatch], 5);
    call(&["dispatch", "record", &dispatch, "--commit", "abcdef1"], 5);
    call(&["dispatch", "complete", &dispatch, "--verdict", "pass"], 5);
    near.assert_sound("after all");
    over
}
