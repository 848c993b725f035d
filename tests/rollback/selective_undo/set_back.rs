//! Work that sets back what other work did, and makes again what was undone: whichever of it is undone, the tree is as the work that stands
//! makes it alone, or a conflict is named and nothing is changed; redone from the newest undo on, it is as it was.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::{Random, TestWorld, rounds, tell};
use serde_json::Value;

use super::{SEVEN, did, stays, undone, undone_in_part, with_base};
use crate::project::{Work as _, in_git};

/// The number of lines that are set, each far from the next.
const LINES: usize = 4;

/// What each line is.
type Lines = [&'static str; LINES];

const VERSIONS: [&str; 3] = ["one", "two", "three"];

fn write(world: &TestWorld, lines: &Lines) {
    let far = "-\n".repeat(4);
    let text: String = lines.iter().enumerate().map(|(at, line)| format!("{at}{far}{line}\n{far}")).collect();
    world.write("a.txt", &text);
}

fn read(world: &TestWorld) -> Vec<String> {
    let text = world.read("a.txt").expect("the file");
    text.lines().filter(|line| VERSIONS.contains(line)).map(str::to_owned).collect()
}

#[derive(Debug)]
struct Work {
    id: String,
    sets: Vec<(usize, &'static str)>,
    /// The undo of it that stands.
    undo: Option<String>,
}

/// What stands, alone.
fn alone(all: &[Work]) -> Lines {
    let mut lines = [VERSIONS[0]; LINES];
    for (line, version) in all.iter().filter(|work| work.undo.is_none()).flat_map(|work| &work.sets) {
        lines[*line] = version;
    }
    lines
}

/// Work that sets lines to what they are not.
fn work(world: &TestWorld, random: &mut Random, all: &[Work]) -> Work {
    let mut lines = alone(all);
    let mut sets = Vec::new();
    for _ in 0..=random.below(2) {
        let line = random.place_in(LINES);
        let version = VERSIONS[random.place_in(VERSIONS.len())];
        // What one work sets and sets back, no look at the tree shows.
        if lines[line] != version && !sets.iter().any(|(set, _)| *set == line) {
            lines[line] = version;
            sets.push((line, version));
        }
    }
    let id = did(world, &format!("work {}", all.len()), || write(world, &lines));
    Work { id, sets, undo: None }
}

/// Undoes a piece of work, or brings it back, whatever was undone since; `None`: a conflict, and nothing was changed.
fn turn(world: &TestWorld, work: &mut Work, when: &str) -> Option<()> {
    let report = match &work.undo {
        None => done(world, &["undo", "--only", &work.id, "--yes", "--json"], when)?,
        Some(undo) => done(world, &["redo", undo, "--yes", "--json"], when)?,
    };
    work.undo = match work.undo {
        None => Some(report["rollback_id"].as_str().expect("its id").to_owned()),
        Some(_) => None,
    };
    Some(())
}

/// Calls; `None`: a conflict, and nothing was changed.
fn done(world: &TestWorld, words: &[&str], when: &str) -> Option<Value> {
    let before = world.state();
    let outcome = world.cli.run(words);
    if outcome.code == Some(1) {
        assert_eq!(outcome.error(), "file_conflict", "{when}: {outcome:?}");
        world.state().assert_is(&before, when);
        return None;
    }
    assert_eq!(outcome.code, Some(0), "{when}: {outcome:?}");
    Some(outcome.json())
}

/// A way that ends where it began: a person restores a checkpoint and takes that back, or an undo is killed and aborted.
fn detour(world: &TestWorld, random: &mut Random, work: &mut Work, when: &str) {
    if random.below(2) == 0 {
        let list = world.cli.json(["checkpoint", "list", "--json"]);
        let list = list.as_array().expect("a list");
        let id = list[random.place_in(list.len())]["id"].as_str().expect("an id");
        let path: &[&str] = if random.below(2) == 0 { &["--path", "a.txt"] } else { &[] };
        let report = world.cli.json([&["checkpoint", "restore", id, "--yes", "--json"], path].concat());
        if report["status"] == "restored" {
            world.cli.json(["redo", "--yes", "--json"]);
        }
        return;
    }
    let mut command = match &work.undo {
        None => world.cli.command(["undo", "--only", &work.id, "--yes", "--json"]),
        Some(undo) => world.cli.command(["redo", undo, "--yes", "--json"]),
    };
    let n = 20 + random.below(500);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    let of_it = |one: &&Value| one["dispatch_ids"][0] == work.id.as_str();
    let newest = list.as_array().expect("a list").iter().rfind(of_it);
    let status = newest.and_then(|one| one["status"].as_str());
    let id = newest.and_then(|one| one["id"].as_str());
    match status {
        Some("in_progress") => drop(world.ic(&["rollback", "abort", id.expect("its id"), "--yes"])),
        Some("undoing") => drop(world.ic(&["rollback", "resume", id.expect("its id"), "--yes"])),
        _ => {}
    }
    let is_killed = output.status.signal().is_some();
    assert!(is_killed || matches!(output.status.code(), Some(0 | 1)), "{when}: {output:?}");
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    let stands = list.as_array().expect("a list").iter().rfind(|one| of_it(one) && one["status"] == "done");
    work.undo = stands.and_then(|one| one["id"].as_str()).map(str::to_owned);
}

#[test]
fn what_stands_is_as_it_makes_the_tree_alone_in_whichever_order_work_is_undone_and_comes_back() {
    let mut random = Random::seeded();
    let (mut turns, mut conflicts) = (0, 0);
    for round in rounds(6) {
        let world = in_git().begun();
        write(&world, &alone(&[]));
        world.commit("base");
        let mut all: Vec<Work> = Vec::new();
        for turn in 0..12 {
            if all.len() < 3 || random.below(4) == 0 {
                let made = work(&world, &mut random, &all);
                all.push(made);
            } else if random.below(3) == 0 {
                let at = random.place_in(all.len());
                let when = format!("round {round}, turn {turn}, a detour with {at} of {all:#?}");
                detour(&world, &mut random, &mut all[at], &when);
            } else {
                let at = random.place_in(all.len());
                let when = format!("round {round}, turn {turn}, {at} of {all:#?}");
                let is_done = self::turn(&world, &mut all[at], &when).is_some();
                *(if is_done { &mut turns } else { &mut conflicts }) += 1;
            }
            assert_eq!(read(&world), alone(&all), "round {round}, turn {turn}: {all:#?}");
        }
    }
    tell(&format!("{turns} undone or redone, {conflicts} conflicts"));
    assert!(turns > conflicts, "{turns} and {conflicts}");
}

#[test]
fn undos_that_are_undone_from_the_newest_on_leave_what_was_there() {
    let mut random = Random::seeded();
    for round in rounds(3) {
        let world = in_git().begun();
        write(&world, &alone(&[]));
        world.commit("base");
        let mut all: Vec<Work> = Vec::new();
        for _ in 0..4 {
            let made = work(&world, &mut random, &all);
            all.push(made);
        }
        let (mut stack, mut left): (Vec<_>, Vec<usize>) = (Vec::new(), (0..all.len()).collect());
        while !left.is_empty() {
            let at = left.swap_remove(random.place_in(left.len()));
            let when = format!("round {round}, undo of {at} of {all:#?}");
            let before = world.state();
            if turn(&world, &mut all[at], &when).is_some() {
                stack.push((at, before));
            }
        }
        while let Some((at, before)) = stack.pop() {
            let when = format!("round {round}, redo of {at} of {all:#?}");
            assert!(done(&world, &["redo", "--yes", "--json"], &when).is_some(), "{when}");
            world.state().assert_outside_is(&before, &when);
        }
    }
}

#[test]
fn what_was_set_back_does_not_come_with_the_undo_of_what_set_it_back() {
    let world = with_base("kept.txt", "kept\n");
    let first = did(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("made.txt", "made\n");
        world.remove("kept.txt");
    });
    let second = did(&world, "second", || {
        world.write("a.txt", &SEVEN.replace("six", "SIX"));
        world.remove("made.txt");
        world.write("kept.txt", "kept\n");
    });
    undone(&world, &first, &[]);
    assert_eq!(world.read("a.txt"), Some(SEVEN.replace("six", "SIX")), "the second set it back already");
    let both_stand = world.state();

    undone(&world, &second, &[]);
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN), "nothing of either is left");
    assert_eq!((world.read("made.txt"), world.read("kept.txt").as_deref()), (None, Some("kept\n")));

    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&both_stand, "the second again");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&both_stand, "both again");
}

