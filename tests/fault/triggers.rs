//! A statement that fails in the middle takes everything back.

use ic_testkit::{one_file, put_one_file};
use rusqlite::Connection;

use crate::filled::Filled;

const TABLES: [&str; 10] = [
    "events", "event_head", "event_cursors", "runs", "run_skips", "rollbacks", "dispatches", "dispatch_commits",
    "run_artifacts", "run_agents",
];

#[test]
fn a_failing_statement_takes_the_whole_verb_back() {
    let filled = Filled::new();
    let saved = one_file(&filled.cli.db());
    let mut met = std::collections::BTreeMap::new();
    for table in TABLES {
        for action in ["INSERT", "UPDATE"] {
            for verb in filled.writes() {
                put_one_file(&filled.cli.db(), &saved);
                Connection::open(filled.cli.db())
                    .and_then(|ledger| {
                        ledger.execute_batch(&format!(
                            "CREATE TRIGGER broken AFTER {action} ON {table} BEGIN SELECT RAISE(ABORT, 'broken'); END"
                        ))
                    })
                    .expect("break a table");
                let before = filled.cli.dump();
                let outcome = filled.cli.run(&verb);
                if outcome.code == Some(0) {
                    continue;
                }
                *met.entry(verb[..2].join(" ")).or_insert(0) += 1;
                assert_eq!((outcome.code, outcome.error()), (Some(2), "internal".to_owned()), "{verb:?}");
                assert!(outcome.stderr.contains("broken"), "{outcome:?}");
                assert_eq!(filled.cli.dump(), before, "{verb:?} left something behind a broken {action} of {table}");
            }
        }
    }
    for verb in filled.writes() {
        let times = met.get(&verb[..2].join(" ")).copied().unwrap_or(0);
        assert!(times > 0, "{verb:?} was never broken");
    }
    // Pointer, event, head, rollback row, dispatch, artifact, agent, and the events that they bring.
    assert!(met["run rollback"] >= 7, "{met:?}");
}
