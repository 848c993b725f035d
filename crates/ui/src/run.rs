//! The page of a run: its timeline, and its points with what each changed.

use ic_base::Result;
use ic_dispatch::token_totals;
use ic_ops::status::RunOverview;
use ic_phase::Run;
use ic_undo::points::log::{self, LogEntry, LogPage, What};
use ic_undo::{NewestUndo, RedoOwner};
use maud::{Markup, html};

use crate::layout::{PageLayout, notice, older, trail};
use crate::log_row::{self, LogRow, kind, point_address, point_facts, title, undo_of};
use crate::page_request::Ask;
use crate::rollback_name::went_back;
use crate::runs::{address, badge, chain, status_of, worker};
use crate::text::{ShownText, of_path, query, rounded, when};
use crate::timeline;

/// The most points and rollbacks on one page.
const AT_ONCE: usize = 40;

/// The page of a run. `?before=SEQ`: an older page of its points; `?standing=1`: without what was rolled back.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let run = ask.run()?;
    let status = status_of(ask, &run)?;
    let (before, all) = (ask.params.seq("before")?, !ask.params.has("standing"));
    let options = ask.app.project.options();
    let entries = log::log(ask.kernel, options, &run, LogPage { all, before, at_most: AT_ONCE })?;
    let more = entries.entries.last().filter(|_| entries.has_more).map(|last| {
        let standing = if all { Vec::new() } else { vec![("standing", "1")] };
        let before = last.seq.to_string();
        format!("{}?{}", address(&run), query(&[standing, vec![("before", before.as_str())]].concat()))
    });
    let redo = redo_of(ask, &run);
    let body = html! {
        (trail(&[("Runs", "/runs".to_owned())]))
        div.heading {
            h1 { (ShownText(&ic_base::title(&run.goal))) }
            (badge(&run))
        }
        (chain(&run))
        @for one in &status.unfinished {
            (notice("warn", "Unfinished", &html! {
                p.message { (ShownText(&one.message)) }
                p { "To resume: " code.command { (ShownText(&one.command)) } }
                @if one.kind == "rollback" { p { a.button href={ "/rollbacks/" (one.id) } { "Look at it" } } }
            }))
        }
        // The drawing has the newest points, whichever page of the list is shown: only the first page has it.
        @if before.is_none() {
            section.time aria-labelledby="time" {
                h2 #time { "Timeline" }
                (timeline::of_run(ask, &run)?)
            }
        }
        div.columns {
            section.points aria-labelledby="points" {
                div.heading {
                    h2 #points { "Points" }
                    nav.tabs aria-label="Which points" {
                        a href=(address(&run)) aria-current=[all.then_some("true")] { "All" }
                        a href={ (address(&run)) "?standing=1" } aria-current=[(!all).then_some("true")] { "Standing" }
                    }
                }
                @if let Some(why) = &entries.unread {
                    (log_row::unread(why))
                }
                ol.log { @for entry in &entries.entries { (row(ask, &run, entry)) } }
                @if entries.entries.is_empty() { p.empty { "There are no older points." } }
                (older(more))
            }
            (facts(ask, &run, &status, redo.as_deref())?)
        }
    };
    Ok(PageLayout::new(ic_base::title(&run.goal), body).following(run.id.as_str()))
}

/// The address of the redo of a run's newest undo; `None` if there is none.
fn redo_of(ask: &Ask<'_>, run: &Run) -> Option<String> {
    match ic_undo::newest(ask.kernel, RedoOwner::Run(run)) {
        Ok(NewestUndo::Rollback(id)) => Some(format!("/rollbacks/{id}/redo")),
        // A restore of the tree is not a rollback of this run; `ic redo` undoes it.
        Ok(NewestUndo::Restore) | Err(_) => None,
    }
}

fn facts(ask: &Ask<'_>, run: &Run, status: &RunOverview, redo: Option<&str>) -> Result<Markup> {
    let spent = ask.read(|snapshot| token_totals::of_run(snapshot, &run.id))?;
    let (all, undone) = token_totals::total(&spent);
    Ok(html! {
        aside.facts aria-label="About this run" {
            @if let Some(redo) = redo {
                p { a.button href=(redo) data-redo { "Redo the last undo" } }
            }
            dl {
                dt { "Id" } dd { code { (run.id.short()) } }
                dt { "Goal" } dd.goal { (ShownText(&run.goal)) }
                dt { "Working" }
                dd {
                    @if status.working.is_empty() { span.quiet { "no process" } }
                    @for working in &status.working { div { (worker(working)) } }
                }
                dt { "Begun" } dd { (when(ask.now, run.created_at)) }
                @if run.epoch > 0 { dt { "Epoch" } dd { (run.epoch) } }
                @if all.input > 0 || all.output > 0 {
                    dt { "Tokens" }
                    dd {
                        (rounded(all.input)) " in, " (rounded(all.output)) " out"
                        @if undone.input > 0 || undone.output > 0 {
                            br; span.quiet { (rounded(undone.input.saturating_add(undone.output))) " in undone work" }
                        }
                    }
                }
                dt { "Project" } dd.path { (ShownText(&of_path(&run.project_dir))) }
                dt { "Next" } dd { code.command { (ShownText(&status.next_command())) } }
            }
            p { a href={ "/events?" (query(&[("run", run.id.as_str())])) } { "Its events" } }
        }
    })
}

/// A point or a rollback as a row.
fn row(ask: &Ask<'_>, run: &Run, entry: &LogEntry) -> LogRow {
    let (point, files, commits) = match &entry.what {
        What::Point { point, files, commits, .. } => (point, files, commits),
        What::Rollback(rollback) => return LogRow::of_rollback(ask, entry, rollback, went_back(rollback)),
    };
    LogRow {
        depth: entry.taken_back_by.len(),
        is_over: !entry.taken_back_by.is_empty() || point.is_undone,
        kind: (point.kind, kind(point).to_owned()),
        address: point_address(run, point),
        title: html! { (ShownText(title(point))) },
        facts: html! {
            code { (ShownText(&point.reference)) }
            (point_facts(point, *files, *commits))
            (when(ask.now, point.created_at))
        },
        act: undo_of(ask, run, point),
    }
}
