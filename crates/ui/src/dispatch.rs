//! The page of a dispatch: its prompt, its work, its cost, and its undo.

use ic_base::Result;
use ic_dispatch::worker::{Life, life};
use ic_dispatch::{Dispatch, DispatchStatus, code, dispatch};
use ic_session::{AgentSession, ToolCall, call};
use maud::{Markup, html};

use crate::layout::{PageLayout, notice, trail};
use crate::page_request::Ask;
use crate::runs::address;
use crate::session;
use crate::text::{EMPTY, PageLine, ShownText, counted, of_path, query, rounded, when};

/// The most entries of a list that are shown; the rest is counted.
pub(crate) const SHOWN: usize = 200;

/// The page of a dispatch.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let found = ask.read(|snapshot| {
        let work = dispatch::resolve(snapshot, ask.id())?;
        let run = ic_phase::run::get(snapshot, &work.run_id)?;
        let session = match ic_session::of_work(snapshot, &work)? {
            Some(session) => Some((session::title(snapshot, &session)?, session)),
            None => None,
        };
        let below = dispatch::descendants(snapshot, &work.id)?;
        let calls = call::of_dispatch(snapshot, &work.id)?;
        Ok((work, run, session, below, calls))
    })?;
    let (work, run, session, below, calls) = &found;
    let (commits, files) =
        ask.read(|snapshot| Ok((code::commits_of(snapshot, &work.id)?, code::files_of(snapshot, &work.id)?)))?;
    let name = name(work);
    let body = html! {
        (trail(&[("Runs", "/runs".to_owned()), (&ic_base::title(&run.goal), address(run))]))
        div.heading {
            h1 { (ShownText(&name)) }
            (badge(work))
        }
        @if ask.can_undo() { (actions(work, &address(run))) }
        (stale(work))
        @if let Some(error) = &work.error { (notice("bad", "Why it failed", &html! { p.message { (ShownText(error)) } })) }
        @if let Some(summary) = &work.summary { blockquote { (ShownText(summary)) } }
        (facts(ask, work, session.as_ref()))
        (self::calls(ask, calls))
        @if !commits.is_empty() {
            section aria-labelledby="commits" {
                h2 #commits { "Commits" span.count { (commits.len()) } }
                ul.items { @for one in commits.iter().rev().take(SHOWN) {
                    li { code { (one.sha.get(..12).unwrap_or(&one.sha)) } @if one.late { span.tag { "late" } } }
                } }
                (more(commits.len()))
            }
        }
        @if !files.is_empty() {
            section aria-labelledby="files" {
                h2 #files { "Files" span.count { (files.len()) } }
                ul.items { @for one in files.iter().take(SHOWN) {
                    li { span.path { (PageLine(&of_path(&one.path))) } @if one.late { span.tag { "late" } } }
                } }
                (more(files.len()))
            }
        }
        (subagents(ask, below))
    };
    Ok(PageLayout::new(name, body).following(run.id.as_str()))
}

/// The name of a dispatch, for people.
pub(crate) fn name(work: &Dispatch) -> String {
    let name = work.work.name.as_deref().or(work.work.agent_type.as_deref());
    name.map_or_else(|| format!("dispatch {}", work.id.short()), ic_base::title)
}

/// A badge with the state of a dispatch.
pub(crate) fn badge(work: &Dispatch) -> Markup {
    if work.rolled_back_by.is_some() {
        return html! { span.badge.quiet { "undone" } };
    }
    let kind = match work.status {
        DispatchStatus::Pending | DispatchStatus::Running => "live",
        DispatchStatus::Completed => "good",
        DispatchStatus::Cancelled => "quiet",
        DispatchStatus::Failed | DispatchStatus::TimedOut | DispatchStatus::Interrupted => "bad",
    };
    html! { span class={ "badge " (kind) } { (work.status.as_str()) } }
}

fn actions(work: &Dispatch, run: &str) -> Markup {
    if work.rolled_back_by.is_some() {
        return EMPTY;
    }
    let only = format!("{run}/undo?{}", query(&[("only", work.id.as_str())]));
    let to = format!("{run}/undo?{}", query(&[("to", &format!("dispatch:{}", work.id))]));
    html! {
        p.buttons {
            a.button.primary href=(to) data-undo { "Undo from here" }
            a.button href=(only) { "Undo only this" }
        }
    }
}

