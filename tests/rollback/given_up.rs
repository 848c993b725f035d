//! Giving up what is not finished: what the preview says is what is done.

use ic_testkit::{Terminal, TestWorld, wait_for};
use serde_json::{Value, json};

use crate::interrupted::{is_interrupted, start, stopped_between, undo_stopped_between};
use crate::project::{Work as _, asked, assert_said_alike, in_git};
use crate::statements::{dead_before, dead_before_the_end};
use crate::story::{story, story_with_rows};

/// Looks at what giving it up would do, which changes nothing, then gives it up; returns preview and deed, which must agree.
fn previewed_and_given_up(world: &TestWorld, course: &str) -> (Value, Value) {
    let abandon = ["rollback", "abort", &world.run, "--json"];
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = world.cli.json(abandon.iter().chain(&["--dry-run"]));
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&before, "previewed");
    let given_up = world.cli.json(abandon.iter().chain(&["--yes"]));
    assert_eq!((&preview["dry_run"], &given_up["dry_run"]), (&json!(true), &json!(false)));
    assert_eq!((&preview["course"], &given_up["course"]), (&json!(course), &json!(course)));
    for part in ["data", "effects_left", "dispatches_left", "agents_left", "resume"] {
        assert_eq!(preview[part], given_up[part], "{part}");
    }
    let changes = |report: &Value| -> Vec<Value> {
        report["files"].as_array().expect("reports").iter().map(|one| one["changes"].clone()).collect()
    };
    assert_eq!(changes(&preview), changes(&given_up));
    let again = world.cli.refused(abandon.iter().chain(&["--dry-run"]));
    assert_eq!(again, (Some(1), "nothing_to_resume".to_owned()));
    (preview, given_up)
}

#[test]
fn the_preview_of_giving_a_rollback_up_is_giving_it_up() {
    let world = dead_before_the_end();
    let text = world.ic(&["rollback", "abort", &world.run, "--dry-run", "--format=text"]);
    assert!(text.contains("would abort") && text.contains("would be at d again"), "{text}");
    assert!(text.contains("Rows that would be restored") && text.contains("to do it"), "{text}");
    let (preview, _) = previewed_and_given_up(&world, "abort");
    assert_eq!(preview["status"], "in_progress");
    assert_eq!(preview["effects_left"].as_array().map(Vec::len), Some(3), "{preview}");
    let is_some = |report: &Value| report["changes"].as_array().is_some_and(|all| !all.is_empty());
    assert!(preview["files"].as_array().expect("reports").iter().any(is_some), "{preview}");
    assert_eq!(world.status(), "active@d");
    let id = preview["id"].as_str().expect("an id");
    let shown = world.ic(&["rollback", "show", id, "--format=text"]);
    assert!(shown.contains("was to be rolled back") && shown.contains("It was aborted"), "{shown}");
}

#[test]
fn the_preview_of_giving_an_undo_up_is_the_rollback_again() {
    let world = story_with_rows();
    undo_stopped_between(&world, is_interrupted);
    let text = world.ic(&["rollback", "abort", &world.run, "--dry-run", "--format=text"]);
    assert!(text.contains("would stand") && text.contains("would be at a."), "{text}");
    assert!(text.contains("Rows that would be deleted"), "{text}");
    let (preview, _) = previewed_and_given_up(&world, "reapply");
    assert_ne!(preview["data"], Value::Null);
    assert_eq!(world.status(), "active@a");
}

#[test]
fn what_was_put_back_before_it_was_interrupted_is_not_previewed_again() {
    let world = dead_before_the_end();
    stopped_between(&world, &["rollback", "abort", &world.run], is_interrupted);
    let (preview, _) = previewed_and_given_up(&world, "abort");
    assert_eq!((&preview["status"], &preview["data"]), (&json!("stopped"), &Value::Null));
    assert_ne!(preview["files"], json!([]));
    assert_eq!(world.status(), "active@d");
}

