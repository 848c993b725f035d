//! `ic session attach`: the prompts of a session belong to a run that a person works in.

use serde_json::json;

use crate::agents::{Said, say};
use crate::support::Project;

fn prompt(project: &Project, id: &str) {
    say(project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt(id, id));
}

fn stop(project: &Project) {
    say(project, &Said::new("claude-code", "s-1", "Stop"));
}

fn runs_of_prompts(project: &Project) -> Vec<String> {
    let prompts = project.json("session show s-1")["prompts"].clone();
    let run = |one: &serde_json::Value| one["run_id"].as_str().expect("a run").to_owned();
    prompts.as_array().expect("prompts").iter().map(run).collect()
}

#[test]
fn later_prompts_belong_to_the_run() {
    let project = Project::new();
    prompt(&project, "p-1");
    stop(&project);
    let own = project.json("session list")[0]["run_id"].as_str().expect("a run").to_owned();
    let sprint = project.ok("run create --goal sprint --phases a,b");
    let attached =
        project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", &format!("session attach {sprint} --json"));
    assert_eq!((&attached.json()["run_id"], &attached.json()["owns_run"]), (&json!(sprint), &json!(false)));
    assert_eq!(project.json(&format!("run status {own}"))["status"], "completed", "its own run is done");
    prompt(&project, "p-2");
    assert_eq!(runs_of_prompts(&project), [own, sprint.clone()]);
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
    assert_eq!(
        project.json(&format!("run status {sprint}"))["status"],
        "active",
        "it is not the session's to end"
    );
}

#[test]
fn a_prompt_that_is_worked_on_stays_where_it_began() {
    let project = Project::new();
    prompt(&project, "p-1");
    let own = project.json("session list")[0]["run_id"].as_str().expect("a run").to_owned();
    let sprint = project.ok("run create --goal sprint --phases a,b");
    project.ok(&format!("session attach {sprint} --session s-1"));
    stop(&project);
    assert_eq!(project.json(&format!("dispatch list {own}"))[0]["status"], "completed");
    prompt(&project, "p-2");
    assert_eq!(runs_of_prompts(&project), [own, sprint]);
}

#[test]
fn a_run_that_is_over_takes_no_session() {
    let project = Project::new();
    prompt(&project, "p-1");
    stop(&project);
    let before = project.json("session list");
    let sprint = project.ok("run create --goal sprint --phases a,b");
    project.ok(&format!("run cancel {sprint}"));
    let refused = project.run(&format!("session attach {sprint} --session s-1"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(project.json("session list"), before);
}
