//! Many who start at once: a ledger is made once, and migrated once.

use std::sync::{Arc, Barrier};

use ic_testkit::{Cli, CliOutcome, older_ledger, rounds};

fn at_once(cli: &Arc<Cli>, count: usize, arguments: &'static [&'static str]) -> Vec<CliOutcome> {
    let barrier = Arc::new(Barrier::new(count));
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (cli, barrier) = (Arc::clone(cli), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                cli.run(arguments)
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().expect("a starter")).collect()
}

#[test]
fn a_ledger_is_made_once() {
    for _ in rounds(10) {
        let cli = Arc::new(Cli::without_ledger(env!("CARGO_BIN_EXE_ic")));
        let outcomes = at_once(&cli, 32, &["init"]);
        for outcome in &outcomes {
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
        let made = outcomes.iter().filter(|o| o.json()["created"] == true).count();
        assert_eq!(made, 1);
    }
}

#[test]
fn an_older_ledger_is_migrated_once() {
    for _ in rounds(10) {
        let cli = Arc::new(Cli::without_ledger(env!("CARGO_BIN_EXE_ic")));
        std::fs::create_dir(cli.root().join(".ic")).expect("the store");
        older_ledger(&cli.db());
        for outcome in at_once(&cli, 16, &["run", "create", "--goal", "many"]) {
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
        let backups = std::fs::read_dir(cli.root().join(".ic"))
            .expect("the store")
            .filter(|entry| entry.as_ref().is_ok_and(|e| e.file_name().to_string_lossy().ends_with(".backup")))
            .count();
        assert_eq!(backups, 1, "one migrated, the others waited for it");
        assert_eq!(cli.json(["run", "list"]).as_array().expect("a list").len(), 16);
    }
}
