//! Durable positions of consumers. A cursor has a name and a scope (one run, or all), and never expires. In a ledger that clones share,
//! each clone has cursors of its own.

use crate::{LedgerRow, Snapshot, Transaction};
use ic_base::{Code, Diagnosis, Label, Result, RunId, Seq, Timestamp};

/// How far a consumer has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The consumer's name for it.
    pub name: String,
    /// The run it follows; `None`: all runs.
    pub run_id: Option<RunId>,
    /// The clone whose cursor it is; empty in a ledger that one clone has for itself.
    pub seat: String,
    /// The last event that it covers.
    pub seq: Seq,
    /// When it last moved.
    pub updated_at: Timestamp,
}

/// Which cursor is meant.
#[derive(Debug, Clone, Copy)]
pub struct CursorKey<'a> {
    /// The consumer's name for it.
    pub name: &'a Label,
    /// The clone whose cursor it is; empty in a ledger that one clone has for itself.
    pub seat: &'a str,
    /// The run it follows; `None`: all runs.
    pub run_id: Option<&'a RunId>,
}

impl CursorKey<'_> {
    fn scope(&self) -> &str {
        // An empty text and not NULL: the scope is part of the primary key, and NULLs in a key never conflict.
        self.run_id.map_or("", RunId::as_str)
    }
}

/// The position of a cursor; 0, before the first event, if it was never moved.
pub fn position(snapshot: &Snapshot<'_>, key: CursorKey<'_>) -> Result<Seq> {
    let found = snapshot.query_opt(
        "SELECT seq FROM event_cursors WHERE name = $1 AND scope = $2 AND seat = $3",
        &[&key.name.as_str(), &key.scope(), &key.seat],
        |row| row.get(0),
    )?;
    Ok(found.unwrap_or(0))
}

/// Makes a cursor that stands before the first event, unless it is there already.
pub fn create(tx: &Transaction<'_>, now: Timestamp, key: CursorKey<'_>) -> Result<()> {
    tx.execute(
        "INSERT INTO event_cursors (name, scope, seat, seq, updated_at) VALUES ($1, $2, $3, 0, $4) \
         ON CONFLICT (name, scope, seat) DO NOTHING",
        &[&key.name.as_str(), &key.scope(), &key.seat, &now.millis()],
    )?;
    Ok(())
}

/// Whether there is such a cursor.
pub fn exists(snapshot: &Snapshot<'_>, key: CursorKey<'_>) -> Result<bool> {
    let sql = "SELECT 1 FROM event_cursors WHERE name = $1 AND scope = $2 AND seat = $3";
    let found = snapshot.query_opt(sql, &[&key.name.as_str(), &key.scope(), &key.seat], |row| row.get::<i64>(0))?;
    Ok(found.is_some())
}

/// Moves a cursor to `seq` because its consumer says that it has handled everything up to there, and returns it.
///
/// Errors: `cursor_not_found`; `invalid_value` if `seq` lies beyond the last event, or before the cursor and not `back`.
pub fn commit(tx: &Transaction<'_>, now: Timestamp, key: CursorKey<'_>, seq: Seq, back: bool) -> Result<Cursor> {
    // Asked by itself: `position` says 0 for a cursor that is missing, as for a new one.
    if !exists(tx, key)? {
        return Err(not_found(key.name));
    }
    let (head, _) = crate::events::list::head(tx)?;
    let at = position(tx, key)?;
    if seq > head {
        // A cursor beyond the head would skip events that are yet to happen.
        return Err(out_of_range(seq, &format!("The last event is {head}."), "commit the last event that you handled"));
    }
    if seq < at && !back {
        return Err(out_of_range(
            seq,
            &format!("The cursor {:?} is at {at} already.", key.name.as_str()),
            "to handle events again: --back",
        ));
    }
    tx.execute_one(
        "UPDATE event_cursors SET seq = $1, updated_at = $2 WHERE name = $3 AND scope = $4 AND seat = $5",
        &[&seq, &now.millis(), &key.name.as_str(), &key.scope(), &key.seat],
    )?;
    Ok(Cursor {
        name: key.name.as_str().to_owned(),
        seat: key.seat.to_owned(),
        run_id: key.run_id.cloned(),
        seq,
        updated_at: now,
    })
}

fn out_of_range(seq: Seq, why: &str, hint: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{why} The cursor cannot move to {seq}."))
        .hint(hint.to_owned())
        .detail("value", seq)
}

/// Moves a cursor forward to `seq`; it never moves back here.
pub fn advance_to(tx: &Transaction<'_>, now: Timestamp, key: CursorKey<'_>, seq: Seq) -> Result<()> {
    // The condition is part of the statement: of two readers with one cursor, the slower must not move it
    // back.
    tx.execute(
        "INSERT INTO event_cursors (name, scope, seat, seq, updated_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (name, scope, seat) DO UPDATE SET seq = excluded.seq, updated_at = excluded.updated_at \
         WHERE excluded.seq > event_cursors.seq",
        &[&key.name.as_str(), &key.scope(), &key.seat, &seq, &now.millis()],
    )?;
    Ok(())
}

/// All cursors, by name.
pub fn list(snapshot: &Snapshot<'_>) -> Result<Vec<Cursor>> {
    snapshot.query_all(
        "SELECT name, scope, seat, seq, updated_at FROM event_cursors ORDER BY name, scope, seat",
        &[],
        from_row,
    )
}

/// Sets every cursor of this name and seat back before the first event and returns them. Errors: `cursor_not_found`.
pub fn reset(tx: &Transaction<'_>, now: Timestamp, name: &Label, seat: &str) -> Result<Vec<Cursor>> {
    tx.execute(
        "UPDATE event_cursors SET seq = 0, updated_at = $1 WHERE name = $2 AND seat = $3",
        &[&now.millis(), &name.as_str(), &seat],
    )?;
    let cursors = tx.query_all(
        "SELECT name, scope, seat, seq, updated_at FROM event_cursors WHERE name = $1 AND seat = $2 ORDER BY scope",
        &[&name.as_str(), &seat],
        from_row,
    )?;
    if cursors.is_empty() {
        return Err(not_found(name));
    }
    Ok(cursors)
}

fn not_found(name: &Label) -> Diagnosis {
    Diagnosis::new(Code::CursorNotFound, format!("There is no cursor named {:?}.", name.as_str()))
        .hint("see: ic events cursor list")
}

fn from_row(row: &LedgerRow<'_>) -> Result<Cursor> {
    let scope: String = row.get(1)?;
    Ok(Cursor {
        name: row.get(0)?,
        run_id: (!scope.is_empty()).then(|| RunId::from_ledger(scope)),
        seat: row.get(2)?,
        seq: row.get(3)?,
        updated_at: Timestamp(row.get(4)?),
    })
}
