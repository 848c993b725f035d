//! The table `prompts`.

use ic_base::{DispatchId, Result, Seq, SessionId, Timestamp};
use ic_dispatch::Dispatch;
use ic_store::{Row, Snapshot, Transaction};

use crate::call;
use crate::table::Session;

/// A prompt of a person in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The work that it began; its name is the prompt's title.
    pub dispatch_id: DispatchId,
    /// Its session.
    pub session_id: SessionId,
    /// The event that created the work.
    pub seq: Seq,
    /// The client's name of it, if it has one.
    pub prompt_id: Option<String>,
    /// The commit that was checked out then.
    pub head: Option<String>,
    /// When it was given.
    pub created_at: Timestamp,
    /// When the agent stopped.
    pub ended_at: Option<Timestamp>,
}

const COLUMNS: &str = "dispatch_id, session_id, seq, prompt_id, head, created_at, ended_at";

fn from_row(row: &Row<'_>) -> Result<Prompt> {
    Ok(Prompt {
        dispatch_id: DispatchId::from_ledger(row.get(0)?),
        session_id: SessionId::from_ledger(row.get(1)?),
        seq: row.get(2)?,
        prompt_id: row.get(3)?,
        head: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        ended_at: row.get::<Option<i64>>(6)?.map(Timestamp),
    })
}

/// Records that a dispatch is what a prompt began.
pub fn begin(
    tx: &Transaction<'_>,
    now: Timestamp,
    session: &Session,
    dispatch: &Dispatch,
    prompt_id: Option<&str>,
    head: Option<&str>,
) -> Result<()> {
    tx.execute_one(
        "INSERT INTO prompts (dispatch_id, session_id, seq, prompt_id, head, created_at, owns_run, tells_calls) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 1)",
        &[
            &dispatch.id.as_str(),
            &session.id.as_str(),
            &dispatch.seq,
            &prompt_id,
            &head,
            &now.millis(),
            &i64::from(session.owns_run),
        ],
    )
}

/// Records that the agent stopped. Calls whose end nobody told are over, too.
pub fn end(tx: &Transaction<'_>, now: Timestamp, prompt: &Prompt) -> Result<()> {
    call::end_all(tx, &prompt.dispatch_id)?;
    tx.execute_one(
        "UPDATE prompts SET ended_at = $1 WHERE dispatch_id = $2",
        &[&now.millis(), &prompt.dispatch_id.as_str()],
    )
}

/// The newest prompt of a session.
pub fn latest(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Option<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq DESC LIMIT 1");
    snapshot.query_opt(&sql, &[&session.as_str()], from_row)
}

/// The prompt of a session that its client calls so.
pub fn by_prompt_id(snapshot: &Snapshot<'_>, session: &SessionId, prompt_id: &str) -> Result<Option<Prompt>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM prompts WHERE session_id = $1 AND prompt_id = $2 ORDER BY seq DESC LIMIT 1"
    );
    snapshot.query_opt(&sql, &[&session.as_str(), &prompt_id], from_row)
}

/// The newest prompts of a session, newest first.
pub fn newest(snapshot: &Snapshot<'_>, session: &SessionId, limit: i64) -> Result<Vec<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq DESC LIMIT $2");
    snapshot.query_all(&sql, &[&session.as_str(), &limit], from_row)
}

/// The prompts of a session, oldest first.
pub fn of_session(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Vec<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq");
    snapshot.query_all(&sql, &[&session.as_str()], from_row)
}
