//! One connection to the ledger's file: how it is opened, how it waits, how it is configured.

use std::path::Path;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{diagnose, is_busy};

/// How a ledger is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// How long a call waits for other writers before it gives up with `busy`.
    pub busy_timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5) }
    }
}

/// Opens and configures a connection; waits out other processes' start and end.
pub(crate) fn connect(path: &Path, options: OpenOptions) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let doing = format!("opening the ledger {}", path.display());
    let mut connection = Connection::open_with_flags(path, flags).map_err(|e| diagnose(e, &doing))?;
    wait_politely(&mut connection, options.busy_timeout)?;
    configure(&connection)?;
    Ok(connection)
}

/// Waits for locks by polling every 0.2 to 3 ms.
pub(crate) fn wait_politely(connection: &mut Connection, timeout: Duration) -> Result<()> {
    let mut started = Instant::now();
    let mut state = u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    connection
        .busy_handler(Some(move |calls: i32| {
            if calls == 0 {
                started = Instant::now();
            }
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let pause = Duration::from_micros(200 + state % 2_800);
            if started.elapsed() + pause > timeout {
                return false;
            }
            std::thread::sleep(pause);
            true
        }))
        .map_err(|e| diagnose(e, "configuring the ledger"))
}

/// The settings that every connection has: strict, durable, distrustful of the schema.
pub(crate) fn configure(connection: &Connection) -> Result<()> {
    let set = |config, on| connection.set_db_config(config, on).map(|_| ());
    set(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)
        .and_then(|()| set(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false))
        .and_then(|()| set(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true))
        .and_then(|()| connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON;"))
        .map_err(|e| diagnose(e, "configuring the ledger"))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Switches the file to write-ahead logging. The busy handler does not cover this switch, so it is tried again here.
pub(crate) fn use_wal(connection: &Connection, timeout: Duration) -> Result<()> {
    let started = Instant::now();
    loop {
        let mode =
            connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).and_then(|mode| {
                if mode.as_str() == "wal" {
                    Ok(mode)
                } else {
                    crate::faults::statement("PRAGMA journal_mode=WAL");
                    connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))
                }
            });
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Diagnosis::new(
                    Code::UnsupportedFs,
                    format!("The ledger cannot use a write-ahead log here (it stays in {mode} mode)."),
                )
                .hint("keep the ledger on a local disk: ic init --store DIR"));
            }
            Err(e) if is_busy(&e) && started.elapsed() < timeout => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(diagnose(e, "switching the ledger to a write-ahead log")),
        }
    }
}
