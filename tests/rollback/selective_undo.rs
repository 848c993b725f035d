//! The undo of one dispatch: what it did goes, what others did stays, and it comes back.

mod effects;
mod history;
mod killed;
mod kinds;
mod leftovers;
mod line_conflicts;
mod people;
mod returned;
mod set_back;
mod untold;

use std::os::unix::fs::PermissionsExt;

use ic_testkit::{TestWorld, git_in};
use serde_json::{Value, json};

use crate::project::{Work as _, asked, in_git};

const SEVEN: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

/// A dispatch that has begun.
fn begin(world: &TestWorld, name: &str) -> String {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
    world.ic(&["dispatch", "start", &id]);
    id
}

/// Declares an effect of a dispatch, whose undo writes its name to a file outside of the project.
fn effect_of(world: &TestWorld, id: &str, step: &str) {
    let line = format!("echo {step} >> {}/effects", world.cli.home().display());
    world.ic(&["compensation", "add", &world.run, "--step", step, "--shell", &line, "--dispatch", id]);
}

fn end(world: &TestWorld, id: &str) {
    world.ic(&["dispatch", "complete", id]);
}

/// As [`did`], with an effect outside of the project.
fn did_outside(world: &TestWorld, name: &str, deed: impl Fn()) -> String {
    let id = begin(world, name);
    effect_of(world, &id, name);
    deed();
    end(world, &id);
    id
}

/// A dispatch that did something, and has ended.
fn did(world: &TestWorld, name: &str, deed: impl Fn()) -> String {
    let id = begin(world, name);
    deed();
    end(world, &id);
    id
}

fn undo<'a>(id: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["undo", "--only", id, "--json"];
    words.extend(more);
    words
}

/// Undoes one dispatch, with the plan of a preview.
fn undone(world: &TestWorld, id: &str, more: &[&str]) -> Value {
    let (report, code) = asked_to_undo(world, id, more);
    assert_eq!((code, &report["status"]), (0, &json!("rolled_back")), "{report}");
    report
}

/// As [`undone`], where something of the dispatch stays: the exit and the report say so, and it does not count as undone.
fn undone_in_part(world: &TestWorld, id: &str, more: &[&str]) -> Value {
    let (report, code) = asked_to_undo(world, id, more);
    assert_eq!((code, &report["status"]), (4, &json!("rolled_back_in_part")), "{report}");
    assert_eq!(world.cli.json(["dispatch", "show", id, "--json"])["rolled_back_by"], Value::Null);
    report
}

fn asked_to_undo(world: &TestWorld, id: &str, more: &[&str]) -> (Value, i32) {
    let mut words = undo(id, more);
    words.push("--dry-run");
    let dump = world.cli.dump();
    let preview = world.cli.run(words.clone());
    let planned = preview.json();
    assert_eq!(world.cli.dump(), dump, "previewed");
    words.pop();
    words.extend(["--yes", "--expect-plan", planned["plan_hash"].as_str().expect("a hash")]);
    let outcome = world.cli.run(words);
    let report = outcome.json();
    assert_eq!(report["dispatch_ids"], json!([id]), "{report}");
    assert_eq!(preview.code, outcome.code, "the preview ends otherwise than the deed: {report}");
    for part in ["changes", "skipped"] {
        assert_eq!(report["files"][part], planned["files"][part], "{part}");
    }
    (report, outcome.code.unwrap_or(-1))
}

