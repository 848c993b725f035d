//! The whole content of a ledger as text, for comparing before and after.

use std::fmt::Write;
use std::path::Path;

use ic_ledger::{Ledger, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::server;

/// Every row of every table of the database at `path`, or of the ledger that a URL names, one a line, in a fixed order.
///
/// # Panics
/// If the database cannot be read.
pub fn dump(path: &Path) -> String {
    if let Some(ledger) = server::look(path) {
        return dump_of_server(&ledger);
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("open the ledger");
    connection.busy_timeout(std::time::Duration::from_secs(10)).expect("set a timeout");
    let tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .and_then(|mut s| s.query_map([], |row| row.get(0))?.collect())
        .expect("list the tables");
    let mut out = String::new();
    // The table `ledger` says whether a store belongs to it. The first call that opens the store sets it, even a call that is then
    // refused: so the record does not have it.
    for table in tables.into_iter().filter(|table| table != "ledger") {
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\"")).expect("read a table");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("read a table");
        while let Some(row) = rows.next().expect("read a row") {
            write!(out, "{table}").expect("write to a string");
            for i in 0..columns {
                let value = match row.get_ref(i).expect("read a column") {
                    ValueRef::Null => "NULL".to_owned(),
                    ValueRef::Integer(n) => n.to_string(),
                    ValueRef::Real(r) => r.to_string(),
                    ValueRef::Text(t) => format!("{:?}", String::from_utf8_lossy(t)),
                    ValueRef::Blob(b) => {
                        format!("x'{}'", b.iter().map(|b| format!("{b:02x}")).collect::<String>())
                    }
                };
                write!(out, "|{value}").expect("write to a string");
            }
            out.push('\n');
        }
    }
    out
}

/// The same of a ledger on a server, whose rows have no order of their own.
fn dump_of_server(ledger: &Ledger) -> String {
    let rows = ledger.read(|snapshot| {
        let tables: Vec<String> = snapshot.query_all(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'ledger'",
            &[],
            |row| row.get(0),
        )?;
        let mut rows = Vec::new();
        for table in tables {
            rows.extend(snapshot.query_all(&format!("SELECT * FROM \"{table}\""), &[], |row| {
                let mut line = table.clone();
                for i in 0..row.width() {
                    let value = match row.value(i).expect("a value") {
                        Value::Null(_) => "NULL".to_owned(),
                        Value::Int(n) => n.to_string(),
                        Value::Text(text) => format!("{text:?}"),
                        Value::Bytes(b) => {
                            format!("x'{}'", b.iter().map(|b| format!("{b:02x}")).collect::<String>())
                        }
                    };
                    write!(line, "|{value}").expect("write to a string");
                }
                Ok(line)
            })?);
        }
        Ok(rows)
    });
    let mut rows = match rows {
        Err(error) if error.code() == ic_base::Code::NoLedger => return String::new(),
        rows => rows.expect("read the ledger"),
    };
    rows.sort();
    rows.into_iter().map(|row| row + "\n").collect()
}
