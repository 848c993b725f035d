//! Connections that are lost at any moment: what was acknowledged is there once, and what was not is there once or not at all.

use std::time::Duration;

use ic_testkit::Cli;

use crate::cluster::{cluster, project_at};
use crate::proxy::{Break, Proxy};

fn count(cli: &Cli, kind: &str) -> usize {
    let events = cli.json(["events", "tail", "--all", "--json", "--limit", "1000"]);
    events.as_array().expect("events").iter().filter(|event| event["kind"] == kind).count()
}

#[test]
fn a_commit_whose_answer_is_lost_happens_once() {
    let Some(cluster) = cluster(&[]) else { return };
    let near = cluster.project("shop");
    let proxy = Proxy::to(&cluster, Duration::ZERO);
    let far = project_at(&proxy.url("shop"));
    let run = near.ok(["run", "create", "--goal", "Port", "--phases", "a,b,c,d,e,f,g"]);
    near.ok(["events", "tail", "--all", "--cursor", "c", "--limit", "1"]);
    for (n, how) in [Break::Before, Break::After, Break::Before, Break::After].into_iter().enumerate() {
        proxy.break_next_commit(how);
        far.ok(["run", "advance", &run]);
        assert!(proxy.has_broken());
        assert_eq!(count(&near, "advance"), n + 1, "{how:?}");
        proxy.break_next_commit(how);
        far.ok(["run", "artifact", "add", &run, "--path", "x"]);
        assert_eq!(
            near.json(["run", "artifact", "list", &run, "--json"]).as_array().map(Vec::len),
            Some(n + 1),
            "{how:?}"
        );
        proxy.break_next_commit(how);
        far.ok(["events", "cursor", "commit", "c", "1"]);
    }
    near.assert_sound("after all");
}

#[test]
fn a_server_that_does_not_come_back_leaves_no_doubt_unsaid() {
    let Some(cluster) = cluster(&[]) else { return };
    let near = cluster.project("shop");
    let run = near.ok(["run", "create", "--goal", "Port"]);
    cluster.stop("fast");
    for words in [
        &["run", "status", &run][..],
        &["run", "set", &run, "--complexity", "2"],
        &["init"],
        &["migrate"],
        &["health"],
    ] {
        let outcome = near.run(words);
        assert_eq!(
            (outcome.code, outcome.error()),
            (Some(2), "unreachable".to_owned()),
            "{words:?}: {outcome:?}"
        );
    }
}
