//! The table `calls`: what an agent did with its tools, and between which checkpoints of the tree.
//!
//! ```text
//!   before the tool ──▶ RUNS (no ended_seq) ── after the tool ──▶ (ended_seq, finished_at)
//!                         └── the agent's next call, or its stop ──▶ (ended_seq alone: its end was not reported)
//! ```
//!
//! A client that runs calls at once reports the next one before the end of the first, whose end is reported later and then replaces this
//! one.

use std::collections::HashSet;

use ic_base::mask::mask;
use ic_base::{CallId, Code, Diagnosis, DispatchId, Result, Seq, SessionId, Timestamp, title};
use ic_dispatch::Dispatch;
use ic_dispatch::status::DispatchStatus;
use ic_ledger::{LedgerRow, Snapshot, Transaction, containing};

use crate::clients;

/// The client of the sessions in which this program itself works, and the tool of their calls: one session a command.
pub const OF_COMMANDS: &str = "exec";

/// A tool call that may change files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Made by this program when the call was reported.
    pub id: CallId,
    /// The work that the call belongs to: a prompt, or what a prompt began.
    pub dispatch_id: DispatchId,
    /// The session of the agent that made it.
    pub session_id: SessionId,
    /// The client's name of it, if it has one.
    pub call_id: Option<String>,
    /// The client's name of the subagent that made it.
    pub agent_id: Option<String>,
    /// The kind of that subagent.
    pub agent_type: Option<String>,
    /// The tool's name, as the client gives it.
    pub tool: String,
    /// What it was asked to do: one line, masked; `None`: it was redacted.
    pub line: Option<String>,
    /// The paths that it named, relative to the root.
    pub paths: Vec<String>,
    /// The checkpoint that shows the tree as it began.
    pub began_seq: Seq,
    /// The event after which it changed nothing; `None`: it runs.
    pub ended_seq: Option<Seq>,
    /// When its beginning was reported.
    pub created_at: Timestamp,
    /// When its end was reported; `None`: it was not.
    pub finished_at: Option<Timestamp>,
    /// The commit that was checked out as it began.
    pub head: Option<String>,
    /// The size of git's log of HEAD at that time, in bytes.
    pub head_log_start: Option<u64>,
}

impl ToolCall {
    /// Whether it may have changed something between two events.
    pub fn ran_between(&self, from: Seq, to: Seq) -> bool {
        // A call with began_seq 10 and ended_seq 15, and the times between the looks around it:
        //
        //   look 3 ────── look 10 ── call ── look 15 ────── look 22
        //      (3, 10): no       (10, 15): yes     (15, 22): no
        //
        // Without a look at its end, `ended_seq` is 11, so the call counts in the time up to the next look, whenever that is.
        self.began_seq < to && self.ended_seq.is_none_or(|end| end > from)
    }

    /// Whether it ran at any time from one moment to another, both included. A call without a reported end has no time of its end, and does
    /// not count.
    pub fn ran_in_time(&self, from: Timestamp, to: Timestamp) -> bool {
        self.created_at <= to && self.finished_at.is_some_and(|end| end >= from)
    }

    /// Whether it changed only what it names: the rest changed while a person was asked for the permission, or by another program.
    pub fn is_confined(&self) -> bool {
        !self.paths.is_empty() && clients::edits_what_it_names(&self.tool)
    }

    /// Whether its client named this path.
    pub fn names(&self, path: &[u8]) -> bool {
        self.paths.iter().any(|named| named.as_bytes() == path)
    }
}

