//! A run that did something in every layer in each of its phases.

use ic_testkit::TestWorld;

use crate::project::{Work as _, in_git};
use crate::rows::Rows as _;

/// The run at `d`: work in `a` that stays, work in `b`, `c` and `d` in every layer that a rollback to `a` undoes.
pub(crate) fn story() -> TestWorld {
    told(in_git().begun())
}

/// The same with rows of a state database.
pub(crate) fn story_with_rows() -> TestWorld {
    told(in_git().with_rows().begun())
}

fn told(world: TestWorld) -> TestWorld {
    world.task("planned");
    world.log("a note after the task");
    world.write("kept/plan.md", "plan\n");
    world.ic(&["run", "artifact", "add", &world.run, "--path", "kept/plan.md"]);
    world.commit("plan");
    world.effect("reserve", &[]);
    world.advance();
    world.write("src/a.rs", "one\n");
    world.write("src/b.rs", "two\n");
    let sha = world.commit("work");
    let done = world.cli.ok(["dispatch", "create", &world.run, "--name", "done"]);
    world.ic(&["dispatch", "start", &done]);
    world.ic(&["dispatch", "record", &done, "--commit", &sha, "--file", "src/a.rs", "--file", "src/b.rs"]);
    world.ic(&["dispatch", "complete", &done, "--verdict", "pass"]);
    world.ic(&["run", "artifact", "add", &world.run, "--path", "src/a.rs"]);
    world.effect("book", &[]);
    world.task("built");
    world.log("built it");
    world.advance();
    world.write("README", "changed\n");
    world.remove("src/b.rs");
    world.commit("more");
    world.effect("pay", &[]);
    world.task("paid");
    world.ic(&["run", "skip", &world.run, "e", "--reason", "late"]);
    world.advance();
    world.write("src/a.rs", "not committed\n");
    world.write("notes/todo", "not tracked\n");
    world.git(&["add", "src/a.rs"]);
    world.ic(&["run", "agent", "add", &world.run, "--type", "codex"]);
    world.ic(&["dispatch", "create", &world.run, "--name", "pending"]);
    world.effect("mail", &[]);
    world.log("mailed it");
    world
}
