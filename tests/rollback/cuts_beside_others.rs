//! A run goes back to a point, and others changed the same files since: what they did stays, merged.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::{Terminal, TestWorld, long};
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
fn a_cut_that_left_lines_counts_its_work_as_undone() {
    let world = in_git();
    world.write("list", &lines(&[]));
    world.commit("base");
    let gates = r#"{"b->c":[{"check":"verdict_clean"}]}"#;
    let run = world.ic(&["run", "create", "--goal", "g", "--phases", "a,b,c", "--gates", gates]);
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let world = world.with_run(run);
    world.ic(&["run", "advance", &world.run]);
    let mine = world.ic(&["dispatch", "create", &world.run]);
    world.ic(&["dispatch", "start", &mine]);
    world.write("list", &lines(&[(3, "three of mine")]));
    world.write("mine", "mine\n");
    world.ic(&["run", "artifact", "add", &world.run, "--path", "mine"]);
    world.ic(&["dispatch", "complete", &mine, "--verdict", "pass"]);
    let gate = || world.cli.run(["gate", "check", &world.run, "--json"]).json()["gate_result"].clone();
    assert_eq!(gate(), "pass");
    work(&world, &other, &[("list", &lines(&[(3, "three of theirs")]))]);
    let done = world.cli.run(cut(&world, &["--yes", "--keep-theirs"]));
    let (code, done) = (done.code, done.json());
    assert_eq!((code, &done["status"], world.status().as_str()), (Some(4), &json!("rolled_back_in_part"), "active@a"));
    for table in ["dispatches", "run_artifacts"] {
        let by = format!("SELECT rolled_back_by FROM {table} WHERE run_id = '{}'", world.run);
        assert_eq!(json!(world.cli.sql(&by)), done["rollback_id"], "{table}");
    }
    let log = world.cli.json(["log", &world.run, "--all", "--json"]);
    let entry = log.as_array().into_iter().flatten().find(|one| one["kind"] == "dispatch").expect("the work").clone();
    assert_eq!((&entry["undone"], &entry["undone_in_part"]), (&json!(true), &json!(null)), "{entry}");
    world.ic(&["run", "advance", &world.run]);
    assert_eq!(gate(), "fail");
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

/// A run that is undone, and another one beside it, over a file of twenty lines.
fn two_runs() -> (TestWorld, String) {
    let world = in_git();
    world.write("list", &lines(&[]));
    world.commit("base");
    let world = world.begun();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    (world, other)
}

/// One piece of work of a run that is no writing alone.
fn deed(world: &TestWorld, run: &str, deed: impl Fn()) -> String {
    let id = world.ic(&["dispatch", "create", run]);
    world.ic(&["dispatch", "start", &id]);
    deed();
    world.ic(&["dispatch", "complete", &id]);
    id
}

fn created<'w>(run: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    [&["undo", "created", "--run", run, "--yes", "--json"], more].concat()
}

#[test]
fn what_the_run_deleted_of_others_comes_back_with_its_cut() {
    let (world, other) = two_runs();
    work(&world, &other, &[("dir/theirs", "theirs\n"), ("moved", "theirs\n"), ("line", "one\ntwo\n")]);
    work(&world, &other, &[("line", "one\ntwo\nthree\n")]);
    deed(&world, &world.run, || {
        std::fs::remove_dir_all(world.root().join("dir")).expect("a directory");
        std::fs::rename(world.root().join("moved"), world.root().join("mine")).expect("a file");
        world.write("line", "one\ntwo\n");
    });
    let before = world.state();
    world.ic(&created(&world.run, &[]));
    assert_eq!((world.text("dir/theirs").as_str(), world.text("moved").as_str()), ("theirs\n", "theirs\n"));
    assert_eq!((world.text("line").as_str(), world.read("mine")), ("one\ntwo\nthree\n", None));
    world.ic(&["redo", "--run", &world.run, "--yes"]);
    world.state().assert_outside_is(&before, "redone");
}

#[test]
fn work_that_a_cut_undid_does_not_come_back_with_the_undo_of_its_deletion() {
    for with_cut in [false, true] {
        let (world, other) = two_runs();
        let theirs = work(&world, &other, &[("made", "theirs\n"), ("list", &lines(&[(9, "theirs")]))]);
        let mine = deed(&world, &world.run, || {
            world.remove("made");
            world.write("list", &lines(&[]));
        });
        let words = if with_cut { vec!["undo", &theirs, "--yes"] } else { vec!["undo", "--only", &theirs, "--yes"] };
        world.ic(&words);
        world.ic(&["undo", "--only", &mine, "--yes"]);
        assert_eq!((world.read("made"), world.text("list")), (None, lines(&[])), "with a cut: {with_cut}");
    }
}

#[test]
fn what_stays_of_a_run_in_a_file_of_others_is_named_and_the_exit_is_4() {
    // A new file of the run, under the name that others gave to it.
    let (world, other) = two_runs();
    let first = work(&world, &world.run, &[("made", "mine\nmore\n")]);
    deed(&world, &other, || std::fs::rename(world.root().join("made"), world.root().join("theirs")).expect("a file"));
    let renamed = world.cli.run(["undo", &first, "--yes", "--json"]);
    assert_eq!((renamed.code, world.text("theirs").as_str()), (Some(4), "mine\nmore\n"), "{renamed:?}");
    assert!(renamed.json()["files"]["skipped"].to_string().contains("theirs"), "{renamed:?}");
    // A file that the run made and others wrote into, left by decision.
    let (world, other) = two_runs();
    work(&world, &world.run, &[("made", "mine\n")]);
    work(&world, &other, &[("made", "mine\ntheirs\n")]);
    let left = world.cli.run(created(&world.run, &["--keep-theirs"]));
    assert_eq!((left.code, world.text("made").as_str()), (Some(4), "mine\ntheirs\n"), "{left:?}");
    assert!(left.json()["files"]["skipped"].to_string().contains("made"), "{left:?}");
}

