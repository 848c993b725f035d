//! Compares any two checkpoints of a working tree, or one with the tree.

use ic_base::Result;
use ic_checkpoint::record::{self, CheckpointRecord};
use maud::{Markup, html};

use crate::changes::{self, TreePair, View};
use crate::layout::{PageLayout, trail};
use crate::page_request::Ask;
use crate::text::{PageLine, ShownText, of_hex, path, query, when};

/// The page of a comparison; without two sides, a form to choose them.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let Some(from) = ask.params.get("from") else { return Ok(choose()) };
    // `now` is how `TreePair::pairs` writes the working tree into an address; a form leaves the field empty.
    let to = ask.params.get("to").filter(|to| *to != "now");
    let (older, newer) = sides(ask, from, to)?;
    let pair = TreePair { from: older.id.as_str(), to: newer.as_ref().map(|one| one.id.as_str()) };
    let at = |more: &[(&str, &str)]| format!("/compare?{}", query(&[pair.pairs(), more.to_vec()].concat()));
    let body = html! {
        (trail(&crumbs(&older)))
        h1 { "Compare" }
        p.sides { (side(ask, &older)) " → " @if let Some(newer) = &newer { (side(ask, newer)) } @else { strong { "the tree now" } } }
        details { summary { "Compare others" } (form(older.id.short(), newer.as_ref().map_or("", |one| one.id.short()))) }
        (changes::list(ask, &pair, &at)?)
    };
    Ok(PageLayout::new("Compare", body))
}

/// The page of one file of a comparison.
pub(crate) fn file(ask: &Ask<'_>) -> Result<PageLayout> {
    let wanted = ask.params.require("path")?;
    let wanted = of_hex(wanted)
        .ok_or_else(|| ic_base::Diagnosis::new(ic_base::Code::InvalidValue, "This address names no path."))?;
    let to = ask.params.get("to").filter(|to| *to != "now");
    let (older, newer) = sides(ask, ask.params.require("from")?, to)?;
    let pair = TreePair { from: older.id.as_str(), to: newer.as_ref().map(|one| one.id.as_str()) };
    let view = View::of(ask.params);
    let hex = crate::text::in_hex(&wanted);
    let at = |view: &[(&str, &str)]| {
        format!("/compare/file?{}", query(&[pair.pairs(), vec![("path", hex.as_str())], view.to_vec()].concat()))
    };
    let whole = format!("/compare?{}", query(&pair.pairs()));
    let body = html! {
        (trail(&[crumbs(&older), vec![("Compare", whole)]].concat()))
        div.heading {
            p.sides { (side(ask, &older)) " → " @if let Some(newer) = &newer { (side(ask, newer)) } @else { strong { "the tree now" } } }
            (changes::tabs(view, &at))
        }
        h1.path { (PageLine(&path(&wanted))) }
        (changes::one(ask, &pair, &wanted, view)?)
    };
    Ok(PageLayout::new(crate::text::file_name(&wanted), body))
}

/// Both checkpoints, the older one first.
fn sides(ask: &Ask<'_>, from: &str, to: Option<&str>) -> Result<(CheckpointRecord, Option<CheckpointRecord>)> {
    ask.read(|snapshot| {
        let from = record::resolve(snapshot, from)?;
        let to = to.map(|to| record::resolve(snapshot, to)).transpose()?;
        Ok(match to {
            // Swapped if needed: a person types two ids without knowing which is older.
            Some(to) if to.seq < from.seq => (to, Some(from)),
            to => (from, to),
        })
    })
}

fn crumbs(of: &CheckpointRecord) -> Vec<(&'static str, String)> {
    let run = of.link.run_id.as_ref().map(|run| ("Run", format!("/runs/{run}")));
    [("Runs", "/runs".to_owned())].into_iter().chain(run).collect()
}

fn side(ask: &Ask<'_>, one: &CheckpointRecord) -> Markup {
    let name = one.link.name.as_deref().or(one.link.message.as_deref());
    html! {
        span.side {
            code { (one.id.short()) }
            @if let Some(name) = name { " " (ShownText(&ic_base::title(name))) }
            " " (when(ask.now, one.created_at))
            (changes::place(&one.root, &ask.kernel.project.root))
        }
    }
}

/// The page on which to choose two checkpoints.
fn choose() -> PageLayout {
    let body = html! {
        h1 { "Compare" }
        (form("", ""))
        p.quiet { "The page of a point names its checkpoint, and ic checkpoint list lists all of them." }
    };
    PageLayout::new("Compare", body)
}

/// A form for two checkpoints.
fn form(from: &str, to: &str) -> Markup {
    html! {
        form.plain action="/compare" method="get" {
            label { "From checkpoint" input name="from" required value=(from) spellcheck="false" autocomplete="off"; }
            label { "To checkpoint, or empty: the working tree" input name="to" value=(to) spellcheck="false" autocomplete="off"; }
            button type="submit" { "Compare" }
            p.quiet { "The older one is shown first, whichever is given first." }
        }
    }
}
