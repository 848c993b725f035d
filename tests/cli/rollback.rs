//! What a rollback undoes, what it leaves, and what happens to both afterwards.

use serde_json::{Value, json};

use crate::support::{Project, chain, story};

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item["id"].as_str().expect("an id")).collect()
}

#[test]
fn it_takes_back_what_came_after_the_cut() {
    let project = Project::new();
    let story = story(&project);
    let rollback = project.json("run rollback @ --to-phase planned --reason 'wrong plan'");
    assert_eq!(rollback["rolled_back_phases"], json!(["executing"]));
    assert_eq!(ids(&rollback["cancelled_dispatches"]), [story.builder.as_str()]);
    assert_eq!(rollback["cancelled_dispatches"][0]["status"], "running", "the status before");
    assert_eq!(ids(&rollback["failed_agents"]), [story.agent.as_str()]);
    assert_eq!(rollback["marked_artifacts"][0]["path"], "src/login.rs");
    assert_eq!(rollback["cleared_skips"], json!(["polish"]));
    assert_eq!(rollback["marked_dispatches"], json!([]), "the planner was there at the cut");
    assert_eq!(rollback["counts"], json!({"phases": 1, "dispatches": 1, "artifacts": 1, "agents": 1, "skips": 1}));
    assert_eq!((&rollback["status"], &rollback["epoch"]), (&json!("rolled_back"), &json!(1)));

    let status = project.json("run status @");
    assert_eq!(
        (&status["phase"], &status["status"], &status["epoch"]),
        (&json!("planned"), &json!("active"), &json!(1))
    );
    let builder = project.json(&format!("dispatch show {}", story.builder));
    assert_eq!((&builder["status"], builder["rolled_back_by"].is_string()), (&json!("cancelled"), true));
    assert_eq!(builder["rolled_back_by"], rollback["rollback_id"]);
    let planner = project.json(&format!("dispatch show {}", story.planner));
    assert_eq!((&planner["status"], planner["rolled_back_by"].is_string()), (&json!("completed"), false));
    assert_eq!(project.json("run agent list @")[0]["status"], "failed");
    let stands = project.json("run artifact list @ --status active");
    assert_eq!(stands.as_array().map(Vec::len), Some(4));
    assert_eq!(
        project.json("run artifact list @ --status rolled_back")[0]["id"],
        rollback["marked_artifacts"][0]["id"]
    );
}

#[test]
fn it_takes_back_by_label_too() {
    let project = Project::new();
    chain(&project, "a,b,c,d", "a");
    let early = project.ok("dispatch create @ --phase c --name early");
    project.ok("run artifact add @ --path early.md --phase b");
    project.ok("run advance @");
    project.ok("run advance @");
    let late = project.ok("dispatch create @ --phase a --name late");
    project.ok(&format!("dispatch complete {late} --verdict pass"));
    let rollback = project.json("run rollback @ --to-phase a");
    assert_eq!(ids(&rollback["cancelled_dispatches"]), [early.as_str()], "labelled with a phase that is left");
    assert_eq!(ids(&rollback["marked_dispatches"]), [late.as_str()], "recorded after the cut");
    assert_eq!(rollback["marked_dispatches"][0]["status"], "completed");
    assert_eq!(rollback["marked_artifacts"][0]["path"], "early.md");
    assert_eq!(project.json(&format!("dispatch show {late}"))["status"], "completed", "it keeps its status");
    assert!(project.json(&format!("dispatch show {late}"))["rolled_back_by"].is_string());
}

#[test]
fn gates_do_not_see_what_was_rolled_back() {
    let project = Project::new();
    story(&project);
    project.ok("run rollback @ --to-phase strategized");
    assert_eq!(project.ok("run phase @"), "strategized");
    project.ok("run advance @");
    let blocked = project.run("run advance @");
    assert_eq!(blocked.code, Some(1), "the artifact of planned is marked");
    assert_eq!(blocked.json()["evidence"]["conditions"][0]["count"], 0);
    project.ok("run artifact add @ --path docs/plan.md");
    project.ok("run advance @");
    project.ok("run advance @");
    assert_eq!(project.ok("run phase @"), "review", "the failed agent holds nothing back");
    let words = "run skip @ polish --reason again";
    assert_eq!(project.json(words)["changed"], true, "the skip was cleared");
}

