//! A ledger on a PostgreSQL server: a schema of a database.
//!
//! Locking: every write transaction begins by locking the head of the events, so that writers take turns and each sees what the one before
//! left, as with a file. Readers see a snapshot each. Durability is the server's.
//! A round trip is what costs here. So a transaction begins with its first statement, changes whose count is not asked for wait for the
//! next question or for the commit, and the end of a read is not waited for.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use crate::connection::OpenOptions;
use crate::faults::FaultMode;
use crate::migrate::LATEST;
use crate::server_url::ServerUrl;
use crate::values::{LedgerRow, RowSource};
use crate::{faults, migrate};

mod connect;
mod connection_pool;
mod deadlines;
mod error;
mod flight;
mod names;
mod open;
mod password;
pub(crate) mod schema;
pub(crate) mod schema_objects;
mod tls;
mod value;

pub use connection_pool::keep_connections;
pub(crate) use open::OpenTransaction;

use connection_pool::KeptConnection;
use error::{ServerFault, diagnose, in_doubt, unknown};
use open::Committed;

/// Milliseconds that the server waits for the next statement of a process that holds the writers' lock.
const MOST_IDLE: u32 = 10_000;
/// How often a server that went away is tried again.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// A session with the server; it connects when it is first asked something.
pub(crate) struct Server {
    url: ServerUrl,
    options: OpenOptions,
    client: RefCell<Option<Arc<Client>>>,
    hurries: Cell<bool>,
    /// The connection is still in a transaction that only read.
    dangles: Cell<bool>,
    /// There was a connection before: if none can be made now, the server may be starting again, and is waited for.
    was_connected: Cell<bool>,
    /// It answered a question.
    has_answered: Cell<bool>,
    /// Since when the server is waited for; counts only with [`OpenOptions::patience`].
    begun: Instant,
    /// What the connections live in: they are gone before it.
    runtime: Arc<Runtime>,
}

impl Server {
    /// A session that is not connected yet, or with the connection that the one before it left. Errors: `io_error`.
    pub(crate) fn new(url: &ServerUrl, options: OpenOptions) -> Result<Self> {
        let (client, runtime) = match connection_pool::take(url) {
            Some(KeptConnection { client, runtime }) => (Some(client), runtime),
            None => (None, runtime()?),
        };
        Ok(Self {
            url: url.clone(),
            options,
            client: RefCell::new(client),
            hurries: Cell::new(false),
            dangles: Cell::new(false),
            was_connected: Cell::new(false),
            has_answered: Cell::new(false),
            begun: Instant::now(),
            runtime,
        })
    }

