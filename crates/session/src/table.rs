//! The table `sessions`.

use std::path::PathBuf;

use ic_base::{Code, Diagnosis, DispatchId, Result, RunId, Seq, SessionId, Timestamp, reversed_digits};
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{LedgerRow, Snapshot, Transaction, path_bytes};
use serde_json::json;

use crate::{call, prompt};

/// How sessions are referred to.
pub const REFERENT: Referent =
    Referent { table: "sessions", noun: "session", not_found: Code::SessionNotFound, listed_by: "ic session list" };

/// A session of a coding agent: one conversation with a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSession {
    /// Made by this program when the session began.
    pub id: SessionId,
    /// The event that began it.
    pub seq: Seq,
    /// The client's name, for instance `claude-code`.
    pub client: String,
    /// The client's own name of it.
    pub client_id: String,
    /// The run that its prompts belong to.
    pub run_id: RunId,
    /// Whether the run was made for it, and ends with it.
    pub owns_run: bool,
    /// The project that it works in, absolute.
    pub project_dir: PathBuf,
    /// The file of the client's own record of it.
    pub transcript: Option<PathBuf>,
    /// The last event about which its agent was told what it undid.
    pub told_seq: Seq,
    /// The newest event when a person last typed a command of ic to its agent.
    pub spoken_seq: Option<Seq>,
    /// The title of what a person typed while the agent was still working.
    pub queued: Option<String>,
    /// The client's name for a turn that no prompt began and that may continue: the report of a task's end, or a command of ic. Empty where
    /// the client has no name for it.
    pub unprompted: Option<String>,
    /// When its first hook was reported.
    pub created_at: Timestamp,
    /// When it ended, if the client reported that.
    pub ended_at: Option<Timestamp>,
}

/// What a new session is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewSession<'a> {
    /// Made by the caller, which names the session by it.
    pub id: &'a SessionId,
    /// The client's name, for instance `claude-code`.
    pub client: &'a str,
    /// The client's own name of it.
    pub client_id: &'a str,
    /// The run that its prompts belong to.
    pub run_id: &'a RunId,
    /// Whether the run was made for it.
    pub owns_run: bool,
    /// The project that it works in, absolute.
    pub project_dir: &'a std::path::Path,
    /// The client's own record of it.
    pub transcript: Option<&'a std::path::Path>,
}

const COLUMNS: &str = "id, seq, client, client_id, run_id, owns_run, project_dir, transcript, told_seq, created_at, ended_at, \
    spoken_seq, queued, unprompted";

fn from_row(row: &LedgerRow<'_>) -> Result<AgentSession> {
    Ok(AgentSession {
        id: SessionId::from_ledger(row.get(0)?),
        seq: row.get(1)?,
        client: row.get(2)?,
        client_id: row.get(3)?,
        run_id: RunId::from_ledger(row.get(4)?),
        owns_run: row.get(5)?,
        project_dir: row.path(6)?,
        transcript: row.optional_path(7)?,
        told_seq: row.get(8)?,
        created_at: Timestamp(row.get(9)?),
        ended_at: row.get::<Option<i64>>(10)?.map(Timestamp),
        spoken_seq: row.get(11)?,
        queued: row.get(12)?,
        unprompted: row.get(13)?,
    })
}

/// Records a session with its event.
pub fn begin(tx: &Transaction<'_>, now: Timestamp, new: &NewSession<'_>) -> Result<AgentSession> {
    let event = NewEvent {
        subject_id: Some(new.id.as_str()),
        to: Some(new.client),
        payload: Some(json!({ "client_id": new.client_id, "owns_run": new.owns_run })),
        ..NewEvent::of(new.run_id, 0, EventType::SessionBegun)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    // `told_seq` begins at its own event: what was undone before is no news to its agent.
    tx.execute_one(
        // `reversed_id`: people type the end of an id, and an index finds only the beginning of a text.
        "INSERT INTO sessions (id, reversed_id, seq, client, client_id, run_id, owns_run, project_dir, transcript, told_seq, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &new.client,
            &new.client_id,
            &new.run_id.as_str(),
            &i64::from(new.owns_run),
            &path_bytes(new.project_dir),
            &new.transcript.map(path_bytes),
            &seq,
            &now.millis(),
        ],
    )?;
    get(tx, new.id)
}

/// Lets the work of a session continue in another run: its former run is not open any longer, or a person attached the session.
pub fn work_in(tx: &Transaction<'_>, session: &AgentSession, run: &RunId, owns_run: bool) -> Result<AgentSession> {
    tx.execute_one(
        // It continues there, so an earlier end of it counts no more.
        "UPDATE sessions SET run_id = $1, owns_run = $2, ended_at = NULL WHERE id = $3",
        &[&run.as_str(), &i64::from(owns_run), &session.id.as_str()],
    )?;
    get(tx, &session.id)
}

