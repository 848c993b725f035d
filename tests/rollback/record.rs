//! What is recorded of an undo: that it began and why, each step, what stopped it, and its end.

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::interrupted::{is_interrupted, undo_stopped_between};
use crate::project::{Work as _, asked, in_git, without_git};
use crate::statements::dead_before_the_end;
use crate::story::{story, story_with_rows};

/// What was recorded about rollbacks after event `since`: type, from and to, reason, the payload's step and course, epoch.
fn record(world: &TestWorld, since: i64) -> Vec<Value> {
    let events = world.cli.json(["events", "tail", &world.run, "--since", &since.to_string(), "--json"]);
    let all = events.as_array().expect("events").iter();
    all.filter(|event| event["kind"].as_str().is_some_and(|name| name.starts_with("rollback")))
        .map(|event| {
            assert_eq!(event["subject_id"], id_of_last(world), "{event}");
            let payload = &event["payload"];
            json!([
                event["kind"], event["from"], event["to"], event["reason"], payload["step"], payload["course"],
                event["epoch"]
            ])
        })
        .collect()
}

fn id_of_last(world: &TestWorld) -> Value {
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    list.as_array().and_then(|all| all.last()).expect("a rollback")["id"].clone()
}

fn newest(world: &TestWorld) -> i64 {
    asked(&world.cli, "SELECT max(seq) FROM events")
}

/// The reason up to the first colon: a code.
fn code_of(event: &Value) -> &str {
    event[3].as_str().and_then(|reason| reason.split(':').next()).expect("a reason")
}

#[test]
fn a_rollback_is_on_record_step_by_step() {
    let world = story_with_rows();
    let since = newest(&world);
    world.roll_back("a", &["--reason", "wrong"]);
    let expected = [
        json!(["rollback_begun", "d", "a", "wrong", null, null, 1]),
        json!(["rollback_step_done", null, null, null, "effects", null, 1]),
        json!(["rollback_step_done", null, null, null, "tree", null, 1]),
        json!(["rollback_step_done", null, null, null, "data", null, 1]),
        json!(["rollback", "d", "a", "wrong", null, null, 1]),
    ];
    assert_eq!(record(&world, since), expected);
    let events = world.cli.json(["events", "tail", &world.run, "--json"]);
    let payload_of = |name: &str| {
        let found = events.as_array().and_then(|all| all.iter().find(|event| event["kind"] == name));
        found.expect("an event")["payload"].clone()
    };
    let (begun, payload) = (payload_of("rollback_begun"), payload_of("rollback"));
    let shown = world.cli.json(["rollback", "list", &world.run, "--json"])[0].clone();
    for part in ["layers", "cut_seq", "include_target", "plan_hash"] {
        assert_eq!(payload[part], shown[part], "{part}");
    }
    assert_eq!(begun, json!({ "layers": shown["layers"], "cut_seq": shown["cut_seq"] }));
    assert_eq!((&payload["rollback_id"], &payload["rolled_back_phases"]), (&shown["id"], &json!(["b", "c", "d"])));
}

#[test]
fn an_agent_goes_with_the_work_that_it_does_though_it_was_there_before() {
    let world = in_git().begun();
    let dispatch = world.ic(&["dispatch", "create", &world.run, "--phase", "b"]);
    world.ic(&["run", "agent", "add", &world.run, "--type", "codex", "--dispatch", &dispatch]);
    world.advance();
    world.write("made", "since\n");
    world.roll_back("a", &[]);
    assert_eq!(asked(&world.cli, "SELECT count(*) FROM run_agents WHERE rolled_back_by IS NOT NULL"), 1);
}

#[test]
fn what_stopped_a_rollback_is_on_record_and_what_it_was_forced_to_is_remembered() {
    let world = story_with_rows();
    let home = world.cli.home().display().to_string();
    world.ic(&["compensation", "add", &world.run, "--step", "publish", "--pivot"]);
    world.effect("last", &[&format!("test -e {home}/repaired || exit 3")]);
    world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
    let outcome = world.cli.run(world.all("a", &["--force", "--yes"]));
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let stopped = record(&world, 0).pop().expect("an event");
    assert_eq!((&stopped[0], code_of(&stopped)), (&json!("rollback_stopped"), "effect_failed"), "{stopped}");
    assert_eq!((&stopped[4], &stopped[6]), (&json!("effects"), &json!(1)));
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    // Effects beyond what cannot be undone, and rows that another run may have written, go, as it was decided when it began.
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert_eq!((world.status().as_str(), world.effects().join(" ").as_str()), ("active@a", "last mail pay book"));
    assert!(!world.rows().contains("built"), "{}", world.rows());
}

#[test]
fn an_undo_is_on_record_with_its_reason() {
    let world = story_with_rows();
    let report = world.roll_back("a", &[]);
    let since = newest(&world);
    let id = report["rollback_id"].as_str().expect("an id");
    world.ic(&["redo", id, "--without-effects", "--reason", "a mistake", "--yes"]);
    let expected = [
        json!(["rollback_undo_begun", null, null, "a mistake", null, "undo", 1]),
        json!(["rollback_step_done", null, null, null, "data", "undo", 1]),
        json!(["rollback_step_done", null, null, null, "tree", "undo", 1]),
        json!(["rollback_undone", "a", "d", "a mistake", null, null, 2]),
    ];
    assert_eq!(record(&world, since), expected);
}

