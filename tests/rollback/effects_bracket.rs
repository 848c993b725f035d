//! The tree around the effects: what their undo does to the tree is kept, and restored with the rest.

use ic_testkit::{TestWorld, wait_for};
use serde_json::{Value, json};

use crate::interrupted::start;
use crate::project::{Work as _, asked, assert_said_alike, in_git};
use crate::rows::Rows as _;

/// A run at `c` that left `a` and `b`, in whose tree there is an unsaved file.
fn moved() -> TestWorld {
    let world = in_git().begun();
    world.write("settings", "as it was\n");
    world.write("other", "as it was\n");
    world.advance();
    world
}

fn undo(world: &TestWorld, report: &Value) -> Value {
    let id = report["rollback_id"].as_str().expect("an id");
    world.cli.json(["redo", id, "--without-effects", "--yes", "--json"])
}

/// A call that is refused before it is begun, its preview likewise; returns the error line.
fn refused(world: &TestWorld, words: &[&str]) -> String {
    let events = asked(&world.cli, "SELECT count(*) FROM events");
    let call = |last: &str| world.cli.run([words, &[last, "--json"]].concat());
    let (preview, refused) = (call("--dry-run"), call("--yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    assert_said_alike(&preview, &refused);
    assert_eq!(asked(&world.cli, "SELECT count(*) FROM events"), events, "it was begun");
    refused.stderr
}

#[test]
fn the_picture_after_effects_is_the_one_before_the_restore() {
    let world = moved();
    world.effect("first", &["echo by a script > other"]);
    world.write("settings", "work\n");
    let pictures = "SELECT count(*) FROM checkpoints WHERE kind = 'safety'";
    let before = asked(&world.cli, pictures);
    let report = world.roll_back("a", &[]);
    assert_eq!(asked(&world.cli, pictures), before + 2, "one before the effects, one after: {report}");
    let safety = world.cli.sql("SELECT safety_id FROM restores");
    assert_eq!(world.cli.ok(["checkpoint", "cat", &safety, "other"]).trim(), "by a script");
    assert_eq!(world.cli.ok(["checkpoint", "cat", &safety, "settings"]).trim(), "work");
    assert_eq!(undo(&world, &report)["status"], "undone");
    assert_eq!(world.read("settings").as_deref(), Some("work\n"));
}

/// What a finished rollback says of the old content is so: of a file that an effect restored it lies in another checkpoint.
#[test]
fn the_checkpoint_with_the_old_content_has_it_after_a_resume_too() {
    let world = moved();
    world.ic(&["compensation", "add", &world.run, "--step", "set", "--restore-file", "settings"]);
    world.effect("fails at first", &["test -e ../allow || exit 1"]);
    world.write("settings", "work\n");
    world.write("other", "work, too\n");
    assert_eq!(world.cli.run(world.all("a", &["--yes"])).code, Some(4));
    std::fs::write(world.root().join("../allow"), "").expect("a file");
    let text = world.cli.ok(["rollback", "resume", "@", "--yes", "--format", "text"]);
    let kept = |words: &str| {
        let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("{words}: {text}"));
        rest.split_whitespace().next().expect("a checkpoint").to_owned()
    };
    let tree = kept("1 path restored; the old content is in checkpoint ");
    assert_eq!(world.cli.ok(["checkpoint", "cat", &tree, "other"]).trim(), "work, too");
    let effects = kept("2 effects undone; the tree before them is in checkpoint ");
    assert_eq!(world.cli.ok(["checkpoint", "cat", &effects, "settings"]).trim(), "work");
}

/// What another process writes at any moment of a rollback is there in the end, or in a checkpoint.
#[test]
fn what_somebody_writes_while_effects_are_undone_is_not_lost() {
    for delay in ["0", "0.005", "0.01", "0.02", "0.03", "0.04", "0.06", "0.1"] {
        let world = moved();
        // Its file that says so lies outside of the tree.
        let write = format!("setsid sh -c 'sleep {delay}; echo precious > other; echo done > ../written' &");
        world.effect("leaves a writer", &[&write]);
        world.write("other", "work\n");
        let outcome = world.cli.run(world.all("a", &["--yes"]));
        wait_for("the writer", || world.root().join("../written").exists());
        let is_there = world.read("other").as_deref() == Some("precious\n");
        let checkpoints = world.cli.json(["checkpoint", "list", "--json"]);
        let ids = checkpoints.as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id"));
        let is_kept = ids.into_iter().any(|id| {
            let outcome = world.cli.run(["checkpoint", "cat", id, "other"]);
            outcome.stdout == "precious\n"
        });
        assert!(is_there || is_kept, "written after {delay} s, it is lost: {outcome:?}");
    }
}

#[test]
fn what_an_effect_overwrites_is_kept_and_comes_back() {
    let world = moved();
    world.ic(&["compensation", "add", &world.run, "--step", "set", "--restore-file", "settings"]);
    world.effect("other", &["echo by a script > other", "echo new > made"]);
    world.write("settings", "hours of work\n");
    world.write("other", "hours of work, too\n");
    let report = world.roll_back("a", &[]);
    assert_eq!(world.read("settings").as_deref(), Some("as it was\n"));
    assert_eq!(world.read("made"), None);

    let id = report["rollback_id"].as_str().expect("an id");
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = world.cli.json(["redo", id, "--without-effects", "--dry-run", "--json"]);
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&before, "previewed");
    let report = undo(&world, &report);
    let paths = |report: &Value| -> Vec<Value> {
        let reports = report["files"].as_array().expect("reports").iter();
        reports.map(|one| one["changes"].clone()).collect()
    };
    assert_eq!(paths(&preview), paths(&report));
    assert_eq!(report["status"], "undone", "{report}");
    assert_eq!(world.read("settings").as_deref(), Some("hours of work\n"));
    assert_eq!(world.read("other").as_deref(), Some("hours of work, too\n"));
    assert_eq!(world.read("made"), None);
    assert_eq!(world.status(), "active@b");
}

