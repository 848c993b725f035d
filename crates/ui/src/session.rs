//! The page of a session of a coding agent, and its title.

use ic_base::Result;
use ic_dispatch::dispatch;
use ic_ledger::Snapshot;
use ic_session::AgentSession;
use maud::html;

use crate::dispatch::{SHOWN, line, more};
use crate::layout::{PageLayout, trail};
use crate::page_request::Ask;
use crate::runs::{address, standing_rollbacks};
use crate::text::{PageLine, ShownText, counted, of_path, when};

/// The title of a session: its first prompt, or its client and its id before there is one.
pub(crate) fn title(snapshot: &Snapshot<'_>, session: &AgentSession) -> Result<String> {
    let first = ic_session::first_of_session(snapshot, &session.id)?;
    let named = first.map(|prompt| dispatch::get(snapshot, &prompt.dispatch_id)).transpose()?;
    Ok(named.map_or_else(|| format!("{} {}", session.client, session.id.short()), |work| crate::dispatch::name(&work)))
}

/// The page of a session: its prompts, newest first.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let (session, title, run, work, count) = ask.read(|snapshot| {
        let session = ic_session::resolve(snapshot, ask.id())?;
        let (title, run) = (title(snapshot, &session)?, ic_phase::run::get(snapshot, &session.run_id)?);
        let prompts = ic_session::of_session(snapshot, &session.id)?;
        let mut work = Vec::new();
        for prompt in prompts.iter().rev().take(SHOWN) {
            work.push(dispatch::get(snapshot, &prompt.dispatch_id)?);
        }
        Ok((session, title, run, work, prompts.len()))
    })?;
    let rollbacks = standing_rollbacks(ask, &run)?;
    let body = html! {
        (trail(&[("Runs", "/runs".to_owned()), (&ic_base::title(&run.goal), address(&run))]))
        div.heading { h1 { (ShownText(&title)) } span class={ "badge " @if session.ended_at.is_some() { "quiet" } @else { "live" } } { @if session.ended_at.is_some() { "ended" } @else { "open" } } }
        p.facts {
            span { (ShownText(&session.client)) " " code { (session.id.short()) } }
            span { "begun " (when(ask.now, session.created_at)) }
            span { (counted(count, "prompt")) }
            @if rollbacks > 0 { span { (counted(rollbacks, "rollback")) " in its run" } }
            span.path { (PageLine(&of_path(&session.project_dir))) }
        }
        h2 { "Prompts" }
        ul.items.prompts { @for one in &work { (line(ask, one)) } }
        (more(count))
    };
    Ok(PageLayout::new(title, body).following(run.id.as_str()))
}
