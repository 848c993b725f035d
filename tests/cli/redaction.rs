//! The redaction of a secret: in the output, in the rows, and in the bytes of the file.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Project, chain, story};

const SECRET: &str = "sk-live-4f9a1c77e0b24d6b";

/// The files below the ledger's directory in which the secret stands.
fn stands_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the store");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let (below, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let has_it = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).expect("a file");
        bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
    };
    let found = files.into_iter().filter(has_it).map(|path| path.display().to_string());
    found.chain(below.iter().flat_map(|path| stands_in(path))).collect()
}

fn store(project: &Project) -> std::path::PathBuf {
    project.root().join(".ic")
}

/// Redacts every event that shows the secret and says which that were.
fn redact_all(project: &Project) -> Vec<i64> {
    let mut redacted = Vec::new();
    // A redaction takes copies along, so it is looked again after each.
    loop {
        let events = project.json("events tail --since 0");
        let mut events = events.as_array().expect("events").iter();
        let Some(event) = events.find(|event| event.to_string().contains(SECRET)) else { return redacted };
        let seq = event["seq"].as_i64().expect("a seq");
        project.ok(&format!("events redact {seq} --reason 'a token was pasted'"));
        redacted.push(seq);
    }
}

fn assert_gone(project: &Project, lists: &[&str]) {
    assert_eq!(stands_in(&store(project)), Vec::<String>::new(), "the bytes are still there");
    for line in lists {
        assert!(!project.ok(&format!("{line} --json")).contains(SECRET), "{line}");
    }
    assert_eq!(project.json("events verify")["ok"], true);
    assert_eq!(project.json("health")["ok"], true);
}

/// What a person called a checkpoint stands in its row alone, and goes with its event.
#[test]
fn a_checkpoint_loses_its_name_and_message_with_its_event() {
    let project = Project::new();
    project.write("a.txt", "a");
    project.ok(&format!("checkpoint create --name {SECRET} --message 'token {SECRET}'"));
    project.ok("events redact 1 --reason 'a token was pasted'");
    assert_gone(&project, &["checkpoint list", "events tail"]);
    let kept = project.json("checkpoint list")[0].clone();
    assert_eq!((&kept["name"], &kept["message"]), (&Value::Null, &Value::Null), "{kept}");
    project.ok(&format!("checkpoint show {}", kept["short_id"].as_str().expect("an id")));
}

#[test]
fn a_redaction_is_visible_and_keeps_the_chain() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    project.ok(&format!("run skip @ b --reason 'token {SECRET}'"));
    let before = project.json("events tail")[1].clone();
    let redacted = project.json("events redact 2 --reason 'a token was pasted'");
    assert_eq!(redacted, json!({"seq": 2, "redaction_seq": 3}));
    let events = project.json("events tail");
    assert_eq!((&events[1]["reason"], &events[1]["redacted"]), (&Value::Null, &json!(true)));
    assert_eq!(events[1]["hash"], before["hash"], "the chain is whole");
    assert_eq!((&events[2]["kind"], &events[2]["subject_id"]), (&json!("redacted"), &json!("2")));
    assert_eq!(events[2]["reason"], "a token was pasted");
    assert_gone(&project, &["run events @", "events tail"]);
    assert_eq!(project.refused("events redact 2 --reason again"), (1, "nothing_to_redact".to_owned()));
    project.ok("run advance @");
    assert_eq!(project.json("events verify")["event_count"], 4);
}

#[test]
fn it_goes_from_the_rows_of_dispatches_too() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    let done = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {done} --summary 'used {SECRET}'"));
    let failed = project.ok("dispatch create @");
    project.ok(&format!("dispatch fail {failed} --error 'bad token {SECRET}'"));
    assert_eq!(redact_all(&project), [3, 5]);
    assert_gone(&project, &["dispatch list", &format!("dispatch show {done}"), "events tail"]);
    assert_eq!(project.json(&format!("dispatch show {done}"))["status"], "completed");
}