fn stale(work: &Dispatch) -> Markup {
    let Some(by) = &work.rolled_back_by else { return EMPTY };
    notice(
        "info",
        "It was undone",
        &html! {
            p { "What it still reports does not count any more." }
            p { a.button href={ "/rollbacks/" (by) } { "The rollback " (by.short()) } }
        },
    )
}

fn facts(ask: &Ask<'_>, work: &Dispatch, session: Option<&(String, AgentSession)>) -> Markup {
    let tokens = work.tokens;
    html! {
        dl.facts {
            dt { "Id" } dd { code { (work.id.short()) } }
            dt { "Phase" } dd { (ShownText(&work.phase)) }
            @if let Some(kind) = &work.work.agent_type { dt { "Agent" } dd { (ShownText(kind)) } }
            @if let Some(model) = &work.work.model { dt { "Model" } dd { (ShownText(model)) } }
            @if let Some((title, session)) = session {
                dt { "Session" } dd { a href={ "/sessions/" (session.id) } { (ShownText(title)) } " " span.quiet { (ShownText(&session.client)) } }
            }
            @if let Some(parent) = &work.work.parent_id { dt { "Begun by" } dd { a href={ "/dispatches/" (parent) } { "dispatch " (parent.short()) } } }
            @if let Some(file) = &work.work.prompt_file { dt { "Prompt" } dd.path { (PageLine(&of_path(file))) } }
            @if let Some(at) = work.started_at { dt { "Begun" } dd { (when(ask.now, at)) } }
            @if let Some(at) = work.finished_at { dt { "Ended" } dd { (when(ask.now, at)) } }
            @if let Some(pid) = work.pid() { dt { "Process" } dd { (pid) " " span.quiet { (alive(life(work))) } } }
            @if let Some(verdict) = work.verdict { dt { "Verdict" } dd { (verdict.as_str()) } }
            @if tokens.input > 0 || tokens.output > 0 || tokens.cache > 0 {
                dt { "Tokens" } dd { (rounded(tokens.input)) " in, " (rounded(tokens.output)) " out, " (rounded(tokens.cache)) " cached" }
            }
        }
    }
}

fn alive(life: Option<Life>) -> &'static str {
    match life {
        Some(Life::Alive) => "lives",
        Some(Life::Gone) => "has ended",
        Some(Life::Lost) => "has been silent for too long",
        Some(Life::Unknown) | None => "",
    }
}

fn calls(ask: &Ask<'_>, calls: &[ToolCall]) -> Markup {
    if calls.is_empty() {
        return EMPTY;
    }
    html! {
        section aria-labelledby="calls" {
            h2 #calls { "Tool calls" span.count { (calls.len()) } }
            ol.calls {
                @for one in calls.iter().take(SHOWN) {
                    li {
                        span.tool { (ShownText(&one.tool)) }
                        div.what {
                            @if let Some(line) = &one.line { code { (ShownText(line)) } }
                            @for path in one.paths.iter().take(8) { span.path { (PageLine(path)) } }
                            @if one.paths.len() > 8 { span.quiet { "and " (one.paths.len() - 8) " more" } }
                        }
                        (when(ask.now, one.created_at))
                    }
                }
            }
            (more(calls.len()))
        }
    }
}

fn subagents(ask: &Ask<'_>, below: &[Dispatch]) -> Markup {
    if below.is_empty() {
        return EMPTY;
    }
    html! {
        section aria-labelledby="below" {
            h2 #below { "Subagents" span.count { (below.len()) } }
            ul.items { @for one in below.iter().take(SHOWN) { (line(ask, one)) } }
            (more(below.len()))
        }
    }
}

/// A dispatch as an entry of a list.
pub(crate) fn line(ask: &Ask<'_>, work: &Dispatch) -> Markup {
    html! {
        li data-row {
            a href={ "/dispatches/" (work.id) } data-open { (ShownText(&name(work))) }
            (badge(work))
            span.quiet { (ShownText(&work.phase)) " " (when(ask.now, work.created_at)) }
        }
    }
}

pub(crate) fn more(count: usize) -> Markup {
    match count.saturating_sub(SHOWN) {
        0 => EMPTY,
        rest => html! { p.cut { "and " (counted(rest, "line")) " more, which the command line lists" } },
    }
}
