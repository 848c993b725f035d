//! Ctrl-C, and being asked to end: what is under way is ended and recorded, nothing further begins, and a command goes on.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{CliOutcome, TestWorld, signals, wait_for};
use serde_json::{Value, json};

use crate::project::{WHOLE, Work as _, asked, in_git};
use crate::rows::Rows as _;
use crate::statements::dead_before;
use crate::story::{story, story_with_rows};

pub(crate) fn start(world: &TestWorld, words: &[&str]) -> Child {
    let mut command = world.cli.command(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic")
}

/// Interrupts a call, which must end in good order with something left; returns its report.
fn interrupt(child: Child, signal: &str) -> Value {
    signals::send_to(signal, child.id());
    finish(child)
}

fn finish(child: Child) -> Value {
    let outcome = CliOutcome::at_end_of(child);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    outcome.json()
}

#[test]
fn an_interrupted_rollback_ends_what_it_had_begun_and_names_the_command_that_goes_on() {
    let world = story();
    let home = world.cli.home().display().to_string();
    // The undo succeeds at once if `repaired` exists. Otherwise it hangs, and `ran` shows that it was left to run to its end.
    let hangs = format!("test -e {home}/repaired || {{ touch {home}/begun; sleep 20; touch {home}/ran; exit 3; }}");
    world.effect("last", &[&hangs]);
    let before = world.state();
    let begun = world.cli.home().join("begun");
    let id = || world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    let started = Instant::now();
    for signal in signals::that_end() {
        let (words, is_first) = match signal {
            "INT" => (world.all("a", &["--yes"]).join(" "), true),
            _ => (format!("rollback resume {} --yes --json", id()), false),
        };
        let child = start(&world, &words.split(' ').collect::<Vec<_>>());
        wait_for("the effect is being undone", || begun.exists());
        let report = interrupt(child, signal);
        std::fs::remove_file(&begun).expect("it was begun");
        assert_eq!(report["status"], if is_first { "rolling_back" } else { "stopped" }, "{report}");
        assert_eq!(report["steps"][0]["status"], "failed", "{report}");
        let error = report["steps"][0]["error"].as_str().expect("an error");
        assert!(error.ends_with("it was interrupted"), "{error}");
        assert_eq!(report["resume"], format!("ic rollback resume {} --yes", &id()[id().len() - 8..]));
        world.state().assert_outside_is(&before, "interrupted");
    }
    assert!(started.elapsed() < Duration::from_secs(18) && !world.cli.home().join("ran").exists());
    assert_eq!(asked(&world.cli, "SELECT count(*) FROM compensations WHERE state = 'running'"), 0);
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert_eq!((world.status().as_str(), world.effects().join(" ").as_str()), ("active@a", "last mail pay book"));
}

/// Tells the process that runs it to stop, and is done.
const INTERRUPTS: &str = "kill -INT $PPID";

/// A rollback that is interrupted by the first effect that it undoes, which succeeds; its report.
fn interrupted_by_an_effect(world: &TestWorld, is_undone: impl Fn(&Value) -> bool) -> Value {
    world.ic(&["compensation", "add", &world.run, "--step", "last", "--shell", INTERRUPTS]);
    world.save(&WHOLE);
    for _ in 0..30 {
        let outcome = world.cli.run(world.all("a", &["--yes"]));
        assert_eq!(outcome.code, Some(4), "{outcome:?}");
        let report = outcome.json();
        // It may be ended itself before it ended.
        if is_undone(&report) {
            return report;
        }
        world.reset(&WHOLE);
    }
    panic!("it was ended before it ended thirty times");
}

#[test]
fn a_rollback_that_is_interrupted_before_it_began_changes_nothing() {
    let world = story();
    let (before, status) = (world.state(), world.status());
    let bin = world.cli.home().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    let git = bin.join("git");
    let path = std::env::var("PATH").expect("a PATH");
    std::fs::write(
        &git,
        format!("#!/bin/sh\nPATH='{path}'\nmkdir \"$0.said\" 2>&- && {INTERRUPTS}\nexec git \"$@\"\n"),
    )
    .expect("a program");
    std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it runs");
    let mut command = world.cli.command(world.all("a", &["--yes"]));
    let outcome = CliOutcome::of(command.env("PATH", format!("{}:{path}", bin.display())));
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "interrupted"), "{outcome:?}");
    assert!(outcome.stderr.contains("interrupted before it began"), "{outcome:?}");
    world.state().assert_is(&before, "interrupted");
    assert_eq!((world.status(), asked(&world.cli, "SELECT count(*) FROM rollbacks")), (status, 0));
}

