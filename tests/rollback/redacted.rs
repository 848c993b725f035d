//! What a rollback, its undo and its resumption do is told by columns: a redaction changes no deed, and a word that is not known stops it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::project::{Work as _, asked, in_git};
use crate::story::{story, story_with_rows};

/// Takes the text out of every event of a type.
fn redact(world: &TestWorld, event_type: &str) {
    let events = world.cli.json(["run", "events", &world.run, "--json"]);
    let mut all = events.as_array().expect("events").iter().filter(|event| event["kind"] == event_type).peekable();
    assert!(all.peek().is_some(), "no {event_type}: {events}");
    for event in all {
        world.ic(&["events", "redact", &event["seq"].to_string(), "--reason", "a token"]);
    }
}

fn newest(world: &TestWorld) -> Value {
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    list.as_array().expect("a list").last().expect("a rollback").clone()
}

/// A run whose rollback is done, and whose only effect may be undone: the process that undid it was killed.
fn with_an_effect_that_nobody_knows() -> TestWorld {
    let world = in_git().begun();
    let home = world.cli.home().to_owned();
    world.advance();
    let line = format!("touch {}/begun; sleep 5", home.display());
    world.ic(&["compensation", "add", &world.run, "--step", "slow", "--shell", &line]);
    let mut command = world.cli.command(world.all("a", &["--yes"]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    let started = Instant::now();
    while !home.join("begun").exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("kill it");
    child.wait().expect("its end");
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--reason", "x", "--yes"]);
    world
}

#[test]
fn a_redaction_does_not_change_what_an_undo_does() {
    let world = with_an_effect_that_nobody_knows();
    let id = newest(&world)["id"].as_str().expect("an id").to_owned();
    let undo = ["redo", &id, "--yes", "--json"];
    for when in ["before", "after"] {
        let outcome = world.cli.run(undo);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "effects_undone"), "{when}: {outcome:?}");
        assert!(outcome.stderr.contains("--without-effects"), "{when}: {outcome:?}");
        assert_eq!(world.status(), "active@a", "{when}");
        if when == "before" {
            redact(&world, "compensation_failed");
        }
    }
    world.ic(&["redo", &id, "--without-effects", "--yes"]);
    assert_eq!(world.status(), "active@b");
}

/// A rollback that waits at the restore, because another run recorded a file since.
fn stopped_at_the_tree() -> TestWorld {
    let world = in_git().begun();
    world.write("README", "ours\n");
    world.commit("ours");
    world.advance();
    world.write("README", "newer\n");
    world.commit("newer");
    world.ic(&["compensation", "add", &world.run, "--step", "stubborn", "--shell", "exit 3"]);
    assert_eq!(world.cli.run(world.all("a", &["--yes"])).code, Some(4));
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    world.write("README", "theirs\n");
    world.ic(&["dispatch", "record", &dispatch, "--file", "README"]);
    let skip = ["rollback", "resume", &world.run, "--skip-step", "--reason", "x", "--yes"];
    assert_eq!(world.cli.run(skip).code, Some(4));
    world
}

#[test]
fn a_redaction_does_not_change_how_a_rollback_is_resumed() {
    let world = stopped_at_the_tree();
    let id = newest(&world)["id"].as_str().expect("an id").to_owned();
    let show = || world.cli.json(["rollback", "show", &id, "--json"]);
    let resume = show()["resume"].clone();
    assert!(resume.as_str().expect("a command").contains("--force"), "{resume}");
    redact(&world, "rollback_stopped");
    let shown = show();
    let tree = shown["steps"].as_array().expect("steps").iter().find(|step| step["layer"] == "tree");
    assert!(tree.expect("the tree")["error"].is_null(), "{shown}");
    assert_eq!(shown["resume"], resume, "{shown}");
}

fn break_journal(world: &TestWorld, damage: &str) {
    world.cli.sql(damage);
}

/// Changes the plan of the only rollback in the journal.
fn break_plan(world: &TestWorld, damage: impl FnOnce(&mut Value)) {
    let mut plan = serde_json::from_str(&world.cli.sql("SELECT plan FROM rollbacks")).expect("a plan");
    damage(&mut plan);
    world.cli.sql(&format!("UPDATE rollbacks SET plan = '{}'", plan.to_string().replace('\'', "''")));
}