#[test]
fn what_a_third_made_again_stays_with_the_undo_of_what_set_it_back_before() {
    let world = with_base("b.txt", "b\n");
    let loud = SEVEN.replace("two", "TWO");
    let first = did(&world, "first", || world.write("a.txt", &loud));
    let second = did(&world, "second", || world.write("a.txt", SEVEN));
    undone(&world, &first, &[]);
    let third = did(&world, "third", || world.write("a.txt", &loud));
    undone(&world, &second, &[]);
    assert_eq!(world.read("a.txt"), Some(loud), "the third wants it so");
    undone(&world, &third, &[]);
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN));
}

/// What it was before the second is the work of the first, which is undone: a person says which of it stays.
#[test]
fn what_was_edited_under_another_name_that_is_undone_is_for_a_person_to_decide() {
    let world = with_base("old.txt", "old\n");
    let first = did(&world, "first", || drop(world.git(&["mv", "old.txt", "new.txt"])));
    let second = did(&world, "second", || world.write("new.txt", "old\nand more\n"));
    undone_in_part(&world, &first, &[]);
    let one = world.state();
    assert!(done(&world, &["undo", "--only", &second, "--yes", "--json"], "its base is undone").is_none());
    undone(&world, &second, &["--force-files"]);
    assert_eq!((world.read("old.txt").as_deref(), world.read("new.txt").as_deref()), (Some("old\n"), Some("old\n")));
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&one, "the second again");
}