/// What a new call is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewCall<'a> {
    /// Made by the caller, which names the call by it.
    pub id: &'a CallId,
    /// The work that the call belongs to: a prompt, or what a prompt began.
    pub dispatch_id: &'a DispatchId,
    /// The session of the agent that makes it.
    pub session_id: &'a SessionId,
    /// The client's name of it; `None`: the client has none.
    pub call_id: Option<&'a str>,
    /// The client's name of the subagent that makes it.
    pub agent_id: Option<&'a str>,
    /// The kind of that subagent.
    pub agent_type: Option<&'a str>,
    /// The tool's name, as the client gives it.
    pub tool: &'a str,
    /// What it is asked to do; its first line is kept, masked.
    pub line: &'a str,
    /// The paths that it names, relative to the root.
    pub paths: &'a [String],
    /// The checkpoint that shows the tree as it begins.
    pub began_seq: Seq,
    /// The event after which the earlier calls of the same agent changed nothing.
    pub before_seq: Seq,
    /// The commit that is checked out.
    pub head: Option<&'a str>,
    /// The size of git's log of HEAD, in bytes.
    pub head_log_start: Option<u64>,
}

/// A call without a reported end has ended with its work, whatever ended that: a checkpoint that is taken at that end comes right after it.
const COLUMNS: &str = "id, dispatch_id, session_id, call_id, agent_id, agent_type, tool, line, paths, began_seq, \
    coalesce(ended_seq, (SELECT finished_seq + 1 FROM dispatches WHERE dispatches.id = calls.dispatch_id)), created_at, finished_at, head, head_log_start";

/// Two hooks that report the same call of a client without names for calls come within this many milliseconds.
const TWICE_WITHIN: i64 = 2_000;

/// The most paths that are kept of a call; of the others only the tree tells.
const MOST_PATHS: usize = 200;

fn from_row(row: &LedgerRow<'_>) -> Result<ToolCall> {
    Ok(ToolCall {
        id: CallId::from_ledger(row.get(0)?),
        dispatch_id: DispatchId::from_ledger(row.get(1)?),
        session_id: SessionId::from_ledger(row.get(2)?),
        call_id: row.get(3)?,
        agent_id: row.get(4)?,
        agent_type: row.get(5)?,
        tool: row.get(6)?,
        line: row.get(7)?,
        paths: row.parse(8, "calls", |text| serde_json::from_str(text).ok())?,
        began_seq: row.get(9)?,
        ended_seq: row.get(10)?,
        created_at: Timestamp(row.get(11)?),
        finished_at: row.get::<Option<i64>>(12)?.map(Timestamp),
        head: row.get(13)?,
        head_log_start: row.get::<Option<i64>>(14)?.and_then(|size| size.try_into().ok()),
    })
}

/// Records that a call begins. Calls that the same agent had begun before, and whose end was not reported, end with the next checkpoint.
///
/// A client with two installations of its hooks reports each call twice: the second time nothing is recorded.
pub fn begin(tx: &Transaction<'_>, now: Timestamp, new: &NewCall<'_>) -> Result<()> {
    // This is asked in the transaction that records the call: a client with two installations may run both hooks at the same time.
    let told = unfinished(tx, new.session_id, (new.call_id, new.agent_id), new.tool)?;
    let is_same = |told: &ToolCall| {
        // Without a name, only the same line within a moment is the same call: an agent may well make a call twice.
        let is_near = now.millis().saturating_sub(told.created_at.millis()) < TWICE_WITHIN;
        // A client may count its calls from one again where it resumes a session: a later prompt's call is another one.
        told.dispatch_id == *new.dispatch_id
            && told.agent_id.as_deref() == new.agent_id
            && (new.call_id.is_some() || is_near && told.line.as_ref() == Some(&line(new)))
    };
    if told.as_ref().is_some_and(is_same) {
        return Ok(());
    }
    // `finished_at` stays NULL: an end that is reported late still finds this row, and replaces `ended_seq`.
    // The agent itself has no `agent_id`, and in SQL NULL = NULL is not true: hence IS NOT DISTINCT FROM.
    tx.execute(
        "UPDATE calls SET ended_seq = $1 WHERE dispatch_id = $2 AND agent_id IS NOT DISTINCT FROM $3 AND ended_seq IS NULL",
        &[&new.before_seq, &new.dispatch_id.as_str(), &new.agent_id],
    )?;
    let paths = &new.paths[..new.paths.len().min(MOST_PATHS)];
    let paths = serde_json::to_string(paths)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("Paths cannot be written down: {e}.")))?;
    tx.execute_one(
        "INSERT INTO calls (id, dispatch_id, session_id, call_id, agent_id, agent_type, tool, line, paths, began_seq, created_at, \
         head, head_log_start) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        &[
            &new.id.as_str(),
            &new.dispatch_id.as_str(),
            &new.session_id.as_str(),
            &new.call_id,
            &new.agent_id,
            &new.agent_type.map(title),
            &title(new.tool),
            &line(new),
            &paths,
            &new.began_seq,
            &now.millis(),
            &new.head,
            &new.head_log_start.and_then(|size| i64::try_from(size).ok()),
        ],
    )
}

