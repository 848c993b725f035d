//! Answers requests: checks them, and calls the function of their address.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use ic_base::{Code, Diagnosis, Result, RollbackId};
use maud::{DOCTYPE, html};

use crate::acts::{self, PageAct, PageDeed};
use crate::app::PageApp;
use crate::assets::{Asset, STYLE};
use crate::door::{PageDoor, Refused, cookies};
use crate::flags::WantedUndo;
use crate::layout::{PageLayout, Theme, whole};
use crate::page_request::Ask;
use crate::params::Params;
use crate::{
    compare, dispatch, event_stream, events, fail, headers, image, place_log, point, rollback, run, runs, search,
    session, undo,
};

/// The longest form in bytes; ours are shorter.
const LONGEST_FORM: usize = 256 * 1024;

/// How long a form may take to arrive.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a browser waits for the end of what it began, before it is shown the progress.
const PATIENCE: Duration = Duration::from_millis(1200);

/// A function that makes a page.
type Show = fn(&Ask<'_>) -> Result<PageLayout>;

/// Answers one request, and adds the headers that all responses have.
pub(crate) async fn answer(State(app): State<Arc<PageApp>>, request: Request) -> Response {
    // This is asked before `admitted` takes the request. It decides about the connection, even where the answer is a refusal.
    let is_known = app.door.require_cookie(request.headers()).is_ok();
    let mut response = admitted(&app, request).await;
    headers::guard(response.headers_mut());
    if !is_known {
        // A client without the cookie keeps no connection: there are few, and every local user can open some.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn admitted(app: &Arc<PageApp>, request: Request) -> Response {
    let (asked, body) = request.into_parts();
    let path: Vec<String> = asked.uri.path().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    // First of all, so that a rebound name gets nothing, not even a file.
    if let Err(why) = app.door.require_host(&asked.headers) {
        return fail::refused(why).into_response();
    }
    // The assets need no key: they are the same for every project, and tell nothing about this one.
    if let ["assets", name] = parts.as_slice() {
        return Asset::named(name).map_or_else(|| StatusCode::NOT_FOUND.into_response(), |asset| asset.answer());
    }
    let params = Params::of(asked.uri.query().unwrap_or_default().as_bytes());
    if parts == ["enter"] {
        return enter(app, &params);
    }
    if let Err(why) = app.door.require_cookie(&asked.headers) {
        return fail::refused(why).into_response();
    }
    let theme = theme_of(&asked.headers);
    match asked.method {
        Method::GET => get(app, &asked, path, params, theme).await,
        Method::POST => match form(app, &asked, body).await {
            Ok(form) => post(app, &parts, &form, theme).await,
            Err(refused) => refused,
        },
        _ => (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, POST")]).into_response(),
    }
}

/// Sets the cookie for a client with the key. The page then loads `/` by itself: the redirect of another site's request would have no
/// cookie.
fn enter(app: &PageApp, params: &Params) -> Response {
    if !params.get("key").is_some_and(|key| app.door.is_opened_by(key)) {
        return fail::refused(Refused::Key).into_response();
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content="0; url=/";
                title { "ic" }
                link rel="stylesheet" href=(STYLE.address());
            }
            body { main { p { a href="/" { "Open the page" } } } }
        }
    };
    ([(header::SET_COOKIE, app.door.cookie())], Html(page.into_string())).into_response()
}

/// The theme that the browser has in its cookie.
fn theme_of(headers: &HeaderMap) -> Theme {
    cookies(headers, "ic-ui-theme").find_map(Theme::parse).unwrap_or(Theme::Auto)
}

async fn get(app: &Arc<PageApp>, asked: &Parts, path: Vec<String>, params: Params, theme: Theme) -> Response {
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let show: Show = match parts.as_slice() {
        [] => place_log::page,
        ["runs"] => runs::page,
        ["runs", _] => run::page,
        ["runs", _, "point"] => point::page,
        ["runs", _, "undo"] => undo::page,
        ["rollbacks", _] => rollback::page,
        ["rollbacks", _, "redo"] => rollback::redo,
        ["dispatches", _] => dispatch::page,
        ["sessions", _] => session::page,
        ["events"] => events::page,
        ["events", "verify"] => events::verify,
        ["compare"] => compare::page,
        ["compare", "file"] => compare::file,
        ["search"] => search::page,
        ["live"] => {
            // A browser that reconnects uses the same address again. What it has seen since is in this header alone.
            let last = asked.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
            return event_stream::tell(app, last.or(params.seq("since").ok().flatten()));
        }
        ["acts", number] => {
            let act = number.parse().ok().and_then(|number| app.acts.find(number));
            return match act {
                Some(act) => became(app, act, theme).await,
                None => sent(app, theme, "/", &fail::page(&not_here())),
            };
        }
        ["image", hash] => {
            let hash = (*hash).to_owned();
            let read = app.blocking(move |app| image::answer(app, &hash)).await;
            return read.unwrap_or_else(|error| sent(app, theme, "/", &fail::page(&error)));
        }
        _ => |_| Err(not_here()),
    };
    let at = asked.uri.path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str).to_owned();
    shown(app, theme, at, path, params, show).await
}

