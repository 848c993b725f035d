//! The table `prompts`.

use std::path::Path;

use ic_base::{CheckpointId, DispatchId, Result, RunId, Seq, SessionId, Timestamp};
use ic_checkpoint::record::CheckpointRecord;
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::{LedgerRow, Snapshot, Transaction, path_bytes};

use crate::call;
use crate::table::AgentSession;

/// A prompt of a person in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The work that it began; its name is the prompt's title.
    pub dispatch_id: DispatchId,
    /// The session in which it was typed.
    pub session_id: SessionId,
    /// The event that created the work.
    pub seq: Seq,
    /// The client's name of it, if it has one.
    pub prompt_id: Option<String>,
    /// The commit that was checked out at that time.
    pub head: Option<String>,
    /// When it was given.
    pub created_at: Timestamp,
    /// When the agent stopped.
    pub ended_at: Option<Timestamp>,
    /// How often the gate of its run blocked the stop.
    pub held_count: i64,
    /// When it did so last, and what the gate asked for at that time.
    pub held: Option<(Timestamp, String)>,
    /// The size of the client's own record of the session when it was given, in bytes.
    pub transcript_start: Option<u64>,
}

/// What a new prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewPrompt<'a> {
    /// The client's name of it, if it has one.
    pub prompt_id: Option<&'a str>,
    /// The commit that is checked out.
    pub head: Option<&'a str>,
    /// The size of the client's own record of the session, in bytes.
    pub transcript_start: Option<u64>,
}

const COLUMNS: &str = "dispatch_id, session_id, seq, prompt_id, head, created_at, ended_at, held_count, held_at, held_for, \
    transcript_start";

fn from_row(row: &LedgerRow<'_>) -> Result<Prompt> {
    Ok(Prompt {
        dispatch_id: DispatchId::from_ledger(row.get(0)?),
        session_id: SessionId::from_ledger(row.get(1)?),
        seq: row.get(2)?,
        prompt_id: row.get(3)?,
        head: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        ended_at: row.get::<Option<i64>>(6)?.map(Timestamp),
        held_count: row.get(7)?,
        held: row.get::<Option<i64>>(8)?.map(Timestamp).zip(row.get(9)?),
        transcript_start: row.get::<Option<i64>>(10)?.and_then(|size| u64::try_from(size).ok()),
    })
}

/// Records that a prompt began a dispatch.
pub fn begin(
    tx: &Transaction<'_>,
    now: Timestamp,
    session: &AgentSession,
    dispatch: &Dispatch,
    new: NewPrompt<'_>,
) -> Result<()> {
    let transcript_start = new.transcript_start.and_then(|size| i64::try_from(size).ok());
    // `tells_calls` is 1: every client, and this program for its own commands, reports the calls of its prompts.
    tx.execute_one(
        "INSERT INTO prompts (dispatch_id, session_id, seq, prompt_id, head, created_at, owns_run, tells_calls, transcript_start) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8)",
        &[
            &dispatch.id.as_str(),
            &session.id.as_str(),
            &dispatch.seq,
            &new.prompt_id,
            &new.head,
            &now.millis(),
            &i64::from(session.owns_run),
            &transcript_start,
        ],
    )
}

/// Records that the agent stopped. Calls whose end was not reported have ended too.
pub fn end(tx: &Transaction<'_>, now: Timestamp, prompt: &Prompt) -> Result<()> {
    call::end_all(tx, &prompt.dispatch_id)?;
    tx.execute_one(
        "UPDATE prompts SET ended_at = $1 WHERE dispatch_id = $2",
        &[&now.millis(), &prompt.dispatch_id.as_str()],
    )
}

/// Records that the gate of the run blocked the agent's stop, and what it asked for.
pub fn hold(tx: &Transaction<'_>, now: Timestamp, prompt: &Prompt, asked: &str) -> Result<()> {
    tx.execute_one(
        "UPDATE prompts SET held_count = held_count + 1, held_at = $1, held_for = $2 WHERE dispatch_id = $3",
        &[&now.millis(), &asked, &prompt.dispatch_id.as_str()],
    )
}

/// The first prompt of a session.
pub fn first_of_session(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Option<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq LIMIT 1");
    snapshot.query_opt(&sql, &[&session.as_str()], from_row)
}

/// The newest prompt of a session.
pub fn latest(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Option<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq DESC LIMIT 1");
    snapshot.query_opt(&sql, &[&session.as_str()], from_row)
}

/// The prompt that began exactly this dispatch, if one did.
pub fn of_dispatch(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<Option<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE dispatch_id = $1");
    snapshot.query_opt(&sql, &[&dispatch.as_str()], from_row)
}

