//! The layers of a rollback: their names, and the report of the code layer.

use serde_json::{Value, json};

use crate::support::{Project, chain, story};

#[test]
fn a_layer_is_one_of_the_known_ones() {
    let project = Project::new();
    story(&project);
    for layer in ["db", "Workflow", "workflow;code", "''", "workflow,", "codes"] {
        for flags in ["", "--dry-run"] {
            let (exit, code) = project.refused(&format!("run rollback @ --to-phase planned --layer={layer} {flags}"));
            assert_eq!((exit, code.as_str()), (3, "invalid_value"), "{layer}");
        }
    }
}

#[test]
fn outside_layers_go_with_the_workflow_and_ask() {
    let project = Project::new();
    story(&project);
    let refused = |flags: &str| project.refused(&format!("run rollback @ --to-phase planned {flags}"));
    for layer in ["effects", "files", "git", "data", "effects,data"] {
        assert_eq!(refused(&format!("--layer={layer} --yes")), (3, "usage".to_owned()), "{layer}");
    }
    assert_eq!(refused("--layer=workflow,effects"), (3, "confirmation_required".to_owned()));
    // Nothing was captured in this story, and the nearest checkpoint is never taken for the right one.
    for flags in ["--layer=all --yes", "--layer=all", "--layer=workflow,files", "--layer=workflow,git --dry-run"] {
        assert_eq!(refused(flags), (1, "no_checkpoint".to_owned()), "{flags}");
    }
    assert_eq!(refused("--layer=workflow,data --dry-run"), (3, "invalid_config".to_owned()));
    assert_eq!(project.refused("run rollback @ --layer=code,git"), (3, "usage".to_owned()));
}

#[test]
fn the_code_layer_is_a_question_of_its_own() {
    let project = Project::new();
    story(&project);
    for flags in [
        "--layer=workflow,code --to-phase planned",
        "--layer=code --layer=workflow --to-phase planned",
        "--layer=code --dry-run",
        "--layer=code --reason why",
        "--layer=code --to-phase planned --expect-plan 0",
        "--layer=workflow --phase planned",
    ] {
        assert_eq!(project.refused(&format!("run rollback @ {flags}")), (3, "usage".to_owned()), "{flags}");
    }
}

#[test]
fn the_workflow_layer_is_the_default() {
    let project = Project::new();
    story(&project);
    let plain = project.json("run rollback @ --to-phase planned --dry-run");
    let named = project.json("run rollback @ --to-phase planned --dry-run --layer workflow --yes");
    assert_eq!(plain, named);
    assert_eq!(plain["layers"], json!(["workflow"]));
}

fn commits(report: &Value) -> Vec<&str> {
    report["revert_order"].as_array().expect("commits").iter().map(|c| c.as_str().expect("a commit")).collect()
}

#[test]
fn the_code_layer_answers_for_a_run_a_phase_or_a_cut() {
    let project = Project::new();
    let story = story(&project);
    project.ok(&format!("dispatch record {} --commit ccccccc3 --commit ddddddd4", story.builder));
    let before = project.dump();
    let report = |flags: &str| project.json(&format!("run rollback @ --layer=code {flags}"));

    let whole = report("");
    assert_eq!(commits(&whole), ["ddddddd4", "ccccccc3", "bbbbbbb2", "aaaaaaa1"]);
    assert_eq!(whole["phases"].as_array().map(Vec::len), Some(9));
    assert_eq!(whole["entries"][0]["dispatch_id"], story.builder.as_str(), "newest first");
    assert_eq!(whole["entries"][0]["commit_shas"], json!(["bbbbbbb2", "ccccccc3", "ddddddd4"]), "oldest first");
    assert_eq!(whole["entries"][0]["file_paths"], json!(["src/login.rs"]));
    assert_eq!(whole["artifacts"].as_array().map(Vec::len), Some(5));

    let phase = report("--phase planned");
    assert_eq!((commits(&phase), &phase["phases"]), (vec!["aaaaaaa1"], &json!(["planned"])));
    assert_eq!(phase["artifacts"][0]["path"], "docs/plan.md");
    assert_eq!(commits(&report("--phase review")), Vec::<&str>::new());

    let after = report("--to-phase planned");
    assert_eq!(commits(&after), ["ddddddd4", "ccccccc3", "bbbbbbb2"]);
    assert_eq!(commits(&report("--to-phase strategized")).len(), 4);
    assert_eq!(commits(&report("--to-phase executing")), Vec::<&str>::new(), "never left, nothing came after");
    assert_eq!(commits(&report("--to-phase executing --include-target")).len(), 3);
    assert_eq!(project.dump(), before, "it only reads");
    assert_eq!(project.refused("run rollback @ --layer=code --phase z"), (3, "unknown_phase".to_owned()));
    assert_eq!(project.refused("run rollback @ --layer=code --to-phase z"), (3, "unknown_phase".to_owned()));
}

