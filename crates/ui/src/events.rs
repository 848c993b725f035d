//! The events of the ledger, newest first, and the verification of their chain.

use std::ops::ControlFlow;

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_ledger::events::{Event, EventFilter, EventSource, hex};
use maud::{Markup, html};

use crate::layout::{PageLayout, notice, older};
use crate::page_request::Ask;
use crate::text::{EMPTY, ShownText, grouped, query, when};

/// The most events on one page.
const AT_ONCE: i64 = 100;

/// The error for an unknown word: an empty list would hide that it was not understood.
fn no_source(word: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("There is no kind of events {:?}.", ic_base::title(word)))
        .hint("choose one on the page of events")
}

/// The newest events. `?run=`, `?source=`: only those of a run, of a kind; `?before=SEQ`: an older page.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let run = match ask.params.get("run") {
        Some(reference) => Some(ask.read(|snapshot| ask.kernel.run(snapshot, reference))?),
        None => None,
    };
    let source = match ask.params.get("source") {
        Some(word) => Some(EventSource::parse(word).ok_or_else(|| no_source(word))?),
        None => None,
    };
    let before = ask.params.seq("before")?;
    let run_id: Option<RunId> = run.as_ref().map(|run| run.id.clone());
    let filter =
        EventFilter { run_id: run_id.as_ref(), source, before: before.unwrap_or(Seq::MAX), limit: AT_ONCE + 1 };
    let mut events: Vec<Event> = Vec::new();
    ask.read(|snapshot| {
        ic_ledger::events::each_before(snapshot, &filter, |event| {
            events.push(event);
            Ok(ControlFlow::Continue(()))
        })
    })?;
    let at_once = usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
    // One more than a page holds was read, to know whether there is an older page.
    let has_more = events.len() > at_once;
    events.truncate(at_once);
    // Another run or another kind is another list: only the address of the older page has `before`.
    let chosen = |name: &str, value: Option<&str>, before: Option<&str>| {
        let (run, source) = (run_id.as_ref().map(RunId::as_str), source.map(EventSource::as_str));
        let pick = |key: &'static str, own: Option<&str>| {
            let value = if key == name { value } else { own };
            value.map(|value| (key, value.to_owned()))
        };
        let pairs = [pick("run", run), pick("source", source), before.map(|before| ("before", before.to_owned()))];
        let pairs: Vec<(&str, String)> = pairs.into_iter().flatten().collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (*key, value.as_str())).collect();
        format!("/events?{}", query(&pairs))
    };
    let last = events.last().map(|event| event.seq.to_string()).filter(|_| has_more);
    let body = html! {
        div.heading {
            h1 { "Events" }
            a.button href="/events/verify" { "Verify the chain" }
        }
        @if let Some(run) = &run { p { "Of the run " a href={ "/runs/" (run.id) } { (ShownText(&ic_base::title(&run.goal))) } " · " a href=(chosen("run", None, None)) { "of all runs" } } }
        nav.tabs.wide aria-label="About what" {
            a href=(chosen("source", None, None)) aria-current=[source.is_none().then_some("true")] { "All" }
            @for one in EventSource::ALL {
                a href=(chosen("source", Some(one.as_str()), None)) aria-current=[(source == Some(one)).then_some("true")] { (one.as_str()) }
            }
        }
        @if events.is_empty() { p.empty { "No event is like that." } }
        ol.events reversed { @for event in &events { (line(ask, event, run.is_none())) } }
        (older(last.map(|last| chosen("", None, Some(&last)))))
    };
    let follows = run_id.as_ref().map_or("all", RunId::as_str);
    let page = PageLayout::new("Events", body);
    // Only the newest page is reloaded: older events do not change.
    Ok(if before.is_none() { page.following(follows) } else { page })
}

fn line(ask: &Ask<'_>, event: &Event, with_run: bool) -> Markup {
    html! {
        li data-row id={ "e" (event.seq) } {
            span.seq { (grouped(event.seq)) }
            div.what {
                p {
                    strong { (event.event_type.replace('_', " ")) }
                    @match (&event.from, &event.to) {
                        (Some(from), Some(to)) => { " " (ShownText(&ic_base::title(from))) " → " (ShownText(&ic_base::title(to))) }
                        (Some(one), None) | (None, Some(one)) => { " " (ShownText(&ic_base::title(one))) }
                        (None, None) => {}
                    }
                    @if let Some(reason) = &event.reason { span.quiet { " " (ShownText(&ic_base::title(reason))) } }
                    @if event.reason_hash.is_some() || event.payload_hash.is_some() { " " span.tag { "redacted" } }
                }
                p.facts {
                    @if let Some(run) = event.run_id.as_ref().filter(|_| with_run) { a href={ "/runs/" (run) } data-open { "run " (run.short()) } }
                    (subject(event))
                    @if let Some(epoch) = event.epoch.filter(|epoch| *epoch > 0) { span { "epoch " (epoch) } }
                    @if let Some(actor) = &event.actor { span { "by " (ShownText(&actor.in_words())) } }
                    (when(ask.now, event.created_at))
                }
                @if let Some(payload) = &event.payload { details { summary { "Facts" } pre { code { (ShownText(&cut(payload))) } } } }
            }
        }
    }
}

/// The beginning of a payload, if it is too long for the page.
fn cut(payload: &str) -> String {
    const LONGEST: usize = 4_000;
    if payload.len() <= LONGEST {
        return payload.to_owned();
    }
    // The cut is at the boundary of a character: a slice inside of one would panic.
    let head = &payload[..payload.floor_char_boundary(LONGEST)];
    format!("{head} … ({} bytes)", payload.len())
}

fn subject(event: &Event) -> Markup {
    let Some(id) = &event.subject_id else { return EMPTY };
    let short = crate::flags::short(id);
    match EventSource::parse(&event.source) {
        Some(EventSource::Dispatch) => {
            html! { a href={ "/dispatches/" (id) } { "dispatch " (ShownText(short)) } }
        }
        Some(EventSource::Rollback) => {
            html! { a href={ "/rollbacks/" (id) } { "rollback " (ShownText(short)) } }
        }
        Some(EventSource::Session) => {
            html! { a href={ "/sessions/" (id) } { "session " (ShownText(short)) } }
        }
        Some(source) => html! { span { (source.as_str()) " " (ShownText(&ic_base::title(short))) } },
        None => EMPTY,
    }
}

/// The page that verifies the chain of all events.
pub(crate) fn verify(ask: &Ask<'_>) -> Result<PageLayout> {
    let report = ask.read(|snapshot| ic_ledger::events::verify(snapshot, None))?;
    let body = html! {
        h1 { "Verify the chain" }
        @match &report.first_bad {
            None => { (notice("good", "The record is as it was written", &html! {
                p { (grouped(report.events)) " events are chained, from the first to the newest." }
                p.quiet { "Keep this head elsewhere, to see later whether the end is still there:" }
                pre { code { "ic events verify --expect-head " (report.head.0) ":" (hex(&report.head.1)) } }
            })) }
            Some((seq, problem)) => { (notice("bad", "The chain is broken", &html! {
                p.message { "Event " (seq) " does not verify: " (ShownText(problem)) "." }
                p.hint { "The ledger was changed from outside, or is damaged. Compare it with a backup." }
                p.code { code { "chain_broken" } }
            })) }
        }
        p { a href="/events" { "The events" } }
    };
    Ok(PageLayout::new("Verify", body))
}
