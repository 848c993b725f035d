//! Databases of an application, and what is in them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result, Timestamp};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::{
    Anchor, Archive, DEVS_SQL, EngineOptions, Profile, RelationalRollbackEngine, Rewind, RewindTarget, RollbackResult,
    SqlScalar, TableConfig, TaskRef, UndoReport,
};

pub(super) const NOW: Timestamp = Timestamp(1_771_606_515_007);

/// A database of an application in a directory of its own.
pub(super) struct TestApp {
    directory: tempfile::TempDir,
    pub(super) target: RewindTarget,
    rewinds: usize,
}

/// An anchor without commits and scopes.
pub(super) fn anchor(table: &str, key: &str, order: &str) -> Anchor {
    let [table, key, order] = [table, key, order].map(str::to_owned);
    Anchor { table, key, order, commit: None, scope: Vec::new() }
}

impl TestApp {
    pub(super) fn new(sql: &str, target: impl FnOnce(&Path) -> RewindTarget) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.db");
        let app = Self { target: target(&path), directory, rewinds: 0 };
        app.sql(sql);
        app
    }

    /// The four tables of the seed, with three tasks at 100, 200 and 300.
    pub(super) fn devs() -> Self {
        let app = Self::new(DEVS_SQL, |path| RewindTarget::of_profile(Profile::Devs, path));
        app.sql(
            "INSERT INTO tasks VALUES ('T1', 'one', 'done', 'c1', 100), ('T2', 'two', 'done', NULL, 200), \
             ('T3', 'three', 'open', 'c3', 300);
             INSERT INTO requirements VALUES ('R1', 'T1', 'a', 100), ('R2', 'T2', 'b', 210), ('R3', 'T3', 'c', 300);
             INSERT INTO agent_logs VALUES (1, 'T1', 'note', '{}', 90), (2, 'T1', 'note', '{}', 150), \
             (5, 'T2', 'note', 'x', 250), (9, 'T3', NULL, NULL, 310);
             INSERT INTO langgraph_checkpoints VALUES ('L1', 'T1', x'00ff', 100), ('L2', 'T2', NULL, 201);",
        );
        app
    }

    pub(super) fn path(&self) -> &Path {
        &self.target.database
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn connect(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        ic_sys::vec0::register(&connection).unwrap();
        connection.execute_batch("PRAGMA foreign_keys=ON; PRAGMA synchronous=OFF").unwrap();
        connection
    }

    pub(super) fn sql(&self, sql: &str) {
        self.connect().execute_batch(sql).unwrap();
    }

    pub(super) fn engine(&self) -> RelationalRollbackEngine {
        self.try_engine().unwrap()
    }

    pub(super) fn try_engine(&self) -> Result<RelationalRollbackEngine> {
        let busy_timeout = std::time::Duration::from_millis(100);
        RelationalRollbackEngine::open(&self.target, EngineOptions { busy_timeout })
    }

    /// Rewinds with a new archive.
    pub(super) fn rewind(&mut self, task: impl Into<TaskRef>) -> Result<(RollbackResult, Archive)> {
        self.rewinds += 1;
        let id = format!("rewind-{}", self.rewinds);
        let mut archive = Archive::at(self.file(&id));
        let rewind = Rewind { id: &id, now: NOW };
        self.try_engine()?.rollback_to_task(task, &rewind, &mut archive).map(|result| (result, archive))
    }

    pub(super) fn undo(&self, archive: &Archive) -> Result<UndoReport> {
        let before = self.full_dump();
        let preview = self.try_engine()?.preview_undo(archive).map_err(Diagnosis::from);
        assert_eq!(self.full_dump(), before, "a preview changes nothing");
        let undone = self.try_engine()?.undo(archive, NOW).map_err(Diagnosis::from);
        match (&preview, &undone) {
            (Ok(preview), Ok(undone)) => assert_eq!(preview, undone),
            (Err(preview), Err(undone)) => {
                assert_eq!((preview.code(), preview.message()), (undone.code(), undone.message()));
            }
            // What a constraint over an expression refuses is not seen before, nor what a trigger does.
            (Ok(_), Err(undone)) => {
                let later = ["constraint failed", "would not come back as they were"];
                assert!(later.iter().any(|what| undone.message().contains(what)), "{undone}");
            }
            (Err(preview), _) => panic!("refused for nothing: {preview}"),
        }
        undone
    }

    /// Writes a virtual table into the schema that cannot be made here, beside a table that its module would own.
    pub(super) fn plant(&self, name: &str, create: &str, shadow: &str) {
        let connection = self.connect();
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
        let sql = format!(
            "CREATE TABLE {shadow} (id INTEGER PRIMARY KEY, at INTEGER); PRAGMA writable_schema=ON;
             INSERT INTO sqlite_schema VALUES ('table', '{name}', '{name}', 0, '{create}');"
        );
        connection.execute_batch(&sql).unwrap();
    }

    /// Each of these tables is refused as a table that is cut, and the reason is named.
    pub(super) fn cuts_none_of<const N: usize>(&mut self, task: &str, tables: [(&str, &str); N]) {
        for (name, why) in tables {
            self.target.tables = vec![TableConfig::by_column(name, "at")];
            let error = self.rewind(task).unwrap_err();
            assert_eq!(error.code(), Code::InvalidConfig);
            assert!(error.message().contains(why), "{error}");
        }
    }

    /// The undo is a conflict that names this, and changes nothing.
    pub(super) fn undo_is_refused(&self, archive: &Archive, named: &str) {
        let before = self.full_dump();
        let error = self.undo(archive).unwrap_err();
        assert_eq!(error.code(), Code::RowConflict);
        assert!(error.message().contains(named), "{error}");
        assert_eq!(self.full_dump(), before);
    }

    /// All rows of all tables but those that rewinds wrote.
    pub(super) fn dump(&self) -> String {
        let lines = self.full_dump();
        lines.lines().filter(|line| !line.contains("'ROLLBACK_")).map(|line| format!("{line}\n")).collect()
    }

    /// All rows of all tables, with storage classes and rowids.
    pub(super) fn full_dump(&self) -> String {
        dump(&self.connect())
    }

    /// The rows that rewinds wrote.
    pub(super) fn audits(&self) -> Vec<String> {
        self.texts("SELECT event_type FROM agent_logs WHERE event_type LIKE 'ROLLBACK%' ORDER BY log_id")
    }

    pub(super) fn texts(&self, sql: &str) -> Vec<String> {
        let connection = self.connect();
        let mut statement = connection.prepare(sql).unwrap();
        statement
            .query_map([], |row| Ok(SqlScalar::shown(row.get_ref(0)?)))
            .unwrap()
            .map(std::result::Result::unwrap)
            .collect()
    }
}

