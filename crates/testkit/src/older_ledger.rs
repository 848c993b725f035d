//! A ledger as an older program left it.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::Connection;

/// Makes a ledger of the first schema at `path`, as `ic` with one migration would have made it.
///
/// # Panics
/// If it cannot be made.
pub fn older_ledger(path: &Path) {
    let newest = tempfile::tempdir().expect("a temporary directory");
    let reference = newest.path().join("ic.db");
    let place = ic_ledger::LedgerLocation {
        db: reference.clone(),
        server: None,
        store: newest.path().to_owned(),
        root: newest.path().to_owned(),
        found_by: ic_ledger::FoundBy::Flag,
    };
    let context = ic_base::Context::system();
    ic_ledger::create(&place, false, newest.path(), ic_ledger::OpenOptions::default(), &context).expect("a ledger");
    // Private, as every ledger is made.
    let file = std::fs::File::options().create_new(true).write(true).mode(0o600).open(path);
    drop(file.expect("the older ledger's file"));
    let connection = Connection::open(path).expect("open the older ledger");
    connection.execute_batch(include_str!("../../../migrations/sqlite/V0001__events.sql")).expect("the first schema");
    connection
        .execute("ATTACH $1 AS newest", [reference.to_str().expect("a plain path")])
        .expect("attach the newest ledger");
    connection
        .execute_batch(
            "CREATE TABLE refinery_schema_history(version INT4 PRIMARY KEY, name VARCHAR(255), \
             applied_on VARCHAR(255), checksum VARCHAR(255));
             INSERT INTO refinery_schema_history SELECT * FROM newest.refinery_schema_history WHERE version = 1;
             DETACH newest;
             PRAGMA application_id = 0x69634c47;
             PRAGMA user_version = 1;",
        )
        .expect("the marks of the first schema");
}
