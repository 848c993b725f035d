//! A project with a run whose last dispatch damaged a file.

use ic_testkit::{Cli, TestWorld};
use serde_json::{Value, json};

use crate::client::{Client, Era, SESSION};

/// A git repository with a ledger and a run.
pub(crate) fn world() -> TestWorld {
    let world = TestWorld::around(Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints());
    world.git(&["init", "-q"]);
    world.write(".gitignore", ".ic/\n");
    world.write("README", "base\n");
    world.commit("base");
    let run = world.ic(&["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    world.with_run(run)
}

/// A dispatch that changed a file and added one; its id.
pub(crate) fn spoiled(world: &TestWorld) -> String {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "spoil"]);
    world.ic(&["dispatch", "start", &id]);
    world.write("README", "spoiled\n");
    world.write("bad.txt", "bad\n");
    world.ic(&["dispatch", "complete", &id]);
    id
}

pub(crate) fn client(world: &TestWorld) -> Client {
    Client::start(&mut world.cli.command(["mcp"]), SESSION)
}

/// A client whose person can be asked.
pub(crate) fn asking(world: &TestWorld, era: Era) -> Client {
    Client::with_capabilities(&mut world.cli.command(["mcp"]), era, json!({ "elicitation": {} }))
}

/// The tree and the ledger, to see that nothing changed.
pub(crate) fn all(world: &TestWorld) -> (Option<String>, Option<String>, String, String) {
    (world.read("README"), world.read("bad.txt"), world.cli.dump(), world.head())
}

/// The hash of a plan that was answered.
pub(crate) fn hash_of(plan: &Value) -> String {
    let hash = plan["undo_plan_hash"].as_str().or(plan["plan_hash"].as_str());
    hash.unwrap_or_else(|| panic!("no hash: {plan}")).to_owned()
}
