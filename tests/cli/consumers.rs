//! Consumers that lose nothing: `ic events tail --each`, and `--peek` with `ic events cursor commit`.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use ic_testkit::{Random, signals, wait_for};
use serde_json::{Value, json};

use crate::support::{Project, chain};

fn project() -> Project {
    let project = Project::new();
    chain(&project, "a,b,c,d,e", "d");
    project
}

fn seqs(list: &Value) -> Vec<i64> {
    list.as_array().expect("a list").iter().map(|event| event["seq"].as_i64().expect("a seq")).collect()
}

/// What a command wrote into a file of the project, line by line.
fn lines(project: &Project, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project.root().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn at(project: &Project, name: &str) -> i64 {
    let cursors = project.json("events cursor list");
    let found = cursors.as_array().expect("cursors").iter().find(|cursor| cursor["name"] == name);
    found.map_or(0, |cursor| cursor["seq"].as_i64().expect("a seq"))
}

/// A consumer in the background, in a process group of its own as at a terminal.
fn consumer(project: &Project, each: &str, more: &[&str]) -> Child {
    let words = ["events", "tail", "--cursor", "c", "--each", each];
    let mut command = project.command(words.iter().chain(more));
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("start a consumer")
}

fn signal_group(child: &Child, signal: &str) {
    signals::send(signal, -i32::try_from(child.id()).expect("its group"));
}

#[test]
fn the_command_gets_each_event_alone_in_order_from_the_project() {
    let project = project();
    let each = "pwd > where; cat >> events; echo \"$IC_EVENT_SEQ $IC_EVENT_TYPE\" >> names";
    let sub = project.root().join("sub");
    std::fs::create_dir(&sub).expect("a directory");
    let outcome = project.run_words(["-C", "sub", "events", "tail", "--cursor", "c", "--each", each]);
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "", ""));
    let expected = project.json("events tail --since 0");
    let got: Vec<Value> = lines(&project, "events")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert_eq!(Value::from(got), expected, "the same records as the tail prints");
    let names: Vec<String> = expected
        .as_array()
        .expect("events")
        .iter()
        .map(|event| format!("{} {}", event["seq"], event["kind"].as_str().expect("a type")))
        .collect();
    assert_eq!(lines(&project, "names"), names);
    let root = std::fs::canonicalize(project.root()).expect("the project");
    assert_eq!(lines(&project, "where").first().map(PathBuf::from), Some(root));
    assert_eq!(at(&project, "c"), 4);
    // Nothing is delivered twice.
    project.run_words(["events", "tail", "--cursor", "c", "--each", each]);
    assert_eq!(lines(&project, "names").len(), 4);
}

#[test]
fn the_hint_of_a_failure_skips_the_event_also_of_one_run() {
    let project = project();
    for scope in [&[][..], &["@"]] {
        let failed = project.run_words(call_of(scope));
        let said: serde_json::Value = serde_json::from_str(&failed.stderr).expect("one error");
        let hint = said["error"]["hint"].as_str().expect("a hint");
        let command = hint.split_once(": ic ").expect("a command").1;
        let skipped = project.run_words(command.split(' '));
        assert_eq!(skipped.code, Some(0), "{command}: {skipped:?}");
        let again = project.run_words(call_of(scope));
        let then: serde_json::Value = serde_json::from_str(&again.stderr).expect("one error");
        assert!(then["error"]["details"]["seq"].as_i64() > said["error"]["details"]["seq"].as_i64());
    }
}

fn call_of<'a>(scope: &[&'a str]) -> Vec<&'a str> {
    [&["events", "tail"], scope, &["--cursor", "c", "--each", "exit 3", "--json"]].concat()
}

#[test]
fn a_failure_leaves_its_event_and_all_after_it() {
    let project = project();
    let each = "echo $IC_EVENT_SEQ >> seen; test $IC_EVENT_SEQ != 3 || test -e mended";
    let run = || project.run_words(["events", "tail", "--cursor", "c", "--each", each, "--json"]);
    for seen in [vec!["1", "2", "3"], vec!["1", "2", "3", "3"]] {
        let outcome = run();
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "consumer_failed"));
        assert_eq!(lines(&project, "seen"), seen);
        assert_eq!(at(&project, "c"), 2, "the cursor stays before it");
    }
    std::fs::write(project.root().join("mended"), "").expect("mend it");
    assert_eq!(run().code, Some(0));
    assert_eq!(lines(&project, "seen"), ["1", "2", "3", "3", "3", "4"]);
    assert_eq!(at(&project, "c"), 4);
}