/// Makes a page on a thread, and renders it.
async fn shown(
    app: &Arc<PageApp>,
    theme: Theme,
    at: String,
    path: Vec<String>,
    params: Params,
    show: impl FnOnce(&Ask<'_>) -> Result<PageLayout> + Send + 'static,
) -> Response {
    let made = app.blocking(move |app| {
        // Read before the page is made: an event that comes in between makes the page reload.
        let seq = *app.news.borrow();
        let page = with_ask(app, &path, &params, show);
        let page = page.unwrap_or_else(|error| fail::page(&error));
        (page.status, Html(whole(app, theme, &at, seq, &page).into_string())).into_response()
    });
    made.await.unwrap_or_else(|error| sent(app, theme, "/", &fail::page(&error)))
}

fn with_ask<T>(app: &PageApp, path: &[String], params: &Params, show: impl FnOnce(&Ask<'_>) -> Result<T>) -> Result<T> {
    let kernel = app.project.kernel()?;
    let now = kernel.context.now();
    show(&Ask { app, kernel: &kernel, path, params, now })
}

fn sent(app: &PageApp, theme: Theme, at: &str, page: &PageLayout) -> Response {
    (page.status, Html(whole(app, theme, at, *app.news.borrow(), page).into_string())).into_response()
}

fn not_here() -> Diagnosis {
    Diagnosis::new(Code::PathNotFound, "There is no such page.")
}

/// The fields of a form that passed every check. `Err`: the refusal.
async fn form(app: &PageApp, asked: &Parts, body: Body) -> std::result::Result<Params, Response> {
    // Before the body is read: another site's form is not worth waiting for.
    PageDoor::require_origin(&asked.headers).map_err(|why| fail::refused(why).into_response())?;
    // Both limits, because a client may send without end, or not at all.
    let read = tokio::time::timeout(FORM_TIMEOUT, to_bytes(body, LONGEST_FORM)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    };
    // The token is in the body, so it can be checked only now. The origin has kept other sites from getting so far.
    let form = Params::of(&bytes);
    app.door.require_form(form.get("token")).map_err(|why| fail::refused(why).into_response())?;
    Ok(form)
}

async fn post(app: &Arc<PageApp>, parts: &[&str], form: &Params, theme: Theme) -> Response {
    // A cookie changes the browser, not the project, so a read-only page sets it, too.
    if parts == ["theme"] {
        return set_theme(form);
    }
    // After the check of the form, so that another site learns nothing about this page.
    if app.read_only {
        let error = Diagnosis::new(Code::PermissionDenied, "This page is read-only. Nothing was changed.")
            .hint("start it without --read-only, or type: ic undo");
        return sent(app, theme, "/", &fail::page(&error).with(StatusCode::FORBIDDEN));
    }
    let deed = match parts {
        ["runs", run, "undo"] => {
            WantedUndo::of(run, form).and_then(|wanted| Ok(PageDeed::Undo(wanted, form.require("plan")?.to_owned())))
        }
        ["rollbacks", id, "redo"] => form.require("plan").map(|seen| PageDeed::Redo {
            rollback: RollbackId::from_ledger((*id).to_owned()),
            without_effects: form.has("without-effects"),
            seen: seen.to_owned(),
        }),
        ["rollbacks", id, "resume"] => Ok(PageDeed::Resume(RollbackId::from_ledger((*id).to_owned()))),
        _ => Err(not_here()),
    };
    let begun = match deed {
        Ok(deed) => acts::begin(app, deed),
        Err(error) => return sent(app, theme, "/", &fail::page(&error)),
    };
    match begun {
        Ok(act) => {
            act.wait(PATIENCE).await;
            // Most acts end within this time. Then the answer is the outcome, without a page of progress in between.
            match act.end() {
                Some(_) => became(app, act, theme).await,
                // An act that has not ended has an address of its own, which shows its progress.
                None => to(&format!("/acts/{}", act.number)),
            }
        }
        Err(running) => {
            let error = Diagnosis::new(Code::Busy, "This page is doing something else now. Nothing was changed.")
                .hint("wait for its end, then send it again");
            let page = rollback::busy(&error, &format!("/acts/{}", running.number));
            sent(app, theme, "/", &page)
        }
    }
}

fn set_theme(form: &Params) -> Response {
    let theme = form.get("to").and_then(Theme::parse).unwrap_or(Theme::Auto);
    // Only a path on this server: `//` and `/\` would lead elsewhere, and so would a tab between two slashes, which browsers remove.
    let is_own = |back: &&str| {
        let is_plain = back.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        is_plain && back.starts_with('/') && !back.starts_with("//")
    };
    let back = form.get("back").filter(is_own).unwrap_or("/").to_owned();
    let cookie = format!("ic-ui-theme={}; SameSite=Strict; Path=/; Max-Age=31536000", theme.as_str());
    (StatusCode::SEE_OTHER, [(header::LOCATION, back), (header::SET_COOKIE, cookie)]).into_response()
}

/// Redirects to an address with GET, so that a reload does not send the form again.
fn to(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// The page of an act: its progress, or its outcome.
async fn became(app: &Arc<PageApp>, act: Arc<PageAct>, theme: Theme) -> Response {
    act.wait(PATIENCE).await;
    if let Some(Ok(id)) = act.end() {
        return to(&format!("/rollbacks/{id}"));
    }
    let at = format!("/acts/{}", act.number);
    let (path, params) = (vec!["acts".to_owned(), act.number.to_string()], Params::default());
    shown(app, theme, at, path, params, move |ask| match (&act.deed, act.end()) {
        (PageDeed::Undo(wanted, _), Some(Err(error))) => undo::refused(ask, wanted, error),
        (PageDeed::Redo { rollback, without_effects, .. }, Some(Err(error))) => {
            rollback::redo_refused(ask, rollback, *without_effects, error)
        }
        (PageDeed::Resume(rollback), Some(Err(error))) => rollback::resume_refused(ask, rollback, error),
        (PageDeed::Undo(wanted, _), _) => rollback::under_way(ask, Some(&wanted.run), None),
        (PageDeed::Redo { rollback, .. } | PageDeed::Resume(rollback), _) => {
            rollback::under_way(ask, None, Some(rollback))
        }
    })
    .await
}