#[test]
fn other_runs_are_not_touched() {
    let project = Project::new();
    let other = chain(&project, "planned,executing,done", "executing");
    let dispatch = project.ok(&format!("dispatch create {other}"));
    project.ok(&format!("run agent add {other} --type codex"));
    let run = project.ok("run create --goal g --phases planned,executing,done");
    project.ok(&format!("run advance {run}"));
    let before = project.json(&format!("run status {other}"));
    project.ok(&format!("run rollback {run} --to-phase planned"));
    assert_eq!(project.json(&format!("run status {other}")), before);
    assert_eq!(project.json(&format!("dispatch show {dispatch}"))["status"], "pending");
    assert_eq!(project.json(&format!("run agent list {other}"))[0]["status"], "active");
}

#[test]
fn a_completed_run_becomes_active_again() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "c");
    let done = project.json(&format!("run status {run}"));
    assert_eq!((&done["status"], done["finished_at"].is_string()), (&json!("completed"), true));
    assert_eq!(project.refused(&format!("run advance {run}")), (1, "terminal_phase".to_owned()));
    let rollback = project.json(&format!("run rollback {run} --to-phase a"));
    assert_eq!(rollback["rolled_back_phases"], json!(["b", "c"]));
    let back = project.json(&format!("run status {run}"));
    assert_eq!((&back["status"], &back["finished_at"], &back["phase"]), (&json!("active"), &Value::Null, &json!("a")));
    project.ok(&format!("run advance {run}"));
    project.ok(&format!("run advance {run}"));
    assert_eq!(project.json(&format!("run status {run}"))["status"], "completed");
}

#[test]
fn with_the_target_its_own_work_is_taken_back_too() {
    let project = Project::new();
    let story = story(&project);
    let rollback = project.json("run rollback @ --to-phase planned --include-target");
    assert_eq!(rollback["rolled_back_phases"], json!(["planned", "executing"]));
    assert_eq!(ids(&rollback["marked_dispatches"]), [story.planner.as_str()]);
    assert_eq!(ids(&rollback["cancelled_dispatches"]), [story.builder.as_str()]);
    assert_eq!(rollback["counts"]["artifacts"], 2);
    assert_eq!(project.ok("run phase @"), "planned");
    let events = project.json("run events @");
    let moved_there =
        events.as_array().expect("events").iter().find(|e| e["to"] == "planned" && e["kind"] == "advance");
    assert_eq!(rollback["cut_seq"], moved_there.expect("the advance")["seq"]);
}

#[test]
fn the_current_phase_can_be_redone() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    project.ok("run artifact add @ --path b.md");
    assert_eq!(project.refused("run rollback @ --to-phase b"), (1, "already_at_phase".to_owned()));
    let rollback = project.json("run rollback @ --to-phase b --include-target");
    assert_eq!((&rollback["rolled_back_phases"], &rollback["counts"]["artifacts"]), (&json!(["b"]), &json!(1)));
    let status = project.json("run status @");
    assert_eq!((&status["phase"], &status["epoch"]), (&json!("b"), &json!(1)));
}

#[test]
fn the_first_phase_with_its_work_goes_back_to_the_creation() {
    let project = Project::new();
    let other = chain(&project, "a,b", "a");
    let run = project.ok("run create --goal g --phases a,b,c");
    project.ok(&format!("run artifact add {run} --path a.md"));
    for at in ["a", "b"] {
        let rollback = project.json(&format!("run rollback {run} --to-phase a --include-target"));
        let created = project.json(&format!("run events {run}"))[0]["seq"].clone();
        assert_eq!(rollback["cut_seq"], created, "from {at}");
        assert_eq!(rollback["counts"]["artifacts"], 1, "from {at}");
        project.ok(&format!("run artifact add {run} --path again.md"));
        project.ok(&format!("run advance {run}"));
    }
    assert_eq!(project.json(&format!("run status {other}"))["epoch"], 0);
}