#[test]
fn a_command_that_a_signal_ends_or_that_is_not_there_failed_as_well() {
    let project = project();
    for (each, detail) in [
        ("kill -9 $$", json!({"signal": 9, "exit_status": null})),
        ("no-such-program-here", json!({"signal": null, "exit_status": 127})),
    ] {
        let outcome = project.run_words(["events", "tail", "--cursor", "c", "--each", each, "--json"]);
        // The command shares standard error; the last line is ours.
        let line = outcome.stderr.lines().last().unwrap_or_default();
        let error: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {}", outcome.stderr));
        assert_eq!((outcome.code, &error["error"]["code"]), (Some(1), &json!("consumer_failed")), "{each}");
        for (key, value) in detail.as_object().expect("details") {
            assert_eq!(error["error"]["details"][key], *value, "{each}");
        }
        assert_eq!(at(&project, "c"), 0);
    }
}

#[test]
fn a_command_that_reads_nothing_of_a_long_event_holds_nobody_up() {
    let project = Project::new();
    project.ok("run create --goal long --phases a,b");
    let long = "x".repeat(60_000);
    for _ in 0..3 {
        let outcome = project.run_words(["gate", "override", "@", "--reason", &long]);
        assert!(outcome.code.is_some(), "{}", outcome.stderr);
    }
    let head = project.json("events tail --limit 1")[0]["seq"].as_i64().expect("a seq");
    assert_eq!(project.run_words(["events", "tail", "--cursor", "c", "--each", "true"]).code, Some(0));
    assert_eq!(at(&project, "c"), head);
}

#[test]
fn a_limit_ends_it() {
    let project = project();
    let each = "echo $IC_EVENT_SEQ >> seen";
    assert_eq!(project.run_words(["events", "tail", "--cursor", "c", "--each", each, "--limit", "2"]).code, Some(0));
    assert_eq!((lines(&project, "seen"), at(&project, "c")), (vec!["1".to_owned(), "2".to_owned()], 2));
    let more = ["events", "tail", "--cursor", "c", "--each", each, "--limit", "1", "--follow"];
    assert_eq!(project.run_words(more).code, Some(0));
    assert_eq!((lines(&project, "seen").len(), at(&project, "c")), (3, 3));
}

#[test]
fn a_follower_tries_a_failed_event_again_and_then_goes_past_it() {
    let project = project();
    // Fails at the first try of event 2; nothing after it is handled before it is.
    let each = "echo $IC_EVENT_SEQ >> seen; test $IC_EVENT_SEQ != 2 || test -e tried || { : > tried; exit 5; }";
    let child = consumer(&project, each, &["--follow", "--format", "text"]);
    wait_for("the events that are there are handled", || at(&project, "c") == 4);
    project.ok("run advance @");
    wait_for("so is one that comes", || at(&project, "c") == 5);
    assert_eq!(lines(&project, "seen"), ["1", "2", "2", "3", "4", "5"]);
    signal_group(&child, "TERM");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("exit status 5 on event 2") && said.contains("Retrying in 1s"), "{said}");
}

/// Also without a person at a terminal: an event that fails again and again is not silent.
#[test]
fn a_follower_says_each_failure_in_json_too() {
    let project = project();
    let each = "echo $IC_EVENT_SEQ >> seen; test $IC_EVENT_SEQ != 2 || test -e mended || exit 5";
    let child = consumer(&project, each, &["--follow", "--format", "json"]);
    wait_for("the event is tried again", || lines(&project, "seen").len() >= 3);
    assert_eq!(at(&project, "c"), 1, "the cursor stays before it");
    std::fs::write(project.root().join("mended"), "").expect("mend it");
    wait_for("the rest is handled", || at(&project, "c") == 4);
    signal_group(&child, "TERM");
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let warnings: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let failures = lines(&project, "seen").iter().filter(|seq| *seq == "2").count() - 1;
    assert!(failures >= 2 && warnings.len() == failures, "{failures} failures: {said}");
    for warning in &warnings {
        let (code, message) = (&warning["warning"]["code"], warning["warning"]["message"].as_str().expect("a text"));
        assert!(code == "consumer_failed" && message.contains("exit status 5 on event 2"), "{warning}");
    }
}

