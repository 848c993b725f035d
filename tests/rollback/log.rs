//! `ic log`: what stands in it is a place to go back to, and what does not is none.

use std::collections::BTreeSet;

use ic_testkit::{Random, TestWorld, rounds};
use serde_json::Value;

use crate::project::{WHOLE, Work as _, asked, in_git};
use crate::statements::{dead_before, dead_before_the_end};
use crate::story::story;

fn work(world: &TestWorld, name: &str) -> String {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
    world.ic(&["dispatch", "start", &id]);
    world.write(&format!("{name}.txt"), name);
    world.ic(&["dispatch", "complete", &id]);
    format!("dispatch:{}", &id[id.len() - 8..])
}

fn log(world: &TestWorld, more: &[&str]) -> Vec<Value> {
    let mut words = vec!["log", &world.run, "--json", "-n", "1000"];
    words.extend(more);
    world.cli.json(words).as_array().expect("a list").clone()
}

fn text(world: &TestWorld, more: &[&str]) -> String {
    let mut words = vec!["log", &world.run, "--format", "text"];
    words.extend(more);
    world.cli.ok(words)
}

/// A reference without its prefix, as the text has it.
fn bare(reference: &str) -> &str {
    reference.split_once(':').expect("a prefix").1
}

/// The references of the points, or `rollback` for one of those.
fn names(entries: &[Value]) -> Vec<String> {
    let name = |entry: &Value| entry["reference"].as_str().unwrap_or("rollback").to_owned();
    entries.iter().map(name).collect()
}

/// What a rollback to the point would answer; nothing is changed.
fn answer(world: &TestWorld, reference: &str) -> String {
    let outcome = world.cli.run(["run", "rollback", &world.run, "--to", reference, "--dry-run", "--json"]);
    if outcome.code == Some(0) { "ok".to_owned() } else { outcome.error() }
}

/// Each point that is listed as standing is accepted, and each that was rolled back is refused.
fn assert_honest(world: &TestWorld, when: &str) {
    let standing = log(world, &[]);
    let all = log(world, &["--all"]);
    let is_point = |entry: &&Value| entry["kind"] != "rollback";
    let seqs: Vec<i64> = all.iter().map(|entry| entry["seq"].as_i64().expect("a seq")).collect();
    assert!(seqs.is_sorted_by(|newer, older| newer >= older), "{when}: {seqs:?}");
    let kept: Vec<&Value> = all
        .iter()
        .filter(|entry| entry["rolled_back_by"].is_null())
        .filter(|entry| !matches!(entry["status"].as_str(), Some("undone" | "aborted")))
        // Where the run had ended it cannot go back to.
        .filter(|entry| entry["kind"] == "rollback" || entry["reachable"] == true || entry["pruned"] == true)
        .collect();
    assert_eq!(standing.iter().collect::<Vec<_>>(), kept, "{when}: what stands is the same in both");
    assert_eq!(standing.last().expect("an entry")["kind"], "created", "{when}");
    let mut accepted = BTreeSet::new();
    for entry in standing.iter().filter(is_point) {
        let reference = entry["reference"].as_str().expect("a reference");
        assert!(accepted.insert(reference.to_owned()), "{when}: {reference} stands twice");
        assert_eq!(answer(world, reference), "ok", "{when}: {reference}");
    }
    for entry in all.iter().filter(is_point).filter(|entry| entry["rolled_back_by"].is_string()) {
        let reference = entry["reference"].as_str().expect("a reference");
        // A phase that was left again has the name of the move that was rolled back.
        if accepted.contains(reference) {
            assert_eq!(entry["kind"], "phase", "{when}: {reference}");
            continue;
        }
        let refused = answer(world, reference);
        let expected = ["point_taken_back", "phase_ahead", "already_at_phase"];
        assert!(expected.contains(&refused.as_str()), "{when}: {reference} gives {refused}");
    }
}

