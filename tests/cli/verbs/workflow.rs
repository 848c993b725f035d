//! `ic workflow ...`

use std::fs::remove_file;

use super::checkpoint::write;
use crate::support::{Page, Project};

/// A plan, a queue whose id the undo must know, settings, and a test that fails until the file `fixed` is there.
const RELEASE: &str = r#"name: release
goal: Ship the shop
steps:
  - id: plan
    phase: planned
    run: "echo '# Plan' > plan.md"
    compensate: skip
  - id: queue
    phase: built
    run: 'echo QUEUE=q-17 >> "$IC_OUTPUTS"'
    compensate: {exec: ["sh", "-c", 'test ! -e ../no-network && echo "deleted $QUEUE" >> ../undone']}
  - id: settings
    run: [sh, -c, "echo port = 8080 > app.toml"]
    compensate: {restore-file: app.toml}
  - id: test
    needs: [queue, settings]
    run: "test -e fixed || { echo no such queue; exit 3; }"
    timeout: 1m
    retries: {max: 1, backoff: 10ms}
  - id: publish
    phase: shipped
    needs: [test]
    run: "true"
    compensate: {skip: only looks}
"#;

/// Two steps, the first of which cannot be undone.
const MAIL: &str = "name: mail\nsteps:\n  - {id: send, phase: sent, run: 'true', compensate: {pivot: mail is sent}}\n  \
    - {id: count, run: 'test -e fixed', compensate: skip}\n";

fn with_files(project: &Project) {
    remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    write(project, "release.yaml", RELEASE);
    write(project, "mail.yaml", MAIL);
    write(project, "app.toml", "port = 80\n");
}

/// A release that is stopped at its test.
fn stopped(project: &Project) {
    with_files(project);
    assert_eq!(project.run("workflow run release.yaml").code, Some(1));
}

pub(crate) fn completed(project: &Project) {
    with_files(project);
    write(project, "fixed", "");
    project.ok("workflow run release.yaml");
}

fn without_network(project: &Project) {
    std::fs::write(project.cli.home().join("no-network"), "").expect("a file");
}

fn with_network(project: &Project) {
    remove_file(project.cli.home().join("no-network")).expect("the file");
}

#[test]
fn run() {
    Page::of("ic workflow run", with_files)
        .says_no("workflow run release.yaml")
        .says_no("workflow run release.yaml --on-failure rollback")
        .says_no("workflow run mail.yaml --on-failure rollback")
        .then(without_network)
        .leaves_some("workflow run release.yaml --on-failure rollback")
        .then(|project| write(project, "fixed", ""))
        .does("workflow run release.yaml")
        .refuses("workflow run nowhere.yaml", 3, "invalid_workflow")
        .refuses("workflow run release.yaml --on-failure ask", 3, "invalid_value")
        .ends();
}

#[test]
fn run_dry_run() {
    Page::of("ic workflow run --dry-run", with_files)
        .does("workflow run release.yaml --dry-run")
        .refuses("workflow run nowhere.yaml --dry-run", 3, "invalid_workflow")
        .refuses("workflow run release.yaml --dry-run --jobs 2 --strategy partial", 3, "invalid_value")
        .ends();
}

#[test]
fn resume() {
    Page::of("ic workflow resume", stopped)
        .says_no("workflow resume @")
        .refuses("workflow resume @ --on-failure rollback", 3, "confirmation_required")
        .then(without_network)
        .leaves_some("workflow resume @ --on-failure rollback --yes")
        .refuses("workflow resume @", 3, "confirmation_required")
        .then(with_network)
        .says_no("workflow resume @ --yes")
        .then(|project| write(project, "fixed", ""))
        .does("workflow resume @")
        .refuses("workflow resume @", 3, "run_not_found")
        .ends();
}

#[test]
fn rollback_dry_run() {
    Page::of("ic workflow rollback --dry-run", completed)
        .does("workflow rollback --dry-run")
        .does("workflow rollback --latest --dry-run")
        .refuses("workflow rollback 7f3a9c21 --dry-run", 3, "run_not_found")
        .then(|project| project.ok("workflow rollback --yes").clear())
        .refuses("workflow rollback --dry-run", 1, "nothing_to_roll_back")
        .ends();
}

#[test]
fn rollback() {
    Page::of("ic workflow rollback", completed)
        .refuses("workflow rollback", 3, "confirmation_required")
        .refuses("workflow rollback --id 7f3a9c21 --yes", 3, "checkpoint_not_found")
        .refuses("workflow rollback --latest --strategy partial --yes", 3, "invalid_value")
        .does("workflow rollback --latest --yes")
        .does("workflow rollback --yes")
        .refuses("workflow rollback --yes", 1, "nothing_to_roll_back")
        .refuses("workflow rollback 7f3a9c21 --yes", 3, "run_not_found")
        .ends();
}

#[test]
fn checkpoints() {
    Page::of("ic workflow checkpoints", completed)
        .does("workflow checkpoints")
        .does("workflow checkpoints --workflow release")
        .refuses("workflow checkpoints 7f3a9c21", 3, "run_not_found")
        .then(|project| drop(project.ok("run create --goal Port --phases a,b --scope-id other")))
        .refuses("workflow checkpoints scope:other", 1, "no_workflow")
        .ends();
}

#[test]
fn validate() {
    Page::without_ledger("ic workflow validate")
        .then(with_files)
        .does("workflow validate mail.yaml")
        .then(|project| {
            write(project, "wrong.yaml", "name: wrong\nsteps:\n  - {id: a, phase: p, run: x, need: [b]}\n");
        })
        .refuses("workflow validate wrong.yaml", 3, "invalid_workflow")
        .ends();
}

#[test]
fn show() {
    Page::of("ic workflow show", stopped)
        .does("workflow show @")
        .then(|project| drop(project.run("workflow resume @ --on-failure rollback --yes")))
        .does("workflow show @")
        .then(|project| drop(project.ok("run create --goal Port --phases a,b --scope-id other")))
        .refuses("workflow show scope:other", 1, "no_workflow")
        .ends();
}
