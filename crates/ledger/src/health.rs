//! Is the ledger sound, and can it go on being so?

#[cfg(feature = "server")]
mod server;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ic_base::{Result, Timestamp};
use rusqlite::Connection;

use crate::connection::marked_read_only;
use crate::error::diagnose;
use crate::ledger::Ledger;
use crate::log::sibling;
use crate::log_upkeep::WHEN_BEHIND;
use crate::{filesystem, log, migrate, note, sqlite_version};

/// Less free space than this is not healthy: a migration copies the ledger.
const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// A stable name: `quick_check`, `foreign_keys`, `schema`, ...
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found, for people: `ok`, a value, or the problem and what to do about it.
    pub detail: String,
}

/// Looks at everything, `now` by the clock of this machine; problems are in the checks, errors only mean that looking failed.
pub fn examine(ledger: &Ledger, now: Timestamp) -> Result<Vec<HealthCheck>> {
    #[cfg(feature = "server")]
    if let Some(url) = ledger.server() {
        return server::examine(ledger, url, now);
    }
    #[cfg(not(feature = "server"))]
    let _ = now;
    let connection = ledger.file("A check of the file")?.connection();
    Ok(vec![
        quick_check(connection, ledger.path()),
        foreign_keys(connection),
        schema(connection, ledger.path())?,
        journal(connection)?,
        head(ledger, ledger.path()),
        log_beside(ledger.path()),
        HealthCheck { name: "sqlite", ok: true, detail: sqlite_version().to_owned() },
        file_system(ledger.path()),
        permissions(ledger.path()),
        disk_space(ledger.path()),
    ])
}

fn quick_check(connection: &Connection, path: &Path) -> HealthCheck {
    let found = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
        .unwrap_or_else(|e| e.to_string());
    let found = match marked_read_only(connection, path) {
        Some(trouble) if found == "ok" => trouble.to_owned(),
        _ => found,
    };
    HealthCheck { name: "quick_check", ok: found == "ok", detail: found }
}

fn foreign_keys(connection: &Connection) -> HealthCheck {
    let broken = connection.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get::<_, i64>(0));
    HealthCheck {
        name: "foreign_keys",
        ok: matches!(broken, Ok(0)),
        detail: match broken {
            Ok(0) => "ok".to_owned(),
            Ok(1) => "1 row refers to a row that does not exist".to_owned(),
            Ok(n) => format!("{n} rows refer to rows that do not exist"),
            Err(e) => e.to_string(),
        },
    }
}

fn schema(connection: &Connection, path: &Path) -> Result<HealthCheck> {
    let version = migrate::version_of(connection, path)?;
    Ok(HealthCheck { name: "schema", ok: version == migrate::LATEST, detail: format!("version {version}") })
}

fn journal(connection: &Connection) -> Result<HealthCheck> {
    let mode: String = connection
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .map_err(|e| diagnose(e, "reading the journal mode"))?;
    Ok(HealthCheck { name: "journal", ok: mode == "wal", detail: mode })
}

/// Whether the store has held newer events than the ledger has.
fn head(ledger: &Ledger, path: &Path) -> HealthCheck {
    let trouble = ledger
        .behind_in_words()
        .map(|words| format!("{}; {WHEN_BEHIND}", words.trim_end_matches('.')))
        .or_else(|| note::trouble(path));
    HealthCheck { name: "head", ok: trouble.is_none(), detail: trouble.unwrap_or_else(|| "ok".to_owned()) }
}

/// What stands beside the file, and how to copy both. It is no fault however long it is.
fn log_beside(path: &Path) -> HealthCheck {
    let length = log::length(&log::real(path));
    let detail = match length {
        0 => "none beside the file".to_owned(),
        length if length > log::IN_USE + log::FURTHER => format!(
            "{} KiB beside the file: it grows while a program reads the ledger for long, and is short again when that has ended; copy both \
             with: ic backup FILE",
            length.div_ceil(1024)
        ),
        length => format!(
            "{} KiB beside the file, of its newest changes; copy both with: ic backup FILE",
            length.div_ceil(1024)
        ),
    };
    HealthCheck { name: "log", ok: true, detail }
}

fn file_system(path: &Path) -> HealthCheck {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let result = filesystem::check(directory);
    HealthCheck {
        name: "filesystem",
        ok: result.is_ok(),
        detail: result.map_or_else(|e| e.to_string(), |()| "ok".to_owned()),
    }
}

fn permissions(path: &Path) -> HealthCheck {
    let check = |ok, detail| HealthCheck { name: "permissions", ok, detail };
    let mut found = String::new();
    for suffix in ["", "-wal", "-shm"] {
        let mode = match std::fs::metadata(sibling(path, suffix)) {
            Ok(meta) => meta.permissions().mode() & 0o777,
            // A ledger without a log has neither of the two.
            Err(e) if !suffix.is_empty() && e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return check(false, e.to_string()),
        };
        match problem_of(mode) {
            Some(problem) if suffix.is_empty() => return check(false, format!("{mode:04o}: {problem}")),
            Some(problem) => return check(false, format!("{mode:04o} of {suffix}: {problem}")),
            None if suffix.is_empty() => found = format!("{mode:04o}"),
            None => {}
        }
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    match std::fs::metadata(directory) {
        Ok(meta) if meta.permissions().mode() & 0o002 != 0 => check(
            false,
            format!("{:04o} of its directory: others can replace the ledger", meta.permissions().mode() & 0o7777),
        ),
        _ => check(true, found),
    }
}

/// What is wrong with this mode of one of the ledger's files.
fn problem_of(mode: u32) -> Option<&'static str> {
    // Each of the lowest six bits is a right of the group or of others.
    if mode.trailing_zeros() < 6 {
        return Some("others can read the ledger; chmod 600 fixes it");
    }
    // Reading a ledger of mode 0400 leaves such a -wal behind, and that one then refuses every write.
    (mode & 0o600 != 0o600).then_some("the ledger cannot be written; chmod 600 fixes it")
}

fn disk_space(path: &Path) -> HealthCheck {
    let directory = path.parent().unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(directory) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            HealthCheck {
                name: "disk_space",
                ok: free >= MIN_FREE_BYTES,
                detail: format!("{} MiB free", free / (1024 * 1024)),
            }
        }
        Err(e) => HealthCheck { name: "disk_space", ok: false, detail: e.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::permissions;

    #[test]
    fn every_file_of_the_ledger_must_be_private_and_writable() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ic.db");
        let wal = dir.path().join("ic.db-wal");
        let write = |path, mode| {
            std::fs::write(path, "").unwrap();
            set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        write(&path, 0o600);
        assert_eq!((permissions(&path).ok, permissions(&path).detail.as_str()), (true, "0600"));
        write(&wal, 0o400);
        let check = permissions(&path);
        assert!(!check.ok && check.detail.starts_with("0400 of -wal: "), "{check:?}");
        set_permissions(&wal, Permissions::from_mode(0o600)).unwrap();
        for mode in [0o400, 0o640] {
            write(&path, 0o600);
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(!permissions(&path).ok, "{mode:o}");
            set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
    }
}