#[test]
fn a_directory_stays_for_what_others_have_in_it() {
    let (world, other) = two_runs();
    work(&world, &world.run, &[("dir/made", &lines(&[])), ("dir/mine", "mine\n")]);
    work(&world, &other, &[("dir/made", &lines(&[(7, "theirs")])), ("dir/theirs", "theirs\n")]);
    let dry = world.cli.run(["undo", "created", "--run", &world.run, "--force-files", "--dry-run", "--json"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let done = world.cli.run(created(&world.run, &["--force-files"]));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((world.read("dir/mine"), world.text("dir/theirs").as_str()), (None, "theirs\n"));
    // And the other way round: the directory is the others', and so is what they made in it.
    let (world, other) = two_runs();
    work(&world, &world.run, &[("list", &lines(&[(5, "mine")]))]);
    work(&world, &other, &[("dir/theirs", &lines(&[]))]);
    work(&world, &world.run, &[("dir/theirs", &lines(&[(4, "mine")]))]);
    world.ic(&created(&world.run, &[]));
    assert_eq!((world.text("list"), world.text("dir/theirs")), (lines(&[]), lines(&[])));
}

#[test]
fn a_merged_cut_is_carried_out_as_its_plan_says() {
    let (world, ..) = beside_another();
    let hash = world.cli.json(cut(&world, &["--dry-run"]))["plan_hash"].as_str().expect("a hash").to_owned();
    let done = world.cli.json(cut(&world, &["--expect-plan", &hash, "--yes"]));
    assert_eq!((&done["plan_hash"], &done["status"]), (&json!(hash), &json!("rolled_back")), "{done}");
    is_without_mine(&world);
}

/// Two dispatches of two runs that ran at the same time and changed one file.
fn at_once() -> TestWorld {
    let (world, other) = two_runs();
    let ids = [&world.run, &other].map(|run| {
        let id = world.ic(&["dispatch", "create", run]);
        world.ic(&["dispatch", "start", &id]);
        id
    });
    world.write("list", &lines(&[(4, "of one of them")]));
    world.write("mine", "mine\n");
    world.ic(&["dispatch", "record", &ids[0], "--file", "mine"]);
    for id in &ids {
        world.ic(&["dispatch", "complete", id]);
    }
    world
}

#[test]
fn a_file_of_works_that_ran_at_once_is_asked_about_and_named_where_it_stays() {
    let world = at_once();
    let refused = world.cli.run(created(&world.run, &[]));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    assert!(refused.stderr.contains("list") && !refused.stderr.contains("mine"), "{refused:?}");
    let left = world.cli.run(created(&world.run, &["--keep-theirs"]));
    assert_eq!((left.code, left.json()["status"].clone()), (Some(4), json!("rolled_back_in_part")), "{left:?}");
    assert_eq!((world.text("list"), world.read("mine")), (lines(&[(4, "of one of them")]), None));
    let world = at_once();
    world.ic(&created(&world.run, &["--force-files"]));
    assert_eq!((world.text("list"), world.read("mine")), (lines(&[]), None));
}

#[test]
fn on_a_terminal_a_cut_asks_about_each_path_in_conflict() {
    for (keys, code, left) in [("l\n", 4, "of theirs"), ("t\n", 0, "3")] {
        let (world, other, _) = beside_another();
        let all = world.text("list").replace("three of mine", "of theirs");
        work(&world, &other, &[("list", &all)]);
        let call = world.cli.command(["undo", "phase:a", "--run", &world.run, "--format", "text"]);
        let Some(mut terminal) = Terminal::open(&call, world.root()) else { return };
        terminal.sees("leave what others changed [l]");
        terminal.types(keys);
        terminal.sees("Roll back?");
        terminal.types("y\n");
        let (ended, shown) = terminal.ends();
        assert_eq!(ended, Some(code), "{shown}");
        assert_eq!(world.text("list"), lines(&[(3, left), (15, "fifteen of theirs")]), "{shown}");
        assert_eq!(world.read("mine"), None, "{shown}");
    }
}

#[test]
fn a_cut_follows_a_file_that_others_renamed_and_changed() {
    let world = in_git();
    world.write("list", &lines(&[]));
    world.commit("base");
    let world = world.begun();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    world.advance();
    let mine = lines(&[(3, "three of mine")]);
    work(&world, &world.run, &[("list", &mine), ("made", &mine)]);
    world.git(&["mv", "list", "items"]);
    std::fs::rename(world.root().join("made"), world.root().join("kept")).expect("a rename");
    let both = lines(&[(3, "three of mine"), (15, "fifteen of theirs")]);
    work(&world, &other, &[("items", &both), ("kept", &both)]);
    let before = world.state();
    let done = world.cli.run(cut(&world, &["--yes"]));
    assert_eq!(done.code, Some(4), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.json()["files"]["skipped"][0]["path"], "made", "{}", done.stdout);
    assert_eq!(world.text("items"), lines(&[(15, "fifteen of theirs")]));
    assert_eq!(world.text("kept"), both, "a new file that was renamed stays");
    assert_eq!((world.read("list"), world.read("made")), (None, None));
    world.ic(&["redo", "--yes", "--run", &world.run]);
    world.state().assert_outside_is(&before, "redone");
}
