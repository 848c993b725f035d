//! Captures from many processes at once, while another restores: no capture sees a tree half restored.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use ic_testkit::{Cli, WorkerEnding, rounds, tell};

use crate::project::{create, list, project, restored_elsewhere, tree};
use crate::snapshot::Snapshot;

fn plant(cli: &Cli, text: &str) -> (String, Snapshot) {
    for i in 0..60 {
        let directory = cli.root().join(format!("d{}", i % 6));
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join(format!("f{i}")), format!("{text} {i}").repeat(20)).expect("a file");
    }
    fs::write(cli.root().join(format!("only-{text}")), text).expect("a file");
    (create(cli), tree(cli))
}

#[test]
fn captures_of_a_crowd_hold_whole_states_while_another_restores() {
    let cli = project();
    let one = plant(&cli, "one");
    fs::remove_file(cli.root().join("only-one")).expect("one state's own");
    let two = plant(&cli, "two");
    let hash = |id: &str| cli.json(["checkpoint", "show", id, "--json"])["tree_sha256"].clone();
    let hashes = [hash(&one.0), hash(&two.0)];
    let is_over = AtomicBool::new(false);
    let captured: Vec<String> = std::thread::scope(|scope| {
        let end = WorkerEnding(&is_over);
        let capture = || {
            let mut captured = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                captured.push(create(&cli));
            }
            captured
        };
        let capturing: Vec<_> = (0..8).map(|_| scope.spawn(capture)).collect();
        for round in rounds(10) {
            let id = [&one.0, &two.0][round % 2];
            let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
            let is_told =
                outcome.code == Some(1) && ["file_conflict", "plan_changed"].contains(&outcome.error().as_str());
            assert!(outcome.code == Some(0) || is_told, "restore {round}: {outcome:?}");
        }
        drop(end);
        capturing.into_iter().flat_map(|thread| thread.join().expect("the captures")).collect()
    });
    tell(&format!("{} captures", captured.len()));
    let different = captured.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(different, captured.len(), "every capture has an id of its own");
    for checkpoint in list(&cli) {
        assert!(hashes.contains(&checkpoint["tree_sha256"]), "neither state: {checkpoint}");
    }
    restored_elsewhere(&cli, &one.0).assert_is(&one.1, "the one state");
    restored_elsewhere(&cli, &two.0).assert_is(&two.1, "the other state");
    let wanted = |id: &str| if hash(id) == hashes[0] { &one.1 } else { &two.1 };
    for id in captured.iter().step_by(captured.len().div_ceil(12)) {
        restored_elsewhere(&cli, id).assert_is(wanted(id), "a capture in the crowd");
    }
    cli.ok(["events", "verify"]);
}

#[test]
fn captures_of_a_tree_that_is_written_meanwhile_hold_each_file_whole() {
    let cli = project();
    let path = cli.root().join("written");
    let content = |turn: usize| format!("{turn:08} ").repeat(30_000);
    fs::write(&path, content(0)).expect("a file");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                turn += 1;
                // As editors do: whole, and then in its place.
                let new = path.with_extension("new");
                fs::write(&new, content(turn)).expect("a new file");
                fs::rename(&new, &path).expect("in its place");
            }
        });
        let _end = WorkerEnding(&is_over);
        for _ in rounds(20) {
            let id = create(&cli);
            let kept = cli.ok(["checkpoint", "cat", &id, "written"]);
            assert_eq!(kept.len(), content(0).len());
            let first = &kept[..9];
            assert!(kept.as_bytes().chunks(9).all(|part| part == first.as_bytes()), "torn");
        }
    });
}

#[test]
fn restores_at_once_leave_one_of_their_targets() {
    let cli = project();
    let one = plant(&cli, "one");
    fs::remove_file(cli.root().join("only-one")).expect("one state's own");
    let two = plant(&cli, "two");
    for round in rounds(5) {
        std::thread::scope(|scope| {
            for i in 0..4 {
                let (cli, id) = (&cli, [&one.0, &two.0][i % 2]);
                scope.spawn(move || {
                    let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
                    assert_eq!(outcome.code, Some(0), "{outcome:?}");
                });
            }
        });
        let now = tree(&cli);
        let fits = now.differences(&one.1).is_empty() || now.differences(&two.1).is_empty();
        assert!(fits, "round {round}: {}", now.differences(&one.1));
    }
}

#[test]
fn a_restore_gets_its_turn_among_captures_that_never_pause() {
    let cli = project();
    let one = plant(&cli, "one");
    fs::remove_file(cli.root().join("only-one")).expect("one state's own");
    let two = plant(&cli, "two");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = WorkerEnding(&is_over);
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    create(&cli);
                }
            });
        }
        for turn in rounds(6) {
            let id = [&one.0, &two.0][turn % 2];
            // Much longer than any capture of this tree takes.
            let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json", "--busy-timeout", "2s"]);
            assert_eq!(outcome.code, Some(0), "restore {turn}: {outcome:?}");
        }
    });
}

/// An undo chooses the restore that it undoes once it has the lock: not before, while another restore may still come first.
#[test]
fn an_undo_beside_a_restore_leaves_no_mixture_of_states() {
    let cli = project();
    // Where the second and third state are the same, an undo of the restore between them changes nothing.
    let state = |number: usize| {
        for file in 0..80 {
            let text = if number > 0 && file % 2 == 0 { "same".to_owned() } else { format!("{number} {file}") };
            fs::write(cli.root().join(format!("f{file:02}")), text.repeat(30)).expect("a file");
        }
        (create(&cli), tree(&cli))
    };
    let states: Vec<(String, Snapshot)> = (0..3).map(state).collect();
    let go_to = |number: usize| cli.ok(["checkpoint", "restore", &states[number].0, "--yes"]);
    for round in rounds(30) {
        go_to(2);
        go_to(1);
        let words = [&["checkpoint", "restore", &states[0].0, "--yes"][..], &["redo", "--yes"]];
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let both: Vec<_> = words.iter().map(|words| scope.spawn(|| cli.run(words.to_vec()))).collect();
            both.into_iter().map(|thread| thread.join().expect("a call")).collect()
        });
        assert!(outcomes.iter().all(|outcome| outcome.code == Some(0)), "{outcomes:?}");
        // Either the restore comes first and is then undone, or the undo comes first and undoes the restore before it.
        let found = tree(&cli);
        let is_one = states[..2].iter().any(|(_, state)| found.differences(state).is_empty());
        assert!(is_one, "round {round}: {outcomes:?}");
    }
}
