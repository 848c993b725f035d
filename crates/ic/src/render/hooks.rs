//! Hooks and sessions of coding agents.

use ic_base::Timestamp;
use ic_dispatch::Dispatch;
use ic_session::{Call, Session};

use super::{Cell, Table, counted, path_text, plain, style, styled, when};
use crate::clients::Client;
use crate::commands::hooks::{Edit, Installed};
use crate::json::{HooksDoctorJson, is_subagent};

/// What became of a client's settings. `installed`: of an installation, what else it did.
pub(crate) fn edited(client: Client, edit: &Edit, dry_run: bool, installed: Option<Installed>) -> String {
    let installs = installed.is_some();
    let Installed { excluded, trusted } = installed.unwrap_or_default();
    let file = path_text(&edit.file);
    let name = client.as_str();
    let mut out = match (edit.is_change(), dry_run, installs) {
        (false, _, true) => format!("The hooks are installed already: {file}\n"),
        (false, _, false) => format!("No hook of ic to remove: {file}\n"),
        (true, true, _) => format!("Would write {file}:\n{}", edit.text()),
        (true, false, true) => format!(
            "{} {file}\nFrom its next session on {name} records each prompt: see ic log; undo one with ic undo.\n",
            styled(style::GOOD, "installed in")
        ),
        (true, false, false) => format!("{} {file}\n", styled(style::GOOD, "removed from")),
    };
    if excluded && edit.is_change() {
        out.push_str("Git and captures leave it out, by .git/info/exclude: an undo neither removes hooks nor brings them back.\n");
    }
    if client == Client::Codex && installs && !dry_run {
        out.push_str(if trusted {
            "Codex trusts them.\n"
        } else {
            "Codex runs a hook only when it is trusted: type /hooks in it once, or install with --trust.\n"
        });
    }
    for event in &edit.left {
        out.push_str(&format!(
            "{} the entry of {} was changed by hand; remove it there\n",
            styled(style::WARN, "left:"),
            plain(event)
        ));
    }
    out
}

/// Whether hooks work, a client a block.
pub(crate) fn doctor(all: &[HooksDoctorJson]) -> String {
    let mut out = String::new();
    for one in all {
        out.push_str(&format!("{}\n", styled(style::STRONG, one.client)));
        if one.config_files.is_empty() {
            out.push_str(&match one.called_at {
                Some(_) => "  not in its settings, and called: by a plugin\n".to_owned(),
                None => format!("  not installed: ic hooks install {}\n", one.client),
            });
        }
        for file in &one.config_files {
            out.push_str(&format!("  installed in {}\n", plain(&file.path)));
        }
        match (&one.called_at, one.duration_ms) {
            (Some(at), Some(ms)) => out.push_str(&format!("  last called {at}, {ms} ms\n")),
            _ if one.config_files.is_empty() => {}
            _ => out.push_str("  never called: begin a new session of the client\n"),
        }
        for failure in &one.failures {
            out.push_str(&format!(
                "  {} {} {}: {}\n",
                styled(style::BAD, "failed"),
                failure.created_at,
                plain(&failure.event),
                plain(&failure.message)
            ));
        }
    }
    out
}

/// A session that was given another run to work in.
pub(crate) fn attached(before: &Session, after: &Session) -> String {
    let (id, run) = (after.id.short(), after.run_id.short());
    if before.run_id == after.run_id {
        return format!("Session {id} works in run {run} already\n");
    }
    format!("{} session {id}: its next prompt belongs to run {run}\n", styled(style::GOOD, "attached"))
}

/// Sessions, one a line.
pub(crate) fn sessions(all: &[Session], now: Timestamp) -> String {
    let mut table = Table::new(&["SESSION", "CLIENT", "RUN", "BEGAN", "PROJECT"]);
    for session in all {
        table.row(vec![
            Cell::new(style::STRONG, session.id.short()),
            session.client.as_str().into(),
            session.run_id.short().into(),
            Cell::new(style::DIM, &when(now, session.created_at)),
            path_text(&session.project_dir).as_str().into(),
        ]);
    }
    table.render("No sessions.")
}

/// A session with its prompts.
pub(crate) fn session(session: &Session, all: &[(Dispatch, Vec<Call>)], with_calls: bool) -> String {
    let prompts = all.iter().filter(|(work, _)| !is_subagent(work, all)).count();
    let mut out = format!(
        "{}  {}, run {}, {}\n",
        styled(style::STRONG, session.id.short()),
        plain(&session.client),
        session.run_id.short(),
        counted(prompts, "prompt")
    );
    let mut table = Table::headless();
    for (prompt, calls) in all {
        let undone = if prompt.rolled_back_by.is_some() { "undone" } else { prompt.status.as_str() };
        let kind = if is_subagent(prompt, all) { "    dispatch" } else { "  prompt" };
        table.row(vec![
            format!("{kind}:{}", prompt.id.short()).as_str().into(),
            undone.into(),
            counted(calls.len(), "call").as_str().into(),
            prompt.work.name.as_deref().unwrap_or_default().into(),
        ]);
        for call in calls.iter().filter(|_| with_calls) {
            let by = call.agent_type.as_deref().map_or(String::new(), |agent| format!(" ({agent})"));
            table.row(vec![
                "".into(),
                "".into(),
                format!("{}{by}", call.tool).as_str().into(),
                call.line.as_deref().unwrap_or("(redacted)").into(),
            ]);
        }
    }
    out.push_str(&table.render("  No prompts."));
    out
}