#[test]
fn an_undo_that_was_interrupted_and_given_up_is_on_record() {
    let world = story_with_rows();
    undo_stopped_between(&world, is_interrupted);
    let since = newest(&world);
    let stopped = record(&world, 0).pop().expect("an event");
    assert_eq!(stopped, json!(["rollback_stopped", null, null, "it was interrupted", "tree", "undo", 1]));
    world.ic(&["rollback", "abort", &world.run, "--reason", "it stays", "--yes"]);
    let expected = [
        json!(["rollback_undo_aborted", null, null, "it stays", "settle", null, 1]),
        json!(["rollback_step_done", null, null, null, "data", null, 1]),
        json!(["rollback_step_done", null, null, null, "settle", null, 1]),
    ];
    assert_eq!(record(&world, since), expected);
}

#[test]
fn what_stopped_an_undo_and_what_was_put_back_later_are_on_record() {
    let world = story_with_rows();
    let mut dispatch = String::new();
    let (id, _) = undo_stopped_between(&world, |_| {
        let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
        dispatch = world.ic(&["dispatch", "create", &other]);
        world.ic(&["dispatch", "start", &dispatch, "--pid", &ic_testkit::living_process().to_string()]);
    });
    let stopped = record(&world, 0).pop().expect("an event");
    assert_eq!((&stopped[0], code_of(&stopped)), (&json!("rollback_stopped"), "work_running"), "{stopped}");
    assert_eq!((&stopped[4], &stopped[5]), (&json!("tree"), &json!("undo")));
    world.ic(&["rollback", "resume", &id, "--skip-step", "--reason", "not the files", "--yes"]);
    world.ic(&["dispatch", "complete", &dispatch]);
    let since = newest(&world);
    world.ic(&["redo", &id, "--without-effects", "--reason", "the files too", "--yes"]);
    let expected = [json!(["rollback_step_done", null, null, "the files too", "tree", "undo", 2])];
    assert_eq!(record(&world, since), expected);
}

#[test]
fn a_way_back_that_could_not_begin_is_on_record_and_as_if_not_begun() {
    // The cases are a rollback that is done, one that skipped its effects, and one that is not done.
    let (done, skipped) = (story_with_rows(), story_with_rows());
    done.roll_back("a", &[]);
    skipped.effect("last", &["exit 3"]);
    assert_eq!(skipped.cli.run(skipped.all("a", &["--yes"])).code, Some(4));
    skipped.ic(&["rollback", "resume", &skipped.run, "--skip-step", "--yes"]);
    let undo = ["rollback_undo_begun", "rollback_undo_aborted"];
    let cases = [
        (done, &["redo"][..], &["--without-effects"][..], undo),
        (skipped, &["redo"], &[], undo),
        (dead_before_the_end(), &["rollback", "abort"], &[], ["rollback_abort_begun", "rollback_stopped"]),
    ];
    for (world, verb, more, names) in cases {
        let (since, before) = (newest(&world), world.status());
        let id = id_of_last(&world).as_str().expect("an id").to_owned();
        let stands = || {
            let shown = world.cli.json(["rollback", "show", &id, "--json"]);
            let steps = shown["steps"].as_array().expect("steps").iter();
            let states = steps.map(|step| json!([step["layer"], step["status"], step["error"]]));
            json!([shown["status"], shown["course"], states.collect::<Vec<_>>()])
        };
        let as_before = stands();
        let application = world.connect();
        application.execute_batch("BEGIN IMMEDIATE").expect("begin to write");
        let words = [verb, &[id.as_str(), "--yes", "--busy-timeout", "50ms", "--json"], more].concat();
        let outcome = world.cli.run(&words);
        application.execute_batch("ROLLBACK").expect("end it");
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"), "{outcome:?}");
        let events = record(&world, since);
        let told: Vec<&str> = events.iter().map(|event| event[0].as_str().expect("a type")).collect();
        assert_eq!(told, names);
        let course = if *verb == ["redo"] { "undo" } else { "abort" };
        assert_eq!((&events[1][4], &events[1][5]), (&json!("data"), &json!(course)));
        assert_eq!(code_of(&events[1]), "busy", "{events:?}");
        assert_eq!((world.status(), stands()), (before.clone(), as_before));
        assert_eq!(outcome.stderr.contains("the run stays closed"), before.starts_with("rolling_back"), "{outcome:?}");
    }
}

#[test]
fn what_somebody_restored_after_a_rollback_is_not_the_rollbacks_to_take_back() {
    let world = story();
    let before = world.state();
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id");
    let target = report["files"]["checkpoint_id"].as_str().expect("a checkpoint");
    // A file that the rollback left alone is changed, and restored from the rollback's own checkpoint.
    world.write("kept/plan.md", "mine\n");
    world.ic(&["checkpoint", "restore", target, "--yes"]);
    world.ic(&["redo", id, "--without-effects", "--yes"]);
    world.state().assert_outside_is(&before, "undone");
}

#[test]
fn a_run_that_is_set_or_called_off_says_when() {
    let world = without_git().begun();
    for words in [&["run", "set", &world.run, "--complexity", "2"][..], &["run", "cancel", &world.run]] {
        let said = world.cli.json(words)["updated_at"].clone();
        let status = world.cli.json(["run", "status", &world.run]);
        assert_eq!(said, status["updated_at"], "{words:?}");
        assert_ne!(said, status["created_at"], "{words:?}");
    }
}

#[test]
fn giving_up_is_on_record_with_the_steps_that_had_something_to_put_back() {
    let world = story_with_rows();
    world.effect("fails", &["exit 3"]);
    world.effect("last", &[]);
    let stopped = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let since = newest(&world);
    world.ic(&["rollback", "abort", &world.run, "--yes"]);
    let told: Vec<Value> = record(&world, since).iter().map(|event| json!([event[0], event[4]])).collect();
    // Undoing effects may have changed the tree; no row was taken.
    let expected = [
        json!(["rollback_abort_begun", null]),
        json!(["rollback_step_done", "tree"]),
        json!(["rollback_aborted", null]),
    ];
    assert_eq!(told, expected);
}