#[test]
fn it_goes_from_rollbacks_and_goals() {
    let project = Project::new();
    let run = project.ok(&format!("run create --goal 'rotate {SECRET}' --phases a,b,c"));
    project.ok("dispatch create @");
    project.ok("run advance @");
    project.ok("dispatch create @");
    project.ok(&format!("run rollback @ --to-phase a --reason '{SECRET} leaked'"));
    assert_eq!(
        redact_all(&project).len(),
        2,
        "creation and rollback: what repeats the reason of a rollback goes with it"
    );
    assert_gone(&project, &["run list", "events tail", "dispatch list"]);
    assert_eq!(project.json(&format!("run status {run}"))["goal"], "[redacted]");
}

#[test]
fn it_goes_from_the_work_that_a_cancelled_run_ended() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    let dispatch = project.ok("dispatch create @");
    project.ok(&format!("run cancel @ --reason '{SECRET} leaked'"));
    assert_eq!(redact_all(&project), [3], "what repeats the reason goes with it");
    assert_gone(&project, &["events tail", &format!("dispatch show {dispatch}")]);
}

#[test]
fn it_goes_from_the_settings_of_a_run() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    project.ok(&format!("run set @ --metadata-merge '{{\"token\": \"{SECRET}\", \"ticket\": 1}}'"));
    assert_eq!(redact_all(&project), [2]);
    assert_gone(&project, &["run status @", "events tail"]);
}

#[test]
fn it_goes_from_artifacts_and_agents() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    project.ok(&format!("run artifact add @ --path '{SECRET}.md'"));
    project.ok(&format!("run agent add @ --type codex --name {SECRET}"));
    project.ok(&format!("dispatch create @ --name {SECRET}"));
    assert_eq!(redact_all(&project), [2, 3, 4]);
    assert_gone(&project, &["run artifact list @", "run agent list @", "dispatch list", "events tail"]);
}

#[test]
fn it_goes_from_an_undo_that_a_resumed_step_armed_again() {
    let project = Project::new();
    let flow = format!("steps: [{{id: s, run: 'test -e fixed', compensate: {{shell: 'echo {SECRET}'}}}}]\n");
    project.write("flow.yaml", &flow);
    assert_eq!(project.run("workflow run flow.yaml --on-failure stop").code, Some(1));
    project.write("fixed", "");
    project.ok("workflow resume @");
    let events = project.json("events tail --since 0");
    let mut events = events.as_array().expect("events").iter();
    let registered = events.find(|event| event["kind"] == "compensation_registered").expect("it was registered");
    let list = format!("compensation list {} --json", registered["run_id"].as_str().expect("a run"));
    assert!(project.ok(&list).contains(SECRET));
    project.ok(&format!("events redact {} --reason 'a token was pasted'", registered["seq"]));
    assert!(!project.ok(&list).contains(SECRET), "the row lost what its event recorded");
}

#[test]
fn it_takes_out_no_more_than_the_event_recorded() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    project.ok("run set @ --metadata-merge '{\"ticket\": 1}'");
    let dispatch = project.ok("dispatch create @ --name form");
    project.ok(&format!("dispatch complete {dispatch} --summary 'form and tests'"));
    project.ok(&format!("dispatch tokens {dispatch} --in 1 --out 2"));
    project.ok("run set @ --metadata-merge '{\"ticket\": 2, \"owner\": \"ann\"}'");
    project.ok("events redact 5 --reason 'the tokens'");
    project.ok("events redact 2 --reason 'the first ticket'");
    let shown = project.json(&format!("dispatch show {dispatch}"));
    assert_eq!((&shown["name"], &shown["summary"]), (&json!("form"), &json!("form and tests")));
    assert_eq!(project.json("run status @")["metadata"], json!({"ticket": 2, "owner": "ann"}));
    project.ok("events redact 3 --reason 'the name'");
    let shown = project.json(&format!("dispatch show {dispatch}"));
    assert_eq!((&shown["name"], &shown["summary"]), (&Value::Null, &json!("form and tests")));
}