/// The part of what a call was asked to do that is kept: one line, masked.
fn line(new: &NewCall<'_>) -> String {
    title(&mask(new.line))
}

/// Records the checkpoint that shows the tree at the beginning of a call, if the call was recorded before the checkpoint was taken.
pub fn looked_at(tx: &Transaction<'_>, id: &CallId, seq: Seq) -> Result<()> {
    // No row changes where `begin` recorded nothing, because the call had been reported before.
    tx.execute("UPDATE calls SET began_seq = $1 WHERE id = $2", &[&seq, &id.as_str()]).map(drop)
}

/// Records the end of a call: it changed nothing after the event `seq`.
pub fn end(tx: &Transaction<'_>, now: Timestamp, id: &CallId, seq: Seq) -> Result<()> {
    tx.execute_one(
        "UPDATE calls SET ended_seq = $1, finished_at = $2 WHERE id = $3",
        &[&seq, &now.millis(), &id.as_str()],
    )
}

/// Ends the calls of a piece of work whose end was not reported: with the next checkpoint.
pub fn end_all(tx: &Transaction<'_>, dispatch: &DispatchId) -> Result<()> {
    // The newest look may be the newest event itself. With an end one later, the calls still count in the time after that look.
    let (seq, _) = ic_ledger::events::head(tx)?;
    tx.execute(
        "UPDATE calls SET ended_seq = $1 WHERE dispatch_id = $2 AND ended_seq IS NULL",
        &[&(seq + 1), &dispatch.as_str()],
    )
    .map(drop)
}

/// The newest call of a session whose end was not reported: with this name, or, where the client has no names, of this tool and subagent.
pub fn unfinished(
    snapshot: &Snapshot<'_>,
    session: &SessionId,
    (call_id, agent_id): (Option<&str>, Option<&str>),
    tool: &str,
) -> Result<Option<ToolCall>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM calls WHERE session_id = $1 AND call_id IS NOT DISTINCT FROM $2 \
         AND ($2 IS NOT NULL OR tool = $3 AND agent_id IS NOT DISTINCT FROM $4) \
         AND finished_at IS NULL ORDER BY began_seq DESC, id DESC LIMIT 1"
    );
    // A tool's name is stored as `title` makes it, so it is compared as that.
    snapshot.query_opt(&sql, &[&session.as_str(), &call_id, &title(tool), &agent_id], from_row)
}

/// The calls that began at this time or later, and whose end was not reported, oldest first.
pub fn not_told_of_end(snapshot: &Snapshot<'_>, since: Timestamp) -> Result<Vec<ToolCall>> {
    let sql = format!(
        // `began_seq >= 0` holds for every row. With it SQLite searches `calls_that_run`, and without it scans that index.
        "SELECT {COLUMNS} FROM calls WHERE ended_seq IS NULL AND began_seq >= 0 AND created_at >= $1 ORDER BY began_seq, id"
    );
    snapshot.query_all(&sql, &[&since.millis()], from_row)
}

