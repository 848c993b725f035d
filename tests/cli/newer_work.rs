//! Newer work that is not the open run's: a workflow that has ended, a checkpoint without a run.

use crate::support::Project;

const FLOW: &str = "name: w
steps:
  - {id: a, phase: p, run: 'echo a > a.txt'}
  - {id: b, phase: q, run: 'echo b > b.txt'}
";

/// A project that captures along the way, with an open run in which nothing was done.
fn with_an_open_run() -> (Project, String) {
    let project = Project::new();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project.write("flow.yaml", FLOW);
    let run = project.ok("run create --goal open --phases x,y");
    (project, run)
}

#[test]
fn a_workflow_that_has_just_ended_is_undone_beside_an_open_run() {
    let (project, open) = with_an_open_run();
    let report = project.json("workflow run flow.yaml");
    let ended = report["run_id"].as_str().expect("a run").to_owned();
    assert_ne!(ended, open);
    let log = project.json("log");
    assert!(log.as_array().expect("a list").iter().any(|one| one["reference"] == "step:b"), "{log}");
    let plan = project.json("undo --dry-run");
    assert_eq!((plan["run_id"].as_str(), plan["point"].as_str()), (Some(ended.as_str()), Some("step:b")), "{plan}");
    let said = project.run("undo --yes --format text");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("which has ended"), "{said:?}");
    let is_there = |name: &str| project.root().join(name).exists();
    assert_eq!((is_there("a.txt"), is_there("b.txt")), (true, false));
    assert_eq!(project.json(&format!("run status {open}"))["phase"], "x", "the open run is as it was");
}

#[test]
fn the_work_of_the_open_run_comes_first_and_the_newer_one_is_named() {
    let (project, open) = with_an_open_run();
    let work = project.ok(&format!("dispatch create {open} --name mine"));
    project.ok(&format!("dispatch start {work}"));
    project.write("mine.txt", "mine\n");
    project.ok(&format!("dispatch complete {work}"));
    project.ok("workflow run flow.yaml");
    let said = project.run("undo --dry-run --format text");
    assert!(said.stderr.contains("newer work of the run"), "{said:?}");
    assert!(said.stderr.contains("ic undo step:b --run"), "{said:?}");
}

#[test]
fn a_checkpoint_without_a_run_is_named_where_it_is_newer() {
    let (project, open) = with_an_open_run();
    project.write("draft.txt", "one\n");
    let checkpoint = project.ok("checkpoint create --name before");
    project.write("draft.txt", "two\n");
    let command = format!("ic undo checkpoint:{} --dry-run", &checkpoint[28..]);
    let log = project.ok("log --format text");
    assert!(log.starts_with(&checkpoint[28..]) && log.contains("before"), "{log}");
    let refused = project.run("undo --yes");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "nothing_to_undo"));
    assert!(refused.stderr.contains(&command), "{refused:?}");
    project.ok(&format!("undo checkpoint:{} --yes", &checkpoint[28..]));
    assert_eq!(std::fs::read_to_string(project.root().join("draft.txt")).expect("it"), "one\n");
    // The log of a run that is named is that run's.
    assert!(!project.ok(&format!("log {open} --format text")).contains("before  "), "{log}");
}

/// Runs name their project by its path: each call that finds none here says where the newest one is from.
#[test]
fn the_runs_of_a_project_that_was_moved_are_named() {
    let project = Project::new();
    std::fs::create_dir(project.root().join("old")).expect("a directory");
    project.ok("run create --goal g --phases a,b --project old");
    std::fs::rename(project.root().join("old"), project.root().join("new")).expect("move it");
    for call in ["run current", "run status @", "run advance @", "workflow rollback --dry-run", "status", "log"] {
        let outcome = project.run(call);
        assert!(matches!(outcome.code, Some(1 | 3)), "{call}: {outcome:?}");
        let command = format!("ic run list --project {}", project.root().join("old").display());
        assert!(outcome.stderr.contains(&command), "{call}: {outcome:?}");
    }
}
