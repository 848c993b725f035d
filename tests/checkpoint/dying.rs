//! A restore of a database beside which a log lies dies before each of its statements and steps: the database is old or new, and the
//! next command ends what was begun.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use ic_testkit::{Cli, long, tell};

use crate::logs::{content, files, left_behind, sides};
use crate::project::{list, make_again, project, restore};

/// The rows that the checkpoint has, and what is in them.
const KEPT: (i64, i64) = (400, 400 * 80);

/// Whether the call was killed before its `n`-th statement or step.
fn dies(cli: &Cli, arguments: &[&str], n: usize) -> bool {
    let mut command = cli.command(arguments);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    assert!(output.status.success() || output.status.signal() == Some(6), "before {n}: {output:?}");
    !output.status.success()
}

/// Where a restore may die: everywhere at length, else at every seventh statement, and before and after each file of the database.
fn moments(journal: &str) -> Vec<usize> {
    let cli = project();
    let id = left_behind(&cli, journal);
    let log = cli.home().join("statements");
    let mut command = cli.command(["checkpoint", "restore", &id, "--yes"]);
    let output = command.env("IC_TEST_SQL_LOG", &log).output().expect("start ic");
    assert!(output.status.success() && (content(&cli), sides(&cli)) == (KEPT, Vec::new()), "{output:?}");
    let log = fs::read_to_string(log).expect("the statements");
    let lines: Vec<&str> = log.lines().collect();
    let is_of_file = |at: usize| lines.get(at).is_some_and(|line| line.ends_with("a file of a database"));
    let is_chosen = |n: &usize| long() || n.is_multiple_of(7) || is_of_file(n - 1) || is_of_file(n.wrapping_sub(2));
    let moments: Vec<usize> = (1..=lines.len()).filter(is_chosen).collect();
    assert!((0..lines.len()).filter(|at| is_of_file(*at)).count() > 2, "{lines:?}");
    moments
}

/// Kills a restore and ends it in turn by the same restore, and by undo.
fn dies_everywhere(journal: &str) {
    let (mut deaths, mut old, mut new, mut away) = (0, 0, 0, 0);
    for n in moments(journal) {
        let cli = project();
        let id = left_behind(&cli, journal);
        let (before, old_content) = (files(&cli), content(&cli));
        assert!(old_content.0 > KEPT.0 && !sides(&cli).is_empty(), "{journal}: nothing to restore");
        if !dies(&cli, &["checkpoint", "restore", &id, "--yes"], n) {
            continue;
        }
        deaths += 1;
        let when = format!("{journal}, killed before {n}");
        // As a program finds it that starts at this moment: one state or the other, or no database while its log is exchanged.
        let found = cli.root().join("app.db").exists().then(|| content(&cli));
        match found {
            None => away += 1,
            Some(found) if found == old_content => old += 1,
            Some(found) => {
                assert_eq!(found, KEPT, "{when}");
                new += 1;
            }
        }
        if deaths % 2 == 0 {
            restore(&cli, &id);
            assert_eq!((content(&cli), sides(&cli)), (KEPT, Vec::new()), "{when}: restored");
        } else {
            let undone = cli.run(["redo", "--yes", "--json"]);
            let nothing = undone.code == Some(1) && undone.error() == "nothing_to_undo";
            assert!(undone.code == Some(0) || (nothing && found == Some(old_content)), "{when}: {undone:?}");
            assert!(files(&cli) == before, "{when}: undone, its files are not as they were");
            assert_eq!(content(&cli), old_content, "{when}: undone");
            if undone.code == Some(0) {
                make_again(&cli);
                assert_eq!((content(&cli), sides(&cli)), (KEPT, Vec::new()), "{when}: done again");
            }
        }
        assert!(!list(&cli).is_empty() && cli.run(["checkpoint", "verify", "--read-data"]).code == Some(0), "{when}");
    }
    tell(&format!("{journal}: {deaths} deaths, {old} left the old database, {new} the new one and {away} none"));
    assert!(old > 3 && new > 0, "{journal}: {deaths} deaths, {old} old, {new} new");
}

#[test]
fn a_restore_of_a_database_with_a_write_ahead_log_that_dies_leaves_the_old_or_the_new() {
    dies_everywhere("WAL");
}

#[test]
fn a_restore_of_a_database_with_a_rollback_journal_that_dies_leaves_the_old_or_the_new() {
    dies_everywhere("DELETE");
}