/// Records that the client reported the end of the session, with the event.
pub fn end(tx: &Transaction<'_>, now: Timestamp, session: &AgentSession, why: Option<&str>) -> Result<()> {
    // A client with two installations of its hooks reports the end twice: one event is enough.
    if session.ended_at.is_some() {
        return Ok(());
    }
    let event = NewEvent {
        subject_id: Some(session.id.as_str()),
        reason: why,
        ..NewEvent::of(&session.run_id, 0, EventType::SessionEnded)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one("UPDATE sessions SET ended_at = $1 WHERE id = $2", &[&now.millis(), &session.id.as_str()])
}

/// Records the event up to which its agent was told what was undone.
pub fn told(tx: &Transaction<'_>, session: &AgentSession, seq: Seq) -> Result<()> {
    tx.execute_one("UPDATE sessions SET told_seq = $1 WHERE id = $2", &[&seq, &session.id.as_str()])
}

/// Records what a person typed while the agent was still working; `None`: its turn has come.
pub fn queue(tx: &Transaction<'_>, session: &AgentSession, queued: Option<&str>) -> Result<()> {
    let queued = queued.map(ic_base::title);
    tx.execute_one("UPDATE sessions SET queued = $1 WHERE id = $2", &[&queued, &session.id.as_str()])
}

/// Records that a turn begins that no prompt began, by the client's name for it; `None`: the turn has ended.
pub fn go_on(tx: &Transaction<'_>, session: &AgentSession, turn: Option<&str>) -> Result<()> {
    tx.execute_one("UPDATE sessions SET unprompted = $1 WHERE id = $2", &[&turn, &session.id.as_str()])
}

/// Records that a person typed a command of ic to its agent.
pub fn spoken(tx: &Transaction<'_>, session: &AgentSession) -> Result<()> {
    // A rollback up to this event does not refuse the calls that the command makes.
    let (seq, _) = ic_ledger::events::head(tx)?;
    tx.execute_one("UPDATE sessions SET spoken_seq = $1 WHERE id = $2", &[&seq, &session.id.as_str()])
}

/// The session with this id. Errors: `session_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &SessionId) -> Result<AgentSession> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = $1");
    snapshot.query_opt(&sql, &[&id.as_str()], from_row)?.ok_or_else(|| {
        Diagnosis::new(Code::SessionNotFound, format!("There is no session {id}.")).hint("see: ic session list")
    })
}

/// The session that has this name in its client.
pub fn by_client(snapshot: &Snapshot<'_>, client: &str, client_id: &str) -> Result<Option<AgentSession>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE client = $1 AND client_id = $2");
    snapshot.query_opt(&sql, &[&client, &client_id], from_row)
}

/// The sessions of a client whose names begin with this text, oldest first.
pub(crate) fn named_from(snapshot: &Snapshot<'_>, client: &str, text: &str) -> Result<Vec<AgentSession>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE client = $1 AND client_id >= $2 AND client_id < $3");
    // Both databases sort these texts by their bytes, and no character sorts after the last one.
    let mut named = snapshot.query_all(&sql, &[&client, &text, &format!("{text}\u{10FFFF}")], from_row)?;
    named.sort_by_key(|one| one.seq);
    Ok(named)
}

/// The session in which a dispatch is a prompt, or was begun by one.
pub fn of_work(snapshot: &Snapshot<'_>, dispatch: &Dispatch) -> Result<Option<AgentSession>> {
    let sql =
        format!("SELECT {COLUMNS} FROM sessions WHERE id = (SELECT session_id FROM prompts WHERE dispatch_id = $1)");
    let mut next = Some(dispatch.clone());
    // A subagent's work is in no row of `prompts`: the prompt is found among its parents.
    while let Some(work) = next {
        if let Some(found) = snapshot.query_opt(&sql, &[&work.id.as_str()], from_row)? {
            return Ok(Some(found));
        }
        next = work.work.parent_id.map(|parent| dispatch::get(snapshot, &parent)).transpose()?;
    }
    Ok(None)
}

/// The session in which all of these dispatches are prompts, or were begun by one; `None` where they are of several, or none is of one.
pub fn of_works(snapshot: &Snapshot<'_>, works: &[DispatchId]) -> Result<Option<AgentSession>> {
    let mut all = Vec::new();
    for id in works {
        let work = dispatch::find(snapshot, id)?;
        // Work that is not on record has no session, and then there is none for all.
        all.push(work.map_or(Ok(None), |work| of_work(snapshot, &work))?);
    }
    let first = all.pop().flatten();
    // A prompt and its subagent are of one session.
    let is_of_one = all.iter().all(|other| other.as_ref().map(|one| &one.id) == first.as_ref().map(|one| &one.id));
    Ok(first.filter(|_| is_of_one))
}