#[test]
fn interrupted_the_running_command_ends_and_its_event_is_left() {
    for signal in signals::that_end() {
        let project = project();
        let each = "echo $IC_EVENT_SEQ >> begun; while ! test -e go; do sleep 0.02; done; echo $IC_EVENT_SEQ >> ended";
        let child = consumer(&project, each, &[]);
        wait_for("the command runs", || lines(&project, "begun").len() == 1);
        // To the whole group, as a terminal sends it.
        signal_group(&child, signal);
        std::fs::write(project.root().join("go"), "").expect("let it end");
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(130));
        assert_eq!(lines(&project, "ended"), ["1"], "the command ended as it would have, and no other began");
        assert_eq!(at(&project, "c"), 0, "its event is left");
        let again = project.run_words(["events", "tail", "--cursor", "c", "--each", each]);
        assert_eq!(again.code, Some(0));
        assert_eq!(lines(&project, "ended"), ["1", "1", "2", "3", "4"]);
    }
}

#[test]
fn a_cursor_has_one_consumer_at_a_time() {
    let project = project();
    let each = "echo $IC_EVENT_SEQ >> begun; while ! test -e go; do sleep 0.02; done";
    let child = consumer(&project, each, &[]);
    wait_for("the first runs", || lines(&project, "begun").len() == 1);
    for second in [
        vec!["events", "tail", "--cursor", "c", "--each", "true"],
        vec!["events", "tail", "--cursor", "c"],
        vec!["events", "cursor", "commit", "c", "1"],
        vec!["events", "cursor", "reset", "c"],
    ] {
        let words = second.iter().chain(&["--busy-timeout", "50ms"]).copied();
        assert_eq!(project.refused_words(words), (2, "busy".to_owned()), "{second:?}");
    }
    // Reading is free, and so is another cursor, or the same name for one run.
    assert_eq!(seqs(&project.json("events tail --cursor c --peek")), [1, 2, 3, 4]);
    assert_eq!(seqs(&project.json("events tail --cursor d")), [1, 2, 3, 4]);
    assert_eq!(seqs(&project.json("events tail @ --cursor c")), [1, 2, 3, 4]);
    std::fs::write(project.root().join("go"), "").expect("let it end");
    assert!(child.wait_with_output().expect("its end").status.success());
    assert_eq!(at(&project, "c"), 4, "the second moved nothing");
}

#[test]
fn a_killed_consumer_loses_nothing_and_blocks_nobody() {
    let project = Project::new();
    project.ok("run create --goal many --phases a,b");
    for complexity in 0..30 {
        project.ok(&format!("run set @ --complexity {}", complexity % 5 + 1));
    }
    let head = project.json("events tail --limit 1")[0]["seq"].as_i64().expect("a seq");
    let each = "echo $IC_EVENT_SEQ >> seen";
    let mut chance = Random::seeded();
    let mut rounds = 0;
    while at(&project, "c") < head {
        let mut child = consumer(&project, each, &[]);
        std::thread::sleep(Duration::from_millis(chance.below(60)));
        child.kill().expect("kill it");
        child.wait().expect("its end");
        rounds += 1;
        assert!(rounds < 2_000, "it gets on");
    }
    // A consumer that was killed between a command and the cursor left an event that is seen twice, never one that is not seen.
    let mut seen: Vec<i64> = lines(&project, "seen").iter().map(|line| line.parse().expect("a seq")).collect();
    let order = seen.clone();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (1..=head).collect::<Vec<i64>>());
    assert!(order.windows(2).all(|pair| pair[1] <= pair[0] + 1), "in order, with repeats: {order:?}");
}