#[test]
fn what_was_rolled_back_stands_aside_as_a_branch_and_comes_back() {
    let world = in_git().begun();
    let first = work(&world, "first");
    world.advance();
    let second = work(&world, "second");
    world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "good"]);
    let before = names(&log(&world, &[]));
    assert_eq!(before.len(), 5, "{before:?}");
    assert!(before[0].starts_with("checkpoint:"), "{before:?}");
    assert_eq!(before[1..], [second.clone(), "phase:a".to_owned(), first.clone(), "created".to_owned()]);

    world.ic(&["run", "rollback", &world.run, "--to", &second, "--layer=all", "--yes", "--reason", "the wrong\nway"]);
    assert_eq!(
        names(&log(&world, &[])),
        ["rollback".to_owned(), second.clone(), "phase:a".to_owned(), first.clone(), "created".to_owned()]
    );
    assert_honest(&world, "rolled back");
    let third = work(&world, "third");
    let shown = text(&world, &["--all"]);
    let lines: Vec<&str> = shown.lines().collect();
    // From the newest down: new work, the rollback, its branch, and what it went back to.
    assert!(lines[1].starts_with("● ") && lines[1].contains(bare(&third)), "{shown}");
    assert!(lines[2].starts_with("● ") && lines[2].contains(&format!("← {second}")), "{shown}");
    assert!(lines[3].starts_with("╵ ") && lines[3].contains("good"), "{shown}");
    assert!(lines[4].starts_with("● ") && lines[4].contains(bare(&second)), "{shown}");
    assert!(!text(&world, &[]).contains("good"));

    world.ic(&["run", "rollback", &world.run, "--to", &third, "--layer=all", "--yes"]);
    let newest = world.cli.json(["rollback", "list", &world.run, "--json"])[1].clone();
    world.ic(&["redo", newest["id"].as_str().expect("an id"), "--yes"]);
    assert_honest(&world, "undone");
    // An undone rollback and what it had left are told of with --all alone.
    let back = names(&log(&world, &[]));
    assert_eq!(back[..3], [third, "rollback".to_owned(), second], "{back:?}");
    let shown = text(&world, &["--all"]);
    assert!(shown.lines().nth(1).expect("a line").contains("undone, ←"), "{shown}");
    world.ic(&["run", "rollback", &world.run, "--to", "created", "--yes"]);
    assert_eq!(names(&log(&world, &[])), ["rollback", "created"]);
    world.ic(&["redo", &world.run, "--yes"]);
    assert_eq!(names(&log(&world, &[])), back);
}

#[test]
fn nested_branches_stand_within_each_other() {
    let world = in_git().begun();
    let first = work(&world, "first");
    let second = work(&world, "second");
    work(&world, "third");
    world.ic(&["run", "rollback", &world.run, "--to", &second]);
    work(&world, "fourth");
    world.ic(&["run", "rollback", &world.run, "--to", &first]);
    let shown = text(&world, &["--all"]);
    let lanes: Vec<String> = shown.lines().skip(1).map(|line| line.chars().take(4).collect()).collect();
    // rollback to first, fourth, rollback to second, third, second, first, created, and the hint.
    let expected = ["● ju", "│ ju", "│ ju", "│ ╵ ", "╵ ju", "● ju", "● ju", "to g"];
    let anyhow: Vec<String> = lanes.iter().map(|lane| lane.replace(|c: char| c.is_ascii_alphanumeric(), "x")).collect();
    let expected: Vec<String> =
        expected.iter().map(|lane| lane.replace(|c: char| c.is_ascii_alphanumeric(), "x")).collect();
    assert_eq!(anyhow, expected, "{shown}");
    assert_honest(&world, "nested");
}

#[test]
fn files_and_commits_of_a_point_are_those_up_to_the_next_one() {
    let world = in_git().begun();
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "first"]);
    world.ic(&["dispatch", "start", &id]);
    world.write("new.txt", "new\n");
    world.write("README", "changed\n");
    let sha = world.commit("first");
    world.ic(&["dispatch", "record", &id, "--commit", &sha]);
    world.ic(&["dispatch", "complete", &id]);
    let second = world.ic(&["dispatch", "create", &world.run, "--name", "second"]);
    world.ic(&["dispatch", "start", &second]);
    world.remove("new.txt");
    world.ic(&["dispatch", "complete", &second]);
    let entries = log(&world, &[]);
    let files = |at: usize| {
        let files = &entries[at]["file_counts"];
        ["created", "modified", "deleted"].map(|key| files[key].as_u64().expect(key))
    };
    assert_eq!((files(0), files(1), files(2)), ([0, 0, 1], [1, 1, 0], [0, 0, 0]), "{entries:?}");
    assert_eq!(entries[1]["commit_count"], 1);
    assert_eq!((&entries[0]["commit_count"], &entries[2]["commit_count"]), (&0.into(), &Value::Null));
    let shown = text(&world, &[]);
    assert!(shown.contains("first  +1 ~1, 1 commit"), "{shown}");
    // Without the store, the list is unchanged but for what only the store knows.
    let store = world.cli.beside("objects.db");
    std::fs::rename(&store, store.with_extension("aside")).expect("move the store");
    let without = log(&world, &[]);
    assert_eq!(names(&without), names(&entries));
    assert!(without.iter().all(|entry| entry.get("file_counts") == Some(&Value::Null)), "{without:?}");
    assert!(!store.exists(), "a list makes no store");
}