#[test]
fn what_an_effect_overwrites_of_a_hidden_file_is_kept_too_and_the_checkpoints_say_whose_they_are() {
    let world = moved();
    world.write(".gitignore", "hidden\n");
    world.write("hidden", "as it was\n");
    world.ic(&["compensation", "add", &world.run, "--step", "set", "--restore-file", "hidden"]);
    world.write("hidden", "hours of work\n");
    let report = world.roll_back("a", &[]);
    assert_eq!(world.read("hidden").as_deref(), Some("as it was\n"));
    let checkpoints = world.cli.json(["checkpoint", "list", "--run", &world.run, "--json"]);
    for when in ["before", "after"] {
        let id = &report["steps"][0]["made"]["goes"][0][format!("{when}_checkpoint_id")];
        let all = checkpoints.as_array().expect("checkpoints");
        let kept = all.iter().find(|one| one["id"] == *id).expect("it is listed with the run");
        let short = world.cli.json(["rollback", "list", &world.run, "--json"])[0]["short_id"].clone();
        let message = format!("{when} the effects of rollback {} are undone", short.as_str().expect("an id"));
        assert_eq!(kept["message"], message, "{kept}");
    }
    undo(&world, &report);
    assert_eq!(world.read("hidden").as_deref(), Some("hours of work\n"));
}

#[test]
fn what_an_effect_overwrites_before_another_fails_comes_back_when_it_was_resumed() {
    let world = moved();
    let repaired = world.cli.home().join("repaired");
    world.effect("fails", &[&format!("test -e {} || exit 3", repaired.display())]);
    world.effect("other", &["echo by a script > other"]);
    world.write("other", "hours of work\n");
    let stopped = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    assert_eq!(world.read("other").as_deref(), Some("by a script\n"));
    std::fs::write(repaired, "").expect("repair it");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    undo(&world, &stopped.json());
    assert_eq!(world.read("other").as_deref(), Some("hours of work\n"));
}