#[test]
fn of_one_layer_alone_the_preview_names_no_other() {
    for (layer, step, ends_after_it) in [("files", "tree", 3), ("data", "data", 2)] {
        let world = story_with_rows();
        let layers = format!("--layer=workflow,{layer}");
        let roll_back = ["run", "rollback", &world.run, "--to-phase", "a", &layers, "--yes", "--json"];
        let dies_in_that_step = |words: &[&str], from_the_last: usize| {
            dead_before(&world, words, from_the_last);
            let sql = format!(
                "SELECT count(*) FROM rollback_steps JOIN rollbacks r ON r.id = rollback_id \
                 WHERE layer = '{step}' AND state = 'running' AND r.seq = (SELECT max(seq) FROM rollbacks)"
            );
            assert_eq!(asked(&world.cli, &sql), 1, "{words:?}");
        };
        let names_that_layer = |(preview, _): (Value, Value)| {
            assert_eq!(preview["files"][0].is_object(), layer == "files", "{preview}");
            assert_eq!(preview["data"].is_object(), layer == "data", "{preview}");
        };
        dies_in_that_step(&roll_back, 3);
        names_that_layer(previewed_and_given_up(&world, "abort"));
        let id = world.cli.json(roll_back)["rollback_id"].as_str().expect("an id").to_owned();
        dies_in_that_step(&["redo", &id, "--yes", "--json"], ends_after_it);
        names_that_layer(previewed_and_given_up(&world, "reapply"));
    }
}

#[test]
fn what_stands_against_giving_it_up_is_said_by_the_preview() {
    let world = dead_before_the_end();
    world.write("README", "mine\n");
    let refused = |last: &str| world.cli.run(["rollback", "abort", &world.run, "--json", last]);
    let (preview, deed) = (refused("--dry-run"), refused("--yes"));
    assert_eq!((deed.code, deed.error().as_str()), (Some(1), "file_conflict"), "{deed:?}");
    assert_said_alike(&preview, &deed);
    // What it would restore is shown anyway.
    let plan = preview.json();
    assert!(plan["files"][0]["changes"].as_array().is_some_and(|all| !all.is_empty()), "{plan}");
}

#[test]
fn an_effect_whose_undo_was_cut_off_is_named_before_anybody_recorded_it() {
    let world = story();
    let begun = world.cli.home().join("begun");
    world.effect("last", &[&format!("touch {}; sleep 20", begun.display())]);
    let words = world.all("a", &["--yes"]);
    let mut child = start(&world, &words);
    wait_for("the effect is being undone", || begun.exists());
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    let abandon = ["rollback", "abort", &world.run, "--json"];
    let preview = world.cli.json(abandon.iter().chain(&["--dry-run"]));
    let text = world.ic(&["rollback", "abort", &world.run, "--dry-run", "--format=text"]);
    assert!(text.contains("perhaps undone, interrupted half way: last"), "{text}");
    let given_up = world.cli.json(abandon.iter().chain(&["--yes"]));
    let steps = |report: &Value| -> Vec<Value> {
        report["effects_left"].as_array().expect("effects").iter().map(|one| one["step"].clone()).collect()
    };
    assert_eq!((steps(&preview), steps(&given_up)), (vec![json!("last")], vec![json!("last")]));
}

/// The effect stands, and the user has not decided to undo it.
#[test]
fn an_effect_whose_undo_failed_waits_for_no_other_try_once_its_rollback_was_given_up() {
    let world = in_git().begun();
    world.advance();
    world.effect("bill", &["test -e ../paid || exit 3"]);
    world.advance();
    let words = world.all("a", &["--yes"]);
    assert_eq!(world.cli.run(&words).code, Some(4));
    world.ic(&["rollback", "abort", &world.run, "--yes"]);
    let status = world.cli.json(["status", &world.run, "--json"]);
    assert_eq!(status["unfinished"], json!([]), "{status}");
    assert!(!status["next"].as_str().unwrap_or_default().contains("compensation"), "{status}");
    let listed = world.cli.json(["compensation", "list", &world.run, "--json"]);
    assert_eq!((&listed[0]["status"], &listed[0]["attempts"]), (&json!("armed"), &json!(1)), "{listed}");
    // It is undone by the next rollback.
    std::fs::write(world.cli.home().join("paid"), "").expect("write it");
    world.roll_back("a", &[]);
    assert_eq!(world.effects(), ["bill"]);
}

/// What a terminal shows of a call whose question is answered, and its exit code; `None` where no terminal can be made.
fn answered(world: &TestWorld, words: &[&str], (question, answer): (&str, &str)) -> Option<(Option<i32>, String)> {
    let call = world.cli.command(words);
    let mut terminal = Terminal::open(&call, world.cli.root())?;
    terminal.sees(question);
    terminal.types(answer);
    Some(terminal.ends())
}