/// Nothing is changed, in the preview and in the deed, and both answer the same.
fn refused(world: &TestWorld, words: &[&str], code: &str) -> String {
    let (dump, before) = (world.cli.dump(), world.state());
    let mut texts = Vec::new();
    for flag in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(words.iter().chain(&[flag]));
        let refusal: Value = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
        let said = refusal["refusal"]["code"].as_str().map_or_else(|| outcome.error(), str::to_owned);
        assert_eq!(said, code, "{words:?} {flag}: {outcome:?}");
        texts.push(outcome.code);
        assert_eq!(world.cli.dump(), dump, "{words:?} {flag}: something was recorded");
    }
    assert_eq!(texts[0], texts[1], "{words:?}: the preview ends otherwise than the deed");
    world.state().assert_is(&before, code);
    let outcome = world.cli.run(words.iter().chain(&["--yes"]));
    let error: Value = serde_json::from_str(&outcome.stderr).expect("an error as JSON");
    error["error"]["hint"].as_str().unwrap_or_default().to_owned()
}

/// The reasons why paths stay, by path.
fn stays(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let all = report["files"]["skipped"].as_array().expect("a list");
    all.iter().map(|one| (text(&one["path"]), text(&one["reason"]))).collect()
}

fn mode(world: &TestWorld, path: &str) -> u32 {
    let path = world.cli.root().join(path);
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// A run at work on a commit of `a.txt`, with seven lines, and one other file.
fn with_base(name: &str, content: &str) -> TestWorld {
    let world = in_git().begun();
    world.write("a.txt", SEVEN);
    world.write(name, content);
    world.commit("base");
    world
}

/// The history of the run says that one dispatch was undone alone, and goes nowhere.
fn assert_told(world: &TestWorld, id: &str) {
    let history = world.cli.json(["run", "history", &world.run, "--json"]);
    let turn = &history["turns"][0];
    assert_eq!((&turn["dispatch_ids"], &turn["from_stay"]), (&json!([id]), &turn["to_stay"]), "{history}");
    let text = world.ic(&["run", "history", &world.run, "--format", "text"]);
    assert!(text.contains(&format!("undone alone: dispatch:{}", &id[28..])), "{text}");
}

#[test]
fn what_one_did_goes_what_others_did_stays_and_it_comes_back() {
    let world = with_base("gone.txt", "gone\n");
    let first = did_outside(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("new/own.txt", "own\n");
        world.remove("gone.txt");
        world.commit("the first work");
    });
    let artifact = world.ic(&["run", "artifact", "add", &world.run, "--path", "new/own.txt", "--dispatch", &first]);
    let second = did_outside(&world, "second", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO").replace("six", "SIX"));
        world.write("new/other.txt", "other\n");
    });
    let at_work = begin(&world, "third");
    let before = world.state();
    let (head, index) = (world.git(&["rev-parse", "HEAD"]), world.git(&["ls-files", "--stage"]));

    let report = undone(&world, &first, &[]);
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN.replace("six", "SIX").as_str()));
    assert_eq!(world.read("gone.txt").as_deref(), Some("gone\n"));
    assert!(world.read("new/own.txt").is_none() && world.read("new/other.txt").is_some());
    assert_eq!(stays(&report), [("new".to_owned(), "new/other.txt stays in it".to_owned())]);
    assert_eq!(world.effects(), ["first"], "the effects of one");
    assert_eq!((world.git(&["rev-parse", "HEAD"]), world.git(&["ls-files", "--stage"])), (head.clone(), index));
    let commit = &report["own_commits"][0];
    assert_eq!(
        (&commit["sha"], &commit["status"], &commit["subject"]),
        (&json!(head), &json!("tip"), &json!("the first work"))
    );
    assert_eq!(commit["revert"], format!("git revert --no-edit {}", &head[..12]));

    // The run is where it was, and who works in it works on.
    assert_eq!(world.status(), "active@a");
    assert_eq!(asked(&world.cli, "SELECT epoch FROM runs"), 0);
    world.ic(&["dispatch", "record", &at_work, "--file", "a.txt"]);
    let of = |id: &str| world.cli.json(["dispatch", "show", id, "--json"])["rolled_back_by"].clone();
    assert_eq!((&of(&first), &of(&second), &of(&at_work)), (&report["rollback_id"], &Value::Null, &Value::Null));
    let artifacts = world.cli.json(["run", "artifact", "list", &world.run, "--json"]);
    assert!(!artifacts.to_string().contains(&artifact) || artifacts.to_string().contains("rolled_back"), "{artifacts}");

    // What others did since stays when it comes back.
    world.write("later.txt", "later\n");
    end(&world, &at_work);
    world.advance();
    world.ic(&["redo", "--without-effects", "--yes"]);
    assert_eq!(world.status(), "active@b");
    assert_eq!(of(&first), Value::Null);
    world.remove("later.txt");
    let now = world.state();
    assert_eq!(now.tree, before.tree);
    assert_eq!(now.git, before.git);
    world.cli.ok(["events", "verify"]);
}

