//! The mark and the id of a ledger. The object store beside a ledger knows it by an id, so that no ledger ever uses, sweeps or purges the
//! content of another, whatever their files are called and wherever they were copied.

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use ic_base::{LedgerId, Result};
use rusqlite::Connection;

use crate::error::diagnose;
use crate::faults;
use crate::foreign_database::is_database;
use crate::log::sibling;

/// Marks a file as a ledger: `icLG`.
pub const APPLICATION_ID: i32 = 0x6963_4c47;

/// Opening a pipe must not wait for its other end.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Gives a ledger its id, unless it has one: a ledger that was restored from a dump keeps the one in its rows.
pub(crate) fn give(connection: &Connection, id: &LedgerId) -> Result<()> {
    const SQL: &str = "INSERT INTO ledger (one, id, has_store) VALUES (1, $1, 0) ON CONFLICT (one) DO NOTHING";
    faults::statement(SQL);
    connection.execute(SQL, [id.as_str()]).map(|_| ()).map_err(|e| diagnose(e, "giving the ledger its id"))
}

/// Where a database has the id of its application: <https://sqlite.org/fileformat.html#the_database_header>.
const MARK: std::ops::Range<usize> = 68..72;

/// Whether the file is a ledger, by its mark. A database without a mark and with a log counts as one, because the mark may still be in
/// the log: the caller then leaves the file alone.
///
/// Not to be asked about a file that this process has open by SQLite: to close it would end SQLite's locks on it.
pub fn is_ledger(path: &Path) -> std::io::Result<bool> {
    let mut head = [0; 72];
    let file = std::fs::File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    match file.read_exact_at(&mut head, 0) {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let has_log = || std::fs::metadata(sibling(path, "-wal")).is_ok_and(|meta| meta.len() > 0);
    let is_unmarked = is_database(&head) && head[MARK] == [0; 4];
    Ok(is_ledger_head(&head) || (is_unmarked && has_log()))
}

/// Whether the database whose file begins so is a ledger by its mark; too few bytes tell nothing. What a log beside it may say is
/// not asked: a database of another program that has no mark and is in use is none.
pub fn is_ledger_head(head: &[u8]) -> bool {
    is_database(head) && head.get(MARK) == Some(&APPLICATION_ID.to_be_bytes()[..])
}
