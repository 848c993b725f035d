//! A real git repository: the place of its ledger, which all its worktrees share.

use std::path::Path;
use std::process::Command;

use ic_testkit::git_in;
use serde_json::Value;

use crate::support::Project;

fn repository() -> Project {
    let project = Project::without_ledger();
    git_in(project.root(), &["init", "-q"]);
    project.write("readme.md", "hello\n");
    git_in(project.root(), &["add", "."]);
    git_in(project.root(), &["commit", "-q", "-m", "one"]);
    project
}

fn found(project: &Project, directory: &Path) -> Value {
    project.run_words(["-C", &directory.to_string_lossy(), "where", "--json"]).json()
}

#[test]
fn the_ledger_lies_in_the_git_directory_out_of_reach() {
    let project = repository();
    std::fs::create_dir(project.root().join("src")).expect("a directory");
    let made = project.run("init -C src --json").json();
    let db = project.root().join(".git/ic/ic.db");
    assert_eq!(made["db"].as_str(), db.to_str());
    assert_eq!(made["project_dir"].as_str(), project.root().to_str());
    assert!(!project.root().join(".ic").exists() && !project.root().join("src/.ic").exists());
    git_in(project.root(), &["clean", "-fdxq"]);
    assert!(db.exists());
    let run = project.run("run create --goal g --json").json();
    assert_eq!(run["project_dir"].as_str(), project.root().to_str());
}

#[test]
fn worktrees_share_one_ledger_and_have_their_own_runs() {
    let project = repository();
    let tree = project.cli.home().canonicalize().expect("a path").join("tree one");
    git_in(project.root(), &["worktree", "add", "-q", "-b", "side", &tree.to_string_lossy()]);
    project.run("init");
    let (here, there) = (found(&project, project.root()), found(&project, &tree));
    assert_eq!(here["db"], there["db"]);
    assert_eq!(there["project_dir"].as_str(), tree.to_str());

    let main = project.run("run create --goal main --phases a,b").stdout.trim().to_owned();
    let in_tree = |words: &[&str]| project.run_words([&["-C", &tree.to_string_lossy()], words].concat());
    assert_eq!(in_tree(&["run", "current"]).error(), "no_active_run");
    let side = in_tree(&["run", "create", "--goal", "side", "--phases", "a,b"]).stdout.trim().to_owned();
    assert_eq!(project.run("run current").stdout.trim(), main);
    assert_eq!(in_tree(&["run", "current"]).stdout.trim(), side);
    assert_eq!(project.run(&format!("run advance {side}")).code, Some(0), "each sees the runs of the other");
    assert_eq!(in_tree(&["run", "list"]).json().as_array().map(Vec::len), Some(2));
    assert_eq!(project.run("events verify --json").json()["event_count"], 3);
}

#[test]
fn init_in_a_worktree_makes_the_ledger_of_the_repository() {
    let project = repository();
    let tree = project.cli.home().canonicalize().expect("a path").join("tree");
    git_in(project.root(), &["worktree", "add", "-q", &tree.to_string_lossy()]);
    let made = project.run_words(["-C", &tree.to_string_lossy(), "init", "--json"]).json();
    assert_eq!(made["db"].as_str(), project.root().join(".git/ic/ic.db").to_str());
    assert_eq!(found(&project, project.root())["db"], made["db"]);
}

#[test]
fn commits_of_a_real_repository_are_recorded_from_git_log() {
    let project = repository();
    project.run("init");
    project.write("a b.md", "x");
    project.write("計劃.md", "y");
    git_in(project.root(), &["add", "."]);
    git_in(project.root(), &["commit", "-q", "-m", "two"]);
    project.run("run create --goal g --phases a,b");
    let dispatch = project.run("dispatch create @").stdout.trim().to_owned();
    let log = Command::new("git")
        .args(["log", "--name-only", "--format=%H"])
        .current_dir(project.root())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    let recorded = project.run_with_input(&format!("dispatch record {dispatch} --stdin"), &log.stdout).json();
    assert_eq!((recorded["commit_count"].as_i64(), recorded["file_count"].as_i64()), (Some(2), Some(4)));
    let report = project.run("run rollback @ --layer=code").json();
    let newest = String::from_utf8(log.stdout).expect("UTF-8").lines().next().expect("a commit").to_owned();
    assert_eq!(report["revert_order"][0], newest.as_str());
    let files = report["entries"][0]["file_paths"].to_string();
    assert!(files.contains("計劃.md") && files.contains("a b.md"), "{files}");
}
