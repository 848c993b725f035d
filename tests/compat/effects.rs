//! Compensations of a run.

use std::collections::BTreeSet;

use ic_testkit::{TestWorld, text_of};

use crate::half::{every_finished, every_half};
use crate::project::{ask, call, stands};

/// The steps whose effects are not undone.
fn left(world: &TestWorld, run: &str) -> Vec<String> {
    let list = ask(world, &["compensation", "list", run]);
    let list = list.as_array().expect("a list");
    list.iter().filter(|one| one["status"] != "done").map(|one| text_of(one, "step")).collect()
}

#[test]
fn compensations_are_resumed() {
    every_half("compensation", |half| {
        half.again(&[0]);
        half.assert_is_after();
    });
}

#[test]
fn compensations_are_aborted() {
    every_half("compensation", |half| {
        let run = half.world.newest_run();
        let left = left(&half.world, &run);
        let undone = half.world.outside.text("undone");
        let is_closed = stands(&half.world).is_some_and(|(status, _)| status == "rolling_back");
        if !left.is_empty() || is_closed {
            let mut words = vec!["compensation", "run", &run, "--yes"];
            if !left.is_empty() {
                words.extend(["--reason", "left by decision"]);
            }
            words.extend(left.iter().flat_map(|step| ["--skip", step]));
            call(&half.world, &words, &[0], &half.when);
        }
        half.assert_outside_is_before();
        assert_eq!(half.world.outside.text("undone"), undone, "{}: what was left is left", half.when);
    });
}

#[test]
fn what_was_compensated_is_not_compensated_again() {
    every_finished("compensation", |world, _, when| {
        let run = world.newest_run();
        let undone = world.outside.text("undone");
        let distinct: BTreeSet<&str> = undone.lines().collect();
        assert_eq!(distinct.len(), undone.lines().count(), "{when}: {undone}");
        call(world, &["compensation", "run", &run, "--yes"], &[0, 1], when);
        assert_eq!(world.outside.text("undone"), undone, "{when}");
        assert_eq!(left(world, &run), Vec::<String>::new(), "{when}");
    });
}
