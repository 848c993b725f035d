//! Durable positions of consumers. A cursor has a name and a scope (one run, or all), and never expires.

use ic_base::{Code, Diagnosis, Label, Result, RunId, Seq, Timestamp};
use ic_store::{Row, Snapshot, Transaction};

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

/// Moves a cursor forward to `seq`; it never moves back here.
pub fn advance_to(
    tx: &Transaction<'_>,
    now: Timestamp,
    name: &Label,
    run_id: Option<&RunId>,
    seq: Seq,
) -> Result<()> {
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
    snapshot.query_all(
        "SELECT name, scope, seq, updated_at FROM event_cursors ORDER BY name, scope",
        &[],
        from_row,
    )
}

/// Puts every cursor of this name back before the first event and returns them. Errors: `cursor_not_found`.
pub fn reset(tx: &Transaction<'_>, now: Timestamp, name: &Label) -> Result<Vec<Cursor>> {
    tx.execute(
        "UPDATE event_cursors SET seq = 0, updated_at = $1 WHERE name = $2",
        &[&now.millis(), &name.as_str()],
    )?;
    let cursors = tx.query_all(
        "SELECT name, scope, seq, updated_at FROM event_cursors WHERE name = $1 ORDER BY scope",
        &[&name.as_str()],
        from_row,
    )?;
    if cursors.is_empty() {
        return Err(Diagnosis::new(
            Code::CursorNotFound,
            format!("There is no cursor named {:?}.", name.as_str()),
        )
        .hint("see: ic events cursor list"));
    }
    Ok(cursors)
}

fn from_row(row: &Row<'_>) -> Result<Cursor> {
    let scope: String = row.get(1)?;
    Ok(Cursor {
        name: row.get(0)?,
        run_id: (!scope.is_empty()).then(|| RunId::from_ledger(scope)),
        seq: row.get(2)?,
        updated_at: Timestamp(row.get(3)?),
    })
}

fn scope(run_id: Option<&RunId>) -> &str {
    run_id.map_or("", RunId::as_str)
}
