//! The table `run_agents`: who works on a run.

use std::collections::BTreeSet;

use ic_base::{AgentId, Code, Diagnosis, DispatchId, Result, RollbackId, RunId, Seq, Timestamp, reversed_digits};
use ic_ledger::events::{Cut, EventType, NewEvent};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{LedgerRow, Snapshot, Transaction};
use serde_json::{Value, json};

/// How agents are referred to.
pub const REFERENT: Referent =
    Referent { table: "run_agents", noun: "agent", not_found: Code::AgentNotFound, listed_by: "ic run agent list RUN" };

ic_base::words! {
    /// The state of an agent.
    pub enum AgentStatus {
        /// It is at work, as far as is reported.
        Active = "active",
        /// Its work was done, as it reports.
        Completed = "completed",
        /// It ended badly, or its work was rolled back.
        Failed = "failed",
    }
}

/// A worker that is registered with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Names it in commands and events.
    pub id: AgentId,
    /// The event that recorded it.
    pub seq: Seq,
    /// The run that it works on.
    pub run_id: RunId,
    /// The phase it joined in.
    pub phase: String,
    /// The kind of agent, in the caller's words: "reviewer", say.
    pub kind: String,
    /// A name for people.
    pub name: Option<String>,
    /// The dispatch it works on.
    pub dispatch_id: Option<DispatchId>,
    /// Whether it works, or how it ended.
    pub status: AgentStatus,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The rollback that took it back.
    pub rolled_back_by: Option<RollbackId>,
}

/// What a new agent is made of.
#[derive(Debug, Clone)]
pub struct NewAgent<'a> {
    /// Made by the caller.
    pub id: AgentId,
    /// The run that it works on.
    pub run_id: &'a RunId,
    /// The run's epoch at this time.
    pub epoch: i64,
    /// The phase it joins in.
    pub phase: &'a str,
    /// The kind of agent, in the caller's words.
    pub kind: &'a str,
    /// A name for people.
    pub name: Option<&'a str>,
    /// The dispatch it works on.
    pub dispatch_id: Option<&'a DispatchId>,
}

impl Agent {
    const COLUMNS: &'static str = "id, seq, run_id, phase, type, name, dispatch_id, status, created_at, updated_at, \
        rolled_back_by";

    fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        Ok(Self {
            id: AgentId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            run_id: RunId::from_ledger(row.get(2)?),
            phase: row.get(3)?,
            kind: row.get(4)?,
            name: row.get(5)?,
            dispatch_id: row.get::<Option<String>>(6)?.map(DispatchId::from_ledger),
            status: row.parse(7, "run_agents", AgentStatus::parse)?,
            created_at: Timestamp(row.get(8)?),
            updated_at: Timestamp(row.get(9)?),
            rolled_back_by: row.get::<Option<String>>(10)?.map(RollbackId::from_ledger),
        })
    }
}

/// Adds an active agent, with its event.
pub fn add(tx: &Transaction<'_>, now: Timestamp, new: &NewAgent<'_>) -> Result<Agent> {
    let event = NewEvent {
        subject_id: Some(new.id.as_str()),
        to: Some(AgentStatus::Active.as_str()),
        payload: Some(json!({ "phase": new.phase, "type": new.kind, "name": new.name })),
        ..NewEvent::of(new.run_id, new.epoch, EventType::AgentAdded)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "INSERT INTO run_agents (id, reversed_id, seq, run_id, phase, type, name, dispatch_id, status, created_at, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'active', $9, $10)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &new.run_id.as_str(),
            &new.phase,
            &new.kind,
            &new.name,
            &new.dispatch_id.map(DispatchId::as_str),
            &now.millis(),
            &now.millis(),
        ],
    )?;
    get(tx, &new.id)
}

/// The agent with this full id. Errors: `agent_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &AgentId) -> Result<Agent> {
    let sql = format!("SELECT {} FROM run_agents WHERE id = $1", Agent::COLUMNS);
    snapshot
        .query_opt(&sql, &[&id.as_str()], Agent::from_row)?
        .ok_or_else(|| Diagnosis::new(Code::AgentNotFound, format!("There is no agent {id}.")))
}

/// The agent with this id, or with an id that ends so. Errors: `agent_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<Agent> {
    reference::find(snapshot, REFERENT, Agent::COLUMNS, text, Agent::from_row)
}

