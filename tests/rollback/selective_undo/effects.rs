//! What the undo of a dispatch's effects changes in the tree is part of it: it is saved before, and comes back.

use ic_testkit::TestWorld;
use serde_json::json;

use super::{begin, end, stays, undo, with_base};

/// Declares an effect of a dispatch that is undone like this.
fn effect(world: &TestWorld, id: &str, step: &str, how: &[&str]) {
    let add = ["compensation", "add", &world.run, "--step", step, "--dispatch", id];
    world.ic(&[&add, how].concat());
}

/// A dispatch that changed `b.txt` and made `made`, with effects that are undone like this, the last first.
fn with_effects(all: &[&[&str]]) -> (TestWorld, String) {
    let world = with_base("b.txt", "b\n");
    let id = begin(&world, "work");
    for (n, how) in all.iter().enumerate() {
        effect(&world, &id, &format!("step{n}"), how);
    }
    world.write("b.txt", "of the work\n");
    world.write("made", "made\n");
    end(&world, &id);
    (world, id)
}

fn both(world: &TestWorld) -> (Option<String>, Option<String>) {
    (world.read("b.txt"), world.read("made"))
}

#[test]
fn what_the_undo_of_an_effect_changed_comes_back_with_the_work() {
    for how in [
        &["--restore-file", "b.txt"][..],
        &["--shell", "rm -f made"],
        &["--shell", "echo undone > b.txt"],
        &["--shell", "echo undone > b.txt; echo other > made"],
    ] {
        let (world, id) = with_effects(&[how]);
        let before = both(&world);
        let undone = (Some("b\n".to_owned()), None);
        for round in 0..2 {
            let planned = world.cli.run(undo(&id, &["--dry-run"]));
            let done = world.cli.run(undo(&id, &["--yes"]));
            assert_eq!((planned.code, done.code), (Some(0), Some(0)), "{how:?}, {round}: {done:?}");
            assert_eq!(both(&world), undone, "{how:?}, {round}");
            world.cli.json(["redo", "--without-effects", "--yes", "--json"]);
            assert_eq!(both(&world), before, "{how:?}, {round}: redone");
        }
    }
}

#[test]
fn what_it_changed_comes_back_when_the_undo_is_aborted() {
    let (world, id) = with_effects(&[&["--shell", "exit 1"], &["--restore-file", "b.txt"]]);
    let before = both(&world);
    let outcome = world.cli.run(undo(&id, &["--yes"]));
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    world.cli.ok(["rollback", "abort", "@", "--yes"]);
    assert_eq!(both(&world), before);
}

/// As UNDO says of what `--restore-file` restored: it is as before the undo once that is aborted, whatever ended it.
#[test]
fn a_file_that_it_restored_comes_back_though_the_process_died_meanwhile() {
    for (path, is_by_hand) in [("b.txt", false), ("x.ign", false), ("b.txt", true)] {
        let world = with_base("b.txt", "b\n");
        world.write(".gitignore", "*.ign\n");
        world.commit("rules");
        let id = begin(&world, "work");
        for (step, how) in [("dies", ["--shell", "kill -9 $PPID"]), ("cfg", ["--restore-file", path])] {
            effect(&world, &id, step, &how);
        }
        world.write(path, "of the work\n");
        end(&world, &id);
        let output = world.cli.command(undo(&id, &["--yes"])).output().expect("start ic");
        assert!(output.status.code().is_none(), "{output:?}");
        assert_ne!(world.read(path).as_deref(), Some("of the work\n"), "{path}: it was restored");
        let expected = if is_by_hand { "of a person\n" } else { "of the work\n" };
        if is_by_hand {
            world.write(path, expected);
        }
        world.cli.ok(["rollback", "abort", "@", "--yes"]);
        assert_eq!(world.read(path).as_deref(), Some(expected), "{path}");
    }
}

