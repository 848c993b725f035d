//! A rollback that is killed with its git, which leaves a lock of a ref: resuming it and giving it up lead past that.

use std::fs::File;

use ic_testkit::{ProjectState, TestWorld, dies_with_its_git};

use crate::project::Work as _;
use crate::story::story;

/// A story whose rollback was killed with a git that left this lock; returns what there was before.
fn killed(lock: &str) -> (TestWorld, ProjectState) {
    let world = story();
    let before = world.state();
    let lock = world.root().join(".git").join(lock);
    let leaves = format!(": > '{}'", lock.display());
    let mut command = world.cli.command(world.all("a", &["--yes"]));
    dies_with_its_git(&mut command, world.cli.home(), "update-ref", &leaves);
    assert!(lock.exists());
    (world, before)
}

/// How the same rollback ends that nothing disturbs.
fn undisturbed() -> TestWorld {
    let world = story();
    world.roll_back("a", &[]);
    world
}

fn locks() -> [String; 3] {
    let world = story();
    let branch = world.git(&["symbolic-ref", "HEAD"]);
    ["HEAD.lock".to_owned(), "packed-refs.lock".to_owned(), format!("{branch}.lock")]
}

#[test]
fn it_is_resumed_past_the_lock() {
    let wanted = undisturbed();
    for lock in locks() {
        let (world, _) = killed(&lock);
        world.ic(&["rollback", "resume", &world.run, "--dry-run"]);
        world.ic(&["rollback", "resume", &world.run, "--yes"]);
        assert_eq!(world.status(), "active@a", "{lock}");
        let found = [&world, &wanted].map(|one| (one.state().tree, one.git(&["log", "--format=%s"])));
        assert_eq!(found[0], found[1], "{lock}");
        assert!(!world.root().join(".git").join(&lock).exists(), "{lock}");
    }
}

#[test]
fn it_is_given_up_past_the_lock() {
    for lock in locks() {
        let (world, before) = killed(&lock);
        world.ic(&["rollback", "abort", &world.run, "--dry-run"]);
        world.ic(&["rollback", "abort", &world.run, "--yes"]);
        world.state().assert_outside_is(&before, &lock);
        assert!(!world.root().join(".git").join(&lock).exists(), "{lock}");
    }
}

#[test]
fn a_lock_that_is_held_stays_and_what_is_said_leads_on() {
    for verb in ["resume", "abort"] {
        let (world, before) = killed("HEAD.lock");
        let lock = world.root().join(".git/HEAD.lock");
        let held = File::open(&lock).expect("the lock");
        let outcome = world.cli.run(["rollback", verb, &world.run, "--yes", "--json"]);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.code != Some(0) && lock.exists(), "{verb}: {outcome:?}");
        assert!(said.contains(&format!("{} is in the way", lock.display())), "{verb}: {said}");
        assert!(!said.contains("files-only"), "{verb}: {said}");
        drop(held);
        world.ic(&["rollback", verb, &world.run, "--yes"]);
        if verb == "abort" {
            world.state().assert_outside_is(&before, verb);
        } else {
            assert_eq!(world.status(), "active@a");
        }
    }
}
