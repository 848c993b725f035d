//! The page of a run: its timeline, and its points with what each changed.

use ic_base::{Result, Seq};
use ic_dispatch::token_totals;
use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use ic_ops::status::RunOverview;
use ic_phase::Run;
use ic_undo::points::ListedPoint;
use ic_undo::points::log::{self, Files, LogEntry, What};
use ic_undo::{NewestUndo, RedoOwner};
use maud::{Markup, html};

use crate::layout::{PageLayout, notice, older, trail};
use crate::page_request::Ask;
use crate::rollback_name::{state_of, went_back};
use crate::runs::{address, badge, chain, status_of, worker};
use crate::text::{EMPTY, ShownText, counted, of_path, query, rounded, when};
use crate::timeline;

/// The most points and rollbacks on one page.
const AT_ONCE: usize = 40;

/// The page of a run. `?before=SEQ`: an older page of its points; `?standing=1`: without what was rolled back.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let run = ask.run()?;
    let status = status_of(ask, &run)?;
    let (before, all) = (ask.params.seq("before")?, !ask.params.has("standing"));
    let options = ask.app.project.options();
    let entries = log::page(ask.kernel, options, &run, all, (before.unwrap_or(Seq::MAX), AT_ONCE))?;
    let more = entries.entries.last().filter(|_| entries.has_more).map(|last| {
        let standing = if all { Vec::new() } else { vec![("standing", "1")] };
        let before = last.seq.to_string();
        format!("{}?{}", address(&run), query(&[standing, vec![("before", before.as_str())]].concat()))
    });
    let redo = redo_of(ask, &run);
    let body = html! {
        (trail(&[("Runs", "/".to_owned())]))
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
                    (notice("warn", "What changed is not known at every point", &html! {
                        p.message { (ShownText(why)) }
                        p { "More of it: " code.command { "ic health" } }
                    }))
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
fn row(ask: &Ask<'_>, run: &Run, entry: &LogEntry) -> Markup {
    match &entry.what {
        What::Point { point, files, commits, .. } => point_row(ask, run, entry, (point, *files, *commits)),
        What::Rollback(rollback) => rollback_row(ask, entry, rollback),
    }
}

fn depth(entry: &LogEntry) -> usize {
    // The stylesheet has four depths; deeper branches look like the fourth.
    entry.taken_back_by.len().min(4)
}

fn point_row(
    ask: &Ask<'_>,
    run: &Run,
    entry: &LogEntry,
    (point, files, commits): (&ListedPoint, Option<Files>, Option<usize>),
) -> Markup {
    let is_over = !entry.taken_back_by.is_empty() || point.is_undone;
    let can_undo = point.is_target() && ask.can_undo();
    let target = can_undo.then(|| undo_address(run, point));
    html! {
        li.entry.point.(format!("depth{}", depth(entry))).over[is_over] data-row {
            span.kind.(point.kind) { (kind(point)) }
            div.what {
                a.title href=(point_address(run, point)) data-open { (ShownText(title(point))) }
                p.facts {
                    code { (ShownText(&point.reference)) }
                    (changed(files))
                    @if let Some(commits) = commits.filter(|n| *n > 0) { span { (counted(commits, "commit")) } }
                    @if let Some(undone) = point.undone() { span.tag { (undone) } }
                    @if point.is_pruned { span.tag { "pruned" } }
                    (when(ask.now, point.created_at))
                }
            }
            @if let Some(address) = target {
                a.act href=(address) data-undo aria-label={ "Undo to here: before " (title(point)) } { "Undo to here" }
            }
        }
    }
}

fn rollback_row(ask: &Ask<'_>, entry: &LogEntry, rollback: &RollbackRecord) -> Markup {
    let is_over = !entry.taken_back_by.is_empty() || !rollback.status.stands();
    let is_redoable = rollback.status == RollbackStatus::Done;
    html! {
        li.entry.rollback.(format!("depth{}", depth(entry))).over[is_over] data-row {
            span.kind.back { "undo" }
            div.what {
                a.title href={ "/rollbacks/" (rollback.id) } data-open { (went_back(rollback)) }
                p.facts {
                    code { (rollback.id.short()) }
                    @if let Some(reason) = &rollback.reason { span { (ShownText(&ic_base::title(reason))) } }
                    @if let Some(state) = state(ask, rollback) { span.tag { (state) } }
                    (when(ask.now, rollback.created_at))
                }
            }
            @if is_redoable {
                a.act href={ "/rollbacks/" (rollback.id) "/redo" } data-redo aria-label="Redo what this undid" { "Redo" }
            }
        }
    }
}

/// The state of a rollback; `None` if it is done and in force.
fn state(ask: &Ask<'_>, rollback: &RollbackRecord) -> Option<&'static str> {
    let is_at_work = !rollback.status.is_over() && ic_undo::is_at_work(ask.kernel, rollback);
    (rollback.status != RollbackStatus::Done).then(|| state_of(rollback, is_at_work).1)
}

/// The address of the page of a point.
pub(crate) fn point_address(run: &Run, point: &ListedPoint) -> String {
    let seq = point.seq.to_string();
    format!("{}/point?{}", address(run), query(&[("at", &seq), ("ref", &point.reference)]))
}

/// The address of the plan that goes back to before a point.
pub(crate) fn undo_address(run: &Run, point: &ListedPoint) -> String {
    format!("{}/undo?{}", address(run), query(&[("to", &point.reference)]))
}

/// The title of a point, or its reference if it has none.
pub(crate) fn title(point: &ListedPoint) -> &str {
    if point.title.is_empty() { &point.reference } else { &point.title }
}

/// The kind of a point, as one word for people.
pub(crate) fn kind(point: &ListedPoint) -> &'static str {
    match point.kind {
        "created" => "start",
        "dispatch" if point.is_of_subagent() => "subagent",
        "checkpoint" => "saved",
        kind => kind,
    }
}

/// The numbers of changed files.
pub(crate) fn changed(files: Option<Files>) -> Markup {
    let Some(files) = files.filter(|files| *files != Files::default()) else { return EMPTY };
    let said = format!("{} created, {} modified, {} deleted", files.created, files.modified, files.deleted);
    html! {
        span.files title=(said) {
            @if files.created > 0 { span.created { "+" (files.created) } }
            @if files.modified > 0 { span.modified { "~" (files.modified) } }
            @if files.deleted > 0 { span.deleted { "−" (files.deleted) } }
            @if files.directories > 0 { span.quiet title="Empty ones that came or went, or with other modes" { (counted(files.directories, "directory")) } }
            @if files.shared > 0 { span.quiet title="Others worked at the same time, and may have changed these" { (files.shared) " shared" } }
        }
    }
}
