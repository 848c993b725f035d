//! The server: one thread for connections, a few that may block, and one that watches the ledger.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use std::future::IntoFuture;

use axum::Router;
use futures_util::future::{Either, select};
use ic_base::{Code, Diagnose, Diagnosis, Result};
use tokio::sync::watch;

use crate::app::App;
use crate::door::Door;
use crate::listener::Bounded;
use crate::news::watch_ledger;
use crate::project::Project;
use crate::routes;

/// So many threads may block: those that take turns, one that acts, and those that wait for a file system.
const BLOCKING: usize = 12;

/// How often it is looked whether the page is to end.
const POLL: Duration = Duration::from_millis(100);

/// So long connections may take to end; a browser that never reads must not hold up the end of the page.
const PATIENCE: Duration = Duration::from_secs(1);

/// How the page is served.
#[derive(Debug)]
pub struct Options {
    /// The port at 127.0.0.1; 0: any that is free.
    pub port: u16,
    /// Nothing may be changed from it.
    pub read_only: bool,
    /// Ends the page when it is set. What is being done then stops at its next step, as an interrupted `ic undo` does.
    pub interrupted: Arc<AtomicBool>,
}

/// Where the page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// With the key that opens it.
    pub url: String,
    /// Its port.
    pub port: u16,
}

/// Serves the page of a project until it is interrupted. `ready` is told the address before the first request is answered.
///
/// Errors: those of opening the ledger, of `ready`, and `io_error` where the port is taken.
pub fn serve(
    project: Arc<dyn Project>,
    options: Options,
    ready: impl FnOnce(&Address) -> Result<()>,
) -> Result<()> {
    // Whoever asks for the page is told at once that there is nothing to show.
    let kernel = project.kernel()?;
    let name = kernel.project.root.file_name().unwrap_or(kernel.project.root.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let (head, _) = kernel.read(ic_events::head)?;
    drop(kernel);
    let listener = bind(options.port)?;
    let port = listener.local_addr().while_doing(|| "looking at the page's port".to_owned())?.port();
    let door = Door::new(port)?;
    let address = Address { url: door.address(), port };
    let (news_sender, news) = watch::channel(head);
    let (ending_sender, ending) = watch::channel(false);
    let interrupted = options.interrupted;
    let app = App::new(project.clone(), (name, door, options.read_only), interrupted.clone(), (news, ending));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING)
        .build()
        .while_doing(|| "starting the page".to_owned())?;
    let watching = interrupted.clone();
    let watcher = std::thread::Builder::new()
        .spawn(move || watch_ledger(project.as_ref(), &news_sender, &watching))
        .while_doing(|| "starting the page".to_owned())?;
    ready(&address)?;
    let served = runtime.block_on(run(Arc::new(app), listener, interrupted, ending_sender));
    // A request that waits for a lock may last as long as the busy timeout; nobody waits for its answer any more.
    runtime.shutdown_timeout(PATIENCE);
    let _ = watcher.join();
    served
}

fn bind(port: u16) -> Result<TcpListener> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = bound.map_err(|error| {
        Diagnosis::new(Code::Io, format!("The page cannot use the port {port}: {error}."))
            .hint("name another port, or leave --port out: then any that is free is used")
            .caused_by(error)
    })?;
    listener.set_nonblocking(true).while_doing(|| "starting the page".to_owned())?;
    Ok(listener)
}

async fn run(
    app: Arc<App>,
    listener: TcpListener,
    interrupted: Arc<AtomicBool>,
    ending: watch::Sender<bool>,
) -> Result<()> {
    let listener =
        tokio::net::TcpListener::from_std(listener).while_doing(|| "starting the page".to_owned())?;
    let router = Router::new().fallback(routes::answer).with_state(app.clone());
    let mut ends = ending.subscribe();
    let serving = axum::serve(Bounded::new(listener), router).with_graceful_shutdown(async move {
        let _ = ends.wait_for(|is_ending| *is_ending).await;
    });
    let stopped = async move {
        while !interrupted.load(Ordering::SeqCst) {
            tokio::time::sleep(POLL).await;
        }
        ending.send_replace(true);
        // What is being done comes to its end, or to its next step.
        app.acts.idle().await;
        tokio::time::sleep(PATIENCE).await;
    };
    let serving = std::pin::pin!(serving.into_future());
    let stopped = std::pin::pin!(stopped);
    match select(serving, stopped).await {
        Either::Left((served, stopped)) => {
            served.while_doing(|| "serving the page".to_owned())?;
            // All connections are closed; an act may still be under way.
            stopped.await;
            Ok(())
        }
        Either::Right(((), _)) => Ok(()),
    }
}
