//! A project whose checkpoints are tried, and calls that are used everywhere.

use std::path::Path;
use std::process::Command;

use ic_testkit::{Cli, CliOutcome, copy_over};
use serde_json::Value;

use crate::snapshot::Snapshot;

/// A project with nothing in it but its store.
pub(crate) fn project() -> Cli {
    Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints()
}

/// Takes a checkpoint and returns its id.
pub(crate) fn create(cli: &Cli) -> String {
    cli.ok(["checkpoint", "create", "--format", "text"])
}

/// Restores a checkpoint, which must wholly succeed.
pub(crate) fn restore(cli: &Cli, id: &str) -> Value {
    done(cli.json(["checkpoint", "restore", id, "--yes", "--json"]))
}

/// Restores a checkpoint that does not have all that changed since: the exit says so.
pub(crate) fn restore_in_part(cli: &Cli, id: &str) -> Value {
    let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
    let report = outcome.json();
    assert_eq!((outcome.code, report["status"].as_str()), (Some(4), Some("partial")), "{report}");
    assert_eq!(report["failed"], Value::Array(Vec::new()), "{report}");
    report
}

/// Undoes the last restore, which must wholly succeed.
pub(crate) fn take_back(cli: &Cli) -> Value {
    done(cli.json(["redo", "--yes", "--json"]))
}

/// Makes the restore again that was undone just now, which must wholly succeed.
pub(crate) fn make_again(cli: &Cli) -> Value {
    done(cli.json(["undo", &cli.last_restore(), "--yes", "--json"]))
}

fn done(report: Value) -> Value {
    let status = report["status"].as_str().expect("a status");
    assert!(["restored", "up_to_date"].contains(&status), "{report}");
    assert_eq!(report["failed"], Value::Array(Vec::new()), "{report}");
    report
}

/// The tree of the project now.
pub(crate) fn tree(cli: &Cli) -> Snapshot {
    Snapshot::of(cli.root())
}

/// Restores a checkpoint into a new directory and returns what is there then.
pub(crate) fn restored_elsewhere(cli: &Cli, id: &str) -> Snapshot {
    let place = tempfile::tempdir_in(cli.home()).expect("a directory");
    let outcome = CliOutcome::of(&mut into(cli, id, place.path()));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    Snapshot::of(place.path())
}

/// The call that restores a checkpoint into another directory.
pub(crate) fn into(cli: &Cli, id: &str, place: &Path) -> Command {
    if ic_testkit::server::is_in_use() {
        // The content is where the project is, and a URL does not lead there.
        let store = cli.beside("ledger");
        let store = store.parent().expect("a store");
        copy_over(store, &place.join(".ic"));
    }
    let mut command = cli.command(["checkpoint", "restore", id, "--into", "--yes", "--json"]);
    command.current_dir(place).env("IC_DB", cli.db());
    command
}

/// The ids of all checkpoints, oldest first.
pub(crate) fn list(cli: &Cli) -> Vec<Value> {
    let list = cli.json(["checkpoint", "list", "--json"]);
    list.as_array().expect("a list").clone()
}

/// The paths in a list of records with a `path`, and what they say under `key`.
pub(crate) fn told(report: &Value, list: &str, key: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let records = report[list].as_array().expect("a list");
    records.iter().map(|record| (text(&record["path"]), text(&record[key]))).collect()
}
