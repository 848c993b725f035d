//! Compensations of a run.

use std::collections::BTreeSet;

use crate::half::{every_finished, every_half};
use crate::world::{World, text};

/// The steps whose effects are not undone.
fn left(world: &World, run: &str) -> Vec<String> {
    let list = world.ask(&["compensation", "list", run]);
    let list = list.as_array().expect("a list");
    list.iter().filter(|one| one["status"] != "done").map(|one| text(one, "step")).collect()
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
        let run = half.world.run().expect("a run");
        let left = left(&half.world, &run);
        let undone = half.world.outside("undone");
        let is_closed = half.world.stands().is_some_and(|(status, _)| status == "rolling_back");
        if !left.is_empty() || is_closed {
            let mut words = vec!["compensation", "run", &run, "--yes"];
            if !left.is_empty() {
                words.extend(["--reason", "left by decision"]);
            }
            words.extend(left.iter().flat_map(|step| ["--skip", step]));
            half.world.call(&words, &[0], &half.when);
        }
        half.assert_outside_is_before();
        assert_eq!(half.world.outside("undone"), undone, "{}: what was left is left", half.when);
    });
}

#[test]
fn what_was_compensated_is_not_compensated_again() {
    every_finished("compensation", |world, _, when| {
        let run = world.run().expect("a run");
        let undone = world.outside("undone");
        let distinct: BTreeSet<&str> = undone.lines().collect();
        assert_eq!(distinct.len(), undone.lines().count(), "{when}: {undone}");
        world.call(&["compensation", "run", &run, "--yes"], &[0, 1], when);
        assert_eq!(world.outside("undone"), undone, "{when}");
        assert_eq!(left(world, &run), Vec::<String>::new(), "{when}");
    });
}
