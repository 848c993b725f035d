//! Draws a timeline as SVG. Colours and widths are in the stylesheet, because the page's policy forbids `style` attributes.

use maud::{Markup, html};

use super::layout::{Drawing, MarkStyle, PlacedBar, PlacedMark, Sort, Track};
use crate::text::{EMPTY, PageLine};

/// The width of the widest letter in a label.
const LETTER: usize = 7;

/// The width from which on a bar has its name in it.
const NAMED: usize = 40;

pub(super) fn svg(drawing: &Drawing) -> Markup {
    // The parts are drawn in this order, because later parts of an SVG lie above earlier ones: marks can be hit over lines and bars.
    let (width, height) = (drawing.width, drawing.height);
    html! {
        svg.fits[drawing.fits] xmlns="http://www.w3.org/2000/svg" width=(in_text(width)) height=(in_text(height))
            viewBox={ "0 0 " (width) " " (height) } role="group" aria-label="The run as a drawing" {
            defs {
                marker #arrow viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto" {
                    path d="M0 0 L10 5 L0 10 z" {}
                }
            }
            @for track in &drawing.tracks { (phase(track)) }
            @for mark in &drawing.marks { (way(mark)) }
            @for mark in &drawing.marks { (arrow(mark)) }
            @for bar in &drawing.bars { (work(bar)) }
            @for mark in &drawing.marks { (dot(mark)) }
            @if drawing.left_out > 0 {
                text.note x="26" y=(height - 2) { (drawing.left_out) " more at the same time" }
            }
        }
    }
}

/// A length in the unit of the page's text, so that the drawing grows with it: 16 units are one rem.
fn in_text(length: usize) -> String {
    format!("{}.{:02}rem", length / 16, length % 16 * 100 / 16)
}

fn phase(track: &Track) -> Markup {
    let class = if track.is_over { "phase gone" } else { "phase" };
    html! {
        g class=(class) {
            rect x=(track.x) y="8" width=(track.width - 4) height="24" rx="6" {}
            text x=(track.x + 10) y="24" { (PageLine(&cut(&track.name, track.width.saturating_sub(18)))) }
            title { (PageLine(&track.name)) }
        }
    }
}

/// The line to a mark from the one before it.
fn way(mark: &PlacedMark) -> Markup {
    let Some((x, y)) = mark.before else { return EMPTY };
    let class = if mark.mark.is_over { "way gone" } else { "way" };
    let path = if y == mark.y {
        format!("M{x} {y} H{}", mark.x)
    } else {
        let middle = x + (mark.x.saturating_sub(x)).min(48) / 2;
        let end = x + (mark.x.saturating_sub(x)).min(48);
        format!("M{x} {y} C{middle} {y} {middle} {} {end} {} H{}", mark.y, mark.y, mark.x)
    };
    html! { path class=(class) d=(path) {} }
}

/// The arrow of a rollback, above the line of what is in force.
fn arrow(mark: &PlacedMark) -> Markup {
    let Some((x, y)) = mark.back_to.filter(|(x, _)| *x < mark.x) else { return EMPTY };
    let class = if mark.mark.is_over { "back gone" } else { "back" };
    // A longer arrow rises higher, so that two arrows to one point do not lie on each other.
    let lift = 18 + (mark.x - x).min(440) / 22;
    let top = mark.y.min(y).saturating_sub(lift).max(38);
    let path = format!(
        "M{} {} C{} {top} {} {top} {} {}",
        mark.x,
        mark.y.saturating_sub(9),
        mark.x.saturating_sub(8),
        x + 14,
        x + 3,
        y.saturating_sub(10),
    );
    html! { path class=(class) d=(path) marker-end="url(#arrow)" {} }
}

fn dot(mark: &PlacedMark) -> Markup {
    let (x, y) = (mark.x, mark.y);
    let sort = match mark.mark.sort {
        Sort::Work => "work",
        Sort::Phase => "left",
        Sort::Checkpoint => "saved",
        Sort::Start => "start",
        Sort::Back => "undo",
    };
    let class = format!("mark {sort}{}", if mark.mark.is_over { " gone" } else { "" });
    html! {
        a class=(class) href=(mark.mark.address) aria-label=(ic_base::display::plain(&mark.mark.title)) {
            title { (PageLine(&mark.mark.title)) }
            circle.hit cx=(x) cy=(y) r="16" {}
            @match mark.mark.sort {
                Sort::Phase => { rect x=(x - 6) y=(y - 6) width="12" height="12" rx="2" {} }
                Sort::Back => { path d=(format!("M{} {y} l13 -9 v18 z", x - 7)) {} }
                Sort::Checkpoint => { path d=(format!("M{x} {} l8 8 l-8 8 l-8 -8 z", y - 8)) {} }
                Sort::Start | Sort::Work => { circle cx=(x) cy=(y) r="7" {} }
            }
        }
    }
}

fn work(bar: &PlacedBar) -> Markup {
    let class = match bar.bar.look {
        MarkStyle::Running => "bar running",
        MarkStyle::Completed => "bar completed",
        MarkStyle::Failed => "bar failed",
        MarkStyle::Undone => "bar gone",
        MarkStyle::Session => "bar session",
    };
    let said = format!("{} ({})", bar.bar.name, bar.bar.said);
    // A bar with its visible name needs no other label: what is read aloud should begin with what is seen.
    let label = (bar.width <= NAMED).then(|| ic_base::display::plain(&said));
    html! {
        a class=(class) href=(bar.bar.address) aria-label=[label] {
            title { (PageLine(&said)) }
            rect x=(bar.x) y=(bar.y) width=(bar.width) height="20" rx="5" {}
            @if bar.width > NAMED {
                text x=(bar.x + 8) y=(bar.y + 14) { (PageLine(&cut(&bar.bar.name, bar.width - 14))) }
            }
        }
    }
}

/// The beginning of a text that fits into a width.
fn cut(text: &str, width: usize) -> String {
    let room = width / LETTER;
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let head: String = text.chars().take(room.saturating_sub(1)).collect();
    if head.is_empty() { head } else { format!("{}…", head.trim_end()) }
}