/// The work in whose calls the agent of a session itself is, as far as its client says.
pub fn works_in_calls(snapshot: &Snapshot<'_>, session: &SessionId) -> Result<Vec<DispatchId>> {
    let sql = "SELECT DISTINCT dispatch_id FROM calls \
               WHERE ended_seq IS NULL AND began_seq >= 0 AND session_id = $1 AND agent_id IS NULL";
    snapshot.query_all(sql, &[&session.as_str()], |row| row.get(0).map(DispatchId::from_ledger))
}

/// Whether a call of this work runs, as far as its client says.
pub fn is_running(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<bool> {
    // The end of work is an end of its calls, though their own rows do not say so.
    let sql = "SELECT 1 FROM calls JOIN dispatches ON dispatches.id = calls.dispatch_id \
               WHERE dispatch_id = $1 AND ended_seq IS NULL AND finished_seq IS NULL LIMIT 1";
    Ok(snapshot.query_opt(sql, &[&dispatch.as_str()], |_| Ok(()))?.is_some())
}

/// Whether nothing was reported of this work for a minute: between two calls a model thinks.
pub fn is_quiet(snapshot: &Snapshot<'_>, dispatch: &DispatchId, now: Timestamp) -> Result<bool> {
    const QUIET: i64 = 60_000;
    let sql = "SELECT max(coalesce(finished_at, created_at)) FROM calls WHERE dispatch_id = $1";
    let last = snapshot.query_opt(sql, &[&dispatch.as_str()], |row| row.get::<Option<i64>>(0))?.flatten();
    Ok(last.is_none_or(|last| now.millis().saturating_sub(last) >= QUIET))
}

/// The newest continuation of a prompt: what an agent does after it has stopped, without a new prompt.
pub fn continuation_of(snapshot: &Snapshot<'_>, prompt: &DispatchId) -> Result<Option<DispatchId>> {
    // Subagents are children of the prompt, too, but their calls have an `agent_id`.
    let sql = "SELECT c.dispatch_id FROM dispatches d JOIN calls c ON c.dispatch_id = d.id \
               WHERE d.parent_id = $1 AND c.agent_id IS NULL ORDER BY c.began_seq DESC LIMIT 1";
    snapshot.query_opt(sql, &[&prompt.as_str()], |row| row.get(0).map(DispatchId::from_ledger))
}

/// The work of a subagent of a session, if a call of it is on record: the newest, if the client uses a name again.
pub fn work_of_agent(snapshot: &Snapshot<'_>, session: &SessionId, agent_id: &str) -> Result<Option<DispatchId>> {
    // In older ledgers the calls of subagents belong to their prompt, because subagents had no work of their own.
    let sql = "SELECT c.dispatch_id FROM calls c JOIN dispatches d ON d.id = c.dispatch_id \
               WHERE c.session_id = $1 AND c.agent_id = $2 AND d.parent_id IS NOT NULL ORDER BY c.began_seq DESC LIMIT 1";
    snapshot.query_opt(sql, &[&session.as_str(), &agent_id], |row| row.get(0).map(DispatchId::from_ledger))
}

/// The calls of a piece of work, oldest first.
pub fn of_dispatch(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<Vec<ToolCall>> {
    let sql = format!("SELECT {COLUMNS} FROM calls WHERE dispatch_id = $1 ORDER BY began_seq, id");
    snapshot.query_all(&sql, &[&dispatch.as_str()], from_row)
}

/// The newest calls that were asked to do, or named a path, that contains this text, newest first. The case of ASCII letters does not count.
pub fn search(snapshot: &Snapshot<'_>, text: &str, limit: i64) -> Result<Vec<ToolCall>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM calls WHERE lower(line) LIKE $1 ESCAPE '\\' OR lower(paths) LIKE $1 ESCAPE '\\' \
         ORDER BY began_seq DESC, id DESC LIMIT $2"
    );
    snapshot.query_all(&sql, &[&containing(text), &limit], from_row)
}

/// The calls that may have changed something between two events, oldest first.
pub fn between(snapshot: &Snapshot<'_>, from: Seq, to: Seq) -> Result<Vec<ToolCall>> {
    let ended = format!("SELECT {COLUMNS} FROM calls WHERE ended_seq > $1 AND began_seq < $2");
    let running = format!("SELECT {COLUMNS} FROM calls WHERE ended_seq IS NULL AND began_seq < $1");
    // There are two queries: each state of `ended_seq` has an index of its own.
    let mut all = snapshot.query_all(&ended, &[&from, &to], from_row)?;
    all.extend(snapshot.query_all(&running, &[&to], from_row)?);
    // A call of work that has ended counts as ended, but its column is NULL: `COLUMNS` gives the real end.
    all.retain(|call| call.ran_between(from, to));
    all.sort_by(|a, b| (a.began_seq, &a.id).cmp(&(b.began_seq, &b.id)));
    Ok(all)
}

/// Those of these dispatches whose client reports each call: outside of its calls such work changes nothing.
pub fn told_by_calls<'d>(
    snapshot: &Snapshot<'_>,
    dispatches: impl Iterator<Item = &'d DispatchId>,
) -> Result<HashSet<DispatchId>> {
    // A dispatch with calls is known by them: a subagent's work begins with its first one.
    let sql = "SELECT 1 FROM prompts WHERE dispatch_id = $1 AND tells_calls = 1 \
               UNION ALL SELECT 1 FROM calls WHERE dispatch_id = $1 LIMIT 1";
    let mut found = HashSet::new();
    for id in dispatches {
        if snapshot.query_opt(sql, &[&id.as_str()], |_| Ok(()))?.is_some() {
            found.insert(id.clone());
        }
    }
    Ok(found)
}

