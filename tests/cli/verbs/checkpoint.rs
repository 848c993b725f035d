//! `ic checkpoint ...` and `ic config ...`

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::{Page, Project, chain};

/// The checkpoints that [`with_history`] takes: `start`, and one of a run.
pub(crate) const START: &str = "0a000011";
const OF_RUN: &str = "0a000023";

/// Writes a file whose mode does not depend on who runs the tests.
pub(crate) fn write(project: &Project, path: &str, content: &str) {
    let path = project.root().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("its directory");
    fs::write(&path, content).expect("a file");
    for (path, mode) in [(path.as_path(), 0o644), (path.parent().expect("a parent"), 0o755)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
    }
}

/// Two files, a checkpoint of them, a run; then one file changed, one added, and a checkpoint of that.
pub(crate) fn with_history(project: &Project) {
    write(project, "src/main.rs", "fn main() {}\n");
    write(project, "notes.md", "one\ntwo\nthree\n");
    write(project, ".env", "TOKEN=1\n");
    write(project, ".ic.yaml", "rollback: {checkpointing: {auto: false}}\n");
    project.ok("checkpoint create --name start");
    chain(project, "draft,edit,done", "draft");
    write(project, "notes.md", "one\n2\nthree\n");
    write(project, "src/lib.rs", "// new\n");
    project.ok("checkpoint create --run @ --message 'tests pass'");
}

#[test]
fn create() {
    Page::of("ic checkpoint create", with_history)
        .does("checkpoint create --name before-refactor --conversation chat-7 --message 'make it faster' --settled")
        .refuses("checkpoint create --run 7f3a9c21", 3, "run_not_found")
        .ends();
}

#[test]
fn list() {
    Page::of("ic checkpoint list", with_history)
        .does("checkpoint list")
        .does("checkpoint list --run @")
        .does("checkpoint list --conversation unknown")
        .ends();
}

#[test]
fn show() {
    Page::of("ic checkpoint show", with_history)
        .does(&format!("checkpoint show {OF_RUN}"))
        .does(&format!("checkpoint show {START} --files"))
        .refuses("checkpoint show 7f3a9c21", 3, "checkpoint_not_found")
        .ends();
}

#[test]
fn list_draws_a_branch_at_each_restore() {
    let project = Project::new();
    with_history(&project);
    project.ok("checkpoint create");
    project.ok(&format!("checkpoint restore {START} --yes"));
    project.ok("redo --yes");
    let drawn = project.ok("checkpoint list --tree --format text");
    let ids = |line: &str| line.split_whitespace().find(|word| word.starts_with("0a")).map(str::to_owned);
    let lines: Vec<(&str, Option<String>)> =
        drawn.lines().map(|line| (&line[..line.find("0a").unwrap_or(0)], ids(line))).collect();
    let branch: Vec<&str> = lines.iter().map(|(drawn, _)| drawn.trim_end()).collect();
    assert_eq!(branch, ["●", "├─●", "│ ●", "│ ●", "●", "●", "●"], "{drawn}");
    let listed: std::collections::BTreeSet<_> = lines.into_iter().filter_map(|(_, id)| id).collect();
    let all = project.json("checkpoint list --tree");
    let all = all.as_array().expect("a list").iter().map(|one| one["short_id"].as_str().expect("an id").to_owned());
    assert_eq!(listed, all.collect());
}

#[test]
fn diff() {
    Page::of("ic checkpoint diff", with_history)
        .does(&format!("checkpoint diff {START}"))
        .does(&format!("checkpoint diff {START} {OF_RUN} -- src"))
        .refuses(&format!("checkpoint diff {START} 7f3a9c21"), 3, "checkpoint_not_found")
        .refuses(&format!("checkpoint diff {START} -- ../elsewhere"), 3, "path_not_found")
        .ends();
}

#[test]
fn cat() {
    let project = Project::new();
    with_history(&project);
    assert_eq!(project.ok(&format!("checkpoint cat {START} notes.md")), "one\ntwo\nthree");
    assert_eq!(project.ok(&format!("checkpoint cat {START} notes.md --json")), "one\ntwo\nthree");
    assert_eq!(project.ok(&format!("checkpoint cat {OF_RUN} ../notes.md -C src")), "one\n2\nthree");
    for (path, code) in [("src", "path_not_found"), (".env", "path_not_found"), ("src/lib.rs", "path_not_found")] {
        assert_eq!(project.refused(&format!("checkpoint cat {START} {path}")), (3, code.to_owned()), "{path}");
    }
}

#[test]
fn restore() {
    Page::of("ic checkpoint restore", |project| {
        with_history(project);
        fs::remove_file(project.root().join("src/main.rs")).expect("remove a file");
    })
    .does(&format!("checkpoint restore {START} --dry-run"))
    .does(&format!("checkpoint restore {START} --yes"))
    .does("checkpoint restore --name start --yes")
    .refuses(&format!("checkpoint restore {START}"), 3, "confirmation_required")
    .refuses(&format!("checkpoint restore {OF_RUN} --yes --expect-plan 5d41402a"), 1, "plan_changed")
    .ends();
}

/// A restore, the undo of it, and the restore made again.
#[test]
fn redo() {
    Page::of("ic redo --json RESTORE", |project| {
        with_history(project);
        project.ok(&format!("checkpoint restore {START} --yes"));
    })
    .does("redo --dry-run")
    .does("redo --yes")
    .refuses("redo --yes", 1, "nothing_to_undo")
    .refuses("redo 0a000033 --yes", 1, "nothing_to_undo")
    .refuses("undo 0a000033 --layer=files --yes", 3, "usage")
    .does("undo 0a000053 --yes")
    .refuses("undo 0a000053 --yes", 1, "nothing_to_undo")
    .ends();
}

#[test]
fn config_show() {
    Page::of("ic config show", |project| {
        write(project, ".ic.yaml", "rollback:\n  retention: {max-age: 14d, keep-last: 9}\n");
    })
    .does("config show")
    .ends();
}

#[test]
fn prune() {
    Page::of("ic checkpoint prune", |project| {
        with_history(project);
        write(project, "large.txt", &"grows\n".repeat(1000));
        project.ok("checkpoint create --auto");
    })
    .does("checkpoint prune --dry-run")
    .does("checkpoint prune --older-than 0s --keep-last 0")
    .ends();
}

#[test]
fn delete() {
    Page::of("ic checkpoint delete", with_history)
        .does(&format!("checkpoint delete {OF_RUN}"))
        .refuses(&format!("checkpoint delete {OF_RUN}"), 3, "checkpoint_not_found")
        .ends();
}

#[test]
fn purge() {
    Page::of("ic checkpoint purge", |project| {
        with_history(project);
        write(project, "copy.md", "one\n2\nthree\n");
        project.ok("checkpoint create");
    })
    .does("checkpoint purge notes.md --yes")
    .refuses("checkpoint purge notes.md", 3, "confirmation_required")
    .ends();
}

#[test]
fn verify() {
    Page::of("ic checkpoint verify", with_history)
        .does("checkpoint verify")
        .does("checkpoint verify --read-data")
        .ends();
}

#[test]
fn artifact_content() {
    let project = Project::new();
    chain(&project, "draft,edit,done", "draft");
    write(&project, "plan.md", "the plan\n");
    let id = project.ok("run artifact add @ --path plan.md");
    write(&project, "plan.md", "another plan\n");
    assert_eq!(project.ok(&format!("run artifact cat {id}")), "the plan");
    let missing = project.ok("run artifact add @ --path nowhere.md");
    assert_eq!(project.refused(&format!("run artifact cat {missing}")), (3, "path_not_found".to_owned()));
}