/// The agents of a run, oldest first.
pub fn list(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<Agent>> {
    let sql = format!("SELECT {} FROM run_agents WHERE run_id = $1 ORDER BY seq", Agent::COLUMNS);
    snapshot.query_all(&sql, &[&run_id.as_str()], Agent::from_row)
}

/// The active agents of a run (that joined in a phase), oldest first; rolled-back ones do not count.
pub fn active(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>) -> Result<Vec<Agent>> {
    let sql = format!(
        "SELECT {} FROM run_agents WHERE run_id = $1 AND rolled_back_by IS NULL AND status = 'active' \
         AND ($2 IS NULL OR phase = $2) ORDER BY seq",
        Agent::COLUMNS
    );
    snapshot.query_all(&sql, &[&run_id.as_str(), &phase], Agent::from_row)
}

/// Whether an agent of a run, not rolled back, ended after the event `since`.
pub fn has_ended_since(snapshot: &Snapshot<'_>, run_id: &RunId, since: Seq) -> Result<bool> {
    let found = snapshot.query_opt(
        "SELECT e.seq FROM events e JOIN run_agents a ON a.id = e.subject_id WHERE e.run_id = $1 AND e.seq > $2 \
         AND e.type IN ('agent_completed', 'agent_failed') AND a.rolled_back_by IS NULL ORDER BY e.seq LIMIT 1",
        &[&run_id.as_str(), &since],
        |row| row.get::<Seq>(0),
    )?;
    Ok(found.is_some())
}

/// Ends the work of an active agent. Errors: `agent_finished`; `stale_dispatch` if it was rolled back.
pub fn finish(tx: &Transaction<'_>, now: Timestamp, agent: &Agent, epoch: i64, status: AgentStatus) -> Result<Agent> {
    // This is checked before the status: a rollback fails the agents that it covers, and such a worker has to learn of
    // the rollback.
    if let Some(rollback) = &agent.rolled_back_by {
        return Err(Diagnosis::new(
            Code::StaleDispatch,
            format!("The agent {} was rolled back; its reports no longer count.", agent.id.short()),
        )
        .detail("agent_id", agent.id.as_str())
        .detail("rollback_id", rollback.as_str()));
    }
    if agent.status != AgentStatus::Active {
        return Err(Diagnosis::new(
            Code::AgentFinished,
            format!("The agent {} has already ended: it is {}.", agent.id.short(), agent.status.as_str()),
        )
        .detail("status", agent.status.as_str()));
    }
    append_end(tx, now, agent, epoch, status, None)?;
    tx.execute_one(
        "UPDATE run_agents SET status = $1, updated_at = $2 WHERE id = $3",
        &[&status.as_str(), &now.millis(), &agent.id.as_str()],
    )?;
    Ok(Agent { status, updated_at: now, ..agent.clone() })
}

/// Ends, as failed, every active agent of a run, and returns them as they were. Used when the run is cancelled.
pub fn fail_active(tx: &Transaction<'_>, now: Timestamp, run_id: &RunId, epoch: i64) -> Result<Vec<Agent>> {
    let agents = active(tx, run_id, None)?;
    for agent in &agents {
        finish(tx, now, agent, epoch, AgentStatus::Failed)?;
    }
    Ok(agents)
}

/// The agents that a rollback covers: recorded after the cut, of a rolled-back phase, or working on one of the dispatches that it covers
/// (what such an agent still reports must count for nothing). Oldest first.
pub fn taken_back(snapshot: &Snapshot<'_>, cut: &Cut, dispatches: &BTreeSet<&DispatchId>) -> Result<Vec<Agent>> {
    let mut agents = list(snapshot, &cut.run_id)?;
    agents.retain(|a| {
        let works_on_it = a.dispatch_id.as_ref().is_some_and(|id| dispatches.contains(id));
        a.rolled_back_by.is_none() && (works_on_it || cut.covers(a.seq, &a.phase, a.dispatch_id.as_ref()))
    });
    Ok(agents)
}

/// Marks agents as rolled back (seed 001: `CancelAgentsByPhases`); the active ones become failed, each with its event.
///
/// `agents` is what [`taken_back`] found in the same transaction.
pub fn cancel_agents_by_phases(
    tx: &Transaction<'_>,
    now: Timestamp,
    agents: &[Agent],
    epoch: i64,
    rollback: &RollbackId,
) -> Result<()> {
    for agent in agents {
        let status = if agent.status == AgentStatus::Active {
            let payload = Some(json!({ "rollback_id": rollback.as_str() }));
            append_end(tx, now, agent, epoch, AgentStatus::Failed, payload)?;
            AgentStatus::Failed
        } else {
            agent.status
        };
        // Exactly one row must change: an agent that another rollback has marked since is an error, and its mark stays.
        tx.execute_one(
            "UPDATE run_agents SET status = $1, updated_at = $2, rolled_back_by = $3 \
             WHERE id = $4 AND rolled_back_by IS NULL",
            &[&status.as_str(), &now.millis(), &rollback.as_str(), &agent.id.as_str()],
        )?;
    }
    Ok(())
}

/// Removes the marks of a rollback. An agent that it failed stays failed: its process may be long gone.
pub fn unmark(tx: &Transaction<'_>, rollback: &RollbackId) -> Result<usize> {
    tx.execute("UPDATE run_agents SET rolled_back_by = NULL WHERE rolled_back_by = $1", &[&rollback.as_str()])
}

/// Takes the names out of the agent that event `seq` of a run added, if it added one.
pub fn redact(tx: &Transaction<'_>, run_id: &RunId, seq: Seq) -> Result<()> {
    tx.execute(
        "UPDATE run_agents SET type = '[redacted]', name = NULL WHERE run_id = $1 AND seq = $2",
        &[&run_id.as_str(), &seq],
    )
    .map(|_| ())
}

fn append_end(
    tx: &Transaction<'_>,
    now: Timestamp,
    agent: &Agent,
    epoch: i64,
    status: AgentStatus,
    payload: Option<Value>,
) -> Result<Seq> {
    let event_type = match status {
        AgentStatus::Completed => EventType::AgentCompleted,
        // No caller ends an agent as active; the match has to name it anyway.
        AgentStatus::Active | AgentStatus::Failed => EventType::AgentFailed,
    };
    let event = NewEvent {
        subject_id: Some(agent.id.as_str()),
        from: Some(agent.status.as_str()),
        to: Some(status.as_str()),
        payload,
        ..NewEvent::of(&agent.run_id, epoch, event_type)
    };
    ic_ledger::events::append(tx, now, &event)
}
