//! Is a ledger on a server sound, and can it go on being so?

use ic_base::{Result, Timestamp};

use super::HealthCheck;
use crate::ledger::Ledger;
use crate::server::schema_objects;
use crate::server_url::ServerUrl;
use crate::transaction::Snapshot;

/// The oldest server that is held by tests.
const OLDEST: i64 = 150_000;
/// A clock that is further off than this, in milliseconds, is named.
const MOST_SKEW: i64 = 1000;

/// Looks at everything; problems are in the checks, errors only mean that looking failed.
pub(super) fn examine(ledger: &Ledger, url: &ServerUrl, now: Timestamp) -> Result<Vec<HealthCheck>> {
    ledger.read(|snapshot| {
        Ok(vec![
            schema(),
            version(snapshot)?,
            encoding(snapshot)?,
            durability(snapshot)?,
            standby(snapshot)?,
            tables(snapshot, url)?,
            triggers(snapshot, url)?,
            rights(snapshot, url)?,
            clock(snapshot, now)?,
        ])
    })
}

fn check(name: &'static str, ok: bool, detail: impl Into<String>) -> HealthCheck {
    HealthCheck { name, ok, detail: detail.into() }
}

/// Every transaction compares the version before anything else.
fn schema() -> HealthCheck {
    check("schema", true, format!("version {}", crate::migrate::LATEST))
}

fn setting(snapshot: &Snapshot<'_>, name: &str) -> Result<String> {
    let value = snapshot.query_opt("SELECT current_setting($1)", &[&name], |row| row.get(0))?;
    Ok(value.unwrap_or_default())
}

fn version(snapshot: &Snapshot<'_>) -> Result<HealthCheck> {
    let number: i64 = setting(snapshot, "server_version_num")?.parse().unwrap_or(0);
    let shown = setting(snapshot, "server_version")?;
    let detail =
        if number >= OLDEST { format!("PostgreSQL {shown}") } else { format!("PostgreSQL {shown}: older than 15") };
    Ok(check("server", number >= OLDEST, detail))
}

fn encoding(snapshot: &Snapshot<'_>) -> Result<HealthCheck> {
    let found = setting(snapshot, "server_encoding")?;
    let ok = found == "UTF8";
    let detail = if ok {
        found
    } else {
        format!("{found}: text is kept in UTF-8 alone; make the database anew with ENCODING 'UTF8'")
    };
    Ok(check("encoding", ok, detail))
}

/// Whether what was acknowledged survives a loss of power.
fn durability(snapshot: &Snapshot<'_>) -> Result<HealthCheck> {
    let mut wrong = Vec::new();
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        let value = setting(snapshot, name)?;
        if value == "off" {
            wrong.push(format!("{name} is off"));
        }
    }
    let detail = if wrong.is_empty() {
        "ok".to_owned()
    } else {
        format!("{}: a loss of power loses what was acknowledged", wrong.join(", "))
    };
    Ok(check("durability", wrong.is_empty(), detail))
}

fn standby(snapshot: &Snapshot<'_>) -> Result<HealthCheck> {
    let is_standby = snapshot.query_opt("SELECT pg_is_in_recovery()", &[], |row| row.get(0))?.unwrap_or(false);
    let is_closed = setting(snapshot, "default_transaction_read_only")? == "on";
    let detail = match (is_standby, is_closed) {
        (true, _) => "a standby: it can only be read",
        (_, true) => "default_transaction_read_only is on for this role or database: it can only be read",
        _ => "ok",
    };
    Ok(check("writable", detail == "ok", detail))
}

/// Whether every table and column is there that the migrations make.
fn tables(snapshot: &Snapshot<'_>, url: &ServerUrl) -> Result<HealthCheck> {
    let sql =
        "SELECT table_name::text || '.' || column_name::text FROM information_schema.columns WHERE table_schema = $1";
    let there: Vec<String> = snapshot.query_all(sql, &[&url.ledger], |row| row.get(0))?;
    Ok(missing("tables", schema_objects::columns(), &there))
}

/// What keeps rows from being deleted and events from being changed.
fn triggers(snapshot: &Snapshot<'_>, url: &ServerUrl) -> Result<HealthCheck> {
    // Those that fire when a client writes.
    let sql = "SELECT t.tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = $1 AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')";
    let there: Vec<String> = snapshot.query_all(sql, &[&url.ledger], |row| row.get(0))?;
    Ok(missing("triggers", schema_objects::triggers(), &there))
}

fn missing(name: &'static str, wanted: impl IntoIterator<Item = String>, there: &[String]) -> HealthCheck {
    let missing: Vec<String> = wanted.into_iter().filter(|one| !there.contains(one)).collect();
    let detail = if missing.is_empty() {
        "ok".to_owned()
    } else {
        format!("changed from outside: missing or switched off: {}", missing.join(", "))
    };
    check(name, missing.is_empty(), detail)
}

/// Whether the role can do what every day needs; that it could also delete is no fault, and said.
fn rights(snapshot: &Snapshot<'_>, url: &ServerUrl) -> Result<HealthCheck> {
    let lacks = |right: &str| {
        let sql = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 \
                   AND c.relkind = 'r' AND NOT has_table_privilege(c.oid, $2) ORDER BY 1";
        snapshot.query_all(sql, &[&url.ledger, &right], |row| row.get::<String>(0))
    };
    for right in ["SELECT", "INSERT", "UPDATE"] {
        let without: Vec<String> = lacks(right)?;
        // The history of the schema is written by migrations alone.
        // To read it is needed: every transaction asks it for the version.
        let needed: Vec<String> =
            without.into_iter().filter(|table| right == "SELECT" || table != "refinery_schema_history").collect();
        if !needed.is_empty() {
            return Ok(check("rights", false, format!("the role lacks {right} on {}", needed.join(", "))));
        }
    }
    let tables: i64 = snapshot
        .query_opt(
            "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 \
             AND c.relkind = 'r' AND (has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE'))",
            &[&url.ledger],
            |row| row.get(0),
        )?
        .unwrap_or(0);
    let detail = if tables == 0 {
        "ok: it can neither delete nor truncate".to_owned()
    } else {
        "ok, and more than every day needs: it can delete rows; see docs/FLEET.md".to_owned()
    };
    Ok(check("rights", true, detail))
}

fn clock(snapshot: &Snapshot<'_>, now: Timestamp) -> Result<HealthCheck> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let theirs: i64 = snapshot.query_opt(sql, &[], |row| row.get(0))?.unwrap_or(0);
    let skew = now.millis().saturating_sub(theirs);
    let ok = skew.abs() <= MOST_SKEW;
    let detail = if ok {
        "ok".to_owned()
    } else {
        format!("this machine's clock is {skew} ms off the server's: times of events lie")
    };
    Ok(check("clock", ok, detail))
}