#[test]
fn the_same_lines_are_a_conflict_that_a_person_decides() {
    let world = in_git().begun();
    world.write("a.txt", SEVEN);
    world.write("b.txt", "b\n");
    world.commit("base");
    let first = did(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("b.txt", "B\n");
    });
    let theirs = SEVEN.replace("two", "zwei");
    did(&world, "second", || world.write("a.txt", &theirs));
    let said = refused(&world, &undo(&first, &[]), "file_conflict");
    assert!(said.contains("--force") && said.contains("--keep-theirs"), "{said}");
    let preview = world.cli.run(undo(&first, &["--dry-run"]));
    let conflicts = &serde_json::from_str::<Value>(&preview.stdout).expect("JSON")["files"]["conflicts"];
    assert_eq!(
        (&conflicts[0]["path"], &conflicts[0]["reason"]),
        (&json!("a.txt"), &json!("others changed the same lines since: 2"))
    );

    undone_in_part(&world, &first, &["--keep-theirs"]);
    assert_eq!((world.read("a.txt"), world.read("b.txt")), (Some(theirs.clone()), Some("b\n".to_owned())));
    world.ic(&["redo", "--yes"]);
    assert_eq!((world.read("a.txt"), world.read("b.txt")), (Some(theirs), Some("B\n".to_owned())));
    undone(&world, &first, &["--force"]);
    assert_eq!((world.read("a.txt"), world.read("b.txt")), (Some(SEVEN.to_owned()), Some("b\n".to_owned())));
}

/// The undo of one dispatch is made again by merging, too: only its own lines can be in the way.
#[test]
fn a_redo_keeps_what_others_changed_in_the_same_files_since() {
    let world = with_base("b.txt", "b\n");
    let first = did(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("new.txt", "new\n");
        world.remove("b.txt");
    });
    undone(&world, &first, &[]);
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN));
    did(&world, "second", || world.write("a.txt", &SEVEN.replace("six", "SIX")));
    world.write("by hand.txt", "by hand\n");
    let without = world.state();

    let preview = world.cli.json(["redo", "--dry-run", "--json"]);
    world.state().assert_is(&without, "previewed");
    let report = world.cli.json(["redo", "--yes", "--json"]);
    assert_eq!(report["tree"][0]["changes"], preview["tree"][0]["changes"], "{report}");
    let both = SEVEN.replace("two", "TWO").replace("six", "SIX");
    assert_eq!(world.read("a.txt"), Some(both.clone()));
    assert_eq!((world.read("new.txt").as_deref(), world.read("b.txt")), (Some("new\n"), None));
    assert_eq!(world.read("by hand.txt").as_deref(), Some("by hand\n"));

    undone(&world, &first, &[]);
    world.state().assert_outside_is(&without, "undone again");

    // The same line is not ours to choose.
    world.write("a.txt", &SEVEN.replace("two", "zwei"));
    let edited = world.state();
    for flag in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(["redo", "--json", flag]);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "file_conflict"), "{flag}: {outcome:?}");
        let said = if flag == "--yes" { &outcome.stderr } else { &outcome.stdout };
        assert!(said.contains("--path a.txt"), "{outcome:?}");
        world.state().assert_is(&edited, flag);
    }
    assert_eq!(world.status(), "active@a");
    world.write("a.txt", &SEVEN.replace("six", "SIX"));
    world.ic(&["redo", "--yes"]);
    assert_eq!(world.read("a.txt"), Some(both));
    world.cli.ok(["events", "verify"]);
}

