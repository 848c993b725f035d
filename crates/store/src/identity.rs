//! Which ledger this is. The object store beside a ledger knows it by an id, so that no ledger ever uses, sweeps or purges the
//! content of another, whatever their files are called and wherever they were copied.

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use ic_base::{Code, Diagnosis, LedgerId, Result};
use rusqlite::Connection;

use crate::error::diagnose;
use crate::foreign::is_database;
use crate::{Ledger, Snapshot, faults};

/// Marks a file as a ledger: `icLG`.
pub const APPLICATION_ID: i32 = 0x6963_4c47;

/// Opening a pipe must not wait for its other end.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// A ledger's id, and whether a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The same in every copy of the ledger.
    pub id: LedgerId,
    /// Whether a store was found that knows the id; from then on it never changes.
    pub has_store: bool,
}

/// Gives a ledger its id, unless it has one: a ledger that was restored from a dump keeps the one in its rows.
pub(crate) fn give(connection: &Connection, id: &LedgerId) -> Result<()> {
    const SQL: &str =
        "INSERT INTO ledger (one, id, has_store) VALUES (1, $1, 0) ON CONFLICT (one) DO NOTHING";
    faults::statement(SQL);
    connection.execute(SQL, [id.as_str()]).map(|_| ()).map_err(|e| diagnose(e, "giving the ledger its id"))
}

impl Ledger {
    /// Which ledger this is. Errors: `corrupt` if it has lost its id.
    pub fn identity(&self) -> Result<Identity> {
        self.read(identity)
    }

    /// Records that a store was found that knows this ledger as `id`.
    ///
    /// An id other than its own is taken only by a ledger that has no store yet: one that was restored from a backup of before it
    /// had an id. Nothing is changed where a store is known already.
    pub fn found_store(&self, id: &LedgerId) -> Result<()> {
        self.write(|tx| {
            tx.execute("UPDATE ledger SET id = $1, has_store = 1 WHERE has_store = 0", &[&id.as_str()])
                .map(|_| ())
        })
    }
}

/// Where a database has the id of its application: <https://sqlite.org/fileformat.html#the_database_header>.
const MARK: std::ops::Range<usize> = 68..72;

/// Whether the file is a ledger, by its mark. One whose mark may still stand in its log counts as one: who asks will leave alone what
/// such a file may need.
///
/// Not to be asked about a file that this process has open by SQLite: to close it would end SQLite's locks on it.
pub fn is_ledger(path: &Path) -> std::io::Result<bool> {
    let mut head = [0; 72];
    let file = std::fs::File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    match file.read_exact_at(&mut head, 0) {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = || std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0);
    let is_unmarked = is_database(&head) && head[MARK] == [0; 4];
    Ok(is_ledger_head(&head) || (is_unmarked && has_log()))
}

/// Whether the database whose file begins so is a ledger by its mark; too few bytes tell nothing. What a log beside it may say is
/// not asked: a database of another program that has no mark and is in use is none.
pub fn is_ledger_head(head: &[u8]) -> bool {
    is_database(head) && head.get(MARK) == Some(&APPLICATION_ID.to_be_bytes()[..])
}

fn identity(snapshot: &Snapshot<'_>) -> Result<Identity> {
    let found = snapshot.query_opt("SELECT id, has_store FROM ledger", &[], |row| {
        Ok(Identity { id: LedgerId::from_ledger(row.get(0)?), has_store: row.get(1)? })
    })?;
    found.ok_or_else(|| Diagnosis::new(Code::Corrupt, "The ledger has no id."))
}

#[cfg(test)]
mod tests {
    use ic_base::{Context, LedgerId};

    use crate::{Ledger, OpenOptions, migrate};

    #[test]
    fn an_id_is_given_once_and_is_fixed_once_a_store_knows_it() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one.db"), place.path().join("two.db"));
        let (options, context) = (OpenOptions::default(), Context::system());
        let open = |path| {
            migrate::create(path, options, &context).unwrap();
            Ledger::open(path, options, &context).unwrap()
        };
        let (first, second) = (open(&one), open(&two));
        let id = first.identity().unwrap();
        assert!(!id.has_store);
        assert_ne!(id.id, second.identity().unwrap().id);
        assert_eq!(open(&one).identity().unwrap(), id, "another opening changes nothing");
        let theirs = LedgerId::from_ledger("theirs".to_owned());
        second.found_store(&theirs).unwrap();
        assert_eq!(second.identity().unwrap().id, theirs);
        second.found_store(&id.id).unwrap();
        assert_eq!(second.identity().unwrap().id, theirs, "it keeps the first");
        let update = second.write(|tx| tx.execute("UPDATE ledger SET id = 'x'", &[]));
        assert!(update.is_err());
    }
}