/// The prompt that a checkpoint was taken for: before its work, in it, at its end, or for what it began.
pub fn of_checkpoint(snapshot: &Snapshot<'_>, checkpoint: &CheckpointRecord) -> Result<Option<Prompt>> {
    let Some(dispatch) = &checkpoint.link.dispatch_id else { return before_work(snapshot, checkpoint) };
    let mut next = dispatch::find(snapshot, dispatch)?;
    // A checkpoint of a subagent is linked to the subagent's own work, and that has the prompt as a parent.
    while let Some(work) = next {
        if let Some(prompt) = of_dispatch(snapshot, &work.id)? {
            return Ok(Some(prompt));
        }
        let parent = work.work.parent_id;
        next = parent.map_or(Ok(None), |parent| dispatch::find(snapshot, &parent))?;
    }
    Ok(None)
}

/// The prompt before whose work a checkpoint was taken: its point was recorded right before it.
fn before_work(snapshot: &Snapshot<'_>, checkpoint: &CheckpointRecord) -> Result<Option<Prompt>> {
    // It was taken when the work had not begun, so it is linked to the run alone. The prompt's point names it and the work.
    let Some(run) = &checkpoint.link.run_id else { return Ok(None) };
    let name = snapshot.query_opt(
        "SELECT name FROM points WHERE run_id = $1 AND seq < $2 AND kind = 'prompt' AND checkpoint_id = $3 \
         ORDER BY seq DESC LIMIT 1",
        &[&run.as_str(), &checkpoint.seq, &checkpoint.id.as_str()],
        |row| row.get(0).map(DispatchId::from_ledger),
    )?;
    name.map_or(Ok(None), |name| of_dispatch(snapshot, &name))
}

/// Whether there ever was a prompt.
pub fn are_any(snapshot: &Snapshot<'_>) -> Result<bool> {
    // `seq > 0` holds for every row: with it SQLite searches an index, and without it scans one.
    Ok(snapshot.query_opt("SELECT 1 FROM prompts WHERE seq > 0 LIMIT 1", &[], |row| row.get::<i64>(0))?.is_some())
}

/// The prompts in runs made for sessions in a project, whether they still run or not, newest first; without those that were rolled back.
pub fn standing(snapshot: &Snapshot<'_>, project: &Path, limit: i64) -> Result<Vec<Prompt>> {
    // Tables that are joined have columns of the same name.
    let columns = COLUMNS.split(", ").map(|column| format!("p.{column}")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        // SQLite keeps the order of a CROSS JOIN.
        // Joined in this order: the newest prompts are few, and a project has many.
        "SELECT {columns} FROM prompts p CROSS JOIN sessions s CROSS JOIN dispatches d \
         WHERE s.id = p.session_id AND d.id = p.dispatch_id AND s.project_dir = $1 AND p.seq > 0 AND p.owns_run = 1 AND d.rolled_back_by IS NULL ORDER BY p.seq DESC LIMIT $2"
    );
    snapshot.query_all(&sql, &[&path_bytes(project), &limit], from_row)
}

/// The runs that were made for a session.
pub fn own_runs_of(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Vec<RunId>> {
    snapshot.query_all(
        // The prompts decide: a session that is resumed names only its newest run.
        "SELECT DISTINCT d.run_id FROM prompts p JOIN dispatches d ON d.id = p.dispatch_id \
         WHERE p.session_id = $1 AND p.owns_run = 1",
        &[&session.as_str()],
        |row| row.get(0).map(RunId::from_ledger),
    )
}

/// The prompt of a session that has this name in its client.
pub fn by_prompt_id(snapshot: &Snapshot<'_>, session: &SessionId, prompt_id: &str) -> Result<Option<Prompt>> {
    let sql =
        format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 AND prompt_id = $2 ORDER BY seq DESC LIMIT 1");
    snapshot.query_opt(&sql, &[&session.as_str(), &prompt_id], from_row)
}

/// The newest prompts of a session, newest first.
pub fn newest(snapshot: &Snapshot<'_>, session: &SessionId, limit: i64) -> Result<Vec<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq DESC LIMIT $2");
    snapshot.query_all(&sql, &[&session.as_str(), &limit], from_row)
}

/// The checkpoints before the newest prompts of each session that has not ended: a person may undo each of those prompts.
pub fn needed_checkpoints(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointId>> {
    /// No conversation is undone further back while it runs.
    const NEWEST: i64 = 100;
    // A session whose end was never reported counts as living: `NEWEST` bounds what it keeps.
    let living =
        snapshot.query_all("SELECT id FROM sessions WHERE ended_at IS NULL", &[], |row| row.get::<String>(0))?;
    let mut needed = Vec::new();
    for session in living {
        needed.extend(snapshot.query_all(
            "SELECT p.checkpoint_id FROM prompts q JOIN points p ON p.kind = 'prompt' AND p.name = q.dispatch_id \
             WHERE q.session_id = $1 AND p.checkpoint_id IS NOT NULL ORDER BY q.seq DESC LIMIT $2",
            &[&session.as_str(), &NEWEST],
            |row| row.get(0).map(CheckpointId::from_ledger),
        )?);
    }
    Ok(needed)
}

/// The prompts of a session, oldest first.
pub fn of_session(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Vec<Prompt>> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = $1 ORDER BY seq");
    snapshot.query_all(&sql, &[&session.as_str()], from_row)
}