#[test]
fn what_is_said_to_be_back_is_back_and_what_is_not_is_named() {
    let world = with_base("b.txt", "b\n");
    let first = did(&world, "first", || world.write("new.txt", "of the first\n"));
    undone(&world, &first, &[]);
    did(&world, "second", || world.write("new.txt", "of the second\n"));
    let with_another = world.state();
    assert!(done(&world, &["redo", "--yes", "--json"], "another is there").is_none());
    world.state().assert_is(&with_another, "refused");
    did(&world, "third", || world.remove("new.txt"));
    done(&world, &["redo", "--yes", "--json"], "nothing is there").expect("nothing is in the way");
    assert_eq!(world.read("new.txt").as_deref(), Some("of the first\n"));

    let same = did(&world, "same", || world.write("same.txt", "the same\n"));
    undone(&world, &same, &[]);
    did(&world, "again", || world.write("same.txt", "the same\n"));
    did(&world, "gone", || world.remove("same.txt"));
    let report = done(&world, &["redo", "--yes", "--json"], "the same").expect("nothing is in the way");
    assert_eq!(world.read("same.txt"), None);
    assert_eq!(report["files"][0]["skipped"][0]["path"], "same.txt", "{report}");
}

#[test]
fn a_redo_of_an_undo_that_changed_nothing_changes_nothing() {
    let world = with_base("b.txt", "b\n");
    let loud = SEVEN.replace("two", "TWO");
    let first = did(&world, "first", || world.write("a.txt", &loud));
    let second = did(&world, "second", || drop(world.git(&["mv", "a.txt", "c.txt"])));
    undone(&world, &second, &[]);
    assert_eq!(world.read("a.txt").as_ref(), Some(&loud));
    // A person sets it back, and no look sees that.
    world.write("a.txt", SEVEN);
    let by_hand = world.state();
    undone(&world, &first, &[]);
    world.state().assert_outside_is(&by_hand, "there was nothing to undo");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&by_hand, "and nothing to bring back");
    // What the person made of the file is kept beside its other name.
    let report = done(&world, &["redo", "--yes", "--json"], "the rename").expect("both are kept");
    assert_eq!((world.read("a.txt").as_deref(), world.read("c.txt")), (Some(SEVEN), Some(loud)));
    assert_eq!(report["files"][0]["skipped"][0]["path"], "a.txt", "{report}");
}

