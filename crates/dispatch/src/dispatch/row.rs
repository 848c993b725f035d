//! A row of `dispatches`, and the event of a change to one.

use std::path::PathBuf;
use std::time::Duration;

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, RunId, Seq, Timestamp};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{LedgerRow, Snapshot, Transaction};
use serde_json::Value;

use crate::status::{DispatchStatus, WorkVerdict};

/// One piece of work, handed to an agent in a phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Names it in commands and events.
    pub id: DispatchId,
    /// The event that created it.
    pub seq: Seq,
    /// The event that began it; `None` while it is not begun, and in a row that was written before this was recorded.
    pub started_seq: Option<Seq>,
    /// The event that ended it; `None` while it has not ended, and in a row that was written before this was recorded.
    pub finished_seq: Option<Seq>,
    /// The run that it belongs to.
    pub run_id: RunId,
    /// The phase it works for.
    pub phase: String,
    /// The run's epoch when it was handed out.
    pub epoch: i64,
    /// How far it is: pending, running, or one of four endings.
    pub status: DispatchStatus,
    /// What it was made of.
    pub work: DispatchWork,
    /// The process that works on it, as reported.
    pub process: Option<Process>,
    /// How often it says that it is at work; `None`: it says nothing.
    pub heartbeat: Option<Heartbeat>,
    /// What its worker says was done.
    pub summary: Option<String>,
    /// What its reviewer said.
    pub verdict: Option<WorkVerdict>,
    /// Why it failed or timed out, masked; `None` for all other endings.
    pub error: Option<String>,
    /// Tokens that it reported so far; 0 until then.
    pub tokens: TokenCounts,
    /// When it was handed out.
    pub created_at: Timestamp,
    /// When it was begun.
    pub started_at: Option<Timestamp>,
    /// When it ended; `None` while it is pending or running.
    pub finished_at: Option<Timestamp>,
    /// The rollback that undid it.
    pub rolled_back_by: Option<RollbackId>,
    /// The cut of that rollback: what was done until this event stands, where the work began before it.
    pub undone_from: Option<Seq>,
}

/// The process of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number, which another process may have later.
    pub pid: i64,
    /// When it started, and in which boot; `None` in a row that was written before this was recorded.
    pub start: Option<(u64, String)>,
}

/// Work without a process of this machine says from time to time that it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// How long it may be silent.
    pub ttl: Duration,
    /// When it is lost, unless it says something before.
    pub due: Timestamp,
}

/// What a dispatch is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatchWork {
    /// The kind of agent.
    pub agent_type: Option<String>,
    /// A name for people.
    pub name: Option<String>,
    /// The model's name, as the caller gave it.
    pub model: Option<String>,
    /// The file that holds the prompt.
    pub prompt_file: Option<PathBuf>,
    /// The work that began it and takes it along when it is undone; `None`: a person or a script began it.
    pub parent_id: Option<DispatchId>,
}

/// Tokens used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Tokens that the model read.
    pub input: i64,
    /// Tokens that the model wrote.
    pub output: i64,
    /// Read from a cache.
    pub cache: i64,
}

impl TokenCounts {
    /// The sum of both; at most `i64::MAX` in each count.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache: self.cache.saturating_add(other.cache),
        }
    }
}

impl Dispatch {
    // The cut is read from the rollback: a column of its own would repeat what `rolled_back_by` and that row say.
    pub(crate) const COLUMNS: &'static str = "id, seq, run_id, phase, epoch, status, agent_type, name, model, \
        prompt_file, pid, summary, verdict, error, tokens_in, tokens_out, tokens_cache, created_at, started_at, \
        finished_at, rolled_back_by, pid_start_time, pid_boot_id, started_seq, finished_seq, parent_id, ttl_millis, due_at, \
        (SELECT b.cut_seq FROM rollbacks b WHERE b.id = dispatches.rolled_back_by)";

