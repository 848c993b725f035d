//! A line of a log: what was done, its facts, and the one thing that can be done about it.

use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use ic_phase::{Run, RunStatus};
use ic_undo::points::ListedPoint;
use ic_undo::points::log::{Files, LogEntry};
use maud::{Markup, Render, html};

use crate::layout::notice;
use crate::page_request::Ask;
use crate::rollback_name::state_of;
use crate::runs::address;
use crate::text::{EMPTY, ShownText, counted, query, when};

/// A line of a log.
pub(crate) struct LogRow {
    /// How many rollbacks that stand went back to before it: it is indented by them.
    pub(crate) depth: usize,
    /// Whether it counts no longer.
    pub(crate) is_over: bool,
    /// The class that colours the first column, and its text.
    pub(crate) kind: (&'static str, String),
    /// The page that its title leads to.
    pub(crate) address: String,
    /// What was done, in one line.
    pub(crate) title: Markup,
    /// Its name in commands, and what is known of it.
    pub(crate) facts: Markup,
    /// The link to an undo or a redo, if there is one.
    pub(crate) act: Markup,
}

impl LogRow {
    /// The line of a rollback.
    pub(crate) fn of_rollback(ask: &Ask<'_>, entry: &LogEntry, rollback: &RollbackRecord, title: Markup) -> Self {
        // An unfinished rollback is resumed or aborted first, and one that was undone has nothing to redo.
        let is_redoable = rollback.status == RollbackStatus::Done;
        Self {
            depth: entry.taken_back_by.len(),
            is_over: !entry.taken_back_by.is_empty() || !rollback.status.stands(),
            kind: ("back", "undo".to_owned()),
            address: format!("/rollbacks/{}", rollback.id),
            title,
            facts: html! {
                code { (rollback.id.short()) }
                @if let Some(reason) = &rollback.reason { span { (ShownText(&ic_base::title(reason))) } }
                @if let Some(state) = state(ask, rollback) { span.tag { (state) } }
                (when(ask.now, rollback.created_at))
            },
            act: html! {
                @if is_redoable {
                    a.act href={ "/rollbacks/" (rollback.id) "/redo" } data-redo aria-label="Redo what this undid" { "Redo" }
                }
            },
        }
    }
}

impl Render for LogRow {
    fn render(&self) -> Markup {
        // The stylesheet has four depths; deeper branches look like the fourth.
        let depth = format!("depth{}", self.depth.min(4));
        let sort = if self.kind.0 == "back" { "rollback" } else { "point" };
        html! {
            li.entry.(sort).(depth).over[self.is_over] data-row {
                span.kind.(self.kind.0) { (ShownText(&self.kind.1)) }
                div.what {
                    a.title href=(self.address) data-open { (self.title) }
                    p.facts { (self.facts) }
                }
                (self.act)
            }
        }
    }
}

/// The state of a rollback; `None` if it is done and in force.
fn state(ask: &Ask<'_>, rollback: &RollbackRecord) -> Option<&'static str> {
    let is_at_work = !rollback.status.is_over() && ic_undo::is_at_work(ask.kernel, rollback);
    (rollback.status != RollbackStatus::Done).then(|| state_of(rollback, is_at_work).1)
}

/// The link to the plan of an undo from a point on; none where there is nothing to undo, or the run cannot go back.
pub(crate) fn undo_of(ask: &Ask<'_>, run: &Run, point: &ListedPoint) -> Markup {
    let can_go_back = matches!(run.status, RunStatus::Active | RunStatus::RollingBack | RunStatus::Completed);
    if !point.is_target() || !can_go_back || !ask.can_undo() {
        return EMPTY;
    }
    html! {
        a.act href=(undo_address(run, point)) data-undo aria-label={ "Undo from here: " (title(point)) } { "Undo from here" }
    }
}

/// What is known of a point: the changed files, the commits, and whether it was undone or has no content.
pub(crate) fn point_facts(point: &ListedPoint, files: Option<Files>, commits: Option<usize>) -> Markup {
    html! {
        (changed(files))
        @if let Some(commits) = commits.filter(|n| *n > 0) { span { (counted(commits, "commit")) } }
        @if let Some(undone) = point.undone() { span.tag { (undone) } }
        @if point.is_pruned { span.tag { "pruned" } }
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

/// The notice above a log whose content cannot be read.
pub(crate) fn unread(why: &str) -> Markup {
    notice(
        "warn",
        "What changed is not known at every point",
        &html! {
            p.message { (ShownText(why)) }
            p { "More of it: " code.command { "ic health" } }
        },
    )
}

/// The address of the page of a point.
pub(crate) fn point_address(run: &Run, point: &ListedPoint) -> String {
    let seq = point.seq.to_string();
    format!("{}/point?{}", address(run), query(&[("at", &seq), ("ref", &point.reference)]))
}

/// The address of the plan that undoes what came from a point on.
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
