//! What `ic` reports about a workflow whose run is held between two phases.

use serde_json::json;

use super::{call, project, run, states};

const HOLDS_ITSELF: &str = "name: waits
steps:
  - {id: a, phase: first, run: 'ic run set @ --auto-advance false', compensate: skip}
  - {id: b, phase: second, run: 'echo b > b.txt', compensate: skip}
";

/// A resume would only say the same again: the command that removes what holds the run comes first, and then the resume.
#[test]
fn the_next_command_of_a_paused_workflow_gets_it_further() {
    let project = project(&HOLDS_ITSELF.replace("'ic ", &format!("'{} ", env!("CARGO_BIN_EXE_ic"))));
    let report = run(&project, "", 1);
    assert_eq!((&report["status"], states(&report)), (&json!("stopped"), vec!["succeeded", "pending"]));
    let id = report["run_id"].as_str().expect("a run").to_owned();
    let opens = format!("ic run set {} --auto-advance true", &id[28..]);
    for told in [&report, &call(&project, "workflow resume @", 1), &call(&project, "workflow show @", 0)] {
        let waits = &told["waits_for"];
        assert_eq!((&waits["code"], &waits["command"]), (&json!("paused"), &json!(opens)), "{told}");
        assert_eq!(waits["message"], "the run does not get from first to second: auto-advance is off");
    }
    let text = project.run("workflow resume @ --format text");
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains(&format!("first: {opens}\nto resume: ic workflow resume")), "{text:?}");
    let status = project.json("status");
    assert_eq!((&status["next"], &status["unfinished"][0]["command"]), (&json!(opens), &json!(opens)));
    // Typing what it says leads to the end.
    for _ in 0..2 {
        let next = project.json("status")["next"].as_str().expect("a command").to_owned();
        project.ok(next.strip_prefix("ic ").expect("a command of ic"));
    }
    let report = call(&project, &format!("workflow show {id}"), 0);
    assert_eq!((&report["status"], report.get("waits_for")), (&json!("completed"), None));
}