    pub(crate) fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        // NULL means that there is none; `parse` would call it damage.
        let verdict = match row.get::<Option<String>>(12)? {
            Some(_) => Some(row.parse(12, "dispatches", WorkVerdict::parse)?),
            None => None,
        };
        Ok(Self {
            id: DispatchId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            run_id: RunId::from_ledger(row.get(2)?),
            phase: row.get(3)?,
            epoch: row.get(4)?,
            status: row.parse(5, "dispatches", DispatchStatus::parse)?,
            work: DispatchWork {
                agent_type: row.get(6)?,
                name: row.get(7)?,
                model: row.get(8)?,
                prompt_file: row.optional_path(9)?,
                parent_id: row.get::<Option<String>>(25)?.map(DispatchId::from_ledger),
            },
            process: Process::from_row(row)?,
            // One statement writes both, so both are NULL or neither is.
            heartbeat: match (row.get::<Option<i64>>(26)?, row.get::<Option<i64>>(27)?) {
                (Some(ttl), Some(due)) => {
                    Some(Heartbeat { ttl: Duration::from_millis(ttl.unsigned_abs()), due: Timestamp(due) })
                }
                _ => None,
            },
            summary: row.get(11)?,
            verdict,
            error: row.get(13)?,
            tokens: TokenCounts { input: row.get(14)?, output: row.get(15)?, cache: row.get(16)? },
            created_at: Timestamp(row.get(17)?),
            started_at: row.get::<Option<i64>>(18)?.map(Timestamp),
            finished_at: row.get::<Option<i64>>(19)?.map(Timestamp),
            rolled_back_by: row.get::<Option<String>>(20)?.map(RollbackId::from_ledger),
            started_seq: row.get(23)?,
            finished_seq: row.get(24)?,
            undone_from: row.get(28)?,
        })
    }

    /// The event that decides what it belongs to: the one that began it, else the one that created it.
    pub fn place(&self) -> Seq {
        self.started_seq.unwrap_or(self.seq)
    }

    /// The cut of the rollback that undid only what it did after that event; `None`: it stands, or all of it was rolled back.
    pub fn undone_in_part_from(&self) -> Option<Seq> {
        self.undone_from.filter(|cut| self.place() <= *cut)
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<i64> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// Errors: `stale_dispatch` if the dispatch was rolled back.
    pub fn require_current(&self) -> Result<()> {
        let Some(rollback) = &self.rolled_back_by else { return Ok(()) };
        Err(Diagnosis::new(
            Code::StaleDispatch,
            format!("The dispatch {} was rolled back; its reports no longer count.", self.id.short()),
        )
        .hint(format!("stop this work; its commits can still be recorded: ic dispatch record {}", self.id.short()))
        .detail("dispatch_id", self.id.as_str())
        .detail("rollback_id", rollback.as_str()))
    }
}

impl Process {
    fn from_row(row: &LedgerRow<'_>) -> Result<Option<Self>> {
        let Some(pid) = row.get::<Option<i64>>(10)? else { return Ok(None) };
        let start = match row.get::<Option<String>>(21)? {
            Some(_) => Some(row.parse(21, "dispatches", |text| text.parse::<u64>().ok())?),
            None => None,
        };
        // The start and the boot count only together: a start is counted from its own boot, so alone it names no
        // process.
        Ok(Some(Self { pid, start: start.zip(row.get::<Option<String>>(22)?) }))
    }

    /// Number, start time and boot, as columns. A start time is text: its unit depends on the system.
    pub(super) fn columns(process: Option<&Self>) -> (Option<i64>, Option<String>, Option<&str>) {
        let start = process.and_then(|process| process.start.as_ref());
        (process.map(|process| process.pid), start.map(|(at, _)| at.to_string()), start.map(|(_, boot)| boot.as_str()))
    }
}

/// The dispatch with this full id. Errors: `dispatch_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &DispatchId) -> Result<Dispatch> {
    find(snapshot, id)?.ok_or_else(|| Diagnosis::new(Code::DispatchNotFound, format!("There is no dispatch {id}.")))
}

/// The dispatch with this full id, if there is one.
pub fn find(snapshot: &Snapshot<'_>, id: &DispatchId) -> Result<Option<Dispatch>> {
    let sql = format!("SELECT {} FROM dispatches WHERE id = $1", Dispatch::COLUMNS);
    snapshot.query_opt(&sql, &[&id.as_str()], Dispatch::from_row)
}

/// Records a move from one state to another.
pub(crate) fn append_change(
    tx: &Transaction<'_>,
    now: Timestamp,
    dispatch: &Dispatch,
    to: DispatchStatus,
    event_type: EventType,
    reason: Option<&str>,
    payload: Option<Value>,
) -> Result<Seq> {
    let event = NewEvent {
        subject_id: Some(dispatch.id.as_str()),
        from: Some(dispatch.status.as_str()),
        to: Some(to.as_str()),
        reason,
        payload,
        ..NewEvent::of(&dispatch.run_id, dispatch.epoch, event_type)
    };
    ic_ledger::events::append(tx, now, &event)
}