#[test]
fn what_others_wrote_since_is_not_counted_as_an_effects_work() {
    let world = moved();
    world.effect("other", &["echo as it was > other"]);
    world.write("other", "hours of work\n");
    // No other part of the tree goes back, so nothing else looks at the file.
    let report = world.roll_back("a", &[]);
    world.write("other", "after the rollback\n");
    world.write("untouched", "after the rollback, too\n");
    let id = report["rollback_id"].as_str().expect("an id");
    let line = refused(&world, &["redo", id, "--without-effects"]);
    assert!(line.contains("other was changed since an effect was undone"), "{line}");
    assert_eq!(world.read("other").as_deref(), Some("after the rollback\n"));
    // The hint leads on.
    let restore = line.split("ic checkpoint restore ").nth(1).expect("a command");
    let after = restore.split(' ').next().expect("an id");
    assert!(restore.contains("--path other --yes"), "{restore}");
    world.ic(&["checkpoint", "restore", after, "--path", "other", "--yes"]);
    undo(&world, &report);
    assert_eq!(world.read("other").as_deref(), Some("hours of work\n"));
    assert_eq!(world.read("untouched").as_deref(), Some("after the rollback, too\n"));
}

#[test]
fn a_state_database_in_the_tree_goes_back_by_its_rows_alone() {
    let world = in_git();
    world.write(".gitignore", ".ic/\n");
    let world = world.with_rows().begun();
    world.task("before");
    world.advance();
    world.task("since");
    world.write("a.rs", "one\n");
    let before = world.rows();
    // An application that keeps its connection open all the while.
    let application = world.connect();
    let preview: Value = serde_json::from_str(&world.ic(&world.all("a", &["--dry-run"]))).expect("JSON");
    let report = world.roll_back("a", &[]);
    assert_eq!(report["data"]["affected_row_counts"], preview["data"]["affected_row_counts"]);
    assert_eq!(report["data"]["affected_row_counts"]["tasks"], json!(1), "{report}");
    assert_eq!(world.read("a.rs"), None);
    assert!(!world.rows().contains("since"), "{}", world.rows());
    application.execute_batch("CREATE TABLE more (a); DROP TABLE more").expect("it can write on");
    undo(&world, &report);
    assert_eq!((world.rows(), world.read("a.rs").as_deref()), (before, Some("one\n")));
}

#[test]
fn a_copy_of_a_project_leaves_the_original_alone() {
    let world = in_git().with_rows().begun();
    world.task("before");
    world.advance();
    world.task("since");
    world.write("a.rs", "one\n");
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id");
    let copy = world.cli.home().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").args([world.cli.root(), &copy]).status();
    assert!(copied.expect("cp").success());
    let before = world.state();
    let there = copy.to_str().expect("UTF-8");
    for words in [
        &["redo", id, "--yes"][..],
        &["run", "rollback", &world.run, "--to-phase", "a", "--include-target", "--layer=all", "--yes"],
    ] {
        let outcome = world.cli.run([&["-C", there], words, &["--json"]].concat());
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "foreign_root"), "{outcome:?}");
    }
    world.state().assert_is(&before, "a copy was used");
}

#[test]
fn what_another_run_recorded_since_is_not_taken_for_an_effects_work() {
    let world = moved();
    world.effect("other", &["echo as it was > other"]);
    world.write("other", "hours of work\n");
    let report = world.roll_back("a", &[]);
    let other = world.ic(&["run", "create", "--goal", "beside", "--phases", "x,y"]);
    let dispatch = world.ic(&["dispatch", "create", &other]);
    world.ic(&["dispatch", "record", &dispatch, "--file", "other"]);
    let id = report["rollback_id"].as_str().expect("an id");
    let line = refused(&world, &["redo", id, "--without-effects"]);
    // The hint leads on.
    let restore = line.split("ic checkpoint restore ").nth(1).expect("a command");
    assert!(restore.contains("--path other --strategy files-only --force --yes"), "{restore}");
    let before = restore.split(' ').next().expect("an id");
    world.ic(&["checkpoint", "restore", before, "--path", "other", "--force", "--yes"]);
    undo(&world, &report);
    assert_eq!((world.read("other").as_deref(), world.status()), (Some("hours of work\n"), "active@b".to_owned()));
}

#[test]
fn what_was_hidden_since_the_checkpoint_goes_back_and_comes_back() {
    let world = moved();
    std::fs::write(world.cli.root().join(".git/info/exclude"), "other\n").expect("hide it");
    world.write("other", "hours of work\n");
    let report = world.roll_back("a", &[]);
    assert_eq!(world.read("other").as_deref(), Some("as it was\n"));
    undo(&world, &report);
    assert_eq!(world.read("other").as_deref(), Some("hours of work\n"));
}

