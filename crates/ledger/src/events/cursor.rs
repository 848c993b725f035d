//! Durable positions of consumers. A cursor has a name and a scope (one run, or all), and never expires.

use crate::{LedgerRow, Snapshot, Transaction};
use ic_base::{Code, Diagnosis, Label, Result, RunId, Seq, Timestamp};

/// How far a consumer has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The consumer's name for it.
    pub name: String,
    /// The run it follows; `None`: all runs.
    pub run_id: Option<RunId>,
    /// The last event that it covers.
    pub seq: Seq,
    /// When it last moved.
    pub updated_at: Timestamp,
}

/// The position of a cursor; 0, before the first event, if it was never moved.
pub fn position(snapshot: &Snapshot<'_>, name: &Label, run_id: Option<&RunId>) -> Result<Seq> {
    let found = snapshot.query_opt(
        "SELECT seq FROM event_cursors WHERE name = $1 AND scope = $2",
        &[&name.as_str(), &scope(run_id)],
        |row| row.get(0),
    )?;
    Ok(found.unwrap_or(0))
}

/// Makes a cursor that stands before the first event, unless it is there already.
pub fn create(tx: &Transaction<'_>, now: Timestamp, name: &Label, run_id: Option<&RunId>) -> Result<()> {
    tx.execute(
        "INSERT INTO event_cursors (name, scope, seq, updated_at) VALUES ($1, $2, 0, $3) \
         ON CONFLICT (name, scope) DO NOTHING",
        &[&name.as_str(), &scope(run_id), &now.millis()],
    )?;
    Ok(())
}

/// Whether there is such a cursor.
pub fn exists(snapshot: &Snapshot<'_>, name: &Label, run_id: Option<&RunId>) -> Result<bool> {
    let sql = "SELECT 1 FROM event_cursors WHERE name = $1 AND scope = $2";
    let found = snapshot.query_opt(sql, &[&name.as_str(), &scope(run_id)], |row| row.get::<i64>(0))?;
    Ok(found.is_some())
}

/// Moves a cursor to `seq` because its consumer says that it has handled everything up to there, and returns it.
///
/// Errors: `cursor_not_found`; `invalid_value` if `seq` lies beyond the last event, or before the cursor and not `back`.
pub fn commit(
    tx: &Transaction<'_>,
    now: Timestamp,
    name: &Label,
    run_id: Option<&RunId>,
    seq: Seq,
    back: bool,
) -> Result<Cursor> {
    if !exists(tx, name, run_id)? {
        return Err(not_found(name));
    }
    let (head, _) = crate::events::list::head(tx)?;
    let at = position(tx, name, run_id)?;
    if seq > head {
        // A cursor beyond the head would skip events that are yet to happen.
        return Err(out_of_range(seq, &format!("The last event is {head}."), "commit the last event that you handled"));
    }
    if seq < at && !back {
        return Err(out_of_range(
            seq,
            &format!("The cursor {:?} is at {at} already.", name.as_str()),
            "to handle events again: --back",
        ));
    }
    tx.execute_one(
        "UPDATE event_cursors SET seq = $1, updated_at = $2 WHERE name = $3 AND scope = $4",
        &[&seq, &now.millis(), &name.as_str(), &scope(run_id)],
    )?;
    Ok(Cursor { name: name.as_str().to_owned(), run_id: run_id.cloned(), seq, updated_at: now })
}

fn out_of_range(seq: Seq, why: &str, hint: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{why} The cursor cannot move to {seq}."))
        .hint(hint.to_owned())
        .detail("value", seq)
}

/// Moves a cursor forward to `seq`; it never moves back here.
pub fn advance_to(tx: &Transaction<'_>, now: Timestamp, name: &Label, run_id: Option<&RunId>, seq: Seq) -> Result<()> {
    // The condition is part of the statement: of two readers with one cursor, the slower must not move it
    // back.
    tx.execute(
        "INSERT INTO event_cursors (name, scope, seq, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (name, scope) DO UPDATE SET seq = excluded.seq, updated_at = excluded.updated_at \
         WHERE excluded.seq > event_cursors.seq",
        &[&name.as_str(), &scope(run_id), &seq, &now.millis()],
    )?;
    Ok(())
}

/// All cursors, by name.
pub fn list(snapshot: &Snapshot<'_>) -> Result<Vec<Cursor>> {
    snapshot.query_all("SELECT name, scope, seq, updated_at FROM event_cursors ORDER BY name, scope", &[], from_row)
}

/// Puts every cursor of this name back before the first event and returns them. Errors: `cursor_not_found`.
pub fn reset(tx: &Transaction<'_>, now: Timestamp, name: &Label) -> Result<Vec<Cursor>> {
    tx.execute("UPDATE event_cursors SET seq = 0, updated_at = $1 WHERE name = $2", &[&now.millis(), &name.as_str()])?;
    let cursors = tx.query_all(
        "SELECT name, scope, seq, updated_at FROM event_cursors WHERE name = $1 ORDER BY scope",
        &[&name.as_str()],
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
        seq: row.get(2)?,
        updated_at: Timestamp(row.get(3)?),
    })
}

fn scope(run_id: Option<&RunId>) -> &str {
    // An empty text and not NULL: the scope is part of the primary key, and NULLs in a key never conflict.
    run_id.map_or("", RunId::as_str)
}
