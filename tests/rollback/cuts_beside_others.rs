//! A run goes back to a point, and others changed the same files since: what they did stays, merged.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::{TestWorld, long};
use serde_json::json;

use crate::project::{WHOLE, Work as _, in_git};

/// The lines from one to twenty; those that are given read otherwise.
fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n: usize| {
        let found = changed.iter().find(|(at, _)| *at == n);
        found.map_or_else(|| format!("{n}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=20).map(line).collect()
}

/// One piece of work of a run: `files` is what it writes.
fn work(world: &TestWorld, run: &str, files: &[(&str, &str)]) -> String {
    let id = world.ic(&["dispatch", "create", run]);
    world.ic(&["dispatch", "start", &id]);
    for (path, content) in files {
        world.write(path, content);
    }
    world.ic(&["dispatch", "complete", &id]);
    id
}

/// The run has worked twice on `list`, and another run once in between.
fn beside_another() -> (TestWorld, String, String) {
    let world = in_git();
    world.write("list", &lines(&[]));
    world.write("theirs", "one\n");
    world.commit("base");
    let world = world.begun();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    world.advance();
    work(&world, &world.run, &[("list", &lines(&[(3, "three of mine")])), ("mine", "mine\n")]);
    let both = lines(&[(3, "three of mine"), (15, "fifteen of theirs")]);
    let theirs = work(&world, &other, &[("list", &both), ("theirs", "one\ntwo\n"), ("dir/theirs", "theirs\n")]);
    let all = lines(&[(3, "three of mine"), (15, "fifteen of theirs"), (18, "eighteen of mine")]);
    work(&world, &world.run, &[("list", &all)]);
    (world, other, theirs)
}

fn cut<'w>(world: &'w TestWorld, more: &[&'w str]) -> Vec<&'w str> {
    [&["undo", "phase:a", "--run", world.run.as_str(), "--json"], more].concat()
}

fn is_without_mine(world: &TestWorld) {
    assert_eq!(world.text("list"), lines(&[(15, "fifteen of theirs")]));
    assert_eq!((world.text("theirs").as_str(), world.read("mine")), ("one\ntwo\n", None));
    assert_eq!(world.text("dir/theirs"), "theirs\n");
    assert_eq!(world.status(), "active@a");
}

#[test]
fn a_cut_merges_out_the_run_where_others_changed_the_same_files() {
    let (world, ..) = beside_another();
    let before = world.state();
    let plan = world.cli.json(cut(&world, &["--dry-run"]));
    let paths: Vec<&str> =
        plan["files"]["changes"].as_array().expect("changes").iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["list", "mine"], "{plan}");
    assert_eq!((&plan["files"]["conflicts"], &plan["files"]["skipped"]), (&json!([]), &json!([])), "{plan}");
    let done = world.cli.json(cut(&world, &["--yes"]));
    assert_eq!((&done["status"], &done["files"]["differs"]), (&json!("rolled_back"), &json!([])), "{done}");
    is_without_mine(&world);
    // It comes back, and goes again.
    let undo = done["rollback_id"].as_str().expect("an id").to_owned();
    world.ic(&["redo", &undo, "--yes"]);
    world.state().assert_outside_is(&before, "redone");
    world.ic(&cut(&world, &["--yes"]));
    is_without_mine(&world);
}

#[test]
fn after_a_merged_cut_the_work_of_the_others_is_undone_by_itself() {
    let (world, _, theirs) = beside_another();
    world.ic(&cut(&world, &["--yes"]));
    world.ic(&["undo", "--only", &theirs, "--yes"]);
    assert_eq!((world.text("list"), world.text("theirs").as_str()), (lines(&[]), "one\n"));
    world.ic(&["redo", "--yes", "--run", &theirs_run(&world, &theirs)]);
    is_without_mine(&world);
}

fn theirs_run(world: &TestWorld, work: &str) -> String {
    world.cli.json(["dispatch", "show", work, "--json"])["run_id"].as_str().expect("a run").to_owned()
}

#[test]
fn lines_that_others_changed_too_are_a_conflict_of_a_cut() {
    let taken = |flag: &str| {
        let (world, other, _) = beside_another();
        let all = world.text("list").replace("three of mine", "three of theirs");
        work(&world, &other, &[("list", &all)]);
        let before = world.state();
        let refused = world.cli.run(cut(&world, &["--yes"]));
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
        assert!(refused.stderr.contains("the same lines since: 3"), "{refused:?}");
        world.state().assert_is(&before, "refused");
        let done = world.cli.run(cut(&world, &["--yes", flag]));
        (done.code, done.json()["status"].clone(), world.text("list"), world.read("mine"))
    };
    let theirs = lines(&[(3, "three of theirs"), (15, "fifteen of theirs")]);
    assert_eq!(taken("--keep-theirs"), (Some(4), json!("rolled_back_in_part"), theirs, None));
    let without = lines(&[(15, "fifteen of theirs")]);
    assert_eq!(taken("--force-files"), (Some(0), json!("rolled_back"), without, None));
}

#[test]
fn what_a_person_changed_in_a_file_of_two_runs_stays_in_a_cut() {
    let (world, ..) = beside_another();
    world.write("list", &world.text("list").replace("\n9\n", "\nnine by hand\n"));
    world.ic(&["checkpoint", "create"]);
    world.ic(&cut(&world, &["--yes"]));
    assert_eq!(world.text("list"), lines(&[(9, "nine by hand"), (15, "fifteen of theirs")]));
}

#[test]
fn a_merged_cut_that_is_killed_ends_as_if_undisturbed() {
    let (world, ..) = beside_another();
    world.save(&WHOLE);
    world.ic(&cut(&world, &["--yes"]));
    let wanted = world.state();
    let log = world.cli.home().join("log");
    world.reset(&WHOLE);
    let outcome = world.cli.command(cut(&world, &["--yes"])).env("IC_TEST_SQL_LOG", &log).output().expect("start ic");
    assert!(outcome.status.success(), "{outcome:?}");
    let statements = std::fs::read_to_string(log).expect("the log").lines().count();
    let mut resumed = 0;
    for at in (1..=statements).step_by(if long() { 1 } else { statements.div_ceil(24) }) {
        world.reset(&WHOLE);
        let mut command = world.cli.command(cut(&world, &["--yes"]));
        let killed = command.env("IC_TEST_ABORT_BEFORE", at.to_string()).output().expect("start ic");
        assert!(killed.status.signal().is_some(), "before {at}: {killed:?}");
        let resume = world.cli.run(["rollback", "resume", &world.run, "--yes", "--json"]);
        if resume.code == Some(0) {
            resumed += 1;
        } else if world.status() != "active@a" {
            world.ic(&cut(&world, &["--yes"]));
        }
        world.state().assert_is(&wanted, &format!("killed before statement {at}"));
    }
    assert!(resumed > 5, "only {resumed} were killed in the middle");
}