#[test]
fn an_interrupted_rollback_begins_no_further_step() {
    let world = in_git().with_rows().begun();
    world.advance();
    world.write("made", "since\n");
    let report = interrupted_by_an_effect(&world, |report| report["steps"][0]["status"] == "done");
    assert_eq!((&report["steps"][1]["status"], &report["steps"][1]["error"]), (&json!("pending"), &Value::Null));
    assert_eq!(world.read("made").as_deref(), Some("since\n"));
    let events = world.cli.json(["events", "tail", &world.run, "--json"]);
    let stopped = events.as_array().and_then(|all| all.last()).expect("an event");
    assert_eq!(stopped["kind"], "rollback_stopped");
    assert_eq!((&stopped["reason"], &stopped["payload"]["step"]), (&json!("it was interrupted"), &json!("tree")));
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert_eq!((world.status().as_str(), world.read("made")), ("active@a", None));
}

#[test]
fn an_interrupted_rollback_undoes_no_further_effect() {
    let world = story();
    let report = interrupted_by_an_effect(&world, |report| {
        report["steps"][0]["error"].as_str().is_some_and(|error| error.contains("3 effects are not undone"))
    });
    assert_eq!((&report["steps"][0]["status"], world.effects()), (&json!("failed"), Vec::new()), "{report}");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert_eq!((world.status().as_str(), world.effects().len()), ("active@a", 3));
}

#[test]
fn what_is_interrupted_before_its_end_alone_is_ended() {
    let world = story_with_rows();
    let application = world.connect();
    application.execute_batch("BEGIN IMMEDIATE").expect("begin to write");
    let child = start(&world, &world.all("a", &["--yes", "--busy-timeout", "30s"]));
    let waits = "SELECT count(*) FROM rollback_steps WHERE state = 'running' AND layer = 'data'";
    wait_for("the rows are being removed", || asked(&world.cli, waits) == 1);
    is_interrupted(&child);
    application.execute_batch("ROLLBACK").expect("end it");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(world.status(), "active@a");
}

/// A call that stops when its step with rows is made, because of what happens while they wait for the application; returns its
/// report.
pub(crate) fn stopped_between(world: &TestWorld, words: &[&str], happens: impl FnOnce(&Child)) -> Value {
    let application = world.connect();
    application.execute_batch("BEGIN IMMEDIATE").expect("begin to write");
    let child = start(world, &[words, &["--yes", "--json", "--busy-timeout", "30s"]].concat());
    let waits = "SELECT count(*) FROM rollback_steps WHERE state = 'running' AND layer = 'data'";
    wait_for("the rows wait", || asked(&world.cli, waits) == 1);
    happens(&child);
    application.execute_batch("ROLLBACK").expect("end it");
    let stopped = finish(child);
    assert_eq!(stopped["status"], "stopped", "{stopped}");
    stopped
}

/// A rollback whose undo stops when its rows are back; returns the rollback's id and the undo's report.
pub(crate) fn undo_stopped_between(world: &TestWorld, happens: impl FnOnce(&Child)) -> (String, Value) {
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id").to_owned();
    let stopped = stopped_between(world, &["redo", &id, "--without-effects"], happens);
    (id, stopped)
}

/// Another run in the same tree begins to work, so every change of the tree is refused; returns its dispatch.
pub(crate) fn other_at_work(world: &TestWorld) -> String {
    let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.ic(&["dispatch", "create", &other]);
    world.ic(&["dispatch", "start", &dispatch, "--pid", &ic_testkit::living_process().to_string()]);
    dispatch
}

