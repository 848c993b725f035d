//! Agents of a run.

use ic_runtrack::{Agent, AgentStatus};

use crate::text::{Cell, TextTable, style};

shape! {
    /// An agent that is registered with a run.
    pub(crate) struct AgentJson from agent: &Agent {
        id: String = agent.id.to_string(),
        short_id: String = agent.id.short().to_owned(),
        run_id: String = agent.run_id.to_string(),
        phase: String = agent.phase.clone(),
        kind: String = agent.kind.clone(),
        name: Option<String> = agent.name.clone(),
        dispatch_id: Option<String> = agent.dispatch_id.as_ref().map(ToString::to_string),
        /// active, completed or failed.
        status: &'static str as ic_runtrack::agent::AgentStatus = agent.status.as_str(),
        rolled_back_by: Option<String> = agent.rolled_back_by.as_ref().map(ToString::to_string),
        seq: i64 = agent.seq,
        created_at: String = agent.created_at.to_string(),
        updated_at: String = agent.updated_at.to_string(),
    }
}

/// Agents, one a line.
pub(crate) fn agents(agents: &[Agent]) -> String {
    let mut table = TextTable::new(&["AGENT", "STATUS", "PHASE", "TYPE", "NAME"]);
    for a in agents {
        let colour = match a.status {
            AgentStatus::Active => style::NONE,
            AgentStatus::Completed => style::GOOD,
            AgentStatus::Failed => style::BAD,
        };
        let status = a.status.as_str();
        let shown = if a.rolled_back_by.is_some() { format!("{status}, rolled back") } else { status.to_owned() };
        table.row(vec![
            Cell::new(style::STRONG, a.id.short()),
            Cell::new(colour, &shown),
            a.phase.as_str().into(),
            a.kind.as_str().into(),
            a.name.as_deref().unwrap_or("").into(),
        ]);
    }
    table.render("No agents.")
}
