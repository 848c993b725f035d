//! Files that are restored: to what they were before the step, whatever happened to the store in between.

use std::os::unix::fs::PermissionsExt;

use ic_testkit::TestWorld;

use crate::calls::Calls as _;
use crate::flow::Flow as _;
use crate::project::{plain, with_checkpoints};

const PRUNE: [&str; 8] = ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "0", "--grace", "0s"];

/// A step that writes over one file, makes another and breaks a link, and then fails.
fn changed(world: &TestWorld) {
    world.write("settings", "port = 80\n");
    let private = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(world.cli.root().join("settings"), private).expect("its mode");
    std::os::unix::fs::symlink("settings", world.cli.root().join("link")).expect("a link");
    world.steps(&[
        "{id: a, run: 'echo new > settings; chmod 755 settings; rm link; echo x > link; mkdir sub; echo y > sub/made; exit 1', \
         compensate: {restore-file: [settings, link, sub/made]}}",
    ]);
}

fn assert_restored(world: &TestWorld) {
    let root = world.cli.root();
    assert_eq!(world.text("settings"), "port = 80\n");
    let mode = std::fs::metadata(root.join("settings")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(std::fs::read_link(root.join("link")).expect("a link"), std::path::Path::new("settings"));
    assert!(!root.join("sub/made").exists());
}

#[test]
fn a_file_that_was_there_is_restored_and_one_that_was_not_is_removed() {
    let world = plain();
    changed(&world);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_restored(&world);
}

#[test]
fn what_a_stopped_workflow_must_restore_is_not_pruned() {
    for checkpoints in [false, true] {
        let world = if checkpoints { with_checkpoints() } else { plain() };
        changed(&world);
        world.report("workflow run flow.yaml --on-failure stop", 1);
        for _ in 0..2 {
            world.cli.ok(["checkpoint", "create", "--auto"]);
            world.cli.ok(PRUNE);
        }
        assert_eq!(world.cli.json(["checkpoint", "verify", "--read-data"])["ok"], true);
        // The tree that the rollback restores is kept as well.
        let report = world.report(&format!("workflow resume {} --on-failure rollback --yes", world.newest_run()), 1);
        assert_eq!(report["status"], "rolled_back", "{report}");
        assert_restored(&world);
    }
}

#[test]
fn the_second_attempt_of_a_step_remembers_what_was_before_the_first() {
    let world = plain();
    world.write("settings", "port = 80\n");
    world.steps(&[
        "{id: a, run: 'echo new > settings; ACT do', retries: {max: 1}, compensate: {restore-file: settings}}",
        "{id: b, needs: [a], run: 'exit 1'}",
    ]);
    world.kill_at("workflow run flow.yaml", "do-a-before");
    assert_eq!(world.text("settings"), "new\n");
    world.report(&format!("workflow resume {} --on-failure rollback --yes", world.newest_run()), 1);
    assert_eq!(world.text("settings"), "port = 80\n");
    let world = plain();
    world.write("settings", "port = 80\n");
    world.steps(&[
        "{id: a, run: 'echo new > settings; ACT do', compensate: {restore-file: settings}}",
        "{id: b, needs: [a], run: 'exit 1'}",
    ]);
    world.kill_at("workflow run flow.yaml", "do-a-before");
    world.report(&format!("workflow resume {} --on-failure stop", world.newest_run()), 1);
    // b declares no undo, and there is no checkpoint.
    world.report(&format!("workflow rollback {} --yes", world.newest_run()), 4);
    assert_eq!(world.text("settings"), "port = 80\n");
}