/// Ctrl-C.
pub(crate) fn is_interrupted(child: &Child) {
    signals::send_to("INT", child.id());
    std::thread::sleep(Duration::from_millis(50));
}

#[test]
fn an_interrupted_undo_finishes_the_step_that_it_makes_and_begins_no_other() {
    let world = story_with_rows();
    let before = world.state();
    world.save(&WHOLE);
    world.roll_back("a", &[]);
    let back = world.state();
    world.reset(&WHOLE);
    let (_, report) = undo_stopped_between(&world, is_interrupted);
    let states: Vec<&Value> = report["steps"].as_array().expect("steps").iter().map(|step| &step["status"]).collect();
    assert_eq!(states, [&json!("done"), &json!("done"), &json!("as_before"), &json!("pending")], "{report}");
    let now = world.state();
    assert!(now.rows == before.rows && now.tree == back.tree && now.git == back.git);
    let command = report["resume"].as_str().expect("a command").to_owned();
    world.ic(&command.split(' ').skip(1).collect::<Vec<_>>());
    world.state().assert_outside_is(&before, "undone");
    assert_eq!(world.status(), "active@d");
}

#[test]
fn an_undo_that_is_begun_again_puts_back_what_was_passed_over_and_its_preview_says_so() {
    let world = story_with_rows();
    let before = world.state();
    let mut dispatch = String::new();
    let (id, _) = undo_stopped_between(&world, |_| dispatch = other_at_work(&world));
    // An abort goes forward again, which the same work blocks, too. With that step skipped, the rows are in use.
    let given_up = world.cli.run(["rollback", "abort", &id, "--yes", "--json"]);
    assert_eq!(given_up.code, Some(4), "{given_up:?}");
    let preview = world.cli.run(["rollback", "abort", &id, "--dry-run", "--json"]);
    assert_eq!(preview.error(), "work_running", "the tree is left: {preview:?}");
    let application = world.connect();
    application.execute_batch("BEGIN IMMEDIATE").expect("begin to write");
    let passed_over =
        world.cli.run(["rollback", "resume", &id, "--skip-step", "--yes", "--json", "--busy-timeout", "50ms"]);
    application.execute_batch("ROLLBACK").expect("end it");
    let stopped = passed_over.json();
    let states: Vec<&Value> = stopped["steps"].as_array().expect("steps").iter().map(|step| &step["status"]).collect();
    assert_eq!(states, [&json!("done"), &json!("skipped"), &json!("failed"), &json!("pending")], "{stopped}");
    assert_eq!((passed_over.code, &stopped["course"]), (Some(4), &json!("reapply")));

    world.ic(&["dispatch", "complete", &dispatch]);
    let undo = ["redo", &id, "--without-effects", "--json"];
    let preview = world.cli.json(undo.iter().chain(&["--dry-run"]));
    let undone = world.cli.json(undo.iter().chain(&["--yes"]));
    world.state().assert_outside_is(&before, "undone");
    assert_eq!(world.status(), "active@d");
    let changes = |report: &Value| report["files"].as_array().expect("reports")[0]["changes"].clone();
    assert!(!changes(&undone).as_array().expect("changes").is_empty(), "{undone}");
    assert_eq!(changes(&preview), changes(&undone));
    assert_eq!(preview["data"], undone["data"]);
}

#[test]
fn what_others_do_while_an_undo_is_under_way_is_decided_by_force_and_kept() {
    let world = story_with_rows();
    world.effect("script", &["echo by a script > kept/plan.md"]);
    let before = world.state();
    let (_, stopped) = undo_stopped_between(&world, |_| {
        world.write("README", "mine\n");
        world.write("kept/plan.md", "mine, too\n");
        other_at_work(&world);
    });
    let command = stopped["resume"].as_str().expect("a command");
    assert!(command.contains(" --force "), "{stopped}");
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let plain = world.cli.run(words.iter().filter(|word| **word != "--force"));
    assert_eq!((plain.code, world.read("README").as_deref()), (Some(4), Some("mine\n")), "{plain:?}");
    world.ic(&words);
    world.state().assert_outside_is(&before, "undone");
    let checkpoints = world.cli.json(["checkpoint", "list", "--json"]);
    let holds = |path: &str, content: &str| {
        let cat = |id: &Value| world.cli.run(["checkpoint", "cat", id.as_str().expect("an id"), path]);
        checkpoints.as_array().expect("checkpoints").iter().any(|one| cat(&one["id"]).stdout == content)
    };
    assert!(holds("README", "mine\n") && holds("kept/plan.md", "mine, too\n"));
}

