//! A project on disk, driven through the real binary, as scripts drive it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use assert_cmd::assert::Assert;
use serde_json::Value;
use tempfile::TempDir;

use crate::server::{self, Lent};

/// Has every write transaction of every call run twice, or serializable and with others in the way, where the tests themselves are told so.
const OF_ALL: [&str; 2] = ["IC_TEST_RERUN", "IC_TEST_SERIALIZABLE"];

/// A temporary project directory and the binary that is run in it, in an environment that holds nothing else.
pub struct Cli {
    binary: PathBuf,
    home: TempDir,
    root: PathBuf,
    env: Vec<(OsString, OsString)>,
    _lent: Lent,
}

/// What a call printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliOutcome {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The writers' lock of a ledger, which goes with it.
#[derive(Debug)]
pub enum HeldLedger {
    /// A transaction on the file.
    OfFile(rusqlite::Connection),
    /// A session in which one is open.
    OfServer(server::ServerSession),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl From<&Output> for CliOutcome {
    fn from(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl CliOutcome {
    /// Runs `command` to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn of(command: &mut Command) -> Self {
        Self::from(&command.output().expect("start the binary"))
    }

    /// What a call that was started comes to.
    ///
    /// # Panics
    /// If its end is not known.
    pub fn at_end_of(child: Child) -> Self {
        Self::from(&child.wait_with_output().expect("its end"))
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// If it is not.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("not JSON ({e}): {self:?}"))
    }

    /// The code in the error line on standard error, or of the refusal that a shown plan names.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn error(&self) -> String {
        if let (true, Ok(plan)) = (self.stderr.is_empty(), serde_json::from_str::<Value>(&self.stdout)) {
            return plan["refusal"]["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_owned();
        }
        let line: Value =
            serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("not one JSON line ({e}): {self:?}"));
        line["error"]["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_owned()
    }
}

impl Cli {
    /// A project with a new ledger; `binary` is `env!("CARGO_BIN_EXE_ic")`.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(binary: &str) -> Self {
        let cli = Self::without_ledger(binary);
        cli.ok(["init"]);
        cli
    }

    /// A project without a ledger; its runs take no checkpoints along the way.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn without_ledger(binary: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let root = std::fs::canonicalize(home.path()).expect("its path").join("project");
        std::fs::create_dir(&root).expect("the project's directory");
        std::fs::write(root.join(".ic.yaml"), "rollback: {checkpointing: {auto: false}}\n").expect("its configuration");
        let (mut env, lent) = server::lend();
        env.extend(OF_ALL.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))));
        Self { binary: PathBuf::from(binary), home, root, env, _lent: lent }
    }

    /// The project that lies in `home/project` already; nothing is made in it.
    ///
    /// # Panics
    /// If there is none.
    pub fn around(binary: &str, home: TempDir) -> Self {
        let root = std::fs::canonicalize(home.path().join("project")).expect("the project's directory");
        let (env, lent) = server::lend();
        Self { binary: PathBuf::from(binary), home, root, env, _lent: lent }
    }

    /// The same project with checkpoints along the way, as projects are by default.
    ///
    /// # Panics
    /// If its configuration cannot be removed.
    #[must_use]
    pub fn with_checkpoints(self) -> Self {
        std::fs::remove_file(self.root.join(".ic.yaml")).expect("the project's configuration");
        self
    }

    /// The same project, driven by another build of the program.
    #[must_use]
    pub fn with_binary(self, binary: &str) -> Self {
        Self { binary: PathBuf::from(binary), ..self }
    }

    /// The same project with one more variable in the environment of every call.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((OsString::from(name), value.as_ref().to_owned()));
        self
    }

    /// The project's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory around the project, which goes with it.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The same project with its ledger in this file, as `IC_DB` says.
    #[must_use]
    pub fn with_db(self, path: impl AsRef<Path>) -> Self {
        self.with_env("IC_DB", path.as_ref())
    }

    /// The ledger's file, or the URL of one on a server: what `IC_DB` says, else `.ic/ic.db`, or git's `.git/ic/ic.db` where that one is
    /// there.
    pub fn db(&self) -> PathBuf {
        if let Some((_, path)) = self.env.iter().rev().find(|(name, _)| name == "IC_DB") {
            return PathBuf::from(path);
        }
        let (own, of_git) = (self.root.join(".ic/ic.db"), self.root.join(".git/ic/ic.db"));
        if of_git.exists() && !own.exists() { of_git } else { own }
    }

    /// What names the ledger to the calls of every day: as [`Cli::db`], but by their role.
    pub fn name_of_ledger(&self) -> String {
        let db = self.db();
        let of_every_day = server::of_every_day(&db, std::iter::empty());
        of_every_day.unwrap_or_else(|| db.display().to_string())
    }

    /// A file of the store, beside the ledger's; of a ledger on a server, in the store of this project.
    pub fn beside(&self, name: &str) -> PathBuf {
        let db = self.db();
        if !server::is_meant(&db) {
            return db.with_file_name(name);
        }
        let of_git = self.root.join(".git/ic");
        let store = if of_git.exists() { of_git } else { self.root.join(".ic") };
        // What belongs to another ledger than `ic.db` begins with its name.
        store.join(if name.starts_with("objects") { format!("server.db.{name}") } else { name.to_owned() })
    }

    /// The safety checkpoint of the newest restore, undo or redo of a tree: what `ic undo` and `ic redo` name it by.
    ///
    /// # Panics
    /// If there is none.
    pub fn last_restore(&self) -> String {
        self.sql("SELECT safety_id FROM restores ORDER BY seq DESC LIMIT 1")
    }

    /// Changes the ledger past the program, or asks it: the only value of the last statement as text, empty where there is none.
    ///
    /// # Panics
    /// If the ledger cannot be opened, or a statement fails.
    pub fn sql(&self, sql: &str) -> String {
        let db = self.db();
        if server::is_meant(&db) {
            return server::sql(&db, sql);
        }
        let connection = rusqlite::Connection::open(db).expect("open the ledger");
        if !sql.trim_start().starts_with("SELECT") {
            connection.execute_batch(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
            return String::new();
        }
        let value = connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
        match value.unwrap_or_else(|e| panic!("{sql}: {e}")) {
            rusqlite::types::Value::Integer(n) => n.to_string(),
            rusqlite::types::Value::Text(text) => text,
            // As PostgreSQL shows them.
            rusqlite::types::Value::Blob(bytes) => format!("\\x{}", hex(&bytes)),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Bytes as a literal of [`Cli::sql`].
    pub fn bytes(&self, bytes: &[u8]) -> String {
        if server::is_meant(&self.db()) { format!("'\\x{}'", hex(bytes)) } else { format!("x'{}'", hex(bytes)) }
    }

    /// Changes the ledger as [`Cli::sql`] does, but without the triggers that refuse changes of the record.
    ///
    /// # Panics
    /// If a statement fails.
    pub fn past_triggers(&self, sql: &str) {
        let db = self.db();
        if server::is_meant(&db) {
            self.sql(&format!("SET LOCAL session_replication_role = replica; {sql}"));
            return;
        }
        let connection = rusqlite::Connection::open(db).expect("open the ledger");
        connection
            .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
            .expect("no triggers");
        connection.execute_batch(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }

    /// The bytes of the ledger: of its file, or of every row on a server.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn content(&self) -> Vec<u8> {
        let db = self.db();
        if server::is_meant(&db) { self.dump().into_bytes() } else { std::fs::read(db).expect("the ledger") }
    }

    /// Holds the writers' lock of the ledger until it is dropped.
    ///
    /// # Panics
    /// If it cannot be had.
    pub fn hold_writers(&self) -> HeldLedger {
        let db = self.db();
        if server::is_meant(&db) {
            return HeldLedger::OfServer(server::hold_writers(&db));
        }
        let connection = rusqlite::Connection::open(db).expect("open the ledger");
        connection.execute_batch("BEGIN IMMEDIATE").expect("hold the ledger");
        HeldLedger::OfFile(connection)
    }

    /// Keeps the rows of a ledger on a server under a name, for [`Cli::put_back_ledger`]. A ledger in a file is copied as the file that it
    /// is.
    pub fn keep_ledger(&self, name: &str) {
        let db = self.db();
        if server::is_meant(&db) {
            server::keep(&db, name);
        }
    }

    /// Makes the rows of a ledger on a server what they were when they were kept under this name.
    pub fn put_back_ledger(&self, name: &str) {
        let db = self.db();
        if server::is_meant(&db) {
            server::put_back(&db, name);
        }
    }

    /// A call that has not been started.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(&self.root).env_clear().stdin(Stdio::null());
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        if let Some(url) = server::of_every_day(&self.db(), command.get_args()) {
            command.env("IC_DB", url);
        }
        command
    }

    /// Runs a call to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> CliOutcome {
        CliOutcome::of(&mut self.command(arguments))
    }

    /// Runs a call with this standard input.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run_with_input<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &[u8]) -> CliOutcome {
        let mut call = assert_cmd::Command::from_std(self.command(arguments));
        CliOutcome::from(call.write_stdin(input).assert().get_output())
    }

    /// Runs a call to its end; what is asserted of it shows the whole call where it does not hold.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn assert<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Assert {
        assert_cmd::Command::from_std(self.command(arguments)).assert()
    }

    /// Runs a call that must succeed and returns its output without the newline at its end.
    ///
    /// # Panics
    /// If it does not succeed.
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let done = self.assert(arguments).success();
        CliOutcome::from(done.get_output()).stdout.trim_end_matches('\n').to_owned()
    }

    /// Runs a call that must succeed and returns its JSON.
    ///
    /// # Panics
    /// If it does not succeed or prints no JSON.
    pub fn json<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Value {
        let text = self.ok(arguments);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("not JSON ({e}): {text}"))
    }

    /// Runs a call that must be refused and returns its exit code and its error code.
    ///
    /// # Panics
    /// If it prints no error line.
    pub fn refused<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> (Option<i32>, String) {
        let outcome = CliOutcome::from(self.assert(arguments).failure().get_output());
        (outcome.code, outcome.error())
    }

    /// Asserts that the ledger is sound and its events are chained. After a crash, call it before anything else opens the ledger:
    /// the first opening recovers the log, and the program itself shall be the one that does it.
    ///
    /// # Panics
    /// If it is not.
    pub fn assert_sound(&self, when: &str) {
        assert_eq!(self.json(["health", "--json"])["ok"], true, "{when}");
        let verified = self.run(["events", "verify"]);
        assert_eq!(verified.code, Some(0), "{when}: {verified:?}");
    }

    /// What the ledger is made of, as text.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn schema(&self) -> String {
        let db = self.db();
        if server::is_meant(&db) {
            return server::schema(&db);
        }
        let ledger = rusqlite::Connection::open(db).expect("open the ledger");
        let mut statement =
            ledger.prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name").expect("the schema");
        let made = statement.query_map([], |row| row.get::<_, String>(0)).and_then(Iterator::collect);
        made.map(|made: Vec<String>| made.join("\n")).expect("the schema")
    }

    /// The content of the ledger as text.
    pub fn dump(&self) -> String {
        crate::dump(&self.db())
    }
}
