//! All runs, newest first.

use ic_base::{Result, RunId};
use ic_dispatch::token_totals;
use ic_dispatch::worker::Life;
use ic_kernel::journal::table;
use ic_ops::status::{self, RunOverview, Working};
use ic_phase::run::{self, RunFilter};
use ic_phase::{Run, RunStatus};
use maud::{Markup, html};

use crate::layout::{PageLayout, older};
use crate::page_request::Ask;
use crate::text::{ShownText, counted, of_path, query, rounded, when};

/// The most runs on one page.
const AT_ONCE: i64 = 15;

/// The page of all runs. `?open=1`: only those that have not ended; `?before=RUN`: an older page.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let open = ask.params.has("open");
    let before = ask.params.get("before").map(|id| RunId::from_ledger(id.to_owned()));
    let filter = RunFilter { open, project: None, limit: AT_ONCE + 1, before: before.as_ref() };
    let mut all = ask.read(|snapshot| run::list(snapshot, &filter))?;
    let has_more = all.len() > usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
    all.truncate(usize::try_from(AT_ONCE).unwrap_or(usize::MAX));
    // One more than a page holds was read, to know whether there is an older page.
    let more = all.last().filter(|_| has_more).map(|last| {
        let open = if open { vec![("open", "1")] } else { Vec::new() };
        format!("/runs?{}", query(&[open, vec![("before", last.id.as_str())]].concat()))
    });
    let mut cards = Vec::new();
    for run in &all {
        cards.push(card(ask, run)?);
    }
    let body = html! {
        div.heading {
            h1 { "Runs" }
            nav.tabs aria-label="Which runs" {
                a href="/runs" aria-current=[(!open).then_some("true")] { "All" }
                a href="/runs?open=1" aria-current=[open.then_some("true")] { "Open" }
            }
        }
        @if cards.is_empty() { (nothing(open, before.is_some())) }
        ol.runs { @for card in &cards { li data-row { (card) } } }
        (older(more))
    };
    Ok(PageLayout::new("Runs", body).following("all"))
}

fn nothing(open: bool, is_older: bool) -> Markup {
    html! {
        div.empty {
            @if is_older { p { "There are no older runs." } }
            @else if open { p { "No run is open." } p { a href="/runs" { "All runs" } } }
            @else {
                p { "There is no run yet." }
            }
        }
    }
}

fn card(ask: &Ask<'_>, run: &Run) -> Result<Markup> {
    let status = status_of(ask, run)?;
    let (all, undone) = token_totals::total(&ask.read(|snapshot| token_totals::of_run(snapshot, &run.id))?);
    let tokens = all.input.saturating_add(all.output);
    let rollbacks = standing_rollbacks(ask, run)?;
    let elsewhere = (run.project_dir != ask.kernel.project.root).then(|| of_path(&run.project_dir));
    Ok(html! {
        article.run.card {
            header {
                h2 { a href=(address(run)) data-open { (ShownText(&ic_base::title(&run.goal))) } }
                (badge(run))
            }
            (chain(run))
            @for one in &status.unfinished {
                p.unfinished { strong { "Unfinished: " } (ShownText(&one.message)) }
            }
            p.facts {
                span { code { (run.id.short()) } }
                @for working in status.working.iter().take(3) { span.working { (worker(working)) } }
                @if status.working.len() > 3 { span { "and " (status.working.len() - 3) " more" } }
                @if tokens > 0 {
                    span title=(format!("{} in, {} out, {} in work that was undone", all.input, all.output, undone.input.saturating_add(undone.output))) {
                        (rounded(tokens)) " tokens"
                    }
                }
                @if let Some(point) = &status.last_point {
                    span { "last point " (when(ask.now, point.created_at)) }
                }
                @if rollbacks > 0 { span { (counted(rollbacks, "rollback")) } }
                @if let Some(elsewhere) = &elsewhere { span.path { (ShownText(elsewhere)) } }
                span { "begun " (when(ask.now, run.created_at)) }
            }
        }
    })
}

/// How many rollbacks of a run were not undone.
pub(crate) fn standing_rollbacks(ask: &Ask<'_>, run: &Run) -> Result<usize> {
    let all = ask.read(|snapshot| table::of_run(snapshot, &run.id))?;
    Ok(all.iter().filter(|rollback| rollback.status.stands()).count())
}

/// The status of a run, as `ic status` shows it.
pub(crate) fn status_of(ask: &Ask<'_>, run: &Run) -> Result<RunOverview> {
    // The run is treated as named, so that the command to type next has its id: the page shows many runs.
    status::status(ask.kernel, ask.app.project.options(), run, true, |snapshot| {
        ask.app.project.unfinished_workflow(snapshot, run)
    })
}

/// The address of the page of a run.
pub(crate) fn address(run: &Run) -> String {
    format!("/runs/{}", run.id)
}

/// A badge with the state of a run.
pub(crate) fn badge(run: &Run) -> Markup {
    let (kind, word) = match run.status {
        RunStatus::Active => ("live", "active"),
        RunStatus::RollingBack => ("warn", "rolling back"),
        RunStatus::Completed => ("good", "completed"),
        RunStatus::Cancelled => ("quiet", "cancelled"),
        RunStatus::Failed => ("bad", "failed"),
    };
    html! { span class={ "badge " (kind) } { (word) } }
}

/// The chain of a run, with its current phase.
pub(crate) fn chain(run: &Run) -> Markup {
    /// With more phases than this, only their number is shown.
    const DRAWN: usize = 24;
    let names = run.chain.names();
    let at = run.chain.index_of(&run.phase).unwrap_or(0);
    let place = |index: usize| match index.cmp(&at) {
        std::cmp::Ordering::Less => "past",
        std::cmp::Ordering::Equal => "here",
        std::cmp::Ordering::Greater => "ahead",
    };
    html! {
        div.chain {
            @if names.len() <= DRAWN {
                ol aria-hidden="true" { @for (index, name) in names.iter().enumerate() { li.(place(index)) title=(ic_base::title(name)) {} } }
            }
            p { strong { (ShownText(&run.phase)) } span.of { " " (at + 1) " of " (names.len()) } }
        }
    }
}

/// A worker of a run: its name, with a link to its dispatch.
pub(crate) fn worker(working: &Working) -> Markup {
    match working {
        Working::Executor { pid } => html! {
            "executor" @if let Some(pid) = pid { " (pid " (pid) ")" }
        },
        Working::Dispatch(work, life) => {
            let name = work.work.name.as_deref().or(work.work.agent_type.as_deref()).unwrap_or("dispatch");
            let ended = match life {
                Some(Life::Gone) => " (its process has ended)",
                Some(Life::Lost) => " (it has been silent for too long)",
                Some(Life::Alive | Life::Unknown) | None => "",
            };
            html! {
                a href={ "/dispatches/" (work.id) } { (ShownText(&ic_base::title(name))) }
                (ended)
            }
        }
        Working::Agent(agent) => {
            let name = agent.name.as_deref().unwrap_or(&agent.kind);
            html! { (ShownText(&ic_base::title(name))) " (agent)" }
        }
    }
}
