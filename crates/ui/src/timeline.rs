//! Draws the timeline of a run as SVG.
//!
//! Each point and each rollback has a column, oldest first. The line at the top is what is in force. An attempt that was undone is a branch
//! below it, and the rollback is an arrow back to where the run went. Below these are the bars of dispatches, from the column where each
//! began to the one where it ended, and the sessions that they belong to.

mod draw;
mod layout;

use std::collections::BTreeMap;

use ic_base::{Result, Seq, SessionId};
use ic_dispatch::dispatch::{self, DispatchFilter};
use ic_dispatch::{Dispatch, DispatchStatus};
use ic_phase::Run;
use ic_undo::points::log::{self, LogEntry, What};
use maud::{Markup, html};

use crate::log_row::{point_address, title};
use crate::page_request::Ask;
use crate::session;
use crate::text::counted;
use layout::{Bar, MarkStyle, Sort, TimelineMark, laid_out};

/// The most points and rollbacks that are drawn: the newest.
const MARKS: usize = 120;

/// The most dispatches that are read: the newest.
const DISPATCHES: usize = 200;

/// The timeline of a run.
pub(crate) fn of_run(ask: &Ask<'_>, run: &Run) -> Result<Markup> {
    let log = ask.read(|snapshot| log::drawn(snapshot, run, MARKS))?;
    let mut marks: Vec<TimelineMark> = log.entries.iter().rev().map(|entry| mark(run, entry)).collect();
    let first = marks.first().map_or(0, |mark| mark.seq);
    marks
        .iter_mut()
        .filter(|mark| mark.back_to.is_some_and(|to| to < first))
        // An arrow to a point that is not drawn leads to the oldest one that is.
        .for_each(|mark| mark.back_to = Some(first));
    let (work, has_older) = work(ask, run, first)?;
    let bars = work.iter().map(bar).collect();
    let sessions = sessions(ask, &work)?;
    let drawing = laid_out(marks, bars, sessions);
    let cut = html! {
        @if log.has_more { p.cut { "The newest " (counted(MARKS, "point")) " are drawn; older ones stand in the list." } }
        @if has_older { p.cut { "Only the newest " (counted(DISPATCHES, "dispatch")) " are looked at: what is older is not drawn." } }
    };
    Ok(html! {
        div.timeline tabindex="0" role="region" aria-label="Timeline, oldest to newest" data-to-end {
            (draw::svg(&drawing))
        }
        (cut)
        (legend())
    })
}

fn legend() -> Markup {
    html! {
        ul.legend aria-label="What the marks mean" {
            li { span.dot.prompt {} "prompt, dispatch or step" }
            li { span.dot.phase {} "phase left" }
            li { span.dot.checkpoint {} "checkpoint" }
            li { span.line.gone {} "undone" }
            li { span.line.back {} "undo" }
        }
    }
}

fn mark(run: &Run, entry: &LogEntry) -> TimelineMark {
    let depth = entry.taken_back_by.len();
    match &entry.what {
        What::Point { point, .. } => TimelineMark {
            seq: entry.seq,
            depth,
            sort: Sort::of(point.kind),
            phase: point.phase.clone(),
            title: format!("{}: {}", point.reference, title(point)),
            address: point_address(run, point),
            back_to: None,
            is_over: depth > 0 || point.is_undone,
        },
        What::Rollback(rollback) => TimelineMark {
            seq: entry.seq,
            depth,
            sort: Sort::Back,
            phase: rollback.to_phase.clone(),
            title: match (rollback.point(), rollback.alone()) {
                (_, Some(alone)) => format!("undo of {alone} alone"),
                (Some(point), _) => format!("undo from {point}"),
                (None, None) => format!("undo to phase {}", rollback.to_phase),
            },
            address: format!("/rollbacks/{}", rollback.id),
            // An undo of works leaves the run in its phase, so it has no arrow.
            back_to: (!rollback.is_of_works()).then_some(rollback.cut_seq),
            is_over: depth > 0 || !rollback.status.stands(),
        },
    }
}

/// The dispatches that worked after an event, oldest first, and whether there are more than were read.
fn work(ask: &Ask<'_>, run: &Run, since: Seq) -> Result<(Vec<Dispatch>, bool)> {
    // One more is read than is drawn, to know whether there are older ones.
    let at_most = i64::try_from(DISPATCHES).unwrap_or(i64::MAX).saturating_add(1);
    let filter = DispatchFilter { run_id: Some(&run.id), phase: None, status: None, limit: at_most };
    let mut all = ask.read(|snapshot| dispatch::list(snapshot, &filter))?;
    let was_at_work = |one: &Dispatch| one.started_at.is_some() && one.finished_seq.is_none_or(|end| end >= since);
    let has_older = all.len() > DISPATCHES;
    all.truncate(DISPATCHES);
    all.retain(was_at_work);
    // The oldest come first: a lane is taken by the first bar that needs it, and has room for those that begin after it.
    all.reverse();
    Ok((all, has_older))
}

fn bar(work: &Dispatch) -> Bar {
    let name = work.work.name.as_deref().or(work.work.agent_type.as_deref()).unwrap_or("dispatch");
    let look = match work.status {
        _ if work.rolled_back_by.is_some() => MarkStyle::Undone,
        DispatchStatus::Running | DispatchStatus::Pending => MarkStyle::Running,
        DispatchStatus::Completed => MarkStyle::Completed,
        _ => MarkStyle::Failed,
    };
    Bar {
        from: work.place(),
        until: work.finished_seq,
        name: ic_base::title(name),
        said: if look == MarkStyle::Undone { "undone" } else { work.status.as_str() },
        address: format!("/dispatches/{}", work.id),
        look,
    }
}

/// The sessions of these dispatches, each from its first to its last one.
fn sessions(ask: &Ask<'_>, work: &[Dispatch]) -> Result<Vec<Bar>> {
    ask.read(|snapshot| {
        let mut spans: BTreeMap<SessionId, (Seq, Option<Seq>)> = BTreeMap::new();
        for one in work {
            let Some(prompt) = ic_session::prompt_of(snapshot, &one.id)? else { continue };
            let span = spans.entry(prompt.session_id).or_insert((one.place(), one.finished_seq));
            // Without an end as soon as one of its dispatches still runs.
            span.1 = span.1.zip(one.finished_seq).map(|(a, b)| a.max(b));
        }
        let mut bars = Vec::new();
        for (id, (from, until)) in spans {
            let session = ic_session::get(snapshot, &id)?;
            let name = session::title(snapshot, &session)?;
            let address = format!("/sessions/{id}");
            bars.push(Bar { from, until, name, said: "session", address, look: MarkStyle::Session });
        }
        bars.sort_by_key(|bar| bar.from);
        Ok(bars)
    })
}