/// A rollback that stopped at an effect, after another had changed and removed files.
fn stopped_after_an_effect() -> TestWorld {
    let world = moved();
    world.write("keep", "hours of work\n");
    world.effect("fails", &["test -e keep || exit 3"]);
    world.effect("ruins", &["rm keep; echo ruined > other"]);
    world.write("other", "hours of work\n");
    let stopped = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    assert_eq!((world.read("keep"), world.read("other").as_deref()), (None, Some("ruined\n")));
    world
}

#[test]
fn aborted_at_an_effect_what_others_did_to_files_comes_back_and_the_preview_says_so() {
    let world = stopped_after_an_effect();
    let (dump, before) = (world.cli.dump(), world.state());
    let abandon = ["rollback", "abort", &world.run, "--json"];
    let preview = world.cli.json(abandon.iter().chain(&["--dry-run"]));
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&before, "previewed");
    let given_up = world.cli.json(abandon.iter().chain(&["--yes"]));
    let changes = |report: &Value| report["files"][0]["changes"].clone();
    assert_eq!(changes(&preview), changes(&given_up));
    assert_eq!(changes(&given_up).as_array().map(Vec::len), Some(2), "{given_up}");
    assert_eq!(world.read("keep").as_deref(), Some("hours of work\n"));
    assert_eq!(world.read("other").as_deref(), Some("hours of work\n"));
    assert_eq!(world.status(), "active@b");
}

#[test]
fn given_up_at_an_effect_what_somebody_changed_since_stands_against_it_and_the_preview_says_so() {
    let world = stopped_after_an_effect();
    world.write("other", "mine\n");
    refused(&world, &["rollback", "abort", &world.run]);
    assert_eq!((world.read("other").as_deref(), world.status()), (Some("mine\n"), "rolling_back@b".to_owned()));
}

#[test]
fn killed_in_an_effect_and_passed_over_what_others_did_to_files_comes_back() {
    let world = moved();
    let begun = world.cli.home().join("begun");
    world.write("keep", "hours of work\n");
    world.effect("slow", &[&format!("touch {}; sleep 20", begun.display())]);
    world.effect("ruins", &["rm keep; echo ruined > other"]);
    world.write("other", "hours of work\n");
    let words = world.all("a", &["--yes"]);
    let mut child = start(&world, &words);
    wait_for("the effect is being undone", || begun.exists());
    child.kill().expect("kill -9");
    child.wait().expect("its end");
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--reason", "enough", "--yes"]);
    assert_eq!(world.read("other").as_deref(), Some("as it was\n"));
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    undo(&world, &json!({ "rollback_id": list[0]["id"] }));
    assert_eq!(world.read("keep").as_deref(), Some("hours of work\n"));
    assert_eq!(world.read("other").as_deref(), Some("hours of work\n"));
}

#[test]
fn what_others_write_while_it_is_stopped_is_not_counted_as_an_effects_work() {
    let world = moved();
    world.write("script", "exit 3\n");
    world.effect("repaired", &["sh script || exit 3"]);
    world.effect("first", &["echo by a script > other"]);
    let layers = "--layer=workflow,effects,git";
    let stopped = world.cli.run(["run", "rollback", &world.run, "--to-phase", "a", layers, "--yes", "--json"]);
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    world.write("script", "echo by a script, too > settings\n");
    world.write("mine", "mine\n");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    undo(&world, &stopped.json());
    // What both attempts at the effects changed is restored, and nothing else.
    let read = |path: &str| world.read(path).expect("it is there");
    assert_eq!((read("other"), read("settings")), ("as it was\n".to_owned(), "as it was\n".to_owned()));
    assert_eq!((read("mine"), read("script")), ("mine\n".to_owned(), "echo by a script, too > settings\n".to_owned()));
}

