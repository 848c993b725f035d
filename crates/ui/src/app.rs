//! The state that all requests share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{Code, Diagnosis, Result, Seq};
use tokio::sync::{Semaphore, watch};

use crate::acts::Acts;
use crate::door::PageDoor;
use crate::project::ShownProject;

/// The most requests that use the ledger at the same time. Others wait, so that memory and open files stay bounded.
const AT_ONCE: usize = 6;

/// The most browsers that are told of new events at the same time.
const LISTENERS: usize = 32;

/// The state that all requests share.
pub(crate) struct PageApp {
    /// Opens the ledger of the project that is shown.
    pub(crate) project: Arc<dyn ShownProject>,
    /// The name of the project's directory, for people.
    pub(crate) name: String,
    /// Checks the key, the cookie and the origin of each request.
    pub(crate) door: PageDoor,
    /// Whether the page may change nothing.
    pub(crate) read_only: bool,
    /// The undos and redos that the page has begun.
    pub(crate) acts: Acts,
    /// The number of the newest event.
    pub(crate) news: watch::Receiver<Seq>,
    /// Set when the page is to end: a running act then stops after its current step.
    pub(crate) interrupted: Arc<AtomicBool>,
    /// Becomes true when the page ends.
    pub(crate) ending: watch::Receiver<bool>,
    turns: Arc<Semaphore>,
    /// The permits of browsers that listen for events.
    pub(crate) listeners: Arc<Semaphore>,
}

impl PageApp {
    pub(crate) fn new(
        project: Arc<dyn ShownProject>,
        (name, door, read_only): (String, PageDoor, bool),
        interrupted: Arc<AtomicBool>,
        (news, ending): (watch::Receiver<Seq>, watch::Receiver<bool>),
    ) -> Self {
        Self {
            project,
            name,
            door,
            read_only,
            acts: Acts::default(),
            news,
            interrupted,
            ending,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
        }
    }

    /// Runs work that may block on a thread of its own, when its turn comes.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let ended = |why: String| Diagnosis::new(Code::Internal, format!("The request ended early: {why}."));
        // The turn is awaited before a thread is taken, so that requests in the queue hold none.
        let turn = self.turns.clone().acquire_owned().await.map_err(|error| ended(error.to_string()))?;
        let app = self.clone();
        // The turn moves into the thread: if the browser goes away, the work continues, and still counts against the limit.
        let done = tokio::task::spawn_blocking(move || {
            let made = work(&app);
            drop(turn);
            made
        });
        // An error here is a panic in the work, which ends this request, and not the page.
        done.await.map_err(|error| ended(error.to_string()))
    }
}