#[test]
fn what_changed_while_two_worked_is_named_and_not_touched() {
    let world = in_git().begun();
    world.write("alone.txt", "1\n");
    world.write("both.txt", "1\n");
    world.write("after.txt", "1\n");
    let first = begin(&world, "first");
    world.write("alone.txt", "first\n");
    let second = begin(&world, "the second one");
    world.write("both.txt", "who knows\n");
    world.write("made.txt", "who knows\n");
    end(&world, &second);
    world.write("after.txt", "first\n");
    end(&world, &first);

    refused(&world, &undo(&first, &[]), "file_conflict");
    let report = undone_in_part(&world, &first, &["--keep-theirs"]);
    assert_told(&world, &first);
    let text = |path: &str| world.read(path).expect("a file");
    assert_eq!(
        ["alone.txt", "after.txt", "both.txt", "made.txt"].map(text),
        ["1\n", "1\n", "who knows\n", "who knows\n"]
    );
    let why = format!("kept: the second one ({}) ran at the same time, and may have changed it", &second[28..]);
    assert_eq!(stays(&report), [("both.txt".to_owned(), why.clone()), ("made.txt".to_owned(), why)]);
    // Nothing of the second can be undone, and whether it counts as undone is for a person to say.
    let hint = refused(&world, &undo(&second, &[]), "file_conflict");
    assert!(hint.contains(&format!("ic undo dispatch:{second} --dry-run")), "{hint}");
    let shown = world.cli.run(["undo", "--only", &second, "--keep-theirs", "--dry-run", "--format", "text"]).stdout;
    assert!(shown.contains("none is undone") && !shown.contains("nothing of it is left"), "{shown}");
    let report = undone_in_part(&world, &second, &["--keep-theirs"]);
    assert_eq!(report["files"]["changes"], json!([]), "{report}");
    assert_eq!(stays(&report).len(), 2);
}

#[test]
fn names_modes_links_and_bytes_go_back_where_they_are_as_it_left_them() {
    let world = in_git().begun();
    let path = |name: &str| world.cli.root().join(name);
    world.write("old name.txt", "moved\n");
    world.write("other name.txt", "moved as well\n");
    world.write("tool", "#!/bin/sh\n");
    std::fs::write(path("image"), [0, 1, 2]).expect("bytes");
    world.commit("base");
    let first = did(&world, "first", || {
        std::fs::rename(path("old name.txt"), path("new name.txt")).expect("a rename");
        std::fs::rename(path("other name.txt"), path("its name.txt")).expect("a rename");
        std::fs::set_permissions(path("tool"), PermissionsExt::from_mode(0o755)).expect("a mode");
        std::fs::write(path("image"), [0, 9, 9]).expect("bytes");
        std::os::unix::fs::symlink("tool", path("link")).expect("a link");
    });
    did(&world, "second", || {
        world.write("new name.txt", "moved\nand more\n");
        std::fs::write(path("tool"), "#!/bin/sh\necho\n").expect("a script");
    });
    let report = undone_in_part(&world, &first, &[]);
    assert_eq!(world.read("old name.txt").as_deref(), Some("moved\n"));
    assert_eq!(world.read("new name.txt").as_deref(), Some("moved\nand more\n"));
    assert!(stays(&report)[0].1.contains("it was old name.txt"), "{report}");
    assert_eq!((world.read("other name.txt").as_deref(), world.read("its name.txt")), (Some("moved as well\n"), None));
    assert_eq!((mode(&world, "tool"), world.read("tool").as_deref()), (0o644, Some("#!/bin/sh\necho\n")));
    assert_eq!(std::fs::read(path("image")).expect("bytes"), [0, 1, 2]);
    assert!(std::fs::symlink_metadata(path("link")).is_err());

    // Bytes that others changed since cannot be merged.
    let third = did(&world, "third", || std::fs::write(path("image"), [0, 3]).expect("bytes"));
    did(&world, "fourth", || std::fs::write(path("image"), [0, 4]).expect("bytes"));
    refused(&world, &undo(&third, &[]), "file_conflict");
}

