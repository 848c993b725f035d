//! `ic session attach`: the prompts of a session belong to a run that a person works in.

use serde_json::json;

use crate::agents::{Said, say, say_with};
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
    let attached = project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", &format!("session attach {sprint} --json"));
    assert_eq!((&attached.json()["run_id"], &attached.json()["owns_run"]), (&json!(sprint), &json!(false)));
    assert_eq!(project.json(&format!("run status {own}"))["status"], "completed", "its own run is done");
    prompt(&project, "p-2");
    assert_eq!(runs_of_prompts(&project), [own, sprint.clone()]);
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
    assert_eq!(project.json(&format!("run status {sprint}"))["status"], "active", "it is not the session's to end");
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

#[test]
fn a_session_that_is_attached_while_it_works_leaves_no_run_open() {
    for ends in [&["Stop"][..], &["Stop", "SessionEnd"], &["SessionEnd"]] {
        let project = Project::new();
        prompt(&project, "p-1");
        let own = project.json("session list")[0]["run_id"].as_str().expect("a run").to_owned();
        let sprint = project.ok("run create --goal sprint --phases a,b");
        project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", &format!("session attach {sprint}"));
        assert_eq!(project.json(&format!("run status {own}"))["status"], "active", "it is worked in");
        for event in ends {
            say(&project, &Said::new("claude-code", "s-1", event));
        }
        assert_eq!(project.json(&format!("run status {own}"))["status"], "completed", "{ends:?}");
        assert_eq!(project.json(&format!("run status {sprint}"))["status"], "active");
    }
}

#[test]
fn a_variable_that_names_no_run_of_here_costs_no_prompt_and_is_told() {
    let elsewhere = Project::new();
    let foreign = elsewhere.ok("run create --goal other --phases a,b");
    for unusable in ["019c7bfa-3c78-7000-8000-00003c6ef362", "no run at all", &foreign] {
        let project = Project::new();
        let with = [("IC_RUN", unusable)];
        let told = |event: &str| {
            let said = Said::new("claude-code", "s-1", event).prompt("p-1", "Add it");
            let answer = say_with(&project, &said, &with);
            answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
        };
        for event in ["SessionStart", "UserPromptSubmit"] {
            let text = told(event);
            assert!(text.contains("IC_RUN") && text.contains("a run of the session's own"), "{event}: {text}");
        }
        let session = project.json("session show s-1");
        assert_eq!((&session["owns_run"], &session["prompts"][0]["name"]), (&json!(true), &json!("Add it")));
        let failures = project.json("hooks doctor claude-code")[0]["failures"].clone();
        assert!(failures[0]["message"].as_str().expect("why").contains("IC_RUN"), "{failures}");
        let text = told("SessionStart");
        assert!(text.contains("IC_RUN"), "{text}");
    }
}
