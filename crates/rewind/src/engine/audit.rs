//! The rows in the application's own database that tell it about rewinds.

use ic_base::{Code, Diagnosis, Result, Timestamp};
use serde::Serialize;

use crate::order::Unit;
use crate::plan::AuditPlan;
use crate::session::{DatabaseSession, quote};
use crate::value::SqlScalar;

/// The values of an audit row beside its payload.
pub(super) struct AuditEntry<'a> {
    pub(super) event: &'a str,
    pub(super) rewind_id: &'a str,
    pub(super) task_id: Option<&'a str>,
    /// The order of the task, whose form the row's own time gets.
    pub(super) order: &'a SqlScalar,
    pub(super) now: Timestamp,
    /// A rowid that was free before anything was deleted.
    pub(super) rowid: Option<i64>,
}

/// A rowid that no row of the audit's table has; `None` if any may be taken, because the table is empty or has none.
pub(super) fn free_rowid(session: &DatabaseSession, audit: &AuditPlan) -> Result<Option<i64>> {
    // One above the largest is free. If the largest is the greatest possible number, one below the smallest is free.
    let Some(rowid) = audit.table.rowid_sql() else { return Ok(None) };
    let table = quote(&audit.table.name);
    // `min` or `max` alone is found at an end of the table; together in one query they would read every row.
    let sql = format!("SELECT (SELECT min({rowid}) FROM main.{table}), (SELECT max({rowid}) FROM main.{table})");
    let (low, high) =
        session.query_one(&sql, &[], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?)))?;
    Ok(high.and_then(|high| high.checked_add(1)).or_else(|| low.and_then(|low| low.checked_sub(1))))
}

/// Writes an audit row.
///
/// Its rowid is none of those of the deleted rows, so `undo` finds those free. Errors: `row_conflict` when the table demands more than the
/// configuration fills.
pub(super) fn write(
    session: &DatabaseSession,
    audit: &AuditPlan,
    entry: &AuditEntry<'_>,
    payload: &impl Serialize,
) -> Result<()> {
    let payload = serde_json::to_string(payload)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("writing the audit: {e}.")).caused_by(e))?;
    let mut columns = vec![quote(&audit.event), quote(&audit.payload)];
    let mut values = vec![entry.event.into(), SqlScalar::Text(payload)];
    let mut add = |column: String, value: SqlScalar| {
        columns.push(column);
        values.push(value);
    };
    if let (Some(column), Some(rowid)) = (audit.table.rowid_sql(), entry.rowid) {
        add(column, SqlScalar::Integer(rowid));
    }
    if let Some(column) = &audit.order {
        add(quote(column), time_like(entry.order, entry.now));
    }
    if let (Some(column), Some(task_id)) = (&audit.task, entry.task_id) {
        add(quote(column), task_id.into());
    }
    if let Some(column) = &audit.id {
        // A rewind writes at most one row of each event, so this names one row.
        add(quote(column), SqlScalar::Text(format!("{}-{}", entry.rewind_id, entry.event.to_ascii_lowercase())));
    }
    let places: Vec<String> = (1..=values.len()).map(|n| format!("?{n}")).collect();
    // `OR ABORT` overrides a conflict clause of the schema, by which the row might replace another one.
    let sql = format!(
        "INSERT OR ABORT INTO main.{} ({}) VALUES ({})",
        quote(&audit.table.name),
        columns.join(", "),
        places.join(", ")
    );
    session.execute(&sql, &values).map(|_| ())
}

