//! The server: one thread for connections, some that may block, and one that watches the ledger.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use std::future::IntoFuture;

use axum::Router;
use futures_util::future::{Either, select};
use ic_base::{Code, Diagnose, Diagnosis, Result};
use tokio::sync::watch;

use crate::app::PageApp;
use crate::door::PageDoor;
use crate::event_stream::watch_ledger;
use crate::listener::Bounded;
use crate::project::ShownProject;
use crate::routes;

/// The most threads that may block: for the requests that have a turn, for an act, and for file systems.
const BLOCKING: usize = 12;

/// How often the server checks whether the page is to end.
const POLL: Duration = Duration::from_millis(100);

/// How long connections may take to end. A browser that never reads must not delay the end of the page.
const PATIENCE: Duration = Duration::from_secs(1);

/// The options of the page.
#[derive(Debug)]
pub struct ServerOptions {
    /// The port at 127.0.0.1; 0: any free one.
    pub port: u16,
    /// Whether nothing may be changed from the page.
    pub read_only: bool,
    /// Ends the page when it is set. A running undo then stops after its current step, as an interrupted `ic undo` does.
    pub interrupted: Arc<AtomicBool>,
}

/// The address of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// The URL, with the key that opens the page.
    pub url: String,
    /// The port that is used, also if any free one was asked for.
    pub port: u16,
}

/// Serves the page of a project until it is interrupted. `ready` gets the address before the first request is answered.
///
/// Errors: those of opening the ledger, those of `ready`, and `io_error` if the port is taken.
pub fn serve(
    project: Arc<dyn ShownProject>,
    options: ServerOptions,
    ready: impl FnOnce(&ListenAddress) -> Result<()>,
) -> Result<()> {
    // Opened first, so that a missing ledger is an error of the command, and not of every page.
    let kernel = project.kernel()?;
    let name = kernel.project.root.file_name().unwrap_or(kernel.project.root.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let (head, _) = kernel.read(ic_ledger::events::head)?;
    // Requests open the ledger themselves; this connection would otherwise stay open as long as the page.
    drop(kernel);
    // The port is bound before a thread is started: a port that is taken is an error of the command, and the address has the port.
    let listener = bind(options.port)?;
    let port = listener.local_addr().while_doing(|| "looking at the page's port".to_owned())?.port();
    let door = PageDoor::new(port)?;
    let address = ListenAddress { url: door.address(), port };
    let (news_sender, news) = watch::channel(head);
    let (ending_sender, ending) = watch::channel(false);
    let interrupted = options.interrupted;
    let app = PageApp::new(project.clone(), (name, door, options.read_only), interrupted.clone(), (news, ending));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // The default would allow hundreds of threads.
        .max_blocking_threads(BLOCKING)
        .build()
        .while_doing(|| "starting the page".to_owned())?;
    let watching = interrupted.clone();
    let watcher = std::thread::Builder::new()
        .spawn(move || watch_ledger(project.as_ref(), &news_sender, &watching))
        .while_doing(|| "starting the page".to_owned())?;
    ready(&address)?;
    let served = runtime.block_on(run(Arc::new(app), listener, interrupted, ending_sender));
    // A request that waits for a lock may last as long as the busy timeout, and its answer has no reader any more.
    runtime.shutdown_timeout(PATIENCE);
    // It looks at `interrupted` before each pause, so it ends soon after the page was told to.
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
    app: Arc<PageApp>,
    listener: TcpListener,
    interrupted: Arc<AtomicBool>,
    ending: watch::Sender<bool>,
) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener).while_doing(|| "starting the page".to_owned())?;
    let router = Router::new().fallback(routes::answer).with_state(app.clone());
    let mut ends = ending.subscribe();
    let serving = axum::serve(Bounded::new(listener), router).with_graceful_shutdown(async move {
        let _ = ends.wait_for(|is_ending| *is_ending).await;
    });
    let stopped = async move {
        while !interrupted.load(Ordering::SeqCst) {
            tokio::time::sleep(POLL).await;
        }
        // First, so that the streams of events end and their connections close.
        ending.send_replace(true);
        // A running act ends, or stops after its current step.
        app.acts.idle().await;
        // Connections get some time to take their last answer.
        tokio::time::sleep(PATIENCE).await;
    };
    let serving = std::pin::pin!(serving.into_future());
    let stopped = std::pin::pin!(stopped);
    match select(serving, stopped).await {
        Either::Left((served, stopped)) => {
            served.while_doing(|| "serving the page".to_owned())?;
            // All connections are closed, and an act may still be running.
            stopped.await;
            Ok(())
        }
        Either::Right(((), _)) => Ok(()),
    }
}
