//! Cursors: durable positions of consumers that lose nothing.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Project, args, chain};

fn seqs(list: &Value) -> Vec<i64> {
    list.as_array().expect("a list").iter().map(|event| event["seq"].as_i64().expect("a seq")).collect()
}

fn project() -> Project {
    let project = Project::new();
    chain(&project, "a,b,c,d,e", "d");
    project
}

#[test]
fn a_cursor_goes_on_where_it_was() {
    let project = project();
    assert_eq!(seqs(&project.json("events tail --cursor c --limit 2")), [1, 2]);
    assert_eq!(seqs(&project.json("events tail --cursor c --limit 1")), [3]);
    assert_eq!(seqs(&project.json("events tail --cursor c")), [4]);
    assert_eq!(seqs(&project.json("events tail --cursor c")), Vec::<i64>::new());
    project.ok("run advance @");
    assert_eq!(seqs(&project.json("events tail --cursor c")), [5]);
    assert_eq!(seqs(&project.json("events tail --cursor other")), [1, 2, 3, 4, 5], "each has its own");
    assert_eq!(seqs(&project.json("events tail --limit 1")), [5], "a tail without one moves none");
    assert_eq!(project.json("events cursor list")[0]["seq"], 5);
}

#[test]
fn one_name_has_a_position_for_each_run_and_one_for_all() {
    let project = Project::new();
    let one = chain(&project, "a,b,c", "b");
    let two = chain(&project, "a,b,c", "b");
    assert_eq!(seqs(&project.json(&format!("events tail {one} --cursor c"))), [1, 2]);
    assert_eq!(seqs(&project.json(&format!("events tail {two} --cursor c"))), [3, 4]);
    assert_eq!(seqs(&project.json("events tail --cursor c --limit 1")), [1]);
    let cursors = project.json("events cursor list");
    let of = |i: usize| (cursors[i]["run_id"].clone(), cursors[i]["seq"].clone());
    assert_eq!([of(0), of(1), of(2)], [(Value::Null, json!(1)), (json!(one), json!(2)), (json!(two), json!(4))]);
    let reset = project.json("events cursor reset c");
    assert!(reset.as_array().expect("cursors").iter().all(|c| c["seq"] == 0), "{reset}");
    assert_eq!(seqs(&project.json(&format!("events tail {two} --cursor c"))), [3, 4], "after a reset from the start");
    assert_eq!(project.refused("events cursor reset d"), (3, "cursor_not_found".to_owned()));
}

#[test]
fn a_cursor_moves_only_over_what_was_written() {
    let project = project();
    // A full disk: nothing was delivered.
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut command = project.command(args("events tail --cursor c"));
    let output = command
        .stdout(Stdio::from(full))
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output);
    let output = output.expect("run ic");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("\"disk_full\""), "{output:?}");
    assert_eq!(project.json("events cursor list"), json!([]), "the cursor did not move");
    assert_eq!(seqs(&project.json("events tail --cursor c")), [1, 2, 3, 4]);
}

#[test]
fn a_reader_that_went_away_is_no_failure_and_loses_nothing() {
    let project = project();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = project.command(args("events tail --cursor c"));
    let output = command.stdout(Stdio::from(writer)).output().expect("run ic");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(seqs(&project.json("events tail --cursor c")), [1, 2, 3, 4]);
}

#[test]
fn two_consumers_of_one_cursor_never_move_it_back() {
    let project = project();
    project.ok("events tail --cursor c");
    project.cli.sql("UPDATE event_cursors SET seq = 100 WHERE name = 'c'");
    project.ok("run advance @");
    assert_eq!(seqs(&project.json("events tail --cursor c")), Vec::<i64>::new());
    assert_eq!(project.json("events cursor list")[0]["seq"], 100);
}

#[test]
fn names_are_labels() {
    let project = project();
    for good in ["計劃", "a b", "'; DROP TABLE events; --", "-x"] {
        let words = ["events", "tail", &format!("--cursor={good}")];
        assert_eq!(project.run_words(words).code, Some(0), "{good}");
    }
    for bad in ["", " ", "a\nb", " a", "a\u{1b}[2J"] {
        let words = ["events", "tail", &format!("--cursor={bad}")];
        assert_eq!(project.refused_words(words), (3, "invalid_value".to_owned()), "{bad:?}");
        assert_eq!(
            project.refused_words(["events", "cursor", "reset", bad]),
            (3, "invalid_value".to_owned()),
            "{bad:?}"
        );
    }
    assert_eq!(project.json("events cursor list").as_array().map(Vec::len), Some(4));
}

#[test]
fn a_damaged_ledger_is_found_by_verify() {
    let project = project();
    let head = project.json("events verify")["chain_head"].clone();
    let expected = format!("{}:{}", head["seq"], head["hash"].as_str().expect("a hash"));
    assert_eq!(project.json(&format!("events verify --expect-head {expected}"))["ok"], true);
    let zeros = "0".repeat(64);
    for wrong in [format!("4:{zeros}"), format!("9:{zeros}"), format!("2:{zeros}")] {
        let outcome = project.run(&format!("events verify --expect-head {wrong}"));
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "chain_broken"), "{wrong}");
        assert_eq!(outcome.json()["ok"], false);
    }
    project.cli.past_triggers("UPDATE events SET to_state = 'x' WHERE seq = 2");
    let outcome = project.run("events verify");
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "chain_broken"));
    assert_eq!((&outcome.json()["first_bad"]["seq"], &outcome.json()["event_count"]), (&json!(2), &json!(1)));
}