/// What a piece of work set, another set back and a third set again is the third's.
#[test]
fn what_others_made_so_again_since_stays() {
    let world = in_git().begun();
    world.write("a.txt", "30\n");
    world.write("b.txt", "b\n");
    world.commit("base");
    let set = |content: &str, bits: u32| {
        world.write("a.txt", content);
        let path = world.cli.root().join("a.txt");
        std::fs::set_permissions(path, PermissionsExt::from_mode(bits)).expect("a mode");
    };
    let first = did(&world, "first", || {
        set("60\n", 0o755);
        world.remove("b.txt");
        world.write("made.txt", "by the first\n");
    });
    let second = did(&world, "second", || {
        set("30\n", 0o644);
        world.write("b.txt", "b\n");
        world.remove("made.txt");
    });
    let third = did(&world, "third", || {
        set("60\n", 0o755);
        world.remove("b.txt");
    });
    let before = world.state();
    let report = undone(&world, &first, &[]);
    before.assert_outside_is(&world.state(), "the third did all that still stands");
    let why = "others made it so again since".to_owned();
    assert_eq!(stays(&report), [("a.txt".to_owned(), why.clone()), ("b.txt".to_owned(), why)]);
    world.cli.ok(["redo", "--yes"]);

    // What was undone is not what others left.
    let is = |bits: u32, content: &str| {
        assert_eq!((mode(&world, "a.txt"), world.read("a.txt").as_deref()), (bits, Some(content)));
    };
    undone(&world, &third, &[]);
    is(0o644, "30\n");
    undone(&world, &second, &[]);
    is(0o755, "60\n");
    undone(&world, &first, &[]);
    is(0o644, "30\n");
}

#[test]
fn what_cannot_be_undone_alone_says_why_and_changes_nothing() {
    let world = in_git().begun();
    let first = did(&world, "first", || world.write("a.txt", "first\n"));
    refused(&world, &undo("99999999", &[]), "dispatch_not_found");
    refused(&world, &undo(&first, &["--layer=workflow,git"]), "usage");
    refused(&world, &undo(&first, &["--layer=all,data", "--expect-plan", &"0".repeat(64)]), "plan_changed");
    let at_work = begin(&world, "at work");
    let said = refused(&world, &undo(&at_work, &[]), "work_running");
    assert!(said.contains("ic dispatch complete"), "{said}");
    end(&world, &at_work);
    let unseen = world.ic(&["dispatch", "create", &world.run, "--name", "unseen"]);
    world.ic(&["dispatch", "start", &unseen, "--no-checkpoint"]);
    world.ic(&["dispatch", "complete", &unseen]);
    refused(&world, &undo(&unseen, &[]), "no_checkpoint");
    let half = begin(&world, "half seen");
    world.ic(&["dispatch", "complete", &half, "--no-checkpoint"]);
    refused(&world, &undo(&half, &[]), "no_checkpoint");
    undone(&world, &half, &["--layer=workflow,effects"]);

    undone(&world, &first, &[]);
    let said = refused(&world, &undo(&first, &[]), "point_taken_back");
    let back = said.split("ic ").nth(1).expect("a command");
    let words: Vec<&str> = back.split(' ').collect();
    world.ic(&words);
    assert_eq!(world.read("a.txt").as_deref(), Some("first\n"));
    let other = world.ic(&["run", "create", "--goal", "another", "--phases", "a,b,c"]);
    refused(&world, &undo(&first, &["--run", &other]), "point_of_other_run");
}

