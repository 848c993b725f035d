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
    for words in
        [&["run", "status", &run][..], &["run", "set", &run, "--complexity", "2"], &["init"], &["migrate"], &["health"]]
    {
        let outcome = near.run(words);
        assert_eq!((outcome.code, outcome.error()), (Some(2), "unreachable".to_owned()), "{words:?}: {outcome:?}");
    }
}

#[test]
fn a_cursor_that_may_have_moved_is_said_to_and_what_was_printed_is_a_document() {
    let Some(cluster) = cluster(&[]) else { return };
    let near = cluster.project("shop");
    near.ok(["run", "create", "--goal", "Port"]);
    let proxy = Proxy::to(&cluster, Duration::ZERO);
    let far = project_at(&proxy.url("shop"));
    proxy.break_next_commit(Break::After);
    proxy.close_after_break();
    let outcome = far.run(["--busy-timeout", "300ms", "events", "tail", "--all", "--cursor", "c", "--json"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "unreachable"), "{outcome:?}");
    let printed: Vec<serde_json::Value> = serde_json::from_str(&outcome.stdout).expect("a document");
    assert!(!printed.is_empty());
    assert!(outcome.stderr.contains("it is not known whether it happened"), "{outcome:?}");
    assert!(outcome.stderr.contains("ic events cursor list"), "{outcome:?}");
}

#[test]
fn who_follows_goes_on_when_the_server_was_started_again() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    let file = cli.home().join("seen.jsonl");
    let mut follower = cli.command(["events", "tail", "--all", "--follow", "--format", "jsonl"]);
    let mut follower = follower.stdout(std::fs::File::create(&file).expect("a file")).spawn().expect("a follower");
    let seen = |count: usize| {
        let text = std::fs::read_to_string(&file).expect("what it printed");
        text.lines().filter(|line| line.ends_with('}')).count() >= count
    };
    ic_testkit::wait_for("the first event", || seen(1));
    cluster.crash_and_restart();
    cli.ok(["run", "cancel", &run, "--reason", "r"]);
    ic_testkit::wait_for("the event after it", || seen(2));
    follower.kill().expect("end it");
    follower.wait().expect("its end");
}