#[test]
fn at_a_terminal_the_question_shows_what_giving_up_would_do() {
    let world = dead_before_the_end();
    let (dump, before) = (world.cli.dump(), world.state());
    let abandon = ["rollback", "abort", &world.run];
    for answer in ["n\n", "\n"] {
        let Some((code, shown)) = answered(&world, &abandon, ("Abort it? [y/N]", answer)) else { return };
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("would abort") && shown.contains("Rows that would be restored"), "{shown}");
        assert_eq!(world.cli.dump(), dump);
        world.state().assert_is(&before, "answered by no");
    }
    let Some((code, shown)) = answered(&world, &abandon, ("Abort it? [y/N]", "y\n")) else { return };
    assert_eq!((code, world.status().as_str()), (Some(0), "active@d"), "{shown}");
    // And of the rollback that is undone.
    world.roll_back("a", &[]);
    let id = world.cli.json(["rollback", "list", &world.run, "--json"])[1]["short_id"].clone();
    let undo = ["redo", id.as_str().expect("an id"), "--without-effects"];
    let asked = answered(&world, &undo, ("Redo? [y/N]", "y\n"));
    let Some((code, shown)) = asked else { return };
    assert!(shown.contains("would undo"), "{shown}");
    assert_eq!((code, world.status().as_str()), (Some(0), "active@d"), "{shown}");
}

#[test]
fn at_a_terminal_the_question_names_what_is_in_the_way() {
    let world = dead_before_the_end();
    world.write("README", "mine\n");
    let abandon = ["rollback", "abort", &world.run];
    let Some((code, shown)) = answered(&world, &abandon, ("Abort it? [y/N]", "y\n")) else { return };
    let (before, after) = shown.split_once("Abort it?").expect("the question");
    assert!(before.contains("in the way: What the rollback restored changed since: README"), "{shown}");
    assert!(before.contains("STEP") && after.contains("error: What the rollback restored"), "{shown}");
    assert_eq!((code, world.status().as_str()), (Some(1), "rolling_back@d"));
}

#[test]
fn the_preview_of_a_resume_is_what_is_left_to_do_and_names_what_would_stop_it_again() {
    let world = story();
    let repaired = world.cli.home().join("repaired");
    world.effect("broken", &[&format!("test -e {} || exit 1", repaired.display())]);
    let words = world.all("a", &["--yes"]);
    assert_eq!(world.cli.run(&words).code, Some(4), "an effect fails");
    let resume = ["rollback", "resume", &world.run];
    let look = |more: &[&str]| world.cli.json(resume.iter().chain(&["--dry-run", "--json"]).chain(more));
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = look(&[]);
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&before, "previewed");
    assert_eq!((&preview["dry_run"], &preview["status"]), (&json!(true), &json!("stopped")));
    assert_eq!(preview["effects"]["results"][0]["step"], "broken", "{preview}");
    let planned = preview["files"][0]["changes"].as_array().expect("changes").len();
    assert!(planned > 0, "{preview}");
    // Without the step that failed its effects stay.
    assert_eq!(look(&["--skip-step"])["effects"], Value::Null);
    let text = world.ic(&["rollback", "resume", &world.run, "--dry-run", "--format=text"]);
    for part in ["broken", "README", "nothing was changed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What another run recorded since stops it, unless it is decided.
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    world.ic(&["dispatch", "record", &dispatch, "--file", "README"]);
    let stopped = world.cli.run(resume.iter().chain(&["--dry-run", "--json"]));
    assert_eq!(stopped.code, Some(4), "as the real call: {stopped:?}");
    let stopped = stopped.json()["refusals"][0].clone();
    assert_eq!((&stopped["code"], &stopped["flag"]), (&json!("file_conflict"), &json!("--force-files")));
    assert_eq!(look(&["--force-files"])["refusals"], Value::Null);
    std::fs::write(&repaired, "").expect("repair it");
    let deed = world.cli.run(resume.iter().chain(&["--yes", "--json"]));
    assert_eq!(deed.code, Some(4), "{deed:?}");
    let done = world.cli.json(resume.iter().chain(&["--yes", "--json", "--force-files"]));
    let tree = done["steps"].as_array().expect("steps").iter().find(|step| step["layer"] == "tree");
    assert_eq!(tree.expect("its step")["made"]["path_count"], planned, "{done}");
}

#[test]
fn where_nothing_is_left_nobody_is_asked_to_confirm() {
    let world = story();
    world.roll_back("a", &[]);
    for words in [["rollback", "resume"], ["rollback", "abort"]] {
        for more in [&[][..], &["--yes"], &["--dry-run"]] {
            let call = [&words[..], &[world.run.as_str()], more].concat();
            assert_eq!(world.cli.refused(&call).1, "nothing_to_resume", "{call:?}");
        }
    }
}
