//! A database as one file, without the log that calls leave beside it.

use std::path::Path;

use rusqlite::Connection;

/// Folds the log of a database that no process has open into its file, as closing by the means of SQLite alone does, and returns the file.
///
/// # Panics
/// If the database cannot be opened, or its log is in use.
pub fn one_file(database: &Path) -> Vec<u8> {
    let connection = Connection::open(database).expect("open the database");
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).expect("its schema");
    drop(connection);
    assert!(!ic_ledger::sibling(database, "-wal").exists(), "{} is in use", database.display());
    std::fs::read(database).expect("the database")
}

/// Puts a database in the place of another one, and removes what was beside that: its log, and what is remembered of it.
///
/// # Panics
/// If a file cannot be written or removed.
pub fn put_one_file(database: &Path, content: &[u8]) {
    for suffix in ["-wal", "-shm", ".head"] {
        let path = ic_ledger::sibling(database, suffix);
        if path.exists() {
            std::fs::remove_file(path).expect("remove what is beside it");
        }
    }
    std::fs::write(database, content).expect("write the database");
}
