//! A world with an application's database of the profile `devs`: three tasks at 100, 200 and 300 and what belongs to them.

use ic_testkit::{Cli, TestWorld};
use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ic");

/// Without git: the ledger lies in `.ic`.
pub(crate) fn devs() -> TestWorld {
    let world = with_profile(Cli::new(BINARY));
    fill(&world, [None, None, None]);
    world
}

/// In a git repository with one commit a task; `a.txt` has the task's name. Returns the commits.
pub(crate) fn devs_in_git() -> (TestWorld, [String; 3]) {
    let cli = Cli::without_ledger(BINARY);
    ic_testkit::git_in(cli.root(), &["init", "-q", "-b", "main"]);
    cli.ok(["init"]);
    let world = with_profile(cli);
    let commits = ["T1", "T2", "T3"].map(|task| {
        world.write("a.txt", task);
        world.commit(task)
    });
    fill(&world, [Some(&commits[0]), Some(&commits[1]), Some(&commits[2])]);
    (world, commits)
}

/// The database lies beside the ledger.
fn with_profile(cli: Cli) -> TestWorld {
    cli.ok(["rewind", "init", "--profile", "devs"]);
    let database = cli.beside("state.db");
    TestWorld::around(cli).with_database(database)
}

fn fill(world: &TestWorld, commits: [Option<&str>; 3]) {
    let db = world.connect();
    for (n, commit) in commits.into_iter().enumerate() {
        let (n, at) = (n + 1, format!("{}00", n + 1));
        let task = (format!("T{n}"), format!("task {n}"), commit, at);
        db.execute("INSERT INTO tasks VALUES (?1, ?2, 'done', ?3, ?4)", task).expect("a task");
    }
    world.sql(
        "INSERT INTO requirements VALUES ('R1', 'T1', 'a', 100), ('R2', 'T2', 'b', 210), ('R3', 'T3', 'c', 300);
         INSERT INTO agent_logs VALUES (1, 'T1', 'note', '{}', 90), (2, 'T1', 'note', '{}', 150),
           (5, 'T2', 'note', 'x', 250), (9, 'T3', NULL, NULL, 310);
         INSERT INTO langgraph_checkpoints VALUES ('L1', 'T1', x'00ff', 100), ('L2', 'T2', NULL, 201)",
    );
}

/// The events of the audit rows, in their order.
pub(crate) fn audits(world: &TestWorld) -> Vec<String> {
    let db = world.connect();
    let mut statement = db
        .prepare("SELECT event_type FROM agent_logs WHERE event_type LIKE 'ROLLBACK%' ORDER BY log_id")
        .expect("the audit");
    let rows = statement.query_map([], |row| row.get(0)).expect("the audit");
    rows.map(|row| row.expect("a text")).collect()
}

/// What `ic rewind status` says.
pub(crate) fn status(world: &TestWorld) -> Value {
    world.cli.json(["rewind", "status"])
}

/// Adds a command for vectors to the configuration: a line of `sh`.
pub(crate) fn configure_vectors(world: &TestWorld, line: &str) {
    let vectors = format!("  vectors:\n    exec: [sh, -c, {}]\n", serde_json::json!(line));
    world.write(".ic.yaml", &(world.text(".ic.yaml") + &vectors));
}
