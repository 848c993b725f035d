//! `ic events tail`: the newest events, what follows a position, and what happens from now on.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Project, args, chain};

fn seqs(list: &Value) -> Vec<i64> {
    list.as_array().expect("a list").iter().map(|event| event["seq"].as_i64().expect("a seq")).collect()
}

/// A ledger with `n` events, the first of which creates a run.
fn with_events(n: usize) -> Project {
    let project = Project::new();
    chain(&project, "a,b", "a");
    for _ in 1..n {
        project.ok("run set @ --complexity 3");
    }
    project
}

#[test]
fn without_a_position_it_is_the_newest_with_the_oldest_of_them_first() {
    let project = with_events(7);
    assert_eq!(seqs(&project.json("events tail --limit 3")), [5, 6, 7]);
    assert_eq!(seqs(&project.json("events tail --all --limit 3")), [5, 6, 7]);
    assert_eq!(seqs(&project.json("events tail @ --limit 1")), [7]);
    assert_eq!(seqs(&project.json("events tail")), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_hundred_unless_something_else_is_said() {
    let project = with_events(1);
    let mut log = Vec::new();
    let dispatch = project.ok("dispatch create @");
    for i in 0..120 {
        log.push(project.run(&format!("dispatch tokens {dispatch} --in {i} --out 0")).code);
    }
    assert!(log.iter().all(|code| *code == Some(0)));
    let newest: Vec<i64> = (23..=122).collect();
    assert_eq!(seqs(&project.json("events tail")), newest);
    assert_eq!(seqs(&project.json("events tail @")), newest);
    assert_eq!(seqs(&project.json("events tail --since 0")).len(), 122, "a position loses none");
    assert_eq!(seqs(&project.json("events tail --cursor all")).len(), 122, "a cursor neither");
}

#[test]
fn since_is_what_follows() {
    let project = with_events(6);
    assert_eq!(seqs(&project.json("events tail --since 0")), [1, 2, 3, 4, 5, 6]);
    assert_eq!(seqs(&project.json("events tail --since 4")), [5, 6]);
    assert_eq!(seqs(&project.json("events tail --since 2 --limit 2")), [3, 4]);
    assert_eq!(seqs(&project.json("events tail --since 6")), Vec::<i64>::new());
    assert_eq!(seqs(&project.json("events tail --since 9223372036854775807")), Vec::<i64>::new());
    for bad in ["-1", "x", "9223372036854775808", "1.5", ""] {
        assert_eq!(project.refused(&format!("events tail --since={bad}")), (3, "invalid_value".to_owned()), "{bad}");
    }
    for bad in ["0", "-1", "x"] {
        assert_eq!(project.refused(&format!("events tail --limit={bad}")), (3, "invalid_value".to_owned()), "{bad}");
    }
}

#[test]
fn one_run_or_all_of_them() {
    let project = Project::new();
    let one = chain(&project, "a,b,c", "b");
    let two = chain(&project, "a,b,c", "b");
    project.ok(&format!("run advance {one}"));
    assert_eq!(seqs(&project.json(&format!("events tail {one}"))), [1, 2, 5]);
    assert_eq!(seqs(&project.json(&format!("events tail {two} --since 3"))), [4]);
    assert_eq!(seqs(&project.json(&format!("events tail {one} --limit 2"))), [2, 5]);
    assert_eq!(seqs(&project.json("events tail")), [1, 2, 3, 4, 5]);
}

/// A tail that follows, and its lines as they come.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(project: &Project, line: &str) -> Self {
        let mut command = project.command(args(line));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("start ic");
        let stdout = child.stdout.take().expect("its output");
        Self { child, lines: read(stdout) }
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(20)).expect("an event within 20 s");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    fn stop(mut self) {
        self.child.kill().expect("stop it");
        self.child.wait().expect("its end");
    }
}