#[test]
fn what_changed_most_keeps_its_name_in_the_log() {
    let world = in_git().begun();
    let write = |path: String| world.write(&path, "content\n");
    (0..150).for_each(|n| write(format!("old/{n}")));
    (0..60).for_each(|n| write(format!("kept/{n}")));
    work(&world, "first");
    world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "mid"]);
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "the great sweep"]);
    world.ic(&["dispatch", "start", &id]);
    std::fs::remove_dir_all(world.cli.root().join("old")).expect("remove them");
    (0..60).for_each(|n| world.write(&format!("kept/{n}"), "other\n"));
    (0..150).for_each(|n| write(format!("new/{n}")));
    world.ic(&["dispatch", "complete", &id]);
    let text = text(&world, &[]);
    let line = text.lines().find(|line| line.contains("+150 ~60 -150")).expect("its line");
    assert!(line.contains("the great sweep"), "{text}");
}

#[test]
fn a_log_whose_counts_cannot_be_read_says_why() {
    let world = in_git().begun();
    let (first, second) = (work(&world, "first"), work(&world, "second"));
    let store = world.cli.beside("objects.db");
    let said = || {
        let outcome = world.cli.run(["log", &world.run, "--format", "text"]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains(bare(&first)) && outcome.stdout.contains(bare(&second)), "{outcome:?}");
        outcome.stderr
    };
    assert_eq!(said(), "");
    let opened = rusqlite::Connection::open(&store).expect("the store");
    opened.execute("UPDATE packs SET data = zeroblob(length(data))", []).expect("its packs");
    drop(opened);
    for (damage, why) in [
        (Box::new(|| ()) as Box<dyn Fn()>, "damaged"),
        (Box::new(|| std::fs::write(&store, vec![b'x'; 9000]).expect("write it")), "not a database"),
        (Box::new(|| std::fs::remove_file(&store).expect("remove it")), "is missing"),
    ] {
        damage();
        let said = said();
        assert!(said.contains("What changed is not known at every point."), "{why}: {said}");
        assert!(said.contains(why) && said.contains("ic health"), "{why}: {said}");
        // That nothing changed before the first dispatch is known without content.
        let work = log(&world, &[]).into_iter().filter(|entry| entry["kind"] == "dispatch");
        assert_eq!(work.filter(|entry| entry["file_counts"].is_null()).count(), 2, "{why}");
    }
}

#[test]
fn what_a_run_without_work_and_one_that_ended_can_go_back_to() {
    let world = in_git().begun();
    assert_eq!(names(&log(&world, &[])), ["created"]);
    assert_honest(&world, "nothing was done");
    for _ in 0..5 {
        world.advance();
    }
    assert_eq!(world.status(), "completed@f");
    let phases: Vec<String> = ["e", "d", "c", "b", "a"].iter().map(|phase| format!("phase:{phase}")).collect();
    assert_eq!(names(&log(&world, &[])), [phases, vec!["created".to_owned()]].concat());
    assert_honest(&world, "completed");
    let few = world.cli.json(["log", &world.run, "-n", "2", "--json"]);
    assert_eq!(names(few.as_array().expect("a list")), ["phase:e", "phase:d"]);
    assert!(text(&world, &["-n", "2"]).contains("older ones: -n N"));
    assert!(!text(&world, &["-n", "6"]).contains("older ones"));
}

#[test]
fn however_much_was_rolled_back_what_stands_is_found() {
    let world = in_git().begun();
    let first = work(&world, "first");
    world.advance();
    for _ in 0..6 {
        world.advance();
        world.ic(&["run", "rollback", &world.run, "--to-phase", "b"]);
    }
    let few = world.cli.json(["log", &world.run, "-n", "9", "--json"]);
    let names = names(few.as_array().expect("a list"));
    assert_eq!(names[6..], ["phase:a".to_owned(), first, "created".to_owned()], "{names:?}");
    assert_honest(&world, "again and again");
}

#[test]
fn no_title_steers_a_terminal_or_widens_a_line() {
    let world = in_git().begun();
    let hostile = "\u{202e}evil \u{2066}計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃";
    for name in [hostile, "token=ghp_0123456789abcdefghijABCDEFGHIJ012345"] {
        let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
        world.ic(&["dispatch", "start", &id]);
        world.write("a.txt", name);
        world.ic(&["dispatch", "complete", &id]);
    }
    world.ic(&[
        "run",
        "rollback",
        &world.run,
        "--to",
        "created",
        "--reason",
        "why\nnot \u{202e}so long a reason that it fills a line by itself",
    ]);
    for more in [&[][..], &["--all"]] {
        let shown = text(&world, more);
        assert!(!shown.contains(['\u{202e}', '\u{2066}', '\u{1b}']), "{shown:?}");
        assert!(!shown.contains("ghp_0123456789"), "{shown}");
        for line in shown.lines() {
            let width = unicode_width::UnicodeWidthStr::width(line);
            assert!(width <= 80, "{width} columns: {line}");
        }
    }
}

