//! What is new, told to browsers as it happens.
//!
//! One thread asks the ledger whether there are new events. Each browser is told of every event after the last one that it knows, read when it
//! takes it: who does not read holds nothing up and costs no memory, and who comes back says where it was (`Last-Event-ID`).

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

use crate::app::App;
use crate::project::Project;

/// How often the ledger is asked.
const POLL: Duration = Duration::from_millis(200);

/// After so long a silence something is said, so that both sides notice when the other is gone.
const SILENCE: Duration = Duration::from_secs(20);

/// So many events are told at once.
const AT_ONCE: i64 = 200;

/// Tells of the newest event whenever there is another one, until `ending`.
pub(crate) fn watch_ledger(project: &dyn Project, news: &watch::Sender<Seq>, ending: &AtomicBool) {
    while !ending.load(Ordering::SeqCst) {
        // A ledger that cannot be read now may be there again later.
        let _ = watch_open(project, news, ending);
        std::thread::sleep(POLL);
    }
}

fn watch_open(project: &dyn Project, news: &watch::Sender<Seq>, ending: &AtomicBool) -> Result<()> {
    let kernel = project.kernel()?;
    let mut version = None;
    while !ending.load(Ordering::SeqCst) {
        let now = kernel.ledger.data_version()?;
        if version != Some(now) {
            version = Some(now);
            let (head, _) = kernel.read(ic_events::head)?;
            news.send_if_modified(|known| std::mem::replace(known, head) != head);
            // Asked again at once, so that what was read is let go of before the pause.
            continue;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Where a browser is.
struct Listener {
    app: Arc<App>,
    last: Seq,
    news: watch::Receiver<Seq>,
    ending: watch::Receiver<bool>,
    has_begun: bool,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// Waits for something new, or for the end; whether it waited in vain.
    async fn is_quiet(&mut self) -> bool {
        let news = std::pin::pin!(self.news.changed());
        let ends = std::pin::pin!(self.ending.changed());
        tokio::time::timeout(SILENCE, futures_util::future::select(news, ends)).await.is_err()
    }
}

/// Everything after `since` and what comes, without an end.
pub(crate) fn tell(app: &Arc<App>, since: Option<Seq>) -> Response {
    let Ok(place) = app.listeners.clone().try_acquire_owned() else {
        let retry = [(header::RETRY_AFTER, "10")];
        return (StatusCode::SERVICE_UNAVAILABLE, retry, "Too many browsers listen to this page.")
            .into_response();
    };
    let news = app.news.clone();
    let last = since.unwrap_or_else(|| *news.borrow());
    let listener = Listener {
        app: app.clone(),
        last,
        news,
        ending: app.ending.clone(),
        has_begun: false,
        _place: place,
    };
    let mut headers = HeaderMap::new();
    headers
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream; charset=utf-8"));
    (headers, Body::from_stream(stream::unfold(listener, next))).into_response()
}

/// What is told next; `None`: the page ends.
async fn next(mut listener: Listener) -> Option<(std::result::Result<Bytes, axum::Error>, Listener)> {
    if !listener.has_begun {
        listener.has_begun = true;
        return Some((Ok(Bytes::from_static(b"retry: 1000\n\n")), listener));
    }
    loop {
        if *listener.ending.borrow() {
            return None;
        }
        if *listener.news.borrow_and_update() > listener.last {
            let last = listener.last;
            let read = listener.app.blocking(move |app| after(app.project.as_ref(), last)).await;
            match read.and_then(std::convert::identity) {
                Ok((text, last)) if last > listener.last => {
                    listener.last = last;
                    return Some((Ok(Bytes::from(text)), listener));
                }
                // It may be there again soon; nothing is passed over.
                _ => tokio::time::sleep(SILENCE / 10).await,
            }
            continue;
        }
        if listener.is_quiet().await {
            return Some((Ok(Bytes::from_static(b": nothing new\n\n")), listener));
        }
    }
}

/// The next events after one, as they are told, and the last of them.
fn after(project: &dyn Project, last: Seq) -> Result<(String, Seq)> {
    let kernel = project.kernel()?;
    let (mut text, mut end) = (String::new(), last);
    kernel.read(|snapshot| {
        ic_events::each_since(snapshot, None, last, AT_ONCE, |event| {
            end = event.seq;
            let run = event.run_id.as_ref().map(ToString::to_string);
            let data = json!({ "seq": event.seq, "run": run, "type": event.event_type });
            text.push_str(&format!("id: {}\nevent: news\ndata: {data}\n\n", event.seq));
            Ok(ControlFlow::Continue(()))
        })
    })?;
    Ok((text, end))
}