fn read(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
fn a_follower_sees_what_happens_as_it_happens() {
    let project = with_events(4);
    let follower = Follower::start(&project, "events tail --follow --limit 2");
    assert_eq!((follower.next()["seq"].as_i64(), follower.next()["seq"].as_i64()), (Some(3), Some(4)));
    for seq in 5..8 {
        project.ok("run set @ --complexity 1");
        let event = follower.next();
        assert_eq!((event["seq"].as_i64(), event["kind"].as_str()), (Some(seq), Some("run_set")));
    }
    project.ok("run rollback @ --to-phase a --include-target");
    assert_eq!(follower.next()["kind"], "rollback");
    follower.stop();
}

#[test]
fn a_follower_of_one_run_sees_only_that() {
    let project = Project::new();
    let one = chain(&project, "a,b,c", "a");
    let two = chain(&project, "a,b,c", "a");
    let follower = Follower::start(&project, &format!("events tail {one} --follow --since 1 --json"));
    project.ok(&format!("run advance {two}"));
    project.ok(&format!("run advance {one}"));
    let event = follower.next();
    assert_eq!((event["seq"].as_i64(), event["run_id"].as_str()), (Some(4), Some(one.as_str())));
    follower.stop();
}

#[test]
fn a_follower_with_a_limit_ends() {
    let project = with_events(2);
    let mut follower = Follower::start(&project, "events tail --follow --since 0 --limit 3");
    assert_eq!((follower.next()["seq"].as_i64(), follower.next()["seq"].as_i64()), (Some(1), Some(2)));
    project.ok("run advance @");
    assert_eq!(follower.next()["seq"], 3);
    assert!(follower.child.wait().expect("its end").success());
}

#[test]
fn a_follower_keeps_its_cursor() {
    let project = with_events(3);
    let follower = Follower::start(&project, "events tail --follow --cursor notifier");
    for seq in 1..=3 {
        assert_eq!(follower.next()["seq"], seq);
    }
    project.ok("run advance @");
    assert_eq!(follower.next()["seq"], 4);
    // The position is kept right after the line was written.
    let kept = || project.json("events cursor list")[0]["seq"].as_i64();
    let patience = std::time::Instant::now();
    while kept() != Some(4) && patience.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(kept(), Some(4));
    follower.stop();
    assert_eq!(project.json("events tail --cursor notifier"), serde_json::json!([]));
}

/// Changes the newest event, as if another history had been there from before it.
fn fork(project: &Project) {
    let triggers = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_master \
                    WHERE type = 'trigger' AND tbl_name = 'events'";
    let drop_triggers = project.cli.sql(triggers);
    project.cli.sql(&drop_triggers);
    project.cli.sql(
        "UPDATE events SET hash = zeroblob(32) WHERE seq = (SELECT max(seq) FROM events); \
         UPDATE event_head SET hash = zeroblob(32)",
    );
}

#[test]
fn a_follower_ends_where_the_history_is_another_and_names_the_place() {
    let project = with_events(3);
    let mut command = project.command(args("events tail --follow --since 0 --json"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    let lines = read(child.stdout.take().expect("its output"));
    for _ in 0..3 {
        lines.recv_timeout(Duration::from_secs(20)).expect("an event within 20 s");
    }
    fork(&project);
    let ended = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let error: Value = serde_json::from_str(said.lines().next().expect("an error")).expect("JSON");
    assert_eq!(error["error"]["code"], "history_forked");
    let details = &error["error"]["details"];
    assert_eq!((details["seq"].as_i64(), details["found"].as_str()), (Some(3), Some("0".repeat(64).as_str())));
    assert_ne!(details["expected"], details["found"]);
}

#[test]
fn a_cursor_knows_that_what_it_read_was_lost_and_goes_on_where_it_is_told_to() {
    let project = with_events(3);
    project.ok("events tail --cursor notifier");
    fork(&project);
    project.run("health --accept-older");
    for call in [
        "events tail --cursor notifier",
        "events tail --cursor notifier --each true",
        "events tail --cursor notifier --peek",
    ] {
        assert_eq!(project.refused(call), (1, "history_forked".to_owned()), "{call}");
    }
    project.ok("events cursor commit notifier 1 --back");
    assert_eq!(seqs(&project.json("events tail --cursor notifier")), [2, 3]);
}