    pub(crate) fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Runs `read` over one consistent view.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&OpenTransaction<'_>) -> Result<T>) -> Result<T> {
        // A read is not tried again: its first statement finds that the connection is lost, and makes it anew.
        let open = OpenTransaction::to_read(self);
        let result = read(&open);
        open.end();
        result
    }

    /// Runs `write` in one transaction, again where others were in the way or the connection was lost, and commits it if it returns `Ok`.
    pub(crate) fn write<T>(&self, mut write: impl FnMut(&OpenTransaction<'_>) -> Result<T>) -> Result<T> {
        let started = Instant::now();
        // Set by a commit without an event whose answer was lost: it is not known whether it happened.
        let mut doubt = false;
        loop {
            let open = OpenTransaction::to_write(self);
            let error = match write(&open) {
                Ok(value) => match open.commit() {
                    Committed::Yes => return Ok(value),
                    Committed::No(error) => error,
                    Committed::Unknown(error) => {
                        if self.has_committed(&open, &error, started)? {
                            return Ok(value);
                        }
                        doubt |= open.appended_head().is_none();
                        error
                    }
                },
                Err(error) => error,
            };
            // Ended before the pause: other writers need the head's lock.
            open.end();
            let is_worth_it = matches!(open.fault(), Some(ServerFault::Conflict | ServerFault::Lost))
                && self.left().is_none_or(|left| !left.is_zero());
            if !is_worth_it || self.hurries.get() || started.elapsed() > self.options.busy_timeout {
                return Err(if doubt && error.code() == Code::Unreachable {
                    in_doubt(&self.url, &error)
                } else {
                    error
                });
            }
            pause();
        }
    }

    /// Whether a commit whose answer was lost has happened. The head's lock waits for what the server still does of it; its hash tells the
    /// event from one that another appended. What appends no event sets what it sets, and may be done again.
    fn has_committed(&self, open: &OpenTransaction<'_>, error: &Diagnosis, started: Instant) -> Result<bool> {
        let Some((seq, hash)) = open.appended_head() else { return Ok(false) };
        loop {
            let looking = OpenTransaction::to_write(self);
            let found = looking.first("SELECT hash FROM events WHERE seq = $1", &[&seq], |row| row.get::<[u8; 32]>(0));
            looking.end();
            match found {
                Ok(found) => return Ok(found == Some(hash)),
                Err(_)
                    if started.elapsed() <= self.options.busy_timeout + deadlines::PATIENCE
                        && self.left().is_none_or(|left| !left.is_zero()) =>
                {
                    pause();
                }
                Err(_) => return Err(unknown(&self.url, error, seq)),
            }
        }
    }

    /// Runs `work` without waiting for other writers.
    pub(crate) fn at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.hurries.replace(true);
        let result = work();
        self.hurries.set(before);
        result
    }

    /// The statements that begin a transaction. Their names lead to the ledger's schema for this transaction alone: a pooler gives the
    /// connection to others after it.
    fn opening(&self, writes: bool) -> String {
        let Self { url: ServerUrl { ledger, .. }, options, .. } = self;
        let version = "SELECT max(version) FROM refinery_schema_history";
        // The transaction that the last read left open ends in the same round trip as this one begins.
        let before = if self.dangles.get() { "ROLLBACK; " } else { "" };
        // At least 1: the server takes 0 for no timeout at all.
        let patience = if self.hurries.get() { 1 } else { options.busy_timeout.as_millis().max(1) };
        // A verification may take longer than the role's default timeout allows.
        let settings = format!(
            "SET LOCAL search_path TO \"{ledger}\"; SET LOCAL lock_timeout = {patience}; SET LOCAL statement_timeout = 0"
        );
        if !writes {
            return format!("{before}BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {settings}; {version}");
        }
        // The lock of the head orders the writers already, so a stricter level is not needed. Tests run with a stricter one, and
        // show that the writers would not depend on the lock.
        let level = if faults::is_on(FaultMode::Serializable) { "SERIALIZABLE" } else { "READ COMMITTED" };
        // A machine that is suspended inside a transaction must not block all others.
        format!(
            "{before}BEGIN ISOLATION LEVEL {level}; {settings}; \
             SET LOCAL idle_in_transaction_session_timeout = {MOST_IDLE}; {version}; \
             SELECT seq, encode(hash, 'hex') FROM event_head WHERE one = 1 FOR UPDATE"
        )
    }

    /// Asked in each transaction, because another host may have migrated the ledger since the one before.
    ///
    /// Errors: `newer_schema`, `migration_needed`, `no_ledger`.
    fn require_version(&self, version: Option<i32>) -> Result<()> {
        match version {
            Some(LATEST) => Ok(()),
            Some(version) if version > LATEST => Err(migrate::newer(&self.url.to_string(), version)),
            Some(version) => Err(Diagnosis::new(
                Code::MigrationNeeded,
                format!("The ledger {} has schema {version}; this program needs {LATEST}.", self.url),
            )
            .hint("bring it up to date once every ic that uses it is of this version: ic migrate")
            .detail("schema_version", version)
            .detail("supported", LATEST)),
            None => Err(schema::no_ledger(&self.url)),
        }
    }

    /// What it means that a table is not there. `begins`: it was the first question of a transaction.
    ///
    /// Where even the tables are missing that every ledger has, there is none, or the role may not look into its schema. Where only
    /// others are, they were removed from outside.
    fn told_apart(&self, error: Diagnosis, begins: bool) -> Diagnosis {
        if error.code() != Code::NoLedger {
            return error;
        }
        let lacks_all = ["refinery_schema_history", "event_head"].iter().any(|table| error.message().contains(table));
        if !(begins && lacks_all) {
            let no_ledger = format!("There is no ledger {}: ", self.url);
            let why = error.message().strip_prefix(&no_ledger).unwrap_or(error.message());
            return Diagnosis::new(Code::Corrupt, format!("The ledger {} was changed from outside: {why}", self.url))
                .hint("see what else is wrong: ic health; restore it from a backup")
                .detail("db", self.url.to_string());
        }
        let Some(client) = self.client.borrow().clone() else { return error };
        // The statement that failed has aborted its transaction, and the server answers nothing before that is ended.
        let sql = format!(
            "ROLLBACK; SELECT 1 FROM pg_namespace WHERE nspname = '{}' AND NOT has_schema_privilege(oid, 'USAGE')",
            self.url.ledger
        );
        // Where this question fails too, the first error is what is known.
        let found = self.wait(client.simple_query(&sql)).unwrap_or_default();
        let is_closed = found.iter().any(|message| matches!(message, tokio_postgres::SimpleQueryMessage::Row(_)));
        if is_closed { schema::closed_to(&self.url) } else { error }
    }

    /// The connection, made anew if it is lost.
    fn client(&self) -> Result<Arc<Client>> {
        if let Some(client) = self.client.borrow().as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let started = Instant::now();
        // `busy` passes when another client leaves. A server is waited for only if this session was connected before: otherwise
        // its address may be wrong.
        let client = loop {
            match connect::connect(self) {
                Ok(client) => break Arc::new(client),
                Err(error)
                    if (error.code() == Code::Busy
                        || error.code() == Code::Unreachable && self.was_connected.get())
                        && !self.hurries.get()
                        && self.left().is_none_or(|left| left > BETWEEN_TRIES)
                        && started.elapsed() < self.options.busy_timeout =>
                {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err(error) => return Err(error),
            }
        };
        self.was_connected.set(true);
        self.dangles.set(false);
        // The new connection may be to another host, or to one that is stuck by now.
        self.has_answered.set(false);
        *self.client.borrow_mut() = Some(client.clone());
        Ok(client)
    }

    fn forget(&self) {
        *self.client.borrow_mut() = None;
    }

    /// Rewrites the tables, so that nothing of what was overwritten is left in them. The server's log and its backups are its own matter.
    ///
    /// Errors: `permission_denied` for a role that does not own them; what was committed stays committed.
    pub(crate) fn wipe(&self) -> Result<()> {
        let doing = "the event is redacted, but its text may still be in the free space of the server's tables";
        let name = &self.url.ledger;
        let owned = self.read(|open| {
            let sql = "SELECT tablename::text, pg_has_role(tableowner, 'USAGE') FROM pg_tables WHERE schemaname = $1 ORDER BY 1";
            let row = |row: &LedgerRow<'_>| Ok((row.get::<String>(0)?, row.get::<bool>(1)?));
            open.rows(sql, &[name])?.iter().map(|found| row(&LedgerRow(RowSource::Server(found)))).collect::<Result<Vec<_>>>()
        })?;
        let by_hand = "once no reader is in the way, have the owner of its tables run in the database: VACUUM FULL";
        // Before the first table is rewritten: that takes long, and keeps others from the table.
        if owned.iter().any(|(_, is_ours)| !is_ours) {
            return Err(
                Diagnosis::new(Code::PermissionDenied, format!("{doing}: the role does not own them.")).hint(by_hand)
            );
        }
        // VACUUM refuses to run in a transaction, and an earlier read may have left one open.
        self.let_go();
        let client = self.client()?;
        let patience = self.options.busy_timeout.as_millis().max(1);
        for (table, _) in owned {
            let table = format!("\"{name}\".\"{table}\"");
            // VACUUM FULL waits for the table's readers, and blocks all later ones while it waits; it has no timeout in a transaction of
            // its
            // own. So the lock is taken and released once before, with a timeout.
            let alone = format!("BEGIN; SET LOCAL lock_timeout = {patience}; LOCK TABLE {table}; ROLLBACK");
            for sql in [alone, format!("VACUUM FULL {table}")] {
                faults::statement(&sql);
                if let Err(error) = self.wait(client.simple_query(&sql)) {
                    // Closing the connection ends what it had begun.
                    self.forget();
                    return Err(match error {
                        Some(error) => diagnose(error, &self.url, doing).hint(by_hand),
                        None => self.no_answer(doing),
                    });
                }
            }
        }
        Ok(())
    }

    /// A number that changes whenever another process has appended an event. No transaction stays open between two calls.
    pub(crate) fn head_version(&self) -> Result<i64> {
        // Made from the hash and not the number: a server that lost events gives their numbers again.
        let head = self.read(|open| open.first("SELECT hash FROM event_head", &[], |row| row.get::<[u8; 32]>(0)))?;
        self.let_go();
        let start = head.as_ref().and_then(|hash| hash.first_chunk::<8>());
        Ok(start.map_or(0, |start| i64::from_be_bytes(*start)))
    }

    /// Rolls back a transaction that was left open on the connection, if there is one.
    fn let_go(&self) {
        if !self.dangles.replace(false) {
            return;
        }
        let client = self.client.borrow().clone();
        // The end of a lost connection has ended its transaction.
        if let Some(client) = client.filter(|client| !client.is_closed()) {
            faults::statement("ROLLBACK");
            // A connection that fails here is made anew when it is needed next.
            if self.wait(client.batch_execute("ROLLBACK")).is_err() {
                self.forget();
            }
        }
    }
}

/// Waits a moment before the next try, each process for another time, so that they do not meet again.
fn pause() {
    let chance = u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
    std::thread::sleep(Duration::from_millis(4 + chance));
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        connection_pool::leave(&self.url, KeptConnection { client, runtime: self.runtime.clone() }, self.dangles.get());
    }
}

/// What a connection lives in.
fn runtime() -> Result<Arc<Runtime>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.map(Arc::new).map_err(|e| Diagnosis::new(Code::Io, format!("preparing to connect: {e}.")))
}
