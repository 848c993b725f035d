//! Lines that the work changed, and others after it: a decision about them leaves every other line of the file as the others have it.

use std::os::unix::fs::PermissionsExt as _;

use ic_testkit::{TestWorld, long, tell};
use serde_json::json;

use super::killed::{dies_before, rollbacks};
use super::{did, refused, stays, undo, undone, undone_in_part};
use crate::project::{WHOLE, Work as _, in_git};

const LINES: usize = 40;

/// Numbered lines, of which some are others.
fn text(set: &[(usize, &str)]) -> String {
    let line = |at: usize| match set.iter().rfind(|(of, _)| *of == at) {
        Some((_, line)) => format!("{line}\n"),
        None => format!("line {at}\n"),
    };
    (1..=LINES).map(line).collect()
}

/// Work in lines 3, 20 and 30, of which another one changed line 20, and lines 10 and 22 besides.
fn story() -> (TestWorld, String) {
    let world = in_git().begun();
    world.write("a.txt", &text(&[]));
    world.commit("base");
    let first = did(&world, "first", || world.write("a.txt", &text(&[(3, "F3"), (20, "F20"), (30, "F30")])));
    did(&world, "second", || {
        let theirs = [(10, "S10"), (20, "S20"), (22, "S22")];
        world.write("a.txt", &text(&[&[(3, "F3"), (30, "F30")], &theirs[..]].concat()));
    });
    (world, first)
}

const TAKEN: [(usize, &str); 2] = [(10, "S10"), (22, "S22")];

#[test]
fn lines_of_others_outside_of_the_conflict_survive_force_files() {
    let (world, first) = story();
    let before = world.state();
    let said = refused(&world, &undo(&first, &[]), "file_conflict");
    assert!(said.contains(&format!("ic undo --only {first} --force-files --yes")), "{said}");
    let report = undone(&world, &first, &["--force-files"]);
    assert_eq!(world.text("a.txt"), text(&TAKEN));
    let conflicts = json!([{ "path": "a.txt", "reason": "others changed the same lines since: 20" }]);
    assert_eq!(report["files"]["conflicts"], conflicts, "the lines that went are named");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&before, "redone");
    world.cli.ok(["events", "verify"]);
}

#[test]
fn only_the_lines_in_conflict_stay_by_keep_theirs() {
    let (world, first) = story();
    let before = world.state();
    let report = undone_in_part(&world, &first, &["--keep-theirs"]);
    assert_eq!(world.text("a.txt"), text(&[&TAKEN[..], &[(20, "S20")]].concat()));
    assert_eq!(report["files"]["changes"][0]["path"], "a.txt", "{report}");
    let why = "kept: others changed the same lines since: 20";
    assert_eq!(stays(&report), [("a.txt".to_owned(), why.to_owned())], "{report}");
    // What stays is all that is left to undo.
    let (left, taken) = (world.state(), undo(&first, &["--force-files", "--yes"]));
    let rest = world.cli.json(taken);
    assert_eq!(world.text("a.txt"), text(&TAKEN));
    // The part comes back after the rest: until then the record says that the work is undone.
    let part = report["rollback_id"].as_str().expect("an id");
    let out_of_order = world.cli.run(["redo", part, "--yes", "--json"]);
    assert_eq!(out_of_order.error(), "run_changed", "{out_of_order:?}");
    let first_of_all = format!("ic redo {} --yes", &rest["rollback_id"].as_str().expect("an id")[28..]);
    assert!(out_of_order.stderr.contains(&first_of_all), "{out_of_order:?}");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&left, "the rest is redone");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&before, "all is redone");
}

#[test]
fn a_redo_after_force_files_keeps_what_others_changed_since() {
    let (world, first) = story();
    let before = world.text("a.txt");
    undone(&world, &first, &["--force-files"]);
    did(&world, "third", || world.write("a.txt", &text(&[&TAKEN[..], &[(35, "T35")]].concat())));
    world.ic(&["redo", "--yes"]);
    assert_eq!(world.text("a.txt"), before.replace("line 35", "T35"));
}

#[test]
fn other_work_is_undone_after_a_decision_without_another_question() {
    for flag in ["--force-files", "--keep-theirs"] {
        let (world, first) = story();
        let third = did(&world, "third", || {
            let text = world.text("a.txt");
            world.write("a.txt", &text.replace("line 35", "T35"));
        });
        world.cli.run(undo(&first, &[flag, "--yes"]));
        let without_first = world.text("a.txt");
        let fourth = did(&world, "fourth", || world.write("a.txt", &without_first.replace("line 38", "F38")));
        undone(&world, &third, &[]);
        assert_eq!(world.text("a.txt"), without_first.replace("T35", "line 35").replace("line 38", "F38"), "{flag}");
        undone(&world, &fourth, &[]);
        assert_eq!(world.text("a.txt"), without_first.replace("T35", "line 35"), "{flag}");
        for _ in 0..2 {
            world.ic(&["redo", "--yes"]);
        }
        assert_eq!(world.text("a.txt"), without_first.replace("line 38", "F38"), "{flag}");
    }
}

