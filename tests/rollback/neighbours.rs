//! Rows of runs beside this one.

use ic_testkit::TestWorld;

use crate::project::{Work as _, in_git};
use crate::rows::Rows as _;

/// A rollback over every layer must be refused; returns the error line.
fn refused(world: &TestWorld) -> String {
    let before = world.state();
    let outcome = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "row_conflict"), "{outcome:?}");
    world.state().assert_is(&before, "refused");
    outcome.stderr
}

#[test]
fn rows_of_a_run_that_is_at_work_are_not_taken() {
    let world = in_git().with_rows().begun();
    let other = world.cli.ok(["run", "create", "--goal", "beside", "--phases", "a,b,c"]);
    world.ic(&["run", "advance", &other]);
    world.ic(&["run", "advance", &world.run]);
    // What the other run writes now is in no event.
    world.task("of the other");
    let line = refused(&world);
    assert!(line.contains("no scope column tells their rows apart"), "{line}");
    world.ic(&["run", "cancel", &other]);
    world.task("of no other run");
    assert!(refused(&world).contains("used it since"), "it went on after the cut");
    world.roll_back("a", &["--force"]);
}
