//! Artifacts and agents.

use ic_runtrack::{Agent, AgentStatus, Artifact, ArtifactStatus};

use super::{Cell, Table, path_text, style};

/// Artifacts, one a line.
pub(crate) fn artifacts(artifacts: &[Artifact]) -> String {
    let mut table = Table::new(&["ARTIFACT", "STATUS", "PHASE", "TYPE", "SHA-256", "PATH"]);
    for a in artifacts {
        let colour = match a.status {
            ArtifactStatus::Active => style::NONE,
            ArtifactStatus::RolledBack => style::DIM,
        };
        table.row(vec![
            Cell::new(style::STRONG, a.id.short()),
            Cell::new(colour, a.status.as_str()),
            a.phase.as_str().into(),
            a.kind.as_str().into(),
            Cell::new(style::DIM, a.content_hash.as_deref().map_or("", |h| &h[..12])),
            path_text(&a.path).as_str().into(),
        ]);
    }
    table.render("No artifacts.")
}

/// Agents, one a line.
pub(crate) fn agents(agents: &[Agent]) -> String {
    let mut table = Table::new(&["AGENT", "STATUS", "PHASE", "TYPE", "NAME"]);
    for a in agents {
        let colour = match a.status {
            AgentStatus::Active => style::NONE,
            AgentStatus::Completed => style::GOOD,
            AgentStatus::Failed => style::BAD,
        };
        let status = a.status.as_str();
        let shown =
            if a.rolled_back_by.is_some() { format!("{status}, rolled back") } else { status.to_owned() };
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
