//! Processes that advance, complete and record beside a rollback: fenced out with typed errors, nothing lost, nothing stale counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ic_testkit::{Cli, TestWorld};
use rusqlite::Connection;
use serde_json::Value;

use crate::project::{Work as _, asked};
use crate::rows::Rows as _;
use crate::story::story_with_rows;

const TYPED: [&str; 9] = [
    "rolling_back", "stale_dispatch", "stale_phase", "dispatch_finished", "agent_finished", "run_not_active",
    "terminal_phase", "phase_passed", "busy",
];

/// What a process was told.
#[derive(Default)]
struct Told {
    artifacts: Vec<String>,
    dispatches: Vec<String>,
    completed: Vec<String>,
    /// Rows of the application's log.
    rows: Vec<String>,
    refused: BTreeMap<String, usize>,
}

impl Told {
    fn call(&mut self, world: &TestWorld, words: &[&str]) -> Option<String> {
        let outcome = world.cli.run(words);
        if outcome.code == Some(0) {
            return Some(outcome.stdout.trim_end().to_owned());
        }
        let code = outcome.error();
        assert!(TYPED.contains(&code.as_str()), "{words:?}: {outcome:?}");
        *self.refused.entry(code).or_default() += 1;
        None
    }

    fn work(&mut self, world: &TestWorld, who: usize, ended: &AtomicBool) {
        let mut n = 0;
        while !ended.load(Ordering::Relaxed) {
            n += 1;
            let path = format!("by-{who}-{n}");
            if who.is_multiple_of(2) {
                world.log(&path);
                self.rows.push(path.clone());
            }
            match who % 4 {
                0 if n % 4 == 0 => {
                    self.call(world, &["run", "advance", &world.run, "--no-checkpoint"]);
                }
                0 | 1 => {
                    let id = self.call(world, &["run", "artifact", "add", &world.run, "--path", &path]);
                    self.artifacts.extend(id);
                }
                2 => {
                    let id = self.call(world, &["dispatch", "create", &world.run, "--name", &path]);
                    if let Some(id) = id {
                        if self.call(world, &["dispatch", "complete", &id, "--verdict", "pass"]).is_some() {
                            self.completed.push(id.clone());
                        }
                        self.dispatches.push(id);
                    }
                }
                _ => {
                    let late = self.dispatches.last().cloned();
                    let id = late.or_else(|| self.call(world, &["dispatch", "create", &world.run]));
                    if let Some(id) = id {
                        // What was committed is recorded whatever happened to the work.
                        let sha = format!("{who:08x}{n:08x}");
                        self.call(world, &["dispatch", "record", &id, "--commit", &sha]).expect("it is recorded");
                        self.dispatches = vec![id];
                    }
                }
            }
        }
    }
}

/// What a caller was told is recorded, and stands if and only if it came after the rollback.
fn assert_nothing_lost(cli: &Cli, told: &[Told], begun: i64, settled: i64) {
    let mut seen = 0;
    for (table, ids) in [
        ("run_artifacts", told.iter().flat_map(|told| &told.artifacts).collect::<Vec<_>>()),
        ("dispatches", told.iter().flat_map(|told| &told.dispatches).collect()),
    ] {
        for id in ids {
            let seq = asked(cli, &format!("SELECT seq FROM {table} WHERE id = '{id}'"));
            let standing = format!("SELECT count(*) FROM {table} WHERE id = '{id}' AND rolled_back_by IS NULL");
            let stands = asked(cli, &standing) == 1;
            assert!(!(begun..settled).contains(&seq), "{table}: recorded inside of the fence");
            assert_eq!(stands, seq > settled, "{table} {id} at {seq}, begun {begun}, settled {settled}");
            seen += 1;
        }
    }
    assert!(seen > 0);
    for id in told.iter().flat_map(|told| &told.completed) {
        let status = cli.sql(&format!("SELECT status FROM dispatches WHERE id = '{id}'"));
        assert_eq!(status, "completed", "who was told that it is completed");
    }
}

/// Every row that the application wrote is in its table or in the archive of the rollback, and in one of them only.
fn assert_no_row_lost(world: &TestWorld, told: &[Told], id: &str) {
    let texts = |path: &Path, sql: &str| -> BTreeSet<String> {
        let database = Connection::open(path).expect("open it");
        let mut statement = database.prepare(sql).expect("a query");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.map(|row| row.expect("a text")).collect()
    };
    let logs = "SELECT payload FROM logs WHERE event_type = 'note'";
    let here = texts(&world.cli.root().join("data/app.db"), logs);
    let archive = world.cli.beside("rewinds").join(format!("{id}-0.db"));
    let manifest: Value =
        serde_json::from_str(texts(&archive, "SELECT json FROM manifest").first().expect("a manifest")).expect("JSON");
    let tables = manifest["tables"].as_array().expect("tables");
    let at = tables.iter().position(|table| table["name"] == "logs").expect("the logs");
    let gone = texts(&archive, &format!("SELECT c1 FROM rows_{at}"));
    for row in told.iter().flat_map(|told| &told.rows) {
        assert!(here.contains(row) != gone.contains(row), "{row}");
    }
    assert!(here.len() > 5 && gone.len() > 5, "{} stay, {} went", here.len(), gone.len());
}

#[test]
fn sixteen_processes_beside_a_rollback_are_fenced_out() {
    let world = story_with_rows();
    world.effect("slow", &["sleep 0.4"]);
    let ended = AtomicBool::new(false);
    let (told, report) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..16)
            .map(|who| {
                let (world, ended) = (&world, &ended);
                scope.spawn(move || {
                    let mut told = Told::default();
                    told.work(world, who, ended);
                    told
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(400));
        let mut words = world.all("a", &["--busy-timeout", "60s"]);
        words.push("--yes");
        let outcome = world.cli.run(words);
        std::thread::sleep(std::time::Duration::from_millis(300));
        ended.store(true, Ordering::Relaxed);
        let told: Vec<Told> = workers.into_iter().map(|worker| worker.join().expect("a worker")).collect();
        (told, outcome)
    });
    assert_eq!(report.code, Some(0), "{report:?}");
    let report = report.json();
    let refused: usize = told.iter().flat_map(|told| told.refused.values()).sum();
    assert!(told.iter().any(|told| told.refused.contains_key("rolling_back")), "no call met the fence");
    println!("{refused} refused");

    let id = report["rollback_id"].as_str().expect("an id");
    let settled = asked(&world.cli, &format!("SELECT seq FROM events WHERE type = 'rollback' AND subject_id = '{id}'"));
    let begun = asked(&world.cli, &format!("SELECT seq FROM rollbacks WHERE id = '{id}'"));
    assert_nothing_lost(&world.cli, &told, begun, settled);
    let inside = format!(
        "SELECT count(*) FROM events WHERE seq > {begun} AND seq < {settled} AND type IN \
         ('advance', 'artifact_added', 'dispatch_created', 'dispatch_completed', 'agent_added')"
    );
    assert_eq!(asked(&world.cli, &inside), 0, "a call got through the fence");
    assert_no_row_lost(&world, &told, id);
    assert_eq!(world.effects(), ["slow", "mail", "pay", "book"]);
    // What the report says is what is marked.
    for (table, list) in [("run_artifacts", "marked_artifacts"), ("run_agents", "failed_agents")] {
        let marked = asked(&world.cli, &format!("SELECT count(*) FROM {table} WHERE rolled_back_by IS NOT NULL"));
        assert_eq!(report[list].as_array().map(Vec::len), usize::try_from(marked).ok(), "{table}");
    }
    world.cli.ok(["events", "verify"]);
}
