//! What an undo of one dispatch left to others, what becomes of it when they are undone too, and what is said of it.

use std::os::unix::fs::PermissionsExt as _;

use ic_testkit::{TestWorld, git_in};
use serde_json::json;

use super::{SEVEN, did, mode, refused, stays, undo, undone, undone_in_part, with_base};
use crate::project::WHOLE;

fn rename(world: &TestWorld, from: &str, to: &str) {
    std::fs::rename(world.root().join(from), world.root().join(to)).expect("a rename");
}

fn chmod(world: &TestWorld, path: &str, mode: u32) {
    let path = world.root().join(path);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
}

#[test]
fn what_was_left_to_others_goes_back_to_before_both_when_they_are_undone_too() {
    let world = with_base("b.bin", "\0zero\n");
    let first = did(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("b.bin", "\0one\n");
        chmod(&world, "a.txt", 0o755);
    });
    let second = did(&world, "second", || {
        world.write("a.txt", &SEVEN.replace("two", "2").replace("six", "6"));
        chmod(&world, "a.txt", 0o600);
        world.remove("b.bin");
    });
    let report = undone_in_part(&world, &first, &["--keep-theirs"]);
    assert_eq!(report["files"]["changes"], json!([]), "{report}");
    let before = world.state();
    let report = undone(&world, &second, &[]);
    assert_eq!(stays(&report), []);
    assert_eq!(
        (world.read("a.txt").as_deref(), world.read("b.bin").as_deref()),
        (Some(SEVEN), Some("\0zero\n")),
        "neither of the two stands"
    );
    assert_eq!(mode(&world, "a.txt"), 0o644);
    world.cli.json(["redo", "--yes", "--json"]);
    world.state().assert_outside_is(&before, "redone");
}

#[test]
fn what_another_made_of_a_name_that_is_undone_is_for_a_person_to_decide() {
    let world = with_base("one", "one\n");
    let first = did(&world, "first", || rename(&world, "one", "two"));
    let second = did(&world, "second", || {
        world.remove("two");
        world.write("two/in", "in\n");
    });
    undone_in_part(&world, &first, &[]);
    refused(&world, &undo(&second, &[]), "file_conflict");
    let plan = world.cli.run(undo(&second, &["--dry-run"])).json();
    let conflicts = json!([{ "path": "two", "reason": "the work changed what is undone by now" }]);
    assert_eq!(plan["files"]["conflicts"], conflicts, "{plan}");
    // The other way round nothing is left of either.
    world.cli.json(["redo", "--yes", "--json"]);
    undone(&world, &second, &[]);
    undone(&world, &first, &[]);
    let all = (world.read("one"), world.root().join("two").exists());
    assert_eq!(all, (Some("one\n".to_owned()), false));
}

#[test]
fn a_file_that_became_a_directory_of_others_is_named_with_what_can_be_done() {
    let world = with_base("one", "one\n");
    let first = did(&world, "first", || {
        world.remove("one");
        world.write("one/a", "a\n");
    });
    let second = did(&world, "second", || world.write("one/b", "b\n"));
    let words = undo(&first, &[]);
    let text = refused(&world, &words, "file_conflict");
    assert!(
        !text.contains("--force-files restores") && text.contains("undo first what stands in the way of one"),
        "{text}"
    );
    world.save(&WHOLE);
    for flag in ["--keep-theirs", "--force-files"] {
        let report = undone_in_part(&world, &first, &[flag]);
        assert_eq!(
            report["files"]["changes"],
            json!([{ "path": "one/a", "change": "delete", "uncaptured": false }]),
            "{flag}: {report}"
        );
        assert_eq!(stays(&report).len(), 1, "{flag}: {report}");
        assert_eq!((world.read("one/a"), world.read("one/b").as_deref()), (None, Some("b\n")), "{flag}");
        world.reset(&WHOLE);
    }
    // As it says: what stands in the way first.
    undone(&world, &second, &[]);
    undone(&world, &first, &[]);
    assert_eq!(world.read("one").as_deref(), Some("one\n"));
}