#[test]
fn the_preview_of_an_abort_takes_an_interrupted_restore_to_be_finished() {
    let world = story();
    let before = world.state();
    dead_before(&world, &world.all("a", &["--yes"]), 5);
    let dump = world.cli.dump();
    let preview = world.cli.json(["rollback", "abort", &world.run, "--dry-run", "--json"]);
    assert_eq!(world.cli.dump(), dump, "a look changed the ledger");
    let done = world.cli.json(["rollback", "abort", &world.run, "--yes", "--json"]);
    let changes = |report: &Value| {
        let all = report["files"][0]["changes"].as_array().expect("changes").clone();
        all.into_iter().map(|one| json!([one["path"], one["change"]])).collect::<Vec<_>>()
    };
    assert_eq!(changes(&preview), changes(&done));
    world.state().assert_outside_is(&before, "aborted");
}

/// The paths of files that a report names.
fn files_of(report: &Value) -> BTreeSet<String> {
    let files = report["files"].as_array().map_or_else(|| vec![report["files"].clone()], Clone::clone);
    let changes = files.iter().flat_map(|one| one["changes"].as_array().cloned().unwrap_or_default());
    changes.map(|one| one["path"].as_str().expect("a path").to_owned()).collect()
}

/// A call that restores the tree dies at each commit from its end, in the midst of its restore too, as the journal has it; one file is as
/// if the restore had not come to it. What resuming would restore is what it does.
fn assert_resuming_is_what_is_left(world: &TestWorld, words: &[&str], file: &str) {
    world.save(&WHOLE);
    let before = world.read(file);
    let names = files_of(&world.cli.json([words, &["--dry-run"]].concat()));
    world.cli.run([words, &["--yes"]].concat());
    let wanted = world.state();
    // Directories have no content.
    let content = |name: &str| std::fs::read(world.root().join(name)).ok();
    let contents = || names.iter().map(|name| (name.clone(), content(name))).collect::<Vec<_>>();
    let mut died_in_it = 0;
    for from_the_last in 1..14 {
        world.reset(&WHOLE);
        dead_before(world, &[words, &["--yes"]].concat(), from_the_last);
        if asked(&world.cli, "SELECT count(*) FROM rollbacks WHERE status = 'in_progress'") == 0 {
            break;
        }
        let when = format!("{words:?} died before the commit that is {from_the_last}. from the last");
        if asked(&world.cli, "SELECT count(*) FROM restores WHERE state <> 'applied'") > 0 {
            died_in_it += 1;
            match &before {
                Some(text) => world.write(file, text),
                None => std::fs::remove_file(world.root().join(file)).unwrap_or_default(),
            }
        }
        let there = contents();
        let resume = ["rollback", "resume", &world.run, "--json"];
        let preview = world.cli.json([&resume[..], &["--dry-run"]].concat());
        assert!(preview["refusals"].is_null(), "{when}: {preview}");
        world.cli.ok([&resume[..], &["--yes"]].concat());
        let is_file =
            |name: &str| there.iter().any(|(one, was)| one == name && was.is_some()) || content(name).is_some();
        let to_restore: BTreeSet<String> = files_of(&preview).into_iter().filter(|name| is_file(name)).collect();
        let pairs = there.iter().zip(contents());
        let left: BTreeSet<String> = pairs.filter(|(was, is)| *was != is).map(|((name, _), _)| name.clone()).collect();
        assert_eq!(to_restore, left, "{when}: {preview}");
        world.state().assert_outside_is(&wanted, &when);
    }
    assert!(died_in_it > 0);
}