/// What an older program, or a damaged disk, could leave: nothing is guessed, and neither tree nor rows are touched.
#[test]
fn an_unknown_word_in_a_journal_stops_the_rollback() {
    let row =
        |sql: &'static str| Box::new(move |world: &TestWorld| break_journal(world, sql)) as Box<dyn Fn(&TestWorld)>;
    let plan = |key: &'static str, value: Option<Value>| {
        Box::new(move |world: &TestWorld| {
            break_plan(world, |plan| {
                let choices = plan["choices"].as_object_mut().expect("choices");
                match &value {
                    Some(value) => choices.insert(key.to_owned(), value.clone()),
                    None => choices.remove(key),
                };
            });
        }) as Box<dyn Fn(&TestWorld)>
    };
    let damages = [
        ("an unknown course", row("UPDATE rollback_steps SET course = 'sideways' WHERE layer = 'settle'")),
        ("no course", row("UPDATE rollback_steps SET course = NULL WHERE layer = 'settle'")),
        ("an unknown strategy", plan("strategy", Some(json!("everything")))),
        ("force as a word", plan("force", Some(json!("yes")))),
        ("an unknown choice", plan("gently", Some(json!(true)))),
        ("no force", plan("force", None)),
    ];
    for (damage, apply) in damages {
        let world = stopped_at_the_tree();
        apply(&world);
        let before = world.state();
        let outcome = world.cli.run(["rollback", "resume", &world.run, "--force", "--yes", "--json"]);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(matches!(outcome.code, Some(2 | 4)) && said.contains("corrupt"), "{damage}: {outcome:?}");
        world.state().assert_outside_is(&before, damage);
        assert_eq!(world.status(), "rolling_back@b", "{damage}");
    }
}

#[test]
fn a_database_of_the_journal_that_cannot_be_read_is_not_that_of_the_configuration() {
    let world = story_with_rows();
    world.ic(&["compensation", "add", &world.run, "--step", "stubborn", "--shell", "exit 3"]);
    assert_eq!(world.cli.run(world.all("a", &["--yes"])).code, Some(4));
    break_plan(&world, |plan| plan["choices"]["state"] = json!({ "database": 5 }));
    let before = world.state();
    let outcome = world.cli.run(["rollback", "resume", &world.run, "--skip-step", "--reason", "x", "--yes", "--json"]);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.code == Some(4) && said.contains("corrupt: "), "{outcome:?}");
    world.state().assert_outside_is(&before, "nothing went");
    assert_eq!(asked(&world.cli, "SELECT count(*) FROM rollback_steps WHERE error_code = 'corrupt'"), 1);
}

#[test]
fn a_run_whose_status_before_is_not_known_is_not_made_active_by_an_undo() {
    let world = story();
    let id = world.roll_back("a", &[])["rollback_id"].as_str().expect("an id").to_owned();
    let sound = world.cli.sql("SELECT plan FROM rollbacks").replace('\'', "''");
    for status in [Some(json!("asleep")), None] {
        break_plan(&world, |plan| {
            let plan = plan.as_object_mut().expect("a plan");
            match &status {
                Some(status) => plan.insert("run_status".to_owned(), status.clone()),
                None => plan.remove("run_status"),
            };
        });
        let before = world.state();
        for yes in ["--dry-run", "--yes"] {
            let outcome = world.cli.run(["redo", &id, "--without-effects", yes, "--json"]);
            assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "corrupt"), "{status:?}: {outcome:?}");
        }
        world.state().assert_is(&before, &format!("{status:?}"));
        break_journal(&world, &format!("UPDATE rollbacks SET plan = '{sound}'"));
    }
    world.ic(&["redo", &id, "--without-effects", "--yes"]);
    assert_eq!(world.status(), "active@d");
}

#[test]
fn a_rollback_whose_run_has_no_known_status_is_not_abandoned() {
    let world = stopped_at_the_tree();
    break_plan(&world, |plan| plan["run_status"] = json!("asleep"));
    let before = world.state();
    for yes in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(["rollback", "abort", &world.run, yes, "--json"]);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "corrupt"), "{outcome:?}");
    }
    world.state().assert_outside_is(&before, "refused");
    assert_eq!(world.status(), "rolling_back@b");
}