#[test]
fn a_consumer_with_a_loop_of_its_own_peeks_and_commits() {
    let project = project();
    assert_eq!(project.refused("events cursor commit c 1"), (3, "cursor_not_found".to_owned()));
    assert_eq!(seqs(&project.json("events tail --cursor c --peek")), [1, 2, 3, 4]);
    assert_eq!(seqs(&project.json("events tail --cursor c --peek")), [1, 2, 3, 4], "a peek moves nothing");
    let moved = project.json("events cursor commit c 2");
    assert_eq!((&moved["name"], &moved["run_id"], &moved["seq"]), (&json!("c"), &Value::Null, &json!(2)));
    assert_eq!(seqs(&project.json("events tail --cursor c --peek --limit 1")), [3]);
    for refused in ["events cursor commit c 5", "events cursor commit c 1", "events cursor commit c 5 --back"] {
        assert_eq!(project.refused(refused), (3, "invalid_value".to_owned()), "{refused}");
        assert_eq!(at(&project, "c"), 2, "{refused}");
    }
    project.ok("events cursor commit c 2");
    project.ok("events cursor commit c 1 --back");
    assert_eq!(seqs(&project.json("events tail --cursor c --peek")), [2, 3, 4]);
    project.ok("events cursor commit c 4");
    assert_eq!(seqs(&project.json("events tail --cursor c")), Vec::<i64>::new());
    // Of one run it is a cursor of its own.
    let run = project.json("run list")[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(project.refused(&format!("events cursor commit c 1 --run {run}")), (3, "cursor_not_found".to_owned()));
    project.ok(&format!("events tail {run} --cursor c --peek"));
    assert_eq!(project.json(&format!("events cursor commit c 1 --run {run}"))["run_id"], json!(run));
    assert_eq!(at(&project, "c"), 4);
}

#[test]
fn what_makes_no_sense_is_refused_and_runs_nothing() {
    let project = project();
    let usage = |words: &[&str]| project.refused_words(words.iter().copied());
    assert_eq!(usage(&["events", "tail", "--each", ": > ran"]), (3, "usage".to_owned()));
    assert_eq!(usage(&["events", "tail", "--peek"]), (3, "usage".to_owned()));
    assert_eq!(usage(&["events", "tail", "--cursor", "c", "--peek", "--each", ": > ran"]), (3, "usage".to_owned()));
    assert_eq!(
        usage(&["events", "tail", "--cursor", "c", "--since", "1", "--each", ": > ran"]),
        (3, "usage".to_owned())
    );
    assert_eq!(usage(&["events", "tail", "--cursor", "c", "--each", " "]), (3, "invalid_value".to_owned()));
    assert_eq!(
        usage(&["events", "tail", "7f3a9c21", "--cursor", "c", "--each", ": > ran"]),
        (3, "run_not_found".to_owned())
    );
    assert_eq!(usage(&["events", "cursor", "commit", "c", "-1"]).0, 3);
    assert!(!project.root().join("ran").exists());
    assert_eq!(project.json("events cursor list"), json!([]));
}

#[test]
fn a_cursor_of_the_current_run_gets_the_end_of_it_when_it_is_over() {
    let project = Project::new();
    let first = chain(&project, "a,b", "a");
    let seen = seqs(&project.json("events tail @ --cursor c"));
    project.ok("run advance @");
    let expected = seqs(&project.json(&format!("events tail {first} --since {}", seen.last().expect("events"))));
    assert!(!expected.is_empty(), "the run ended after the cursor's last event");
    // Nothing is current any more, and the end is not lost.
    assert_eq!(seqs(&project.json("events tail @ --cursor c")), expected);
    assert_eq!(project.refused("events tail @ --cursor c"), (3, "run_not_found".to_owned()));
    // Of two runs: first the end of the one that is over, then the one that is open.
    let second = chain(&project, "a,b", "a");
    project.json("events tail @ --cursor c");
    project.ok("run cancel @");
    let third = chain(&project, "a,b", "a");
    let both = project.json("events tail @ --cursor c");
    let runs: Vec<&str> =
        both.as_array().expect("a list").iter().map(|event| event["run_id"].as_str().expect("a run")).collect();
    assert_eq!((runs.first(), runs.last()), (Some(&second.as_str()), Some(&third.as_str())), "{both}");
    assert_eq!(seqs(&project.json("events tail @ --cursor c")), Vec::<i64>::new());
    // A command gets them likewise.
    project.ok("run cancel @");
    let outcome = project.run_words(["events", "tail", "@", "--cursor", "c", "--each", "echo $IC_EVENT_TYPE >> types"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(lines(&project, "types"), ["run_cancelled"]);
}

#[test]
fn the_first_ctrl_c_says_what_a_second_does_and_the_second_does_it() {
    let project = project();
    let each = "touch begun; while ! test -e go; do sleep 0.02; done; touch ended";
    let words = ["events", "tail", "--cursor", "c", "--each", each];
    let Some(mut terminal) = ic_testkit::Terminal::open(&project.command(words), project.root()) else {
        return;
    };
    wait_for("the command runs", || project.root().join("begun").exists());
    terminal.types("\u{3}");
    terminal.sees("Ctrl-C again ends ic at once and leaves it unfinished");
    terminal.types("\u{3}");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert_eq!((at(&project, "c"), project.root().join("ended").exists()), (0, false), "{shown}");
    std::fs::write(project.root().join("go"), "").expect("let it end");
    wait_for("what was left ends by itself", || project.root().join("ended").exists());
}
