//! The stores of one version, unpacked somewhere else than where they were made.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ic_testkit::{Cli, CliOutcome, TestWorld};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::types::{Value as Sql, ValueRef};
use serde_json::Value;
use tempfile::TempDir;

/// The widest window that an archive is packed with: worlds differ by a few pages, so each is found again in the one before it.
pub(crate) const WINDOW: u32 = 27;

/// A part of the archive of one version, unpacked once: worlds are copied from it.
pub(crate) struct Stores {
    directory: TempDir,
    /// What its version was, for messages.
    pub(crate) name: String,
    /// The schema of its ledgers.
    pub(crate) schema: i64,
    /// The directory that held the project when it was made.
    pub(crate) made_in: String,
}

/// Where the archives of released versions are kept. `IC_TEST_STORES` names another directory.
pub(crate) fn directory() -> PathBuf {
    let kept = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/stores");
    std::env::var_os("IC_TEST_STORES").map_or_else(kept, PathBuf::from)
}

/// The archives of every version that is kept; none before the first release.
fn archives() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory()) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path().join("stores.tar.zst")).collect();
    all.sort();
    all
}

/// This part of every version's stores.
pub(crate) fn versions(part: &str) -> Vec<Stores> {
    archives().iter().map(|archive| Stores::unpack(archive, part)).collect()
}

impl Stores {
    fn unpack(archive: &Path, part: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut tar = Command::new("tar");
        tar.arg("-x").arg("-C").arg(directory.path()).args(["./about.json", &format!("./{part}")]);
        let mut child = tar.stdin(Stdio::piped()).spawn().expect("start tar");
        let mut packed = zstd::Decoder::new(File::open(archive).expect("the archive")).expect("an archive");
        packed.window_log_max(WINDOW).expect("a window");
        let mut stdin = child.stdin.take().expect("its input");
        std::io::copy(&mut packed, &mut stdin).expect("unpack");
        drop(stdin);
        assert!(child.wait().expect("its end").success(), "tar could not unpack {part}");
        let about = std::fs::read(directory.path().join("about.json")).expect("about the stores");
        let about: Value = serde_json::from_slice(&about).expect("about the stores");
        let version = archive.parent().and_then(Path::file_name).expect("a directory");
        Self {
            name: version.to_string_lossy().into_owned(),
            schema: about["schema"].as_i64().expect("a schema"),
            made_in: about["root"].as_str().expect("a directory").to_owned(),
            directory,
        }
    }

    /// A path in it.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// The names in a directory of it, sorted.
    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(below)).expect("a directory of the stores");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries.map(|e| name(e).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A copy of a world, at home where it lies now.
    pub(crate) fn world(&self, name: &str) -> TestWorld {
        let home = tempfile::tempdir().expect("a temporary directory");
        for part in ["project", "outside"] {
            let from = self.path(name).join(part);
            let copied = Command::new("cp").arg("-a").arg(&from).arg(home.path()).status().expect("run cp");
            assert!(copied.success(), "copy {}", from.display());
        }
        let place = std::fs::canonicalize(home.path()).expect("its path");
        let store = place.join("project/.git/ic");
        relocate(&store.join("ic.db"), &self.made_in, place.to_str().expect("a plain path"));
        TestWorld::around(Cli::around(env!("CARGO_BIN_EXE_ic"), home).with_env("HOME", &place))
    }

    /// The operation whose worlds lie in a directory.
    pub(crate) fn words(&self, operation: &str) -> Vec<String> {
        let text = std::fs::read(self.path(operation).join("words.json")).expect("its words");
        let words: Vec<String> = serde_json::from_slice(&text).expect("words");
        // An older version had verbs of their own for these.
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["checkpoint", "undo", ..] => [&["redo".to_owned()], &words[2..]].concat(),
            ["rewind", "undo", ..] => words[1..].to_vec(),
            _ => words,
        }
    }
}

/// Makes the rows of a ledger name another directory. Rows hold absolute paths, and a run is refused where its project is not:
/// this is the one thing that is changed in a store before it is used. Events, which are chained, stay as they were recorded.
fn relocate(ledger: &Path, from: &str, to: &str) {
    let connection = Connection::open(ledger).expect("open the ledger");
    // What was not yet brought home from the log stays there, as the version that was killed left it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("keep the log");
    connection.pragma_update(None, "wal_autocheckpoint", 0).expect("keep the log");
    connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
    for (table, column) in columns(&connection) {
        let mut rows = connection
            .prepare(&format!("SELECT rowid, \"{column}\" FROM \"{table}\" WHERE instr(\"{column}\", ?1)"))
            .expect("read a column");
        let found: Vec<(i64, Sql)> = rows
            .query_map([from], |row| Ok((row.get(0)?, replaced(row.get_ref(1)?, from, to))))
            .and_then(Iterator::collect)
            .expect("read a column");
        for (row, value) in found {
            let sql = format!("UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE rowid = ?2");
            connection.execute(&sql, (value, row)).expect("move a row");
        }
    }
    connection.execute_batch("COMMIT").expect("commit");
}

/// Every column of the record but those of events.
fn columns(connection: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT s.name, c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c
        WHERE s.type = 'table' AND s.name NOT LIKE 'event%' AND s.name <> 'refinery_schema_history'";
    let mut statement = connection.prepare(sql).expect("the columns");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("the columns");
    rows.map(|row| row.expect("a column")).collect()
}

fn replaced(value: ValueRef<'_>, from: &str, to: &str) -> Sql {
    let moved = |bytes: &[u8]| -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), bytes);
        while let Some(at) = rest.windows(from.len()).position(|part| part == from.as_bytes()) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(to.as_bytes());
            rest = &rest[at + from.len()..];
        }
        out.extend_from_slice(rest);
        out
    };
    match value {
        ValueRef::Text(text) => Sql::Text(String::from_utf8(moved(text)).expect("text")),
        ValueRef::Blob(bytes) => Sql::Blob(moved(bytes)),
        other => panic!("a path in {other:?}"),
    }
}

/// What a program of this version says its schema is.
pub(crate) fn newest_schema(world: &TestWorld) -> i64 {
    world.cli.json(["version", "--json"])["schema_version"].as_i64().expect("a schema")
}

/// The outcome of a call, with its words where it is not as wanted.
pub(crate) fn ends(outcome: &CliOutcome, wanted: &[i32], when: &str, words: &[&str]) {
    assert!(outcome.code.is_some_and(|code| wanted.contains(&code)), "{when}: {words:?}: {outcome:?}");
}