#[test]
fn a_hidden_file_that_an_effect_made_stands_in_nobodys_way() {
    for is_stopped in [false, true] {
        let world = moved();
        std::fs::write(world.cli.root().join(".git/info/exclude"), "*.log\n").expect("hide them");
        if is_stopped {
            world.effect("fails", &["exit 3"]);
        }
        world.effect("logs", &["echo undone >> undo.log; echo S=1 > .env; echo by a script > other"]);
        let rolled_back = world.cli.run(world.all("a", &["--yes"]));
        // The secret file that the effect made stays, and is named.
        assert_eq!(rolled_back.code, Some(4), "{rolled_back:?}");
        if is_stopped {
            let aborted = world.cli.run(["rollback", "abort", &world.run, "--yes"]);
            assert_eq!(aborted.code, Some(4), "{aborted:?}");
        } else {
            let id = rolled_back.json()["rollback_id"].as_str().expect("an id").to_owned();
            let undone = world.cli.run(["redo", &id, "--without-effects", "--yes", "--json"]);
            assert_eq!((undone.code, undone.json()["status"].as_str()), (Some(4), Some("undone")), "{undone:?}");
        }
        assert_eq!((world.read("other").as_deref(), world.status()), (Some("as it was\n"), "active@b".to_owned()));
        assert!(world.read("undo.log").is_some() && world.read(".env").is_some(), "they are left alone");
    }
}

#[test]
fn the_preview_knows_directories_that_the_restores_bring_back() {
    let world = in_git().begun();
    world.write("od/o", "o\n");
    world.advance();
    world.remove("od/o");
    std::fs::remove_dir(world.cli.root().join("od")).expect("empty");
    world.write("od", "a file\n");
    world.write("d/x", "1\n");
    world.write("d/y", "1\n");
    world.effect("into", &["echo more >> d/x", "rm od; mkdir od; echo q > od/q"]);
    let before = world.state();
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id");
    let preview = world.cli.json(["redo", id, "--without-effects", "--dry-run", "--json"]);
    let undone = undo(&world, &report);
    let of = |report: &Value| -> Vec<Value> {
        let reports = report["files"].as_array().expect("reports").iter();
        reports.map(|one| json!([one["changes"], one["skipped"]])).collect()
    };
    assert_eq!(of(&preview), of(&undone));
    world.state().assert_outside_is(&before, "undone");
}

/// The run of a dispatch that changed a file which a rule hides, whose effect is undone by restoring it.
fn with_a_secret(more: &[&str]) -> TestWorld {
    let world = in_git().begun();
    let id = world.ic(&["dispatch", "create", &world.run]);
    world.ic(&["dispatch", "start", &id]);
    if !more.is_empty() {
        world.ic(&[&["compensation", "add", &world.run, "--step", "bad"], more].concat());
    }
    world.write(".env", "old\n");
    world.ic(&["compensation", "add", &world.run, "--step", "env", "--restore-file", ".env"]);
    world.write(".env", "new\n");
    world.ic(&["dispatch", "complete", &id]);
    world
}

#[test]
fn a_file_that_an_undo_restored_is_restored_by_the_next_undo_after_a_redo() {
    let world = with_a_secret(&[]);
    for _ in 0..3 {
        world.ic(&["undo", "--run", &world.run, "--yes"]);
        assert_eq!(world.text(".env"), "old\n");
        let states = || world.cli.json(["compensation", "list", &world.run, "--json"])[0]["status"].clone();
        assert_eq!(states(), "done");
        let said = world.ic(&["redo", "--run", &world.run, "--yes", "--format", "text"]);
        assert!(!said.contains("still undone"), "{said}");
        assert_eq!((world.text(".env").as_str(), states()), ("new\n", "armed".into()));
    }
    world.cli.assert_sound("after all");
}

#[test]
fn what_an_abort_restored_is_no_undo_for_a_redo() {
    let world = with_a_secret(&["--shell", "false"]);
    assert_eq!(world.cli.run(["undo", "--run", &world.run, "--yes"]).code, Some(4));
    assert_eq!(world.text(".env"), "old\n");
    let said = world.ic(&["rollback", "abort", &world.run, "--yes", "--format", "text"]);
    assert!(!said.contains("still undone"), "{said}");
    assert_eq!(world.text(".env"), "new\n");
    assert_eq!(world.cli.refused(["redo", "--yes"]).1, "nothing_to_undo");
    assert_eq!(world.text(".env"), "new\n");
}