/// What two set as permissions of a file says nothing of its lines: each line goes or stays by itself, as elsewhere.
#[test]
fn permissions_that_both_changed_are_decided_apart_from_lines() {
    let mode = |world: &TestWorld| std::fs::metadata(world.root().join("a.txt")).expect("it").permissions().mode();
    for theirs in [&[(10, "S10")][..], &[(10, "S10"), (20, "S20")]] {
        for (flag, code, is_mode, is_text) in
            [("--force-files", 0, 0o644, &[(10, "S10")][..]), ("--keep-theirs", 4, 0o600, theirs)]
        {
            let world = in_git().begun();
            let sets = |lines: &[(usize, &str)], bits| {
                world.write("a.txt", &text(lines));
                let bits = std::fs::Permissions::from_mode(bits);
                std::fs::set_permissions(world.root().join("a.txt"), bits).expect("a mode");
            };
            sets(&[], 0o644);
            world.commit("base");
            let first = did(&world, "first", || sets(&[(3, "F3"), (20, "F20")], 0o755));
            did(&world, "second", || sets(&[&[(3, "F3"), (20, "F20")], theirs].concat(), 0o600));
            let before = world.state();
            let said = format!("{:?}", world.cli.run(undo(&first, &["--yes"])));
            let reason = "the work changed its permissions or attributes, and so did others since";
            let lines = if theirs.len() > 1 { "; others changed the same lines since: 20)" } else { ")" };
            assert!(said.contains(&format!("a.txt ({reason}{lines}")), "{said}");
            let undone = world.cli.run(undo(&first, &[flag, "--yes"]));
            assert_eq!(undone.code, Some(code), "{flag}: {undone:?}");
            assert_eq!((world.text("a.txt"), mode(&world) & 0o777), (text(is_text), is_mode), "{flag}, {theirs:?}");
            world.ic(&["redo", "--yes"]);
            world.state().assert_outside_is(&before, "redone");
        }
    }
}

#[test]
fn a_conflict_of_more_than_lines_is_decided_as_a_whole() {
    let world = in_git().begun();
    world.write("a.bin", "\0one\ntwo\nthree\n");
    world.commit("base");
    let first = did(&world, "first", || {
        world.write("a.bin", "\0ONE\ntwo\nthree\n");
        world.write("made", "made\n");
    });
    did(&world, "second", || {
        world.write("a.bin", "\0ONE\ntwo\nTHREE\n");
        world.write("made", "made\nmore\n");
    });
    undone(&world, &first, &["--force-files"]);
    assert_eq!((world.text("a.bin").as_str(), world.read("made")), ("\0one\ntwo\nthree\n", None));
}

#[test]
fn a_forced_undo_that_is_killed_ends_as_it_would_have() {
    let (world, first) = story();
    for flag in ["--force-files", "--keep-theirs"] {
        let words = ["undo", "--only", &first, flag, "--yes", "--json"];
        world.save(&WHOLE);
        let before = world.state();
        world.cli.run(words);
        let wanted = world.state();
        let (mut n, mut resumed, mut aborted) = (1, 0, 0);
        while dies_before(&world, &words, n) {
            let when = format!("{flag}, killed before statement {n}");
            let open = rollbacks(&world).last().filter(|one| one["status"] == "in_progress").cloned();
            if let Some(open) = open {
                let id = open["id"].as_str().expect("an id");
                if (resumed + aborted) % 3 == 2 {
                    world.cli.ok(["rollback", "abort", id, "--yes"]);
                    world.state().assert_outside_is(&before, &when);
                    aborted += 1;
                } else {
                    world.cli.run(["rollback", "resume", id, "--yes"]);
                    world.state().assert_outside_is(&wanted, &when);
                    world.ic(&["redo", "--yes"]);
                    world.state().assert_outside_is(&before, &when);
                    resumed += 1;
                }
            }
            n += if long() { 1 } else { 17 };
        }
        tell(&format!("{n} statements, {resumed} resumed, {aborted} aborted"));
        assert!(resumed > 2 && aborted > 0, "{resumed} resumed, {aborted} aborted of {n}");
        world.reset(&WHOLE);
    }
}
