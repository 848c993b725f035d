//! Artifacts and agents.

use ic_runtrack::{Agent, Artifact};

use super::{Cell, Table, path_text, status_style, style};

/// Artifacts, one a line.
pub(crate) fn artifacts(artifacts: &[Artifact]) -> String {
    let mut table = Table::new(&["ARTIFACT", "STATUS", "PHASE", "TYPE", "SHA-256", "PATH"]);
    for a in artifacts {
        let status = a.status.as_str();
        table.row(vec![
            Cell::new(style::STRONG, a.id.short()),
            Cell::new(status_style(status), status),
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
        let status = a.status.as_str();
        let shown =
            if a.rolled_back_by.is_some() { format!("{status}, rolled back") } else { status.to_owned() };
        table.row(vec![
            Cell::new(style::STRONG, a.id.short()),
            Cell::new(status_style(status), &shown),
            a.phase.as_str().into(),
            a.kind.as_str().into(),
            a.name.as_deref().unwrap_or("").into(),
        ]);
    }
    table.render("No agents.")
}
