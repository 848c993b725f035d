//! The page of a point: what changed there, and the undo from there.

use ic_base::{CheckpointId, Result};
use ic_undo::points::ListedPoint;
use ic_undo::points::log::{self, What};
use maud::{Markup, html};

use crate::changes::{self, TreePair, View};
use crate::layout::{PageLayout, notice, trail};
use crate::log_row::{changed, kind, point_address, title, undo_address};
use crate::page_request::Ask;
use crate::runs::address;
use crate::text::{EMPTY, ShownText, counted, query, when};

/// What the point is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    /// The next point: what its work changed.
    Did,
    /// The point before it.
    Before,
    /// The working tree at the time of the request.
    Now,
}

/// The page of a point. `?show=before` or `now`: what it is compared with.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let run = ask.run()?;
    let at = ask.params.seq("at")?.unwrap_or_default();
    let reference = ask.params.require("ref")?;
    let options = ask.app.project.options();
    let (entry, before) = log::at(ask.kernel, options, &run, (at, reference))?;
    // A reference finds only points.
    let What::Point { point, files, until, commits } = &entry.what else {
        return Ok(PageLayout::new("Point", EMPTY));
    };
    let show = match ask.params.get("show") {
        Some("before") => Show::Before,
        Some("now") => Show::Now,
        // The newest point has no next one; its work shows in the tree.
        None if until.is_none() => Show::Now,
        Some(_) | None => Show::Did,
    };
    let own = point_address(&run, point);
    let body = html! {
        (trail(&[("Runs", "/runs".to_owned()), (&ic_base::title(&run.goal), address(&run))]))
        div.heading {
            div {
                span.kind.(point.kind) { (kind(point)) }
                h1 { (ShownText(title(point))) }
            }
            @if point.is_target() && ask.can_undo() { a.button.primary href=(undo_address(&run, point)) data-undo { "Undo from here" } }
        }
        p.facts {
            code { (ShownText(&point.reference)) }
            span { "in " (ShownText(&point.phase)) }
            (changed(*files))
            @if let Some(commits) = commits.filter(|n| *n > 0) { span { (counted(commits, "commit")) } }
            (when(ask.now, point.created_at))
            @if matches!(point.kind, "dispatch" | "prompt") && let Some(id) = &point.before {
                a href={ "/dispatches/" (id) } { "What it did" }
            }
        }
        (no_target(point))
        (sides(ask, &own, point, before.as_ref(), until.as_ref(), show)?)
    };
    Ok(PageLayout::new(title(point), body).following(run.id.as_str()))
}

fn no_target(point: &ListedPoint) -> Markup {
    if let Some(by) = &point.taken_back_by {
        return notice(
            "info",
            "It was undone",
            &html! {
                p { "A rollback took the run back to before this point. To bring it back, redo that rollback." }
                p { a.button href={ "/rollbacks/" (by) } { "The rollback " (by.short()) } }
            },
        );
    }
    if point.is_pruned {
        return notice(
            "info",
            "Its content is gone",
            &html! {
                p { "The checkpoint of this point was pruned: the run cannot go back to it." }
            },
        );
    }
    EMPTY
}

fn sides(
    ask: &Ask<'_>,
    own: &str,
    point: &ListedPoint,
    before: Option<&ListedPoint>,
    until: Option<&CheckpointId>,
    show: Show,
) -> Result<Markup> {
    let Some(checkpoint) = point.checkpoint_id.as_ref().filter(|_| !point.is_pruned) else {
        return Ok(html! { p.empty { "No checkpoint of the tree was taken here." } });
    };
    let earlier = before.and_then(|before| before.checkpoint_id.as_ref());
    let view = if View::of(ask.params) == View::Split { vec![("view", "split")] } else { Vec::new() };
    let at = |show: &str, more: &[(&str, &str)]| format!("{own}&{}", query(&[&[("show", show)], more].concat()));
    let tab = |is_there: bool, one: Show, word: &str, said: &str| {
        html! { @if is_there { a href=(at(word, &view)) aria-current=[(show == one).then_some("true")] { (said) } } }
    };
    let (pair, word) = match (show, earlier, until) {
        (Show::Before, Some(earlier), _) => {
            (Some(TreePair { from: earlier.as_str(), to: Some(checkpoint.as_str()) }), "before")
        }
        (Show::Did, _, Some(until)) => (Some(TreePair { from: checkpoint.as_str(), to: Some(until.as_str()) }), "did"),
        (Show::Now, ..) => (Some(TreePair { from: checkpoint.as_str(), to: None }), "now"),
        // An address may ask for a side that is not there: `?show=before` at the first point.
        _ => (None, ""),
    };
    let list = if let Some(pair) = &pair {
        changes::list(ask, pair, &|more| at(word, more))?
    } else {
        html! { p.empty { "It is not known what changed." } }
    };
    Ok(html! {
        section.changes aria-label="What changed" {
            nav.tabs.wide aria-label="What is compared" {
                (tab(until.is_some(), Show::Did, "did", "From here to the next point"))
                (tab(earlier.is_some(), Show::Before, "before", "Since the point before"))
                (tab(true, Show::Now, "now", "From here to the tree now"))
            }
            @if let Some(pair) = &pair {
                p.quiet { "Checkpoint " code { (crate::flags::short(pair.from)) } " → "
                    @if let Some(to) = pair.to { code { (crate::flags::short(to)) } } @else { "the tree now" }
                    " · " a href={ "/compare?" (query(&pair.pairs())) } { "compare with another" } }
            }
            (list)
        }
    })
}
