//! How many round trips a call costs: that is what a server at a distance costs.

use std::time::Duration;

use crate::cluster::{cluster, project_at};
use crate::proxy::Proxy;

#[test]
fn calls_cost_few_round_trips_however_many_rows_they_change() {
    let Some(cluster) = cluster(&[]) else { return };
    let near = cluster.project("shop");
    let run = near.ok(["run", "create", "--goal", "Port", "--phases", "plan,build,ship"]);
    near.ok(["run", "advance", &run]);
    for n in 0..50 {
        near.ok(["dispatch", "create", &run, "--name", &format!("d{n}")]);
        near.ok(["run", "artifact", "add", &run, "--path", &format!("p{n}")]);
        near.ok(["run", "agent", "add", &run, "--type", "codex"]);
    }
    let proxy = Proxy::to(&cluster, Duration::from_millis(12));
    let far = project_at(&proxy.url("shop"));
    let trips = |words: &[&str], most: usize| {
        proxy.trips();
        let outcome = far.run(words);
        assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
        // One is the connection's own.
        let trips = proxy.trips() - 1;
        assert!(trips <= most, "{words:?}: {trips} round trips");
        outcome.stdout.trim_end().to_owned()
    };
    trips(&["run", "status", &run], 3);
    trips(&["run", "rollback", &run, "--to-phase", "plan"], 8);
    trips(&["run", "advance", &run, "--no-checkpoint"], 6);
    let dispatch = trips(&["dispatch", "create", &run], 5);
    trips(&["dispatch", "start", &dispatch], 5);
    trips(&["dispatch", "record", &dispatch, "--commit", "abcdef1"], 5);
    trips(&["dispatch", "complete", &dispatch, "--verdict", "pass"], 5);
    cluster.project("shop").assert_sound("after all");
}