/// An ignored file is in no checkpoint but those around the effects.
#[test]
fn what_others_wrote_since_is_saved_before_an_effect_restores_the_file() {
    for (ignored, flag) in [("x.ign", None), ("b.txt", Some("--force-files")), ("b.txt", Some("--keep-theirs"))] {
        let world = with_base("b.txt", "b\n");
        world.write(".gitignore", "*.ign\n");
        world.commit("rules");
        let id = begin(&world, "work");
        effect(&world, &id, "cfg", &["--restore-file", ignored]);
        world.write(ignored, "of the work\n");
        world.write("made", "made\n");
        end(&world, &id);
        world.write(ignored, "of a person\n");
        let call = |how| [undo(&id, &[how]), flag.into_iter().collect()].concat();
        let plan = world.cli.json(call("--dry-run"));
        if flag != Some("--force-files") {
            let why = &stays(&plan)[0].1;
            assert!(why.contains("the undo of an effect restores it"), "{flag:?}: {plan}");
        }
        let done = world.cli.json([call("--yes"), vec!["--json"]].concat());
        let paths = |report: &serde_json::Value| report["files"]["changes"].clone();
        let named = |report: &serde_json::Value| -> Vec<String> {
            let all = paths(report).as_array().expect("a list").clone();
            all.iter().map(|one| one["path"].as_str().expect("a path").to_owned()).collect()
        };
        assert_eq!(named(&plan), named(&done), "{flag:?}");
        if flag == Some("--keep-theirs") {
            assert!(stays(&done)[0].1.contains("the undo of an effect restored it"), "{done}");
        }
        // Where it says that the content is, it is.
        let warning = done["files"]["warnings"].as_array().expect("a list").iter();
        let warning = warning.filter(|one| one["code"] == "restored_by_effects").collect::<Vec<_>>();
        let told = warning.first().and_then(|one| one["message"].as_str()).expect("what is told");
        let saved = told.rsplit(' ').next().expect("a checkpoint");
        assert_eq!(world.cli.ok(["checkpoint", "cat", saved, ignored]).trim_end(), "of a person", "{told}");
        assert_ne!(world.read(ignored).as_deref(), Some("of a person\n"), "{flag:?}");
        let list = world.cli.json(["checkpoint", "list", "--json"]);
        let holds = |one: &serde_json::Value| {
            let id = one["id"].as_str().expect("an id");
            world.cli.run(["checkpoint", "cat", id, ignored]).stdout == "of a person\n"
        };
        assert!(list.as_array().expect("a list").iter().any(holds), "{flag:?}: {list}");
        world.cli.json(["redo", "--yes", "--json"]);
        assert_eq!(world.read(ignored).as_deref(), Some("of a person\n"), "{flag:?}");
        assert_eq!(json!(world.read("made")), json!("made\n"), "{flag:?}");
    }
}

/// A file that is half written when the process dies is no file of the project.
#[test]
fn what_a_killed_undo_of_an_effect_left_half_written_goes_when_it_is_aborted() {
    let mut caught = 0;
    for round in 0..30 {
        let world = with_base("b.txt", "b\n");
        let big: String = (0..600_000).map(|n| format!("{n:x} ")).collect();
        world.write("big", &big);
        world.commit("big");
        let id = begin(&world, "work");
        effect(&world, &id, "s", &["--restore-file", "big"]);
        world.write("big", "of the work\n");
        end(&world, &id);
        let left = || {
            let names = std::fs::read_dir(world.root()).expect("a directory").flatten();
            names.filter(|one| one.file_name().as_encoded_bytes().starts_with(b".ic-restore-")).count()
        };
        let mut child = world.cli.command(undo(&id, &["--yes"])).spawn().expect("start ic");
        while left() == 0 && child.try_wait().expect("a process").is_none() {}
        let _ = child.kill();
        child.wait().expect("its end");
        if left() == 0 {
            continue;
        }
        caught += 1;
        let verb = if round % 2 == 0 { "abort" } else { "resume" };
        world.cli.ok(["rollback", verb, "@", "--yes"]);
        assert_eq!(left(), 0, "{verb}");
        let expected = if verb == "abort" { "of the work\n" } else { &big };
        assert_eq!(world.read("big").as_deref(), Some(expected), "{verb}");
        if caught == 4 {
            return;
        }
    }
    assert!(caught > 0, "no call was killed while it wrote");
}