/// Every row of every table, one a line: storage classes, rowids and generated columns too.
pub(super) fn dump(connection: &Connection) -> String {
    let texts = |sql: &str, param: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let params: &[&dyn rusqlite::ToSql] = if sql.contains("?1") { &[&param] } else { &[] };
        statement.query_map(params, |row| row.get(0)).unwrap().map(std::result::Result::unwrap).collect()
    };
    let tables = texts(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual') \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
        "",
    );
    let mut out = String::new();
    for table in tables {
        let columns = texts("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 1", &table);
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let mut values: Vec<String> =
            columns.iter().map(|c| format!("quote({0}) || ' ' || typeof({0})", quoted(c))).collect();
        let has_rowid = connection.prepare(&format!("SELECT rowid FROM {}", quoted(&table))).is_ok();
        let rowid = ["rowid", "_rowid_"].into_iter().find(|name| !columns.iter().any(|c| c == name)).unwrap();
        let order = if has_rowid { rowid.to_owned() } else { values.join(", ") };
        if has_rowid {
            values.insert(0, rowid.to_owned());
        }
        let sql = format!("SELECT {} FROM {} ORDER BY {order}", values.join(" || '|' || "), quoted(&table));
        for row in texts(&sql, "") {
            writeln!(out, "{table}: {row}").unwrap();
        }
    }
    out
}
