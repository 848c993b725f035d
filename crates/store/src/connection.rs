//! One connection to the ledger's file: how it is opened, how it waits, how it is configured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
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
pub(crate) fn connect(path: &Path, options: OpenOptions) -> Result<(Connection, InAHurry)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let doing = format!("opening the ledger {}", path.display());
    let mut connection = Connection::open_with_flags(path, flags).map_err(|e| diagnose(e, &doing))?;
    let in_a_hurry = wait_politely(&mut connection, options.busy_timeout)?;
    configure(&connection)?;
    Ok((connection, in_a_hurry))
}

/// Set while a connection is not to wait for any lock.
pub(crate) type InAHurry = Arc<AtomicBool>;

/// Waits for locks by polling every 0.2 to 3 ms, and the more often the longer it has waited: see [`pause`].
pub(crate) fn wait_politely(connection: &mut Connection, timeout: Duration) -> Result<InAHurry> {
    let in_a_hurry = InAHurry::default();
    let hurries = in_a_hurry.clone();
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
            let waited = started.elapsed();
            let pause = pause(waited, timeout, state);
            if waited + pause > timeout || hurries.load(Relaxed) {
                return false;
            }
            std::thread::sleep(pause);
            true
        }))
        .map_err(|e| diagnose(e, "configuring the ledger"))?;
    Ok(in_a_hurry)
}

/// How long to wait before the next look at a lock.
///
/// Whoever looks first after a release has the lock. Of a crowd that looks equally often somebody has no luck until the timeout; so
/// who has waited for a quarter of it looks the more often the longer it waits, up to 60 times.
fn pause(waited: Duration, timeout: Duration, random: u64) -> Duration {
    let usual = Duration::from_micros(200 + random % 2_800);
    let left = timeout.saturating_sub(waited).as_secs_f64() / timeout.as_secs_f64().max(f64::MIN_POSITIVE);
    let hurry = (left / 0.75).min(1.0);
    usual.mul_f64(hurry * hurry).max(Duration::from_micros(50))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_longer_looks_more_often() {
        let timeout = Duration::from_secs(5);
        let at = |seconds: f64| pause(Duration::from_secs_f64(seconds), timeout, 1_400);
        assert_eq!(at(0.0), Duration::from_micros(1_600));
        assert_eq!(at(1.25), at(0.0), "most wait for less");
        assert!(at(2.0) < at(1.3) && at(3.0) < at(2.0) && at(4.0) < at(3.0));
        assert!(at(4.0) < at(0.0) / 10, "{:?}", at(4.0));
        assert_eq!(at(5.0), Duration::from_micros(50));
        for random in [0, 2_799, u64::MAX] {
            let pause = pause(Duration::ZERO, Duration::ZERO, random);
            assert!(pause >= Duration::from_micros(50) && pause < Duration::from_millis(3), "{pause:?}");
        }
    }
}
