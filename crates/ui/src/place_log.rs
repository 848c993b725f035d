//! The first screen: what was done in this place, by all sessions and by the person, newest first, as `ic log` lists it.

use ic_base::{DispatchId, Result, Seq};
use ic_dispatch::dispatch;
use ic_kernel::journal::table::{RollbackRecord, later_works};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_session::AgentSession;
use ic_undo::points::log::{Files, LogPage, What};
use ic_undo::points::place_log::{PlaceChoice, of_place};
use ic_undo::points::{ListedPoint, PlaceEntry};
use maud::{Markup, html};

use crate::layout::{PageLayout, notice, older, said};
use crate::log_row::{self, LogRow, point_address, point_facts, title, undo_of};
use crate::page_request::Ask;
use crate::rollback_name::went_back;
use crate::runs::address;
use crate::session;
use crate::text::{EMPTY, ShownText, query, when};

/// The most entries on one page.
const AT_ONCE: usize = 40;

/// The timeline of the place. `?before=SEQ`: an older page.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let before = ask.params.seq("before")?;
    let wanted = LogPage { all: false, before, at_most: AT_ONCE };
    let log = of_place(ask.kernel, ask.app.project.options(), wanted, PlaceChoice::default())?;
    let more = log.entries.last().filter(|_| log.has_more).map(|last| {
        let before = last.entry.seq.to_string();
        format!("/?{}", query(&[("before", before.as_str())]))
    });
    let rows = log.entries.iter().map(|one| row(ask, one)).collect::<Result<Vec<LogRow>>>()?;
    let elsewhere = ask.read(|snapshot| ic_undo::points::elsewhere(ask.kernel, snapshot))?;
    let body = html! {
        div.heading { h1 { "Timeline" } }
        @if let Some(why) = &log.unread { (log_row::unread(why)) }
        @if rows.is_empty() { (nothing(ask, before)?) }
        @else { ol.log.place { @for row in &rows { (row) } } }
        (older(more))
        @if let Some(elsewhere) = &elsewhere { p.quiet { (ShownText(elsewhere)) } }
    };
    Ok(PageLayout::new("Timeline", body).following("all"))
}

fn nothing(ask: &Ask<'_>, before: Option<Seq>) -> Result<Markup> {
    if before.is_some() {
        return Ok(html! { p.empty { "There are no older entries." } });
    }
    // A project that was moved has its runs elsewhere in the ledger, and the error says where.
    let moved = match ask.read(ic_undo::points::moved_from)? {
        Some(_) => ask.read(|snapshot| ic_undo::points::run_or_newest(ask.kernel, snapshot, None)).err(),
        None => None,
    };
    Ok(html! {
        @if let Some(error) = &moved { (notice("warn", "Nothing is recorded here", &said(error))) }
        @else {
            div.empty {
                p.big { "Nothing is recorded yet." }
                p { "The timeline begins with the first prompt of an agent whose hooks are installed, or with a command:" }
                pre { code { "ic hooks install claude-code\nic run create --goal 'Add a login'" } }
            }
        }
    })
}

fn row(ask: &Ask<'_>, one: &PlaceEntry) -> Result<LogRow> {
    let row = match &one.entry.what {
        What::Point { point, files, commits, .. } => point_row(ask, one, (point, *files, *commits))?,
        What::Rollback(rollback) => {
            let title = ask.read(|snapshot| undid(snapshot, rollback))?;
            LogRow::of_rollback(ask, &one.entry, rollback, title)
        }
    };
    // Entries of several runs have no common branches, so none is indented.
    Ok(LogRow { depth: 0, ..row })
}

fn point_row(
    ask: &Ask<'_>,
    one: &PlaceEntry,
    (point, files, commits): (&ListedPoint, Option<Files>, Option<usize>),
) -> Result<LogRow> {
    let works = works(one, point);
    let (session, run, author) = ask.read(|snapshot| {
        let author = ic_ledger::events::author(snapshot, point.seq)?;
        Ok((session_of(snapshot, &works)?, known_run(snapshot, one)?, author))
    })?;
    let other = author.and_then(|author| ask.kernel.other_person(&author));
    let client = session.as_ref().map(|(_, session)| session.client.as_str());
    let who = point.who(client, !works.is_empty(), other.as_deref());
    // The first prompt of a session is its title, and a run begins with its own.
    let session = session.as_ref().filter(|(first, _)| first != title(point));
    let run = run.filter(|_| point.kind != "created");
    Ok(LogRow {
        depth: 0,
        is_over: !one.entry.taken_back_by.is_empty() || point.is_undone && point.kind != "phase",
        kind: (point.kind, who),
        address: address_of(one, point),
        title: html! { @if point.is_of_subagent() { "↳ " } (ShownText(title(point))) },
        facts: html! {
            code { (ShownText(point.name())) }
            (point_facts(point, files, commits))
            (when(ask.now, point.created_at))
            @if let Some((first, session)) = session {
                span { "session " a href={ "/sessions/" (session.id) } { (ShownText(first)) } }
            }
            @if let Some(run) = run { span { "run " a href=(address(run)) { (ShownText(&ic_base::title(&run.goal))) } } }
        },
        // What is undone already has no further undo, whatever the run could go back to.
        act: one.run.as_ref().filter(|_| !point.is_undone).map_or(EMPTY, |run| undo_of(ask, run, point)),
    })
}

/// The work that an entry is about: the one that begins there, or those in a call as a restore was made.
fn works(one: &PlaceEntry, point: &ListedPoint) -> Vec<DispatchId> {
    let own = point.before.clone().filter(|_| matches!(point.kind, "dispatch" | "prompt")).map(DispatchId::from_ledger);
    if one.makers.is_empty() { own.into_iter().collect() } else { one.makers.clone() }
}

/// The one session of this work, with its title.
fn session_of(snapshot: &Snapshot<'_>, works: &[DispatchId]) -> Result<Option<(String, AgentSession)>> {
    let session = ic_session::of_works(snapshot, works)?;
    session.map(|session| Ok((session::title(snapshot, &session)?, session))).transpose()
}

/// The run of an entry; `None` for one that was made for a session, which has no name that a person knows.
fn known_run<'e>(snapshot: &Snapshot<'_>, one: &'e PlaceEntry) -> Result<Option<&'e Run>> {
    match &one.run {
        Some(run) if !ic_session::is_own_run(snapshot, &run.id)? => Ok(Some(run)),
        _ => Ok(None),
    }
}

/// The page of an entry: its run or its point, or the comparison of its checkpoints where it is of no run.
fn address_of(one: &PlaceEntry, point: &ListedPoint) -> String {
    if let Some(run) = &one.run {
        return if point.kind == "created" { address(run) } else { point_address(run, point) };
    }
    match (one.entry.looks(), &point.checkpoint_id) {
        (Some((from, to)), _) => format!("/compare?{}", query(&[("from", from.as_str()), ("to", to.as_str())])),
        (None, Some(from)) => format!("/compare?{}", query(&[("from", from.as_str())])),
        (None, None) => "/compare".to_owned(),
    }
}

/// What a rollback undid: the first work by its name, and how many later ones; or where the run went back to.
fn undid(snapshot: &Snapshot<'_>, rollback: &RollbackRecord) -> Result<Markup> {
    let chosen = rollback.chosen();
    let Some(first) = chosen.first() else { return Ok(went_back(rollback)) };
    let work = dispatch::get(snapshot, first)?;
    Ok(html! { "Undid " (ShownText(&crate::dispatch::name(&work))) (later_works(&chosen)) })
}
