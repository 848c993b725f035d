//! Aborting `init` before each of its steps: the next one makes the ledger whole.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;

use ic_testkit::Cli;

use crate::campaign::assert_sound;

/// More steps than `init` has: a loop that gets there never ended.
const TOO_MANY: usize = 200;

/// What `init` makes, without what depends on the moment: the schema, and the content of every table of ours.
pub(crate) fn essence(cli: &Cli) -> String {
    let (schema, dump) = (cli.schema(), cli.dump());
    // Every ledger has an id of its own.
    let differ = ["refinery_schema_history|", "ledger|"];
    let rows = dump.lines().filter(|line| !differ.iter().any(|table| line.starts_with(table)));
    schema.lines().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Whether the call was aborted before its `n`-th step, and whether it had committed the schema by then.
fn aborted(cli: &Cli, arguments: &[&str], n: usize) -> (bool, bool) {
    let log = cli.home().join("log");
    File::create(&log).expect("an empty log");
    let mut command = cli.command(arguments);
    command.env("IC_TEST_ABORT_BEFORE", n.to_string()).env("IC_TEST_SQL_LOG", &log);
    let status = command.output().expect("start ic").status;
    assert!(status.success() || status.signal().is_some(), "{arguments:?} before {n}: {status}");
    let log = std::fs::read_to_string(&log).expect("the log");
    (status.signal().is_some(), log.lines().any(|line| line == "COMMIT"))
}

fn crash_init_everywhere(arguments: &[&str], steps: usize) {
    let untouched = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let whole = essence(&untouched);
    for n in 1..TOO_MANY {
        let mut cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
        let (crashed, committed) = aborted(&cli, arguments, n);
        if !crashed {
            assert!(n > steps, "{arguments:?} has {} steps, not {steps} or more", n - 1);
            return;
        }
        if !committed {
            assert_eq!(cli.refused(["run", "list"]), (Some(3), "no_ledger".to_owned()), "before {n}");
        }
        let made = cli.json(arguments);
        assert_eq!(made["created"], !committed, "{arguments:?} again after a crash before {n}");
        assert_sound(&cli);
        if arguments.len() > 1 {
            assert_eq!(cli.ok(["where"]), made["db"], "the pointer leads to it, crash before {n}");
            cli = cli.with_db(made["db"].as_str().expect("a path"));
        }
        assert_eq!(essence(&cli), whole, "{arguments:?} again after a crash before {n}");
        cli.ok(["run", "create", "--goal", "after a crash"]);
    }
    panic!("{arguments:?} has more than {TOO_MANY} steps");
}

#[test]
fn an_aborted_init_is_finished_by_the_next() {
    // File, log mode, begin, history table, four migrations, four rows of history, marks, commit, after it.
    crash_init_everywhere(&["init"], 13);
}

#[test]
fn an_aborted_init_elsewhere_is_finished_by_the_next() {
    // The same, and the pointer.
    crash_init_everywhere(&["init", "--store", "../elsewhere"], 14);
}