#[test]
fn the_code_layer_answers_after_the_rollback_too() {
    let project = Project::new();
    let story = story(&project);
    project.ok("run rollback @ --to-phase planned");
    project.ok(&format!("dispatch record {} --commit eeeeeee5", story.builder));
    let report = project.json("run rollback @ --layer=code --to-phase planned");
    assert_eq!(commits(&report), ["eeeeeee5", "bbbbbbb2"]);
    let entry = &report["entries"][0];
    assert_eq!(
        (&entry["late"], entry["rolled_back_by"].is_string(), &entry["status"]),
        (&json!(true), true, &json!("cancelled"))
    );
    assert_eq!(report["artifacts"][0]["status"], "rolled_back");
}

#[test]
fn for_people_it_is_one_commit_a_line() {
    let project = Project::new();
    story(&project);
    let text = project.ok("run rollback @ --layer=code --format text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[2..4].to_vec(), lines.len()), (vec!["", "Files"], 5), "{text}");
    assert!(lines[0].starts_with("bbbbbbb2  executing") && lines[0].contains("form"), "{text}");
    assert!(lines[1].starts_with("aaaaaaa1  planned"), "{text}");
    chain(&project, "a,b", "b");
    let empty = project.json("run list --limit 1")[0]["id"].as_str().expect("an id").to_owned();
    let text = project.ok(&format!("run rollback {empty} --layer=code --format text"));
    assert_eq!(text, "No commits.");
}

#[test]
fn cancelled_runs_can_be_asked_about_their_code() {
    let project = Project::new();
    let story = story(&project);
    project.ok("run cancel @");
    let report = project.json(&format!("run rollback {} --layer=code", story.run));
    assert_eq!(commits(&report), ["bbbbbbb2", "aaaaaaa1"]);
}

#[test]
fn a_later_report_closes_the_gap_of_an_earlier_one() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    let dispatch = project.ok("dispatch create @");
    project.ok(&format!("dispatch record {dispatch} --commit bbbbbbb"));
    project.ok(&format!("dispatch record {dispatch} --commit aaaaaaa --commit bbbbbbb --commit ccccccc"));
    let report = project.json("run rollback @ --layer=code");
    assert_eq!(report["entries"][0]["commit_shas"], json!(["aaaaaaa", "bbbbbbb", "ccccccc"]));
    assert_eq!(report["revert_order"], json!(["ccccccc", "bbbbbbb", "aaaaaaa"]));
    let shown = project.json(&format!("dispatch show {dispatch}"));
    let shas: Vec<_> = shown["commits"].as_array().unwrap().iter().map(|c| c["sha"].clone()).collect();
    assert_eq!(shas, [json!("aaaaaaa"), json!("bbbbbbb"), json!("ccccccc")]);
}

#[test]
fn flags_of_files_are_refused_for_the_record_alone() {
    let project = Project::new();
    story(&project);
    for layer in ["--layer=workflow", "--layer=code"] {
        for flag in ["--force", "--force-commits", "--keep-theirs", "--mine"] {
            let refused = project.run(&format!("run rollback @ --to-phase planned {layer} {flag} --json"));
            assert_eq!(refused.error(), "usage", "{layer} {flag}");
        }
    }
}