/// `now` in the form of `order`. Where that is no time (a counter, an id), `order` itself: the row is then beside the task of the rewind.
fn time_like(order: &SqlScalar, now: Timestamp) -> SqlScalar {
    let as_number = |unit: Unit| match unit {
        // Seconds are coarser than the clock: `per_second() / 1000` would be 0.
        Unit::Seconds => now.millis() / 1000,
        finer => now.millis().saturating_mul(finer.per_second() / 1000),
    };
    #[allow(clippy::cast_precision_loss, reason = "a time in milliseconds fits into 53 bits")]
    let as_seconds = || now.millis() as f64 / 1000.0;
    match (order, Unit::of(order)) {
        // A rewind of everything has no order that could give the time its form.
        (SqlScalar::Null, _) => SqlScalar::Integer(now.millis()),
        (SqlScalar::Real(_), Some(Unit::Seconds)) => SqlScalar::Real(as_seconds()),
        (SqlScalar::Real(_), Some(unit)) =>
        {
            #[allow(clippy::cast_precision_loss, reason = "finer than a microsecond is lost, as in the column itself")]
            SqlScalar::Real(as_number(unit) as f64)
        }
        (SqlScalar::Integer(_), Some(unit)) => SqlScalar::Integer(as_number(unit)),
        (SqlScalar::Text(text), _) => iso_like(text, now).map_or_else(|| order.clone(), SqlScalar::Text),
        _ => order.clone(),
    }
}

/// `now` as an ISO 8601 time with the separators and digits of `like`; `None` if `like` is no such time, or not in UTC.
fn iso_like(like: &str, now: Timestamp) -> Option<String> {
    let utc = now.to_string();
    // Every digit becomes 0, so that one text stands for all times of a form.
    let shape: String = like.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let begins = shape.strip_prefix("0000-00-00")?;
    let (separator, after) = (begins.chars().next()?, begins.get(1..)?);
    let after = after.strip_prefix("00:00:00").filter(|_| matches!(separator, 'T' | ' '))?;
    let digits = after.strip_prefix('.').map_or(0, |rest| rest.len() - rest.trim_start_matches('0').len());
    // 19 characters are `2026-02-20T16:55:15`; then come the fraction, with its point, and the zone.
    let zone = like.get(19 + if digits > 0 { digits + 1 } else { 0 }..)?;
    if !matches!(zone, "" | "Z" | "+00:00" | "+0000" | "+00") {
        return None;
    }
    // The clock tells milliseconds: what the form has beyond them is filled with zeros.
    let fraction = if digits > 0 { format!(".{:0<digits$}", utc.get(20..20 + digits.min(3))?) } else { String::new() };
    Some(format!("{}{separator}{}{fraction}{zone}", utc.get(..10)?, utc.get(11..19)?))
}

#[cfg(test)]
mod tests {
    use ic_base::Timestamp;

    use super::time_like;
    use crate::value::SqlScalar;

    #[test]
    fn the_time_has_the_form_of_the_task() {
        let now = Timestamp(1_771_606_515_007);
        let text = |like: &str| time_like(&SqlScalar::Text(like.into()), now).to_string();
        assert_eq!(text("2025-01-01T00:00:00.000Z"), "2026-02-20T16:55:15.007Z");
        assert_eq!(text("2025-01-01 00:00:00"), "2026-02-20 16:55:15");
        assert_eq!(text("2025-01-01T00:00:00.123456+00:00"), "2026-02-20T16:55:15.007000+00:00");
        assert_eq!(text("2025-01-01T00:00:00.1Z"), "2026-02-20T16:55:15.0Z");
        for like in ["2025-01-01T00:00:00+01:00", "step-007", "2025-01-01", "2025-01-01x00:00:00"] {
            assert_eq!(text(like), like);
        }
        let number = |like| time_like(&like, now);
        assert_eq!(number(SqlScalar::Integer(1_700_000_000)), SqlScalar::Integer(1_771_606_515));
        assert_eq!(number(SqlScalar::Integer(1_700_000_000_000)), SqlScalar::Integer(1_771_606_515_007));
        assert_eq!(number(SqlScalar::Integer(1_700_000_000_000_000)), SqlScalar::Integer(1_771_606_515_007_000));
        assert_eq!(number(SqlScalar::Real(1_700_000_000.5)), SqlScalar::Real(1_771_606_515.007));
        assert_eq!(number(SqlScalar::Real(1_700_000_000_000.5)), SqlScalar::Real(1_771_606_515_007.0));
        assert_eq!(number(SqlScalar::Integer(17)), SqlScalar::Integer(17));
        assert_eq!(number(SqlScalar::Null), SqlScalar::Integer(1_771_606_515_007));
    }
}
