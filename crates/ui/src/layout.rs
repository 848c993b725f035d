//! The frame of every page: head, navigation, keys.

use axum::http::StatusCode;
use ic_base::{Diagnosis, Seq};
use maud::{DOCTYPE, Markup, html};

use crate::app::PageApp;
use crate::assets::{ICON, SCRIPT, STYLE};
use crate::text::{EMPTY, ShownText};

/// A page before it is rendered.
pub(crate) struct PageLayout {
    /// The status code of the response.
    pub(crate) status: StatusCode,
    /// The title of the window.
    pub(crate) title: String,
    /// The content between the navigation and the end.
    pub(crate) body: Markup,
    /// The run whose events make the page reload, or `all`; `None`: it is not reloaded.
    pub(crate) follows: Option<String>,
    /// Whether the browser reloads the page every second, without a script too.
    pub(crate) asks_again: bool,
}

impl PageLayout {
    /// A page that is not reloaded.
    pub(crate) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self { status: StatusCode::OK, title: title.into(), body, follows: None, asks_again: false }
    }

    /// The same page, reloaded after an event of this run; `all`: of any run.
    #[must_use]
    pub(crate) fn following(self, what: &str) -> Self {
        Self { follows: Some(what.to_owned()), ..self }
    }

    /// The same page with another status code.
    #[must_use]
    pub(crate) fn with(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }
}

/// The colours that a person chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// The colours of the system.
    Auto,
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

impl Theme {
    /// The word in the cookie and in the stylesheet.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of this word; `None` if there is none.
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

/// The whole page. `at`: its own address; `seq`: the newest event before it was made, from which on it is told of news.
pub(crate) fn whole(app: &PageApp, theme: Theme, at: &str, seq: Seq, page: &PageLayout) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme.as_str()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Works without a script, too.
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

fn head(app: &PageApp, theme: Theme, at: &str) -> Markup {
    let here = |place: &str| (at == place || at.starts_with(&format!("{place}?"))).then_some("page");
    html! {
        header.top {
            a.brand href="/" { span.mark { "ic" } span.project { (ShownText(&app.name)) } }
            nav aria-label="Pages" {
                a href="/" aria-current=[here("/")] { "Timeline" }
                a href="/runs" aria-current=[here("/runs")] { "Runs" }
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

/// The list of keys, which the script shows.
fn keys() -> Markup {
    let all = [
        ("j", "the next line"),
        ("k", "the line before"),
        ("Enter", "open it"),
        ("u", "plan an undo"),
        ("r", "plan a redo"),
        ("/", "search"),
        ("g", "the timeline"),
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

/// The hidden field with the token, without which a form is refused.
pub(crate) fn token(app: &PageApp) -> Markup {
    html! { input type="hidden" name="token" value=(app.door.form_token()); }
}

/// The way to the current page, from the outermost page on.
pub(crate) fn trail(parts: &[(&str, String)]) -> Markup {
    html! {
        nav.trail aria-label="Breadcrumb" {
            ol { @for (name, address) in parts { li { a href=(address) { (ShownText(name)) } } } }
        }
    }
}

/// An error: its message, its hint and its code.
pub(crate) fn said(error: &Diagnosis) -> Markup {
    html! {
        p.message { (ShownText(error.message())) }
        @if let Some(hint) = error.get_hint() { p.hint { (ShownText(hint)) } }
        p.code { code { (error.code().as_str()) } }
    }
}

/// A box with a notice. `kind`: `bad`, `warn`, `good` or `info`.
pub(crate) fn notice(kind: &str, title: &str, body: &Markup) -> Markup {
    html! { section class={ "notice " (kind) } aria-label=(title) { h2 { (title) } (body) } }
}

/// A link to the next page of a list, if there is one.
pub(crate) fn older(address: Option<String>) -> Markup {
    match address {
        Some(address) => html! { p.more { a rel="next" href=(address) { "Older" } } },
        None => EMPTY,
    }
}