/// A reader keeps old pages in the log: the event is redacted, and the call says that its bytes are not gone yet.
#[test]
fn it_says_when_a_reader_keeps_the_bytes() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    project.ok(&format!("run skip @ b --reason 'token {SECRET}'"));
    let reader = project.database();
    reader.execute_batch("BEGIN").expect("begin to read");
    let read: i64 = reader.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("read");
    assert_eq!(read, 2);
    let outcome = project.run("events redact 2 --reason leaked --busy-timeout 100ms");
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"));
    assert!(outcome.stderr.contains("VACUUM"), "it says how to finish: {outcome:?}");
    assert_eq!(project.json("events tail --since 1 --limit 1")[0]["redacted"], true);
    drop(reader);
    let db = project.database();
    db.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").expect("do as it says");
    drop(db);
    assert_gone(&project, &["events tail"]);
}

/// Pages of the file split and move as it grows; no copy may stay behind in what they left.
#[test]
fn it_goes_from_a_file_that_has_grown_since() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    let padding = "x".repeat(700);
    for i in 0..60 {
        let text = if i % 7 == 3 { format!("{SECRET} {padding}") } else { padding.clone() };
        let dispatch = project.ok("dispatch create @");
        project.ok(&format!("dispatch fail {dispatch} --error '{text}'"));
    }
    let long = "y".repeat(9000);
    project.ok(&format!("run skip @ b --reason '{long}{SECRET}'"));
    assert_eq!(redact_all(&project).len(), 10);
    assert_gone(&project, &["events tail", "dispatch list"]);
}

#[test]
fn it_goes_from_everything_that_a_creation_or_a_report_recorded() {
    let project = Project::new();
    let metadata = format!("{{\"token\":\"{SECRET}\"}}");
    let run = project
        .cli
        .ok(["run", "create", "--goal", "g", "--metadata", &metadata, "--scope-id", SECRET, "--phases", "a,b"]);
    let dispatch = project.ok(&format!("dispatch create {run} --model {SECRET} --prompt-file {SECRET}"));
    project.ok(&format!("dispatch record {dispatch} --file {SECRET}"));
    project.ok(&format!("run cancel {run} --reason '{SECRET} leaked'"));
    for seq in 1..=4 {
        project.ok(&format!("events redact {seq} --reason leaked"));
    }
    assert_gone(&project, &["run list", "events tail", "dispatch list", &format!("dispatch show {dispatch}")]);
}

/// A redaction removes text: the rollback that ended a piece of work is still known.
#[test]
fn a_rollback_whose_events_were_redacted_is_undone_as_before() {
    let project = Project::new();
    let story = story(&project);
    let rollback = project.json("run rollback @ --to-phase planned --reason 'a token'");
    let id = rollback["rollback_id"].as_str().expect("an id");
    let events = project.json("run events @");
    let of_end = |event: &&Value| ["dispatch_cancelled", "agent_failed"].iter().any(|end| event["kind"] == *end);
    let ends: Vec<i64> =
        events.as_array().expect("events").iter().filter(of_end).filter_map(|e| e["seq"].as_i64()).collect();
    assert_eq!(ends.len(), 2, "{events}");
    for seq in ends {
        project.ok(&format!("events redact {seq} --reason 'a token was pasted'"));
    }
    project.ok(&format!("redo {id} --yes"));
    let builder = project.json(&format!("dispatch show {}", story.builder));
    assert!(builder["rolled_back_by"].is_null(), "{builder}");
    assert_eq!(project.json("rollback list @")[0]["status"], "undone");
    project.ok("events verify");
}

/// Work that others ended since is no part of the rollback, redacted or not.
#[test]
fn work_that_was_cancelled_since_a_rollback_stands_in_the_way_of_its_undo_though_it_is_redacted() {
    let project = Project::new();
    story(&project);
    let rollback = project.json("run rollback @ --to-phase planned");
    let id = rollback["rollback_id"].as_str().expect("an id");
    let later = project.ok("dispatch create @ --name later");
    project.ok(&format!("dispatch cancel {later} --reason 'a token'"));
    let before = project.refused(&format!("redo {id} --yes"));
    assert_eq!(before, (1, "run_changed".to_owned()));
    let events = project.json("run events @");
    let cancelled = events.as_array().expect("events").iter().rfind(|e| e["kind"] == "dispatch_cancelled");
    let seq = cancelled.expect("it was cancelled")["seq"].as_i64().expect("a seq");
    project.ok(&format!("events redact {seq} --reason x"));
    assert_eq!(project.refused(&format!("redo {id} --yes")), before);
}