/// A redo that restored what its undo had left in the tree restored something itself: no person did that.
#[test]
fn a_redo_after_a_redo_that_restored_more_than_its_undo_means_the_next_undo() {
    let world = with_base("b.txt", "b\n");
    let loud = SEVEN.replace("two", "TWO");
    let first = did(&world, "first", || world.write("a.txt", &loud));
    let second = did(&world, "second", || world.write("a.txt", SEVEN));
    let alone = undone(&world, &first, &[])["rollback_id"].as_str().expect("an id").to_owned();
    undone(&world, &second, &[]);
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN));
    world.ic(&["redo", &alone, "--yes"]);
    assert_eq!(world.read("a.txt").as_ref(), Some(&loud), "the first stands, and the second does not set it back");
    let report = done(&world, &["redo", "--yes", "--json"], "the second").expect("nothing is in the way");
    assert_eq!(report["dispatch_ids"][0], second, "{report}");
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN), "the second sets it back again");
}

#[test]
fn what_others_renamed_since_is_named_where_nothing_of_it_is_undone() {
    let world = with_base("old.txt", "old\n");
    let first = did(&world, "first", || {
        world.write("made.txt", "made\n");
        world.git(&["mv", "old.txt", "new.txt"]);
        world.write("new.txt", "old\nand more\n");
    });
    did(&world, "second", || {
        std::fs::rename(world.root().join("made.txt"), world.root().join("between.txt")).expect("a rename");
        std::fs::rename(world.root().join("new.txt"), world.root().join("newest.txt")).expect("a rename");
    });
    did(&world, "third", || {
        std::fs::rename(world.root().join("between.txt"), world.root().join("then.txt")).expect("a rename");
    });
    // A person, whom no look has seen yet.
    std::fs::rename(world.root().join("then.txt"), world.root().join("kept.txt")).expect("a rename");
    let report = undone_in_part(&world, &first, &[]);
    assert_eq!(world.read("old.txt").as_deref(), Some("old\n"));
    assert_eq!(world.read("kept.txt").as_deref(), Some("made\n"));
    assert_eq!(world.read("newest.txt").as_deref(), Some("old\nand more\n"));
    let to = |name: &str| format!("others renamed it to {name} since, which is not changed");
    assert_eq!(stays(&report), [("made.txt".to_owned(), to("kept.txt")), ("new.txt".to_owned(), to("newest.txt"))]);
}

#[test]
fn a_restore_that_was_taken_back_leaves_the_work_as_it_was_to_an_undo_of_it() {
    let world = with_base("b.txt", "b\n");
    let text = SEVEN.replace("two", "TWO");
    let first = did(&world, "first", || {
        world.write("a.txt", &text);
        world.write("made.txt", "made\n");
    });
    let list = world.cli.json(["checkpoint", "list", "--json"]);
    let begun = list[1]["id"].as_str().expect("an id");
    for more in [&[][..], &["--path", "a.txt"]] {
        let report = world.cli.json([&["checkpoint", "restore", begun, "--yes", "--json"], more].concat());
        assert_eq!((&report["status"], world.read("a.txt").as_deref()), (&"restored".into(), Some(SEVEN)));
        world.ic(&["redo", "--yes"]);
        assert_eq!(world.read("a.txt").as_deref(), Some(text.as_str()), "{more:?}");
        let report = undone(&world, &first, &[]);
        assert_eq!((stays(&report), world.read("made.txt")), (vec![], None), "{more:?}");
        assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN), "{more:?}");
        // The same while the work is undone.
        let report = world.cli.json([&["checkpoint", "restore", begun, "--yes", "--json"], more].concat());
        if report["status"] == "restored" {
            world.ic(&["redo", "--yes"]);
        }
        world.ic(&["redo", "--yes"]);
        assert_eq!(world.read("a.txt").as_deref(), Some(text.as_str()), "{more:?}");
        assert_eq!(world.read("made.txt").as_deref(), Some("made\n"), "{more:?}");
    }
}

