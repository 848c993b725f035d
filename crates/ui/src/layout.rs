//! What every page has around its own content.

use axum::http::StatusCode;
use ic_base::{Diagnosis, Seq};
use maud::{DOCTYPE, Markup, html};

use crate::app::App;
use crate::assets::{ICON, SCRIPT, STYLE};
use crate::text::{EMPTY, Shown};

/// A page before it is sent.
pub(crate) struct Page {
    /// How it is answered.
    pub(crate) status: StatusCode,
    /// What the window is called.
    pub(crate) title: String,
    /// Its own content.
    pub(crate) body: Markup,
    /// Which news make it old; `None`: none.
    pub(crate) follows: Option<String>,
    /// The browser asks again by itself, without a script too.
    pub(crate) asks_again: bool,
}

impl Page {
    /// A page that is not renewed.
    pub(crate) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self { status: StatusCode::OK, title: title.into(), body, follows: None, asks_again: false }
    }

    /// The same page, renewed when something happens in this run; `all`: in any.
    #[must_use]
    pub(crate) fn following(self, what: &str) -> Self {
        Self { follows: Some(what.to_owned()), ..self }
    }

    /// The same page with this answer.
    #[must_use]
    pub(crate) fn with(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }
}

/// What a browser prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system says.
    Auto,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of a word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Auto, Self::Light, Self::Dark].into_iter().find(|theme| theme.as_str() == word)
    }

    fn next(self) -> Self {
        match self {
            Self::Auto => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::Auto,
        }
    }
}

/// A page whole. `at`: the address that it is shown at; `seq`: the newest event before it was made.
pub(crate) fn whole(app: &App, theme: Theme, at: &str, seq: Seq, page: &Page) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme.as_str()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if page.asks_again { meta http-equiv="refresh" content="1"; }
                title { (page.title) " · ic" }
                link rel="icon" href=(ICON.address()) type="image/svg+xml";
                link rel="stylesheet" href=(STYLE.address());
                script src=(SCRIPT.address()) defer {}
            }
            body data-follows=[page.follows.as_deref()] data-seq=(seq) {
                a.skip href="#main" { "Skip to the content" }
                (head(app, theme, at))
                main #main tabindex="-1" { (page.body) }
                (keys())
            }
        }
    }
}

fn head(app: &App, theme: Theme, at: &str) -> Markup {
    let here = |place: &str| (at == place || at.starts_with(&format!("{place}?"))).then_some("page");
    html! {
        header.top {
            a.brand href="/" { span.mark { "ic" } span.project { (Shown(&app.name)) } }
            nav aria-label="Pages" {
                a href="/" aria-current=[here("/")] { "Runs" }
                a href="/events" aria-current=[here("/events")] { "Events" }
                a href="/compare" aria-current=[here("/compare")] { "Compare" }
            }
            form.search role="search" action="/search" method="get" {
                input #q type="search" name="q" placeholder="Search" aria-label="Search goals, prompts and files"
                    maxlength="200" autocomplete="off" spellcheck="false";
            }
            @if app.read_only { span.badge.quiet title="Nothing can be changed from here" { "read-only" } }
            span.live hidden title="This page renews itself" { "live" }
            form.theme method="post" action="/theme" {
                (token(app))
                input type="hidden" name="to" value=(theme.next().as_str());
                input type="hidden" name="back" value=(at);
                button type="submit" title="Theme: auto, light, dark" {
                    span.glyph aria-hidden="true" {} span.said { "Theme: " (theme.as_str()) }
                }
            }
        }
    }
}

/// What the keyboard does; the script shows it.
fn keys() -> Markup {
    let all = [
        ("j", "the next line"),
        ("k", "the line before"),
        ("Enter", "open it"),
        ("u", "plan an undo"),
        ("r", "plan a redo"),
        ("/", "search"),
        ("g", "all runs"),
        ("e", "events"),
        ("?", "these keys"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl.keys { @for (key, what) in all { dt { kbd { (key) } } dd { (what) } } }
            form method="dialog" { button type="submit" { "Close" } }
        }
    }
}

/// What makes a form ours.
pub(crate) fn token(app: &App) -> Markup {
    html! { input type="hidden" name="token" value=(app.door.form_token()); }
}

/// Where the reader is, from the outermost page.
pub(crate) fn trail(parts: &[(&str, String)]) -> Markup {
    html! {
        nav.trail aria-label="Breadcrumb" {
            ol { @for (name, address) in parts { li { a href=(address) { (Shown(name)) } } } }
        }
    }
}

/// An error as it is said, with what to do next.
pub(crate) fn said(error: &Diagnosis) -> Markup {
    html! {
        p.message { (Shown(error.message())) }
        @if let Some(hint) = error.get_hint() { p.hint { (Shown(hint)) } }
        p.code { code { (error.code().as_str()) } }
    }
}

/// A box that stands out. `kind`: `bad`, `warn`, `good` or `info`.
pub(crate) fn notice(kind: &str, title: &str, body: &Markup) -> Markup {
    html! { section class={ "notice " (kind) } aria-label=(title) { h2 { (title) } (body) } }
}

/// A link to the older part of a list, if there is one.
pub(crate) fn older(address: Option<String>) -> Markup {
    match address {
        Some(address) => html! { p.more { a rel="next" href=(address) { "Older" } } },
        None => EMPTY,
    }
}