#[test]
fn a_rollback_that_was_killed_is_told_as_unfinished_and_then_as_done() {
    let world = dead_before_the_end();
    let entry = |world: &TestWorld| log(world, &[]).into_iter().find(|one| one["kind"] == "rollback").expect("it");
    assert_eq!(entry(&world)["status"], "in_progress");
    assert!(text(&world, &[]).contains("unfinished, ← a"));
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert_eq!(entry(&world)["status"], "done");
    assert!(!text(&world, &[]).contains("unfinished"));
    assert_honest(&world, "resumed");
}

#[test]
fn what_a_killed_undo_restored_is_no_restore_by_hand() {
    let world = story();
    let id = world.roll_back("a", &[])["rollback_id"].as_str().expect("an id").to_owned();
    world.save(&WHOLE);
    let mut restored = 0;
    // On a busy machine a transaction that was due may follow the end of the redo.
    for from_the_last in 1..9 {
        world.reset(&WHOLE);
        dead_before(&world, &["redo", &id, "--without-effects", "--yes"], from_the_last);
        if asked(&world.cli, "SELECT count(*) FROM rollbacks WHERE status = 'in_progress'") == 0 {
            continue;
        }
        restored += asked(&world.cli, "SELECT count(*) - 1 FROM restores WHERE state = 'applied'");
        let all = world.cli.json(["log", "--json"]);
        let kinds: Vec<&Value> = all.as_array().expect("a list").iter().map(|entry| &entry["kind"]).collect();
        assert!(!kinds.contains(&&"restore".into()), "{from_the_last}. from the last: {all}");
    }
    assert!(restored > 0, "it was killed after a restore at least once");
}

#[test]
fn after_any_history_the_log_is_honest() {
    let mut random = Random::seeded();
    for round in rounds(3) {
        let world = in_git().begun();
        for step in 0..9 {
            match random.below(6) {
                // A run that is completed takes no more work.
                0 | 1 if world.status().starts_with("active") => drop(work(&world, &format!("w{step}"))),
                0..=2 => drop(world.cli.run(["run", "advance", &world.run])),
                3 => drop(world.ic(&["checkpoint", "create", "--run", &world.run])),
                4 => {
                    let points: Vec<String> =
                        names(&log(&world, &[])).into_iter().filter(|name| name != "rollback").collect();
                    let at = usize::try_from(random.below(points.len() as u64)).expect("a place");
                    let outcome = world.cli.run(["run", "rollback", &world.run, "--to", &points[at]]);
                    assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", points[at]);
                }
                _ => {
                    let all = world.cli.json(["rollback", "list", &world.run, "--json"]);
                    let newest = all.as_array().and_then(|all| all.iter().rev().find(|one| one["status"] == "done"));
                    if let Some(id) = newest.and_then(|one| one["id"].as_str()) {
                        // Refused if something happened since.
                        drop(world.cli.run(["redo", id, "--yes"]));
                    }
                }
            }
        }
        assert_honest(&world, &format!("round {round}"));
    }
}

#[test]
fn a_checkpoint_of_a_run_that_had_ended_is_not_offered() {
    let world = in_git().begun();
    world.ic(&["checkpoint", "create", "--run", &world.run]);
    for _ in 0..5 {
        world.advance();
    }
    assert_eq!(world.status(), "completed@f");
    world.write("late.txt", "late\n");
    let late = world.ic(&["checkpoint", "create", "--run", &world.run]);
    let late = format!("checkpoint:{}", &late[28..]);
    assert_honest(&world, "completed");
    assert!(!names(&log(&world, &[])).contains(&late), "{:?}", log(&world, &[]));
    // All of the record has it, and says what it is good for.
    let all = log(&world, &["--all"]);
    let found = all.iter().find(|one| one["reference"] == late.as_str()).expect("the checkpoint");
    assert_eq!((&found["reachable"], answer(&world, &late).as_str()), (&false.into(), "terminal_phase"));
    let shown = text(&world, &["--all"]);
    assert!(shown.lines().any(|line| line.contains(bare(&late)) && line.ends_with("files alone")), "{shown}");
    // One that belongs to no run is found by its name, and is no point either.
    world.ic(&["checkpoint", "create", "--name", "beside"]);
    assert_eq!(answer(&world, "checkpoint:beside"), "point_not_found");
    let newest = world.cli.json(["status", &world.run, "--json"])["last_point"]["reference"].clone();
    assert_eq!(answer(&world, newest.as_str().expect("a reference")), "ok", "{newest}");
    let offered = world.cli.ok(["log", &world.run, "--json"]);
    assert!(!offered.contains("\"reachable\":false"), "{offered}");
}