#[test]
fn what_is_said_of_a_conflict_is_so() {
    let world = with_base("b.bin", "\0zero\n");
    let first = did(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("b.bin", "\0one\n");
        world.write("made.txt", "made\n");
    });
    did(&world, "second", || {
        world.write("a.txt", &SEVEN.replace("two", "2"));
        world.write("b.bin", "\0two\n");
        world.write("made.txt", "made otherwise\n");
    });
    let report = undone_in_part(&world, &first, &["--keep-theirs"]);
    let kept = |path: &str, why: &str| (path.to_owned(), format!("kept: {why}"));
    assert_eq!(
        stays(&report),
        [
            kept("a.txt", "others changed the same lines since: 2"),
            kept("b.bin", "others changed it since, and it is not text that can be merged"),
            kept("made.txt", "the work made it, and others changed it since"),
        ]
    );
}

/// A redo that was killed leaves a restore behind that the abort finishes and reverts: others did not make it.
#[test]
fn a_redo_after_one_that_was_killed_and_aborted_brings_all_back() {
    let lines = |set: &[(usize, &'static str)]| {
        let mut lines = [VERSIONS[0]; LINES];
        for (at, version) in set {
            lines[*at] = version;
        }
        lines
    };
    let mut aborted = 0;
    for n in (20..).step_by(11) {
        let world = in_git().begun();
        write(&world, &lines(&[]));
        world.commit("base");
        did(&world, "first", || write(&world, &lines(&[(0, "two")])));
        let second = did(&world, "second", || write(&world, &lines(&[(0, "two"), (1, "two"), (3, "two")])));
        let report = undone(&world, &second, &[]);
        let undo = report["rollback_id"].as_str().expect("an id");
        did(&world, "third", || write(&world, &lines(&[])));
        let mut command = world.cli.command(["redo", undo, "--yes", "--json"]);
        let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
        if output.status.signal().is_none() {
            break;
        }
        let status = || world.cli.json(["rollback", "list", &world.run, "--json"])[0]["status"].clone();
        if status() == "in_progress" {
            world.ic(&["rollback", "abort", undo, "--yes"]);
            aborted += 1;
        }
        if status() == "done" {
            assert_eq!(read(&world), VERSIONS[..1].repeat(LINES), "{n}: it stands");
            world.ic(&["redo", undo, "--yes"]);
        }
        assert_eq!(read(&world), ["one", "two", "one", "two"], "{n}");
    }
    assert!(aborted > 3, "{aborted}");
}

#[test]
fn lines_that_others_set_back_since_the_undo_are_theirs() {
    let loud = SEVEN.replace("two", "TWO");
    // The same line refuses the redo. Another line is no hindrance.
    for (line, redone) in [("two", None), ("six", Some(&loud))] {
        let world = with_base("b.txt", "b\n");
        let first = did(&world, "first", || world.write("a.txt", &loud));
        undone(&world, &first, &[]);
        did(&world, "away", || world.write("a.txt", &SEVEN.replace(line, "other")));
        did(&world, "back", || world.write("a.txt", SEVEN));
        assert_eq!(done(&world, &["redo", "--yes", "--json"], line).is_some(), redone.is_some(), "{line}");
        assert_eq!(world.read("a.txt").as_deref(), Some(redone.map_or(SEVEN, String::as_str)), "{line}");
    }
}

#[test]
fn force_brings_nothing_of_other_undone_work_back() {
    let world = with_base("a.txt", SEVEN);
    let other = did(&world, "other", || world.write("a.txt", &SEVEN.replace("six", "SIX")));
    let own = did(&world, "own", || world.write("a.txt", &SEVEN.replace("six", "SIX").replace("one", "ONE")));
    undone(&world, &other, &[]);
    did(&world, "gone", || world.remove("a.txt"));
    assert!(done(&world, &["undo", "--only", &own, "--yes", "--json"], "it is gone").is_none());
    undone(&world, &own, &["--force-files"]);
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN));
}