#[test]
fn going_back_to_where_the_work_stood_lifts_its_undo() {
    let world = in_git().begun();
    let first = did(&world, "first", || world.write("a.txt", "first\n"));
    let between = world.state();
    let second = did(&world, "second", || world.write("b.txt", "second\n"));
    let alone = undone(&world, &first, &[])["rollback_id"].as_str().expect("an id").to_owned();
    let without = world.state();
    let status = |id: &str| world.cli.json(["rollback", "show", id, "--json"])["status"].clone();

    let report = world.cli.json(["undo", &format!("dispatch:{second}"), "--yes", "--json"]);
    assert_eq!(report["reinstated"], json!([alone]), "{report}");
    let now = world.state();
    now.assert_outside_is(&between, "back to where it stood");
    assert_eq!(status(&alone), "undone");
    assert_eq!(world.cli.json(["dispatch", "show", &first, "--json"])["rolled_back_by"], Value::Null);

    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&without, "redone");
    assert_eq!(status(&alone), "done");
    assert_eq!(world.cli.json(["dispatch", "show", &first, "--json"])["rolled_back_by"], json!(alone));
    world.ic(&["redo", "--yes"]);
    assert_eq!(world.read("a.txt").as_deref(), Some("first\n"));
    world.cli.ok(["events", "verify"]);
}

#[test]
fn a_rollback_of_the_run_since_is_undone_first() {
    let world = in_git().begun();
    let first = did(&world, "first", || world.write("a.txt", "first\n"));
    let alone = undone(&world, &first, &[])["rollback_id"].as_str().expect("an id").to_owned();
    did(&world, "second", || world.write("b.txt", "second\n"));
    world.ic(&["undo", "--yes"]);
    let outcome = world.cli.run(["redo", &alone, "--yes"]);
    assert_eq!(outcome.error(), "run_changed", "{outcome:?}");
    assert!(outcome.stderr.contains("ic redo"), "{outcome:?}");
    for expected in [None, Some("first\n")] {
        world.ic(&["redo", "--yes"]);
        assert_eq!((world.read("a.txt").as_deref(), world.read("b.txt").as_deref()), (expected, Some("second\n")));
    }
}

/// The undo of one dispatch passed an effect that cannot be undone. It is lifted with its decision, and made again with it.
#[test]
fn what_an_undo_left_as_it_was_is_left_again_when_that_undo_is_made_again() {
    let world = in_git().begun();
    let first = begin(&world, "first");
    for (step, kind) in [("build", "--skip"), ("letter", "--pivot")] {
        world.ic(&["compensation", "add", &world.run, "--step", step, kind, "--dispatch", &first]);
    }
    world.write("a.txt", "first\n");
    end(&world, &first);
    let second = did(&world, "second", || world.write("b.txt", "second\n"));
    let effects = || -> Vec<(Value, Value)> {
        let all = world.cli.json(["compensation", "list", &world.run, "--json"]);
        let all = all.as_array().expect("a list").iter();
        all.map(|one| (one["status"].clone(), one["rolled_back_by"].clone())).collect()
    };
    let all_are = |state: &str| {
        let expected = (json!(state), Value::Null);
        assert_eq!(effects(), [expected.clone(), expected], "{state}");
    };
    all_are("armed");
    let alone = undone(&world, &first, &["--past-pivot"])["rollback_id"].as_str().expect("an id").to_owned();
    all_are("skipped");
    for _ in 0..2 {
        let back = world.cli.json(["undo", &format!("dispatch:{second}"), "--yes", "--json"]);
        assert_eq!(back["reinstated"], json!([alone]), "{back}");
        all_are("armed");
        world.ic(&["redo", "--yes"]);
        all_are("skipped");
    }
    world.ic(&["redo", &alone, "--without-effects", "--yes"]);
    all_are("armed");
    world.cli.ok(["events", "verify"]);
}
