//! A program's own SQLite database, for the tests of crates that name no driver.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

/// An open database. One that is dropped without a checkpoint keeps what SQLite leaves beside it.
#[derive(Debug)]
pub struct TestDatabase(Connection);

impl TestDatabase {
    /// Opens it, and makes it where there is none.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn open(path: &Path) -> Self {
        Self(Connection::open(path).expect("the database opens"))
    }

    /// Runs statements.
    ///
    /// # Panics
    /// If one fails.
    pub fn run(&self, statements: &str) {
        self.0.execute_batch(statements).expect("the statements run");
    }

    /// The first row of a query, its values side by side; or what SQLite says instead.
    pub fn first_row(&self, query: &str) -> String {
        let text = |row: &Row<'_>| {
            let values = (0..row.as_ref().column_count()).map(|i| row.get_ref(i).map(shown));
            Ok(values.collect::<rusqlite::Result<Vec<_>>>()?.join(" "))
        };
        self.0.query_row(query, [], text).unwrap_or_else(|e| e.to_string())
    }
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    }
}
