//! Tells browsers of new events as they happen.
//!
//! One thread asks the ledger for new events. Each browser is sent the events after the last one that it has, which are read only when it
//! takes them. So a slow browser blocks nothing and costs no memory, and one that reconnects says what it has (`Last-Event-ID`).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use ic_base::{Result, Seq};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::app::PageApp;
use crate::project::ShownProject;

/// How often the thread asks the ledger.
const POLL: Duration = Duration::from_millis(200);

/// After this time without events a comment is sent, so that both sides notice a lost connection.
const SILENCE: Duration = Duration::from_secs(20);

/// The most events that are sent at once.
const AT_ONCE: i64 = 200;

/// Publishes the number of the newest event whenever it changes, until `ending`.
pub(crate) fn watch_ledger(project: &dyn ShownProject, news: &watch::Sender<Seq>, ending: &AtomicBool) {
    while !ending.load(Ordering::SeqCst) {
        // A ledger that cannot be read now may be readable again later.
        let _ = watch_open(project, news, ending);
        std::thread::sleep(POLL);
    }
}

fn watch_open(project: &dyn ShownProject, news: &watch::Sender<Seq>, ending: &AtomicBool) -> Result<()> {
    let kernel = project.kernel()?;
    // One connection serves the whole loop: the versions of two connections cannot be compared.
    let mut version = None;
    while !ending.load(Ordering::SeqCst) {
        let now = kernel.ledger.data_version()?;
        if version != Some(now) {
            version = Some(now);
            let (head, _) = kernel.read(ic_ledger::events::head)?;
            news.send_if_modified(|known| std::mem::replace(known, head) != head);
            // The version is asked for again before the pause, which releases what the read holds.
            continue;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// A browser that listens.
struct Listener {
    app: Arc<PageApp>,
    last: Seq,
    news: watch::Receiver<Seq>,
    ending: watch::Receiver<bool>,
    has_begun: bool,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// Waits for a new event or the end of the page; true if neither came in time.
    async fn is_quiet(&mut self) -> bool {
        let news = std::pin::pin!(self.news.changed());
        let ends = std::pin::pin!(self.ending.changed());
        tokio::time::timeout(SILENCE, futures_util::future::select(news, ends)).await.is_err()
    }
}

/// The stream of all events after `since`, which ends only with the page.
pub(crate) fn tell(app: &Arc<PageApp>, since: Option<Seq>) -> Response {
    // Refused at once instead of waiting: the script of the page tries again after some seconds.
    let Ok(place) = app.listeners.clone().try_acquire_owned() else {
        let retry = [(header::RETRY_AFTER, "10")];
        return (StatusCode::SERVICE_UNAVAILABLE, retry, "Too many browsers listen to this page.").into_response();
    };
    let news = app.news.clone();
    // A page without a place in the stream was made just now, and has seen all up to here.
    let last = since.unwrap_or_else(|| *news.borrow());
    let listener =
        Listener { app: app.clone(), last, news, ending: app.ending.clone(), has_begun: false, _place: place };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream; charset=utf-8"));
    (headers, Body::from_stream(stream::unfold(listener, next))).into_response()
}

/// The next part of the stream; `None` when the page ends.
async fn next(mut listener: Listener) -> Option<(std::result::Result<Bytes, axum::Error>, Listener)> {
    if !listener.has_begun {
        listener.has_begun = true;
        // The first part is sent at once, so that the browser knows that it is connected.
        return Some((Ok(Bytes::from_static(b"retry: 1000\n\n")), listener));
    }
    loop {
        if *listener.ending.borrow() {
            return None;
        }
        // The number is marked as seen before the events are read: an event that comes during the read ends the next
        // wait at once. If more wait than are sent at once, the number is still larger, and the next turn reads on.
        if *listener.news.borrow_and_update() > listener.last {
            let last = listener.last;
            let read = listener.app.blocking(move |app| after(app.project.as_ref(), last)).await;
            match read.and_then(std::convert::identity) {
                Ok((text, last)) if last > listener.last => {
                    listener.last = last;
                    return Some((Ok(Bytes::from(text)), listener));
                }
                // The ledger may be readable again soon. `last` is unchanged, so no event is lost.
                _ => tokio::time::sleep(SILENCE / 10).await,
            }
            continue;
        }
        if listener.is_quiet().await {
            return Some((Ok(Bytes::from_static(b": nothing new\n\n")), listener));
        }
    }
}

/// The next events after `last`, as text of the stream, and the number of the last of them.
fn after(project: &dyn ShownProject, last: Seq) -> Result<(String, Seq)> {
    let kernel = project.kernel()?;
    let (mut text, mut end) = (String::new(), last);
    kernel.read(|snapshot| {
        ic_ledger::events::each_since(snapshot, None, last, AT_ONCE, |event| {
            end = event.seq;
            let run = event.run_id.as_ref().map(ToString::to_string);
            let data = json!({ "seq": event.seq, "run": run, "type": event.event_type });
            text.push_str(&format!("id: {}\nevent: news\ndata: {data}\n\n", event.seq));
            Ok(ControlFlow::Continue(()))
        })
    })?;
    Ok((text, end))
}