#[test]
fn files_of_a_directory_that_was_renamed_are_followed_and_new_ones_are_named() {
    let world = with_base("dir/a", "1\n");
    let first = did(&world, "first", || {
        world.write("dir/a", "1\n2\n");
        world.write("dir/b", "new\n");
    });
    rename(&world, "dir", "dir2");
    let report = undone_in_part(&world, &first, &[]);
    let why = "others renamed it to dir2/b since, which is not changed";
    assert_eq!(stays(&report), [("dir/b".to_owned(), why.to_owned())]);
    assert_eq!((world.text("dir2/a").as_str(), world.read("dir/a")), ("1\n", None));
    world.ic(&["redo", "--yes"]);
    assert_eq!((world.text("dir2/a").as_str(), world.text("dir2/b").as_str()), ("1\n2\n", "new\n"));
}

#[test]
fn a_file_that_others_renamed_and_changed_is_followed() {
    let of_the_work = SEVEN.replace("two", "TWO");
    let of_both = of_the_work.replace("six", "SIX");
    // Whether a checkpoint lies between the rename and the change, if it is changed at all.
    for (is_seen, is_changed) in [(false, false), (false, true), (true, true)] {
        let world = with_base("b.txt", "b\n");
        let first = did(&world, "first", || world.write("a.txt", &of_the_work));
        world.git(&["mv", "a.txt", "new.txt"]);
        if is_seen {
            world.ic(&["checkpoint", "create"]);
        }
        if is_changed {
            world.write("new.txt", &of_both);
        }
        let before = world.state();
        undone(&world, &first, &[]);
        let left = if is_changed { SEVEN.replace("six", "SIX") } else { SEVEN.to_owned() };
        assert_eq!((world.text("new.txt"), world.read("a.txt")), (left, None), "seen {is_seen}");
        world.ic(&["redo", "--yes"]);
        world.state().assert_outside_is(&before, "redone");
    }
}

#[test]
fn a_rename_is_known_by_half_of_the_lines() {
    let world = with_base("b.txt", "b\n");
    let first = did(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("made.txt", SEVEN);
    });
    // Two files that could be the new one: it is the one with more of its lines.
    rename(&world, "made.txt", "kept.txt");
    world.write("kept.txt", &SEVEN.replace("one", "1"));
    world.write("like.txt", &SEVEN.replace("one", "1").replace("two", "2"));
    let report = undone_in_part(&world, &first, &[]);
    let why = "others renamed it to kept.txt since, which is not changed";
    assert_eq!(stays(&report), [("made.txt".to_owned(), why.to_owned())]);
    assert_eq!(world.text("a.txt"), SEVEN);
    world.ic(&["redo", "--yes"]);
    // With fewer lines it is another file.
    world.remove("a.txt");
    world.write("other.txt", "one\nTWO\n1\n2\n3\n4\n5\n6\n7\n8\n");
    refused(&world, &undo(&first, &[]), "file_conflict");
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn a_submodule_that_a_commit_moved_is_named_as_what_stays() {
    let world = with_base("b.txt", "b\n");
    world.write("lib/l", "one\n");
    let lib = world.root().join("lib");
    git_in(&lib, &["init", "-q"]);
    git_in(&lib, &["add", "."]);
    git_in(&lib, &["commit", "-qm", "one"]);
    world.commit("with a submodule");
    let moved = did(&world, "moved", || {
        world.write("lib/l", "two\n");
        git_in(&lib, &["commit", "-qam", "two"]);
        world.write("b.txt", "of the work\n");
        world.commit("moved");
    });
    let entry = world.git(&["ls-files", "-s", "lib"]);
    let report = undone_in_part(&world, &moved, &[]);
    let why = "it is a submodule, and stays at the commit to which a commit of this work moved it";
    assert_eq!(stays(&report), [("lib".to_owned(), why.to_owned())], "{report}");
    assert_eq!(world.read("b.txt").as_deref(), Some("b\n"));
    assert_eq!(world.git(&["ls-files", "-s", "lib"]), entry);
    assert_eq!(git_in(&lib, &["log", "-1", "--format=%s"]).trim(), "two");
}
