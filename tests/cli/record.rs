//! What stands on record of what a verb did: its event, from where to where, why, and what besides.

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
        .map(|event| json!([event["type"], event["from"], event["to"], event["reason"], event["payload"]]))
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
        let ended: Vec<&Value> = events.iter().filter(|e| e["type"] == "dispatch_cancelled").collect();
        assert_eq!(ended.len(), 1, "{events:?}");
        assert_eq!((&ended[0]["subject_id"], &ended[0]["reason"]), (&json!(dispatch), &reason));
    }
}

#[test]
fn a_run_that_has_ended_names_what_can_be_done() {
    let project = Project::new();
    for (end, way) in
        [("c", "to redo a part of it: ic run rollback"), ("a", "begin a new one: ic run create")]
    {
        let run = chain(&project, "a,b,c", end);
        if end == "a" {
            project.ok("run cancel @");
        }
        let refused = project.run(&format!("run skip {run} b --reason r"));
        assert!(refused.error() == "run_not_active" && refused.stderr.contains(way), "{refused:?}");
    }
}
