//! Workflows that really run: what their steps see, what follows a failure, and what survives a crash.

mod crash;
mod failure;
mod pivots;
mod restored;
mod steps;
mod terminal;
mod waiting;

use std::process::Command;

use serde_json::Value;

use crate::support::Project;

/// A project with checkpoints along the way, and a workflow in `flow.yaml`.
fn project(flow: &str) -> Project {
    let project = Project::new();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project.write("flow.yaml", flow);
    project
}

/// As [`project`], in a git repository with one commit.
fn repository(flow: &str) -> Project {
    let project = Project::without_ledger();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project.write("flow.yaml", flow);
    project.write("app.toml", "port = 80\n");
    project.write(".git-settings", "[user]\nname = Ann\nemail = ann@example.org\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["config", "include.path", "../.git-settings"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "one"]);
    project.ok("init");
    project
}

/// Runs git in the project; returns what it says.
fn git(project: &Project, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(project.root())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes a call, which ends with this code, and returns its record.
fn call(project: &Project, line: &str, exit: i32) -> Value {
    let outcome = project.run(&format!("{line} --json"));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(exit), ""), "{line}: {outcome:?}");
    outcome.json()
}

/// Runs `flow.yaml`.
fn run(project: &Project, more: &str, exit: i32) -> Value {
    call(project, &format!("workflow run flow.yaml {more}"), exit)
}

/// What the record says about a step.
fn step<'r>(report: &'r Value, id: &str) -> &'r Value {
    let steps = report["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["id"] == id).unwrap_or_else(|| panic!("no step {id}: {report:#}"))
}

/// The states of the steps, in the order of the file.
fn states(report: &Value) -> Vec<&str> {
    let steps = report["steps"].as_array().expect("steps");
    steps.iter().map(|step| step["status"].as_str().expect("a state")).collect()
}

/// The steps whose effects were undone, in the order of undoing.
fn undone(report: &Value) -> Vec<&str> {
    let all = report["rollback"]["compensations"].as_array().expect("compensations");
    let done = all.iter().filter(|one| one["status"] == "done");
    done.map(|one| one["step"].as_str().expect("a step")).collect()
}

/// The lines of a file beside the project, where no restore reaches it.
fn lines(project: &Project, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project.cli.home().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Makes a file beside the project.
fn touch(project: &Project, file: &str) {
    std::fs::write(project.cli.home().join(file), "").expect("a file");
}

/// What a file of the project holds; `None` if it is not there.
fn content(project: &Project, file: &str) -> Option<String> {
    std::fs::read_to_string(project.root().join(file)).ok()
}

fn status(project: &Project) -> (String, String) {
    let run = &project.json("run list")[0];
    let text = |key: &str| run[key].as_str().expect("a text").to_owned();
    (text("status"), text("phase"))
}