#[test]
fn what_a_killed_rollback_has_left_to_restore_is_what_its_preview_names() {
    let world = story();
    assert_resuming_is_what_is_left(&world, &world.all("a", &["--json"]), "README");
}

#[test]
fn what_a_killed_redo_has_left_to_restore_is_what_its_preview_names() {
    let world = story();
    let id = world.roll_back("a", &[])["rollback_id"].as_str().expect("an id").to_owned();
    let words = ["redo", &id, "--without-effects", "--json"];
    assert_resuming_is_what_is_left(&world, &words, "README");
}

#[test]
fn what_a_killed_redo_of_one_dispatch_has_left_to_restore_is_what_its_preview_names() {
    let world = in_git().begun();
    for name in ["one", "two"] {
        let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
        world.ic(&["dispatch", "start", &id]);
        world.write(name, "made\n");
        world.write(&format!("also-{name}"), "made\n");
        world.ic(&["dispatch", "complete", &id]);
    }
    let all = world.cli.json(["dispatch", "list", "--json"]);
    let one = all.as_array().expect("a list").iter().find(|one| one["name"] == "one").expect("it")["id"].clone();
    let undone = world.cli.json(["undo", "--only", one.as_str().expect("an id"), "--yes", "--json"]);
    let id = undone["rollback_id"].as_str().expect("an id").to_owned();
    assert_eq!((world.read("one"), world.read("two").as_deref()), (None, Some("made\n")));
    assert_resuming_is_what_is_left(&world, &["redo", &id, "--json"], "one");
}

#[test]
fn what_a_rollback_restored_before_it_died_is_counted() {
    let world = story();
    world.save(&WHOLE);
    let words = world.all("a", &["--yes", "--json"]);
    let kept = |world: &TestWorld| {
        let shown = world.cli.json(["rollback", "show", &world.run, "--json"]);
        let steps = shown["steps"].as_array().expect("steps").clone();
        steps.into_iter().find(|step| step["layer"] == "tree").expect("its step")["made"]["path_count"].clone()
    };
    world.cli.json(&words);
    let wanted = kept(&world);
    assert!(wanted.as_u64() > Some(0), "{wanted}");
    for from_the_last in 1..14 {
        world.reset(&WHOLE);
        dead_before(&world, &words, from_the_last);
        if asked(&world.cli, "SELECT count(*) FROM rollbacks WHERE status = 'in_progress'") == 0 {
            break;
        }
        world.cli.ok(["rollback", "resume", &world.run, "--yes"]);
        assert_eq!(kept(&world), wanted, "it died before the commit that is {from_the_last}. from the last");
    }
}

/// An exact undo restores a whole tree, and a file that came while it was dead is none of it.
#[test]
fn what_a_person_makes_while_an_undo_is_dead_stays_by_every_resume() {
    let world = in_git().begun();
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "many"]);
    world.ic(&["dispatch", "start", &id]);
    for name in ["one", "two", "three"] {
        world.write(name, "made\n");
    }
    world.ic(&["dispatch", "complete", &id]);
    let words = ["undo", "created", "--run", &world.run, "--yes"];
    world.save(&WHOLE);
    let mut died_in_it = 0;
    for force in [None, Some(&"--force-files")] {
        for from_the_last in 1..14 {
            world.reset(&WHOLE);
            dead_before(&world, &words, from_the_last);
            if asked(&world.cli, "SELECT count(*) FROM rollbacks WHERE status = 'in_progress'") == 0 {
                break;
            }
            if asked(&world.cli, "SELECT count(*) FROM restores WHERE state <> 'applied'") == 0 {
                continue;
            }
            died_in_it += 1;
            world.write("notes", "mine\n");
            let resume = ["rollback", "resume", &world.run, "--yes"];
            world.cli.ok(resume.iter().chain(force));
            let is = ["one", "two", "three", "notes"].map(|name| world.read(name));
            assert_eq!(is, [None, None, None, Some("mine\n".to_owned())], "{force:?}, {from_the_last}. from the last");
        }
    }
    assert!(died_in_it > 1);
}
