//! The event of a verb: its type, the states before and after it, its reason and its payload.

use serde_json::{Value, json};

use crate::support::{Project, chain};

#[test]
fn what_is_set_skipped_and_called_off_is_on_record() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    project.ok("run set @ --complexity 3 --metadata-merge {\"k\":1}");
    project.ok("run skip @ b --reason unneeded");
    project.ok("run cancel @ --reason late");
    let events = project.json("events tail --since 1");
    let told: Vec<Value> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|event| json!([event["kind"], event["from"], event["to"], event["reason"], event["payload"]]))
        .collect();
    let set = json!({ "complexity": 3, "auto_advance": null, "metadata_merge": { "k": 1 } });
    let expected = [
        json!(["run_set", null, null, null, set]),
        json!(["skip", null, "b", "unneeded", null]),
        json!(["run_cancelled", "active", "cancelled", "late", null]),
    ];
    assert_eq!(told, expected);
}

#[test]
fn work_that_a_cancelled_run_ended_says_why() {
    let project = Project::new();
    for (words, reason) in [("--reason 'out of budget'", json!("out of budget")), ("", Value::Null)] {
        let run = chain(&project, "a,b", "a");
        let dispatch = project.ok("dispatch create @");
        project.ok(&format!("run cancel @ {words}"));
        let events = project.json(&format!("run events {run}"));
        let events = events.as_array().expect("events");
        let ended: Vec<&Value> = events.iter().filter(|e| e["kind"] == "dispatch_cancelled").collect();
        assert_eq!(ended.len(), 1, "{events:?}");
        assert_eq!((&ended[0]["subject_id"], &ended[0]["reason"]), (&json!(dispatch), &reason));
    }
}

#[test]
fn a_run_that_has_ended_names_what_can_be_done() {
    let project = Project::new();
    for (end, way) in [("c", "to redo a part of it: ic run rollback"), ("a", "to make it active again: ic run reopen")]
    {
        let run = chain(&project, "a,b,c", end);
        if end == "a" {
            project.ok("run cancel @");
        }
        let refused = project.run(&format!("run skip {run} b --reason r"));
        assert!(refused.error() == "run_not_active" && refused.stderr.contains(way), "{refused:?}");
    }
}

#[test]
fn a_cancelled_run_is_reopened_and_what_the_cancel_ended_stays_ended() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    let first = project.ok("dispatch create @");
    project.ok(&format!("dispatch cancel {first} --reason early"));
    let (dispatch, agent) = (project.ok("dispatch create @"), project.ok("run agent add @ --type codex"));
    let early = project.run(&format!("run reopen {run} --reason r"));
    assert_eq!((early.code, early.error()), (Some(1), "run_not_active".to_owned()), "an active run is not reopened");
    project.ok("run cancel @");
    let reopened = project.json(&format!("run reopen {run} --reason 'the wrong one'"));
    assert_eq!((&reopened["status"], &reopened["phase"]), (&json!("active"), &json!("b")));
    let named = |list: &str| reopened[list].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
    let (dispatches, agents): (Vec<Value>, Vec<Value>) = (named("cancelled_dispatches"), named("failed_agents"));
    assert_eq!((dispatches, agents), (vec![json!(dispatch)], vec![json!(agent)]), "and not what ended before");
    assert_eq!(project.json(&format!("dispatch show {dispatch}"))["status"], "cancelled");
    let events = project.json(&format!("run events {run}"));
    let last = events.as_array().and_then(|events| events.last()).expect("an event");
    let told = json!([last["kind"], last["from"], last["to"], last["reason"]]);
    assert_eq!(told, json!(["run_reopened", "cancelled", "active", "the wrong one"]));
    let rolled_back = project.json("run rollback @ --to-phase a");
    assert_eq!(rolled_back["to_phase"], "a", "{rolled_back}");
    assert_eq!(project.json("run status @")["phase"], "a");
    assert_eq!(project.json("events verify")["ok"], true);
}

#[test]
fn a_file_that_is_named_from_below_the_root_is_recorded_from_the_root() {
    let project = Project::new();
    chain(&project, "a,b", "a");
    let dispatch = project.ok("dispatch create @");
    let below = project.cli.root().join("src/deep");
    std::fs::create_dir_all(&below).expect("a directory");
    let below = below.to_str().expect("its path");
    let call = ["-C", below, "dispatch", "record", &dispatch, "--file", "a.rs", "--file", "../b.rs"];
    project.cli.ok(call);
    project.cli.ok(["dispatch", "record", &dispatch, "--file", "c.rs"]);
    for path in ["c.rs", "src/b.rs", "src/deep/a.rs"] {
        let named = project.cli.bytes(path.as_bytes());
        let count = project.cli.sql(&format!("SELECT count(*) FROM dispatch_files WHERE path = {named}"));
        assert_eq!(count, "1", "{path}");
    }
    assert_eq!(project.cli.sql("SELECT count(*) FROM dispatch_files"), "3");
}
