//! What is restored is exact, whatever the history. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use ic_testkit::{Random, git_in, rounds, write_in};

use crate::forest::Forest;
use crate::project::{create, make_again, project, restore, restored_elsewhere, take_back, tree};

/// Captures a few states of a generated tree, then goes between them, back, and forth again.
fn history(random: &mut Random, number: usize) {
    let cli = project();
    Forest::new(cli.root(), random).plant();
    let mut states = vec![(create(&cli), tree(&cli))];
    for _ in 0..2 + random.below(3) {
        let edits = 1 + random.below(12);
        Forest::new(cli.root(), random).edit(edits);
        states.push((create(&cli), tree(&cli)));
    }
    for turn in 0..3 {
        if random.below(2) == 0 {
            // Changes that no checkpoint holds.
            let edits = 1 + random.below(6);
            Forest::new(cli.root(), random).edit(edits);
        }
        let at = random.place_in(states.len());
        let (id, target) = &states[at];
        let when = |what: &str| format!("history {number}, turn {turn}: {what} of state {at}");
        let before = tree(&cli);
        let report = restore(&cli, id);
        let restored = tree(&cli);
        restored.assert_is(target, &when("the restore"));
        restored.assert_untouched_since(&before, &when("the restore"));
        if report["status"] == "up_to_date" {
            continue;
        }
        take_back(&cli);
        let undone = tree(&cli);
        undone.assert_is(&before, &when("the undo"));
        undone.assert_untouched_since(&restored, &when("the undo"));
        make_again(&cli);
        tree(&cli).assert_is(target, &when("the redo"));
    }
    let (id, target) = &states[random.place_in(states.len())];
    restored_elsewhere(&cli, id).assert_is(target, &format!("history {number}: a restore elsewhere"));
}

#[test]
fn every_state_of_every_history_comes_back_exactly() {
    let mut random = Random::seeded();
    for number in rounds(60) {
        history(&mut random, number);
    }
}

/// Only how its lines end differs, which git converts: its index says how long the file was.
#[test]
fn a_file_whose_lines_end_otherwise_is_not_modified_once_it_is_restored() {
    let cli = project();
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), ".gitattributes", "* text=auto\n");
    write_in(cli.root(), "f", "a\r\nb\r\n");
    write_in(cli.root(), "other", "x\n");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "base"]);
    let status = || git_in(cli.root(), &["status", "--porcelain"]);
    assert_eq!(status(), "");
    let id = create(&cli);
    write_in(cli.root(), "f", "a\nb\n");
    git_in(cli.root(), &["add", "f"]);
    assert_eq!(status(), "", "git takes both for the same");
    restore(&cli, &id);
    assert_eq!(std::fs::read(cli.root().join("f")).expect("it is there"), b"a\r\nb\r\n");
    assert_eq!(status(), "");
    cli.ok(["redo", "--yes"]);
    assert_eq!(std::fs::read(cli.root().join("f")).expect("it is there"), b"a\nb\n");
    assert_eq!(status(), "");
}