/// Whether a call of this work was cut off: its end was not reported.
pub fn is_any_cut_off(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<bool> {
    // `ended_seq` is not asked: the next call of the same agent, or its stop, sets that too.
    let sql = "SELECT 1 FROM calls WHERE dispatch_id = $1 AND finished_at IS NULL LIMIT 1";
    Ok(snapshot.query_opt(sql, &[&dispatch.as_str()], |_| Ok(()))?.is_some())
}

/// Whether the newest call of this work's own agent was cut off: its end was not reported.
pub fn is_newest_cut_off(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<bool> {
    let sql = "SELECT finished_at FROM calls WHERE dispatch_id = $1 AND agent_id IS NULL \
               ORDER BY began_seq DESC, id DESC LIMIT 1";
    let newest = snapshot.query_opt(sql, &[&dispatch.as_str()], |row| row.get::<Option<i64>>(0))?;
    Ok(newest.is_some_and(|finished_at| finished_at.is_none()))
}

/// The event after which interrupted work changed nothing, if its client reports each call. The end of such work is reported only when a
/// person types again, which may be hours later. `None`: it was not interrupted.
pub fn last_change(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<Seq>> {
    if work.status != DispatchStatus::Cancelled {
        return Ok(None);
    }
    // A call without an end of its own ran as long as its work.
    let end = work.finished_seq.map_or(Seq::MAX, |end| end + 1);
    let sql = "SELECT max(coalesce(ended_seq, $1)) FROM calls WHERE dispatch_id = $2";
    let last = snapshot.query_opt(sql, &[&end, &work.id.as_str()], |row| row.get::<Option<Seq>>(0))?.flatten();
    // Work without a call did nothing.
    Ok(Some(last.unwrap_or_default()))
}

/// Removes from the calls of a dispatch what they were asked to do, and the paths that they named.
pub fn redact(tx: &Transaction<'_>, dispatch: &DispatchId) -> Result<()> {
    tx.execute("UPDATE calls SET line = NULL, paths = '[]' WHERE dispatch_id = $1", &[&dispatch.as_str()]).map(drop)
}
