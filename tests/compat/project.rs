//! A world of a stores: what is asked of it and done in it.

use ic_testkit::{CliOutcome, ProjectState, TestWorld, text_of};
use serde_json::Value;

use crate::stores::ends;

/// A call that must succeed; returns its JSON.
pub(crate) fn ask(world: &TestWorld, words: &[&str]) -> Value {
    world.cli.json(words.iter().chain(&["--json"]))
}

/// A call that must end with one of these exit codes.
pub(crate) fn call(world: &TestWorld, words: &[&str], exits: &[i32], when: &str) -> CliOutcome {
    let outcome = world.cli.run(words);
    ends(&outcome, exits, when, words);
    outcome
}

/// The newest of a list; `None` if there is nothing.
pub(crate) fn newest(world: &TestWorld, list: &[&str]) -> Option<Value> {
    ask(world, list).as_array().expect("a list").first().cloned()
}

/// The run that began last; `None` if none did.
pub(crate) fn run(world: &TestWorld) -> Option<String> {
    newest(world, &["run", "list"]).map(|run| text_of(&run, "id"))
}

/// Where the run that began last is: its status and its phase.
pub(crate) fn stands(world: &TestWorld) -> Option<(String, String)> {
    newest(world, &["run", "list"]).map(|run| (text_of(&run, "status"), text_of(&run, "phase")))
}

/// Everything that an operation is about. The first call brings the ledger forward, so that both sides of a comparison have the
/// same columns.
pub(crate) fn state(world: &TestWorld) -> ProjectState {
    world.cli.ok(["run", "list"]);
    world.state()
}