#[test]
fn what_was_rolled_back_once_is_not_counted_again() {
    let project = Project::new();
    story(&project);
    let first = project.json("run rollback @ --to-phase planned");
    project.ok("run advance @");
    let second = project.json("run rollback @ --to-phase planned");
    assert_eq!(second["counts"], json!({"phases": 1, "dispatches": 0, "artifacts": 0, "agents": 0, "skips": 0}));
    assert!(second["cut_seq"].as_i64() > first["seq"].as_i64(), "the last crossing counts, never the rollback");
    assert_eq!(second["epoch"], 2);
    let artifact = &project.json("run artifact list @ --status rolled_back")[0];
    assert_eq!(artifact["rolled_back_by"], first["rollback_id"], "a mark stays who made it");
}

#[test]
fn settings_are_not_rolled_back() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    project.ok("run set @ --complexity 5 --auto-advance false --metadata-merge '{\"k\": 1}'");
    project.ok("run rollback @ --to-phase a");
    let status = project.json("run status @");
    assert_eq!(
        (&status["complexity"], &status["auto_advance"], &status["metadata"]),
        (&json!(5), &json!(false), &json!({"k": 1}))
    );
}

#[test]
fn the_history_says_what_was_taken_back() {
    let project = Project::new();
    chain(&project, "a,b,c,d", "c");
    project.ok("run rollback @ --to-phase a --reason 'wrong way'");
    project.ok("run advance @");
    project.ok("gate override @ --reason 'by hand'");
    project.ok("run rollback @ --to-phase b");
    let events = project.json("run events @");
    let seen: Vec<(&str, &str, bool)> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|e| {
            let text = |key: &str| e[key].as_str().expect("text");
            (text("kind"), text("to"), e["rolled_back_by"].is_string())
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("run_created", "a", false),
            ("advance", "b", true),
            ("advance", "c", true),
            ("rollback", "a", false),
            ("advance", "b", false),
            ("override", "c", true),
            ("rollback", "b", false),
        ]
    );
    assert!(events[1].get("rolled_back_by").is_some() && events[4].get("rolled_back_by").is_none());
}

#[test]
fn the_history_keeps_the_move_into_a_phase_that_is_redone() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    project.ok("run rollback @ --to-phase b --include-target");
    let text = project.ok("run events @ --format text");
    assert!(!text.contains("(rolled back)"), "{text}");
}

/// What was done in the target goes too, so what is done there afterwards is another attempt; undone, the first one counts again.
#[test]
fn a_phase_that_is_redone_is_another_attempt_in_the_history() {
    let project = Project::new();
    chain(&project, "a,b,c,d", "b");
    project.ok("dispatch create @ --name first");
    project.ok("run rollback @ --to-phase b --include-target");
    let stays = |project: &Project| -> Vec<(String, u64, bool, u64)> {
        let story = project.json("run history @");
        let stay = |stay: &serde_json::Value| {
            let number = |key: &str| stay[key].as_u64().expect("a number");
            let text = stay["phase"].as_str().expect("a phase").to_owned();
            let work = stay["counts"]["dispatches"].as_u64().expect("a number");
            (text, number("attempt"), stay["rolled_back_by"].is_string(), work)
        };
        story["stays"].as_array().expect("stays").iter().map(stay).collect()
    };
    let of = |phase: &str, attempt, gone, work| (phase.to_owned(), attempt, gone, work);
    assert_eq!(stays(&project), [of("a", 1, false, 0), of("b", 1, true, 1), of("b", 2, false, 0)]);
    project.ok("redo --yes");
    assert_eq!(stays(&project), [of("a", 1, false, 0), of("b", 1, false, 1), of("b", 2, true, 0)]);
    assert_eq!(project.json("run history @")["current_stay"], 1);
    project.ok("run rollback @ --to-phase b --include-target");
    project.ok("dispatch create @ --name second");
    project.ok("run advance @");
    let text = project.ok("run history @ --format text");
    let turned = text.find("rolled back b → b").expect("the turn");
    assert!(turned < text.rfind("attempt 3").expect("the third attempt"), "{text}");
    assert_eq!(stays(&project)[3..], [of("b", 3, false, 1), of("c", 1, false, 0)]);
}
