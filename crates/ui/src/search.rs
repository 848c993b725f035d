//! Searches goals, prompts, files and tool calls.

use ic_base::{Code, Diagnosis, Result};
use ic_dispatch::{code, dispatch};
use ic_phase::run;
use ic_session::call;
use maud::{Markup, html};

use crate::layout::PageLayout;
use crate::page_request::Ask;
use crate::runs::{address, badge};
use crate::text::{EMPTY, PageLine, ShownText, of_path, when};

/// The most results of each kind.
const EACH: i64 = 25;

/// The longest text that is searched for, in bytes: people type shorter ones.
const LONGEST: usize = 200;

/// The page of a search.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let wanted = ask.params.get("q").map(str::trim).filter(|text| !text.is_empty());
    if wanted.is_some_and(|text| text.len() > LONGEST) {
        let message = format!("A search is for {LONGEST} bytes at most.");
        return Err(Diagnosis::new(Code::InvalidValue, message).hint("search for a part of it"));
    }
    let found = match wanted {
        Some(text) => found(ask, text)?,
        None => {
            html! { p.empty { "Goals of runs, prompts and names of dispatches, paths of files, commands of tool calls." } }
        }
    };
    let body = html! {
        h1 { @if let Some(text) = wanted { "Found for " (ShownText(text)) } @else { "Search" } }
        (found)
    };
    Ok(PageLayout::new("Search", body))
}

fn found(ask: &Ask<'_>, text: &str) -> Result<Markup> {
    let (runs, work, files, calls) = ask.read(|snapshot| {
        Ok((
            run::search(snapshot, text, EACH)?,
            dispatch::search(snapshot, text, EACH)?,
            code::search_files(snapshot, text, EACH)?,
            call::search(snapshot, text, EACH)?,
        ))
    })?;
    if runs.is_empty() && work.is_empty() && files.is_empty() && calls.is_empty() {
        return Ok(html! { p.empty { "Nothing is called so." } });
    }
    let runs = runs.iter().map(|run| {
        html! { a href=(address(run)) data-open { (ShownText(&ic_base::title(&run.goal))) } (badge(run)) span.quiet { (when(ask.now, run.created_at)) } }
    });
    let runs: Vec<Markup> = runs.collect();
    let work: Vec<Markup> = work.iter().map(|one| crate::dispatch::line(ask, one)).collect();
    let files = files.iter().map(|file| {
        html! { span.path { (PageLine(&of_path(&file.path))) } a href={ "/dispatches/" (file.dispatch_id) } data-open { "dispatch " (file.dispatch_id.short()) } }
    });
    let files: Vec<Markup> = files.collect();
    let calls = calls.iter().map(|call| {
        html! {
            span.tool { (ShownText(&call.tool)) }
            a href={ "/dispatches/" (call.dispatch_id) } data-open { (ShownText(call.line.as_deref().unwrap_or("a tool call"))) }
            @for path in call.paths.iter().take(3) { span.path { (PageLine(path)) } }
            span.quiet { (when(ask.now, call.created_at)) }
        }
    });
    let calls: Vec<Markup> = calls.collect();
    Ok(html! {
        (group("Runs", &runs))
        @if !work.is_empty() { section { h2 { "Prompts and dispatches" (count(work.len())) } ul.items { @for one in &work { (one) } } } }
        (group("Files", &files))
        (group("Tool calls", &calls))
    })
}

fn count(n: usize) -> Markup {
    let is_cut = i64::try_from(n).is_ok_and(|n| n >= EACH);
    html! { span.count { @if is_cut { "the newest " } (n) } }
}

fn group(title: &str, lines: &[Markup]) -> Markup {
    if lines.is_empty() {
        return EMPTY;
    }
    html! { section { h2 { (title) (count(lines.len())) } ul.items { @for line in lines { li data-row { (line) } } } } }
}