/// The session that a reference names: its id, the end of it, or its name in its client. Errors: `session_not_found`, `ambiguous_id`,
/// `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<AgentSession> {
    // There are three tries, the surest first: the whole name in the client, an id or its end, the beginning of the name.
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE client_id = $1 LIMIT 2");
    // Two clients may give a session the same name, and then only an id tells them apart.
    if let [one] = snapshot.query_all(&sql, &[&text], from_row)?.as_slice() {
        return Ok(one.clone());
    }
    let found = reference::resolve(snapshot, REFERENT, text);
    // Titles show only the beginning of the client's own name.
    if let Err(error) = &found
        && matches!(error.code(), Code::SessionNotFound | Code::InvalidReference)
        && text.len() >= SHORT
    {
        // Only the row of the place in which it began: its rows of other places begin with the same name.
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions WHERE client_id >= $1 AND client_id < $2 AND client_id NOT LIKE '% %' LIMIT 2"
        );
        // No text sorts after the last of all characters.
        let after = format!("{text}\u{10FFFF}");
        if let [one] = snapshot.query_all(&sql, &[&text, &after], from_row)?.as_slice() {
            return Ok(one.clone());
        }
    }
    get(snapshot, &SessionId::from_ledger(found?))
}

/// The number of characters of a client's name that tell a session from others where it is shown.
const SHORT: usize = 8;

/// The newest sessions of agents, oldest first; not those of commands, of which each has its own.
pub fn list(snapshot: &Snapshot<'_>, limit: i64) -> Result<Vec<AgentSession>> {
    // `seq > 0` holds for every row. With it SQLite plans a search by the index, and without it a scan.
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE seq > 0 AND client <> $1 ORDER BY seq DESC LIMIT $2");
    let mut all = snapshot.query_all(&sql, &[&call::OF_COMMANDS, &limit], from_row)?;
    all.reverse();
    Ok(all)
}

/// The newest sessions of a project, newest first.
pub fn of_project(snapshot: &Snapshot<'_>, project: &std::path::Path, limit: i64) -> Result<Vec<AgentSession>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE seq > 0 AND project_dir = $1 ORDER BY seq DESC LIMIT $2");
    snapshot.query_all(&sql, &[&path_bytes(project), &limit], from_row)
}

/// The session in a project whose agent calls a tool of `ic`. A session that is in a call of such a tool comes first, then `named`, then
/// the only one that works on a prompt. `named` is the session for which the server was started: a client may have resumed another one in
/// it, or begun a new one, so the calls are believed before it. `None`: it is not known.
pub fn that_calls(
    snapshot: &Snapshot<'_>,
    project: &std::path::Path,
    is_tool: impl Fn(&str) -> bool,
    named: Option<&AgentSession>,
) -> Result<Option<AgentSession>> {
    const MOST: i64 = 50;
    let is_named = |known: &AgentSession| named.is_some_and(|named| named.id == known.id);
    let (mut open, mut calling) = (Vec::new(), None);
    for known in of_project(snapshot, project, MOST)?.into_iter().filter(|known| known.ended_at.is_none()) {
        let Some(prompt) = prompt::latest(snapshot, &known.id)?.filter(|prompt| prompt.ended_at.is_none()) else {
            continue;
        };
        let calls = call::of_dispatch(snapshot, &prompt.dispatch_id)?;
        // The hook before a tool records its call, and only then does the client send the request that is answered here.
        let began = calls.iter().filter(|call| call.ended_seq.is_none() && is_tool(&call.tool));
        // Where several sessions call at once, the named one is the likelier of them.
        let began = began.map(|call| (is_named(&known), call.created_at)).max();
        if began.is_some() && calling.as_ref().is_none_or(|(at, _)| *at < began) {
            calling = Some((began, known.clone()));
        }
        open.push(known);
    }
    let named = || open.iter().find(|known| is_named(known)).cloned();
    Ok(match (calling, open.as_slice()) {
        (Some((_, known)), _) => Some(known),
        (None, [one]) => Some(one.clone()),
        (None, _) => named(),
    })
}

/// The session that a run was made for.
pub fn of_own_run(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Option<AgentSession>> {
    // A session that is resumed works in another run: its row has only the newest run.
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions WHERE id = (SELECT p.session_id FROM dispatches d \
         JOIN prompts p ON p.dispatch_id = d.id WHERE d.run_id = $1 AND p.owns_run = 1 LIMIT 1)"
    );
    snapshot.query_opt(&sql, &[&run.as_str()], from_row)
}

/// Whether a run was made for a session.
pub fn is_own_run(snapshot: &Snapshot<'_>, run: &RunId) -> Result<bool> {
    let sql = "SELECT 1 FROM dispatches d JOIN prompts p ON p.dispatch_id = d.id \
               WHERE d.run_id = $1 AND p.owns_run = 1 LIMIT 1";
    Ok(snapshot.query_opt(sql, &[&run.as_str()], |_| Ok(()))?.is_some())
}
