//! What fails in the midst of a rollback: named, nothing lost, and a command that goes on.

use std::process::Command;

use ic_testkit::{CliOutcome, TestWorld};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::project::{Work as _, asked, in_git};
use crate::story::{story, story_with_rows};

/// A rollback that stops at a step; returns its report.
fn stopped(world: &TestWorld, to: &str, more: &[&str]) -> Value {
    let mut words = world.all(to, more);
    words.push("--yes");
    let outcome = world.cli.run(words);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    assert_eq!(report["status"], "rolling_back", "{report}");
    report
}

/// Runs the command that a report names.
fn go_on(world: &TestWorld, report: &Value) -> CliOutcome {
    let command = report["resume"].as_str().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    world.cli.run(words)
}

fn steps(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let all = report["steps"].as_array().expect("steps");
    all.iter().map(|step| (text(&step["layer"]), text(&step["status"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn an_effect_that_fails_stops_there_and_the_named_command_goes_on() {
    let world = story();
    let home = world.cli.home().display().to_string();
    world.effect("last", &[&format!("test -e {home}/repaired || exit 3")]);
    let before = world.state();
    let report = stopped(&world, "a", &[]);
    assert_eq!(steps(&report), pairs(&[("effects", "failed"), ("tree", "pending"), ("settle", "pending")]));
    assert_eq!((world.status().as_str(), world.effects()), ("rolling_back@d", Vec::new()));
    assert_eq!(report["commits"].as_array().map(Vec::len), Some(2), "what is to leave: {report}");
    world.state().assert_outside_is(&before, "stopped");
    // The run is closed for everybody, and what is half done is not opened by the undo of its effects.
    for words in [vec!["run", "advance", &world.run], vec!["run", "set", &world.run, "--complexity", "1"]] {
        assert_eq!(world.cli.refused(&words), (Some(1), "rolling_back".to_owned()), "{words:?}");
    }
    let by_hand = ["compensation", "run", &world.run, "--yes"];
    assert_eq!(world.cli.refused(by_hand), (Some(1), "rolling_back".to_owned()));
    assert_eq!(world.status(), "rolling_back@d");
    let again = go_on(&world, &report);
    assert_eq!(again.code, Some(4), "{again:?}");
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    let done = go_on(&world, &report);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.json()["status"], "done");
    assert_eq!((world.status().as_str(), world.effects().join(" ").as_str()), ("active@a", "last mail pay book"));
}

#[test]
fn what_a_person_writes_while_a_rollback_is_stopped_is_asked_about() {
    let world = story();
    let home = world.cli.home().display().to_string();
    world.effect("last", &[&format!("test -e {home}/repaired || exit 3")]);
    let report = stopped(&world, "a", &[]);
    world.write("src/a.rs", "mended by hand\n");
    world.write("new", "by hand\n");
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    let refused = go_on(&world, &report);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert_eq!(steps(&refused.json())[..2], pairs(&[("effects", "done"), ("tree", "failed")]), "{refused:?}");
    let conflict = refused.json()["steps"][1]["error"].to_string();
    assert!(
        conflict.contains("file_conflict") && conflict.contains("src/a.rs (changed while this was stopped)"),
        "{conflict}"
    );
    assert!(!conflict.contains("new"), "there it had nothing to restore: {conflict}");
    let id = report["rollback_id"].as_str().expect("an id");
    let shown = world.cli.ok(["rollback", "show", id, "--format", "text"]);
    assert!(shown.contains("--force-files") && shown.contains("--skip-step"), "{shown}");
    assert_eq!((world.text("src/a.rs").as_str(), world.text("new").as_str()), ("mended by hand\n", "by hand\n"));
    let done = world.cli.run(["rollback", "resume", id, "--force-files", "--yes", "--json"]);
    assert_eq!(done.json()["status"], "done", "{done:?}");
    assert_eq!((world.read("src/a.rs"), world.read("notes/todo")), (None, None));
    assert_eq!(world.text("new"), "by hand\n");
}

#[test]
fn what_a_person_does_in_git_while_a_rollback_is_stopped_stays() {
    let world = story();
    let home = world.cli.home().display().to_string();
    world.effect("last", &[&format!("test -e {home}/repaired || exit 3")]);
    let report = stopped(&world, "a", &[]);
    world.write("README", "mine\n");
    world.git(&["stash", "push", "-q", "--", "README"]);
    world.git(&["branch", "mine"]);
    let made = world.git(&["rev-parse", "mine", "stash@{0}"]);
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    let refused = go_on(&world, &report);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let said = refused.json()["steps"][1]["error"].to_string();
    assert!(said.contains("foreign_commits") && said.contains("The stash was changed"), "{said}");
    assert_eq!(world.git(&["rev-parse", "mine", "stash@{0}"]), made);
    let id = report["rollback_id"].as_str().expect("an id");
    let done = world.cli.run(["rollback", "resume", id, "--force-commits", "--yes", "--json"]);
    assert_eq!(done.json()["status"], "done", "{done:?}");
    // What it moved in git is said, also later.
    let shown = world.cli.ok(["rollback", "show", id, "--format", "text"]);
    for said in ["stash 1 entry taken off, and kept", "main "] {
        assert!(done.json()["steps"][1]["made"]["git_moves"].to_string().contains(said), "{done:?}");
        assert!(shown.contains(said), "{shown}");
    }
    assert_eq!(world.git(&["stash", "list"]).trim(), "");
    assert_eq!(world.git(&["rev-parse", "mine"]).trim(), made.lines().next().expect("a commit"));
}

#[test]
fn work_whose_files_are_skipped_is_not_undone() {
    let world = in_git().begun();
    let dispatch = world.cli.ok(["dispatch", "create", &world.run, "--name", "work"]);
    world.ic(&["dispatch", "start", &dispatch]);
    let home = world.cli.home().display().to_string();
    let shell = format!("test -e {home}/repaired || exit 3");
    world.ic(&["compensation", "add", &world.run, "--step", "s", "--dispatch", &dispatch, "--shell", &shell]);
    world.write("of-the-work", "1\n");
    world.ic(&["dispatch", "complete", &dispatch]);
    let undone = world.cli.run(["undo", "--only", &dispatch, "--yes", "--json"]);
    assert_eq!(undone.json()["status"], "rolling_back", "{undone:?}");
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    // What a person wrote into its file while it was stopped is in the way.
    world.write("of-the-work", "by hand\n");
    let id = undone.json()["rollback_id"].as_str().expect("an id").to_owned();
    let stopped = world.cli.run(["rollback", "resume", &id, "--yes", "--json"]);
    assert_eq!(steps(&stopped.json())[..2], pairs(&[("effects", "done"), ("tree", "failed")]), "{stopped:?}");
    let skipped = world.cli.run(["rollback", "resume", &id, "--skip-step", "--reason", "x", "--yes", "--json"]);
    assert_eq!((skipped.code, skipped.json()["status"].as_str()), (Some(4), Some("done")), "{skipped:?}");
    assert_eq!(world.cli.json(["dispatch", "show", &dispatch])["rolled_back_by"], Value::Null);
    assert_eq!(world.text("of-the-work"), "by hand\n");
    let shown = world.cli.ok(["rollback", "show", &id, "--format", "text"]);
    assert!(shown.contains("is not all rolled back"), "{shown}");
}

#[test]
fn the_text_of_a_rollback_that_stopped_says_so_first_and_names_each_effect_once() {
    let world = story();
    world.effect("last", &["exit 3"]);
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=all", "--yes", "--format", "text"];
    let outcome = world.cli.run(words);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stdout.starts_with("rolling back "), "{}", outcome.stdout);
    let lines = |word: &str| outcome.stdout.lines().filter(|line| line.contains(word)).count();
    assert_eq!(
        (lines("last  not undone"), lines("stays  last"), lines("stays  mail")),
        (1, 0, 1),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_step_that_fails_can_be_passed_over_and_only_that() {
    let world = story();
    world.effect("last", &["exit 3"]);
    let report = stopped(&world, "a", &[]);
    let skip = ["rollback", "resume", &world.run, "--skip-step", "--yes", "--json"];
    let done = world.cli.json(skip);
    assert_eq!(steps(&done), pairs(&[("effects", "skipped"), ("tree", "done"), ("settle", "done")]));
    assert_eq!((world.status().as_str(), world.effects()), ("active@a", Vec::new()));
    let open = "SELECT count(*) FROM compensations WHERE state IN ('armed', 'failed')";
    assert_eq!(asked(&world.cli, open), 5, "a skipped effect can still be undone");
    assert_eq!(world.cli.refused(skip), (Some(1), "nothing_to_resume".to_owned()));
    let id = report["rollback_id"].as_str().expect("an id");
    let undone = world.cli.json(["redo", id, "--yes", "--json"]);
    assert_eq!(steps(&undone), pairs(&[("effects", "skipped"), ("tree", "as_before"), ("settle", "as_before")]));
    assert_eq!(world.status(), "active@d");
}

#[test]
fn a_stopped_rollback_is_given_up_and_says_what_stays_undone() {
    let world = story();
    let before = world.state();
    world.effect("first", &[]);
    let fails = ["compensation", "add", &world.run, "--step", "fails", "--shell", "exit 3"];
    world.ic(&fails);
    world.effect("last", &[]);
    stopped(&world, "a", &[]);
    let report = world.cli.json(["rollback", "abort", &world.run, "--yes", "--json"]);
    assert_eq!(report["status"], "aborted");
    let left: Vec<_> = report["effects_left"].as_array().expect("effects").iter().map(|e| &e["step"]).collect();
    assert_eq!(left, [&json!("last")]);
    world.state().assert_outside_is(&before, "aborted");
    assert_eq!(world.status(), "active@d");
    assert_eq!(
        world.cli.refused(["rollback", "abort", &world.run, "--yes"]),
        (Some(1), "nothing_to_resume".to_owned())
    );
    world.advance();
}

/// Another run records a file while the effects of this one are undone.
fn conflicting() -> (TestWorld, Value) {
    let world = story();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    let binary = env!("CARGO_BIN_EXE_ic");
    let root = world.cli.root().display().to_string();
    let record = format!("env -u IC_DB {binary} -C {root} dispatch record {dispatch} --file src/a.rs");
    world.effect("last", &[&record]);
    let report = stopped(&world, "a", &[]);
    (world, report)
}

#[test]
fn a_conflict_that_appears_after_the_fence_names_the_command_with_force() {
    let (world, report) = conflicting();
    assert_eq!(steps(&report), pairs(&[("effects", "done"), ("tree", "failed"), ("settle", "pending")]));
    let error = report["steps"][1]["error"].as_str().expect("an error");
    assert!(error.starts_with("file_conflict: ") && error.contains("src/a.rs"), "{error}");
    assert!(report["resume"].as_str().expect("a command").contains(" --force-files "), "{report}");
    let plain = world.cli.run(["rollback", "resume", &world.run, "--yes", "--json"]);
    assert_eq!(plain.code, Some(4), "{plain:?}");
    assert_eq!(world.read("src/a.rs").as_deref(), Some("not committed\n"));
    let done = go_on(&world, &report);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((world.status().as_str(), world.read("src/a.rs")), ("active@a", None));
    assert_eq!(world.effects(), ["last", "mail", "pay", "book"]);
    let text = world.cli.ok(["rollback", "show", report["rollback_id"].as_str().expect("an id"), "--format", "text"]);
    assert!(text.contains("done"), "{text}");
}

#[test]
fn a_conflict_that_appears_after_the_fence_can_be_passed_over_or_given_up() {
    let (world, _) = conflicting();
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--yes"]);
    assert_eq!((world.status().as_str(), world.read("src/a.rs").as_deref()), ("active@a", Some("not committed\n")));
    let (world, _) = conflicting();
    world.ic(&["rollback", "abort", &world.run, "--yes"]);
    assert_eq!((world.status().as_str(), world.read("src/a.rs").as_deref()), ("active@d", Some("not committed\n")));
}

#[test]
fn rows_that_another_run_may_have_written_meanwhile_are_decided_by_force() {
    let world = story_with_rows();
    let (binary, root) = (env!("CARGO_BIN_EXE_ic"), world.cli.root().display().to_string());
    let begins = format!("env -u IC_DB {binary} -C {root} run create --goal other --phases x,y");
    world.effect("last", &[&format!("test -e {root}/data/other || {{ touch {root}/data/other; {begins}; }}")]);
    let report = stopped(&world, "a", &[]);
    let states = [("effects", "done"), ("tree", "done"), ("data", "failed"), ("settle", "pending")];
    assert_eq!(steps(&report), pairs(&states));
    assert!(report["resume"].as_str().expect("a command").contains(" --force-files "), "{report}");
    let done = go_on(&world, &report);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(world.status(), "active@a");
    assert!(!world.rows().contains("built"), "{}", world.rows());
}

/// A run whose tree has a database that another process has open: a restore does not replace it.
fn with_database() -> (TestWorld, Connection) {
    let world = in_git();
    let database = Connection::open(world.cli.root().join("app.db")).expect("a database");
    database
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n); INSERT INTO t VALUES (1);")
        .expect("a table");
    drop(database);
    let world = world.begun();
    world.write("other", "old\n");
    world.advance();
    world.write("other", "new\n");
    let database = Connection::open(world.cli.root().join("app.db")).expect("the database");
    database
        .execute_batch("PRAGMA journal_mode = WAL; INSERT INTO t VALUES (2);")
        .expect("a row that only the log has");
    (world, database)
}

/// How many rows the database has.
fn rows(world: &TestWorld) -> i64 {
    let database = Connection::open(world.cli.root().join("app.db")).expect("the database");
    database.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("a count")
}

#[test]
fn a_path_that_cannot_be_put_back_stops_it_and_the_rest_is_done() {
    let (world, database) = with_database();
    let report = stopped(&world, "a", &[]);
    assert_eq!(steps(&report), pairs(&[("effects", "done"), ("tree", "failed"), ("settle", "pending")]));
    assert!(report["steps"][1]["error"].as_str().expect("an error").contains("app.db"), "{report}");
    assert_eq!(report["files"]["failed"][0]["path"], "app.db");
    assert_eq!((world.read("other").as_deref(), rows(&world)), (Some("old\n"), 2), "the rest is restored");
    drop(database);
    let done = go_on(&world, &report);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((world.status().as_str(), rows(&world)), ("active@a", 1));
}

#[test]
fn what_was_restored_in_two_goes_is_undone_in_two() {
    let (world, database) = with_database();
    let report = stopped(&world, "a", &[]);
    drop(database);
    let done = go_on(&world, &report);
    assert_eq!(done.code, Some(0), "{done:?}");
    let id = report["rollback_id"].as_str().expect("an id");
    let preview = world.cli.json(["redo", id, "--dry-run", "--json"]);
    let undone = world.cli.json(["redo", id, "--yes", "--json"]);
    assert_eq!(undone["files"].as_array().map(Vec::len), Some(2), "{undone}");
    for go in 0..2 {
        assert_eq!(preview["files"][go]["changes"], undone["files"][go]["changes"], "{preview}");
    }
    assert_eq!((world.read("other").as_deref(), rows(&world)), (Some("new\n"), 2));
    assert_eq!(world.status(), "active@b");
}

/// Whether the file `stuck` has such an attribute now.
fn changed(world: &TestWorld, flag: &str) -> bool {
    let mut chattr = Command::new("chattr");
    CliOutcome::of(chattr.arg(flag).arg(world.cli.root().join("stuck"))).code == Some(0)
}

#[test]
fn one_redo_brings_back_a_rollback_whose_restore_failed_and_was_skipped() {
    for goes in [1, 2, 3] {
        let world = in_git().begun();
        world.write("stuck", "old\n");
        world.write("other", "old\n");
        world.commit("base");
        world.advance();
        world.write("stuck", "new\n");
        world.write("other", "new\n");
        world.commit("work");
        let before = world.state();
        if !changed(&world, "+i") {
            println!("skipped: no file can be made immutable here");
            return;
        }
        stopped(&world, "a", &[]);
        let resume = ["rollback", "resume", &world.run, "--yes"];
        for _ in 1..goes {
            assert_eq!(world.cli.run(resume).code, Some(4));
        }
        world.ic(&[&resume[..], &["--skip-step", "--reason", "stuck"]].concat());
        assert!(changed(&world, "-i"));
        assert_eq!(world.read("other").as_deref(), Some("old\n"), "the rest was restored");
        world.ic(&["redo", "--yes"]);
        assert_eq!(world.status(), "active@b", "{goes} goes");
        world.state().assert_outside_is(&before, "restored");
    }
}

#[test]
fn what_a_person_changed_while_a_rollback_was_stopped_is_asked_about() {
    let world = in_git().begun();
    for path in ["stuck", "other", "mine"] {
        world.write(path, "old\n");
    }
    world.commit("base");
    world.advance();
    world.write("stuck", "new\n");
    world.write("other", "new\n");
    if !changed(&world, "+i") {
        println!("skipped: no file can be made immutable here");
        return;
    }
    stopped(&world, "a", &[]);
    assert!(changed(&world, "-i"));
    for path in ["stuck", "other", "mine", "fresh"] {
        world.write(path, "own\n");
    }
    let resume = ["rollback", "resume", &world.run, "--yes"];
    let outcome = world.cli.run(resume);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stdout.contains("stuck (changed since this restore stopped)"), "{outcome:?}");
    for path in ["other", "mine", "fresh"] {
        assert!(!outcome.stdout.contains(&format!("{path} (")), "it is done there: {outcome:?}");
    }
    world.ic(&[&resume[..], &["--force-files"]].concat());
    let left = ["stuck", "other", "mine", "fresh"].map(|path| world.text(path));
    assert_eq!(left, ["old\n", "own\n", "own\n", "own\n"]);
}

#[test]
fn an_undo_that_cannot_put_a_path_back_says_so_and_is_made_again() {
    let world = in_git().begun();
    world.write("stuck", "old\n");
    world.write("other", "old\n");
    world.advance();
    world.write("stuck", "new\n");
    world.write("other", "new\n");
    let report = world.roll_back("a", &[]);
    let change = |flag: &str| changed(&world, flag);
    if !change("+i") {
        println!("skipped: no file can be made immutable here");
        return;
    }
    let id = report["rollback_id"].as_str().expect("an id");
    let outcome = world.cli.run(["redo", id, "--yes", "--json"]);
    assert!(change("-i"));
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let said = outcome.json();
    assert_eq!((&said["status"], world.status().as_str()), (&json!("stopped"), "rolling_back@a"), "{said}");
    assert_eq!(said["files"][0]["failed"][0]["path"], "stuck", "{said}");
    assert_eq!(world.read("other").as_deref(), Some("new\n"), "the rest is restored");
    let undone = go_on(&world, &said);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!((world.status().as_str(), world.read("stuck").as_deref()), ("active@b", Some("new\n")));
}

#[test]
fn a_reason_that_is_a_sentence_ends_once() {
    let world = in_git().begun();
    let open = || Connection::open(world.cli.root().join("w.db")).expect("a database");
    open().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n); INSERT INTO t VALUES (1)").expect("a row");
    world.advance();
    open().execute_batch("INSERT INTO t VALUES (2)").expect("a row");
    let report = {
        let reader = open();
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").expect("look at it");
        stopped(&world, "a", &["--layer=workflow,files"])
    };
    let error = report["steps"][1]["error"].as_str().expect("an error");
    assert!(error.contains("database_in_use") && error.ends_with('.') && !error.ends_with(".."), "{error}");
}

#[test]
fn the_rollback_of_a_workflow_is_undone_with_its_files_and_made_again() {
    let world = in_git();
    world.write("flow.yaml", "name: w\nsteps:\n  - {id: one, phase: p, run: 'echo x > made', compensate: skip}\n  - {id: two, phase: q, run: 'exit 1', compensate: skip}\n");
    world.commit("flow");
    let outcome = world.cli.run(["workflow", "run", "flow.yaml", "--on-failure", "rollback", "--json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(world.read("made"), None);
    let run = outcome.json()["run_id"].as_str().expect("an id").to_owned();
    let shown = |what: &str| world.cli.json(["workflow", "show", &run, "--json"])[what].clone();
    assert_eq!(shown("status"), "rolled_back");
    // Undone, it is as the failed workflow left it: files, steps and status; made again, it is rolled back again.
    world.ic(&["redo", "--run", &run, "--yes"]);
    assert_eq!((world.read("made").as_deref(), shown("status")), (Some("x\n"), "stopped".into()));
    assert_eq!(shown("steps")[0]["status"], "succeeded");
    world.ic(&["workflow", "rollback", &run, "--yes"]);
    assert_eq!((world.read("made"), shown("status")), (None, "rolled_back".into()));
}
