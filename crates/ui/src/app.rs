//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{Code, Diagnosis, Result, Seq};
use tokio::sync::{Semaphore, watch};

use crate::acts::Acts;
use crate::door::Door;
use crate::project::Project;

/// So many requests read or write at the same time; the others wait their turn, so memory and open files stay bounded.
const AT_ONCE: usize = 6;

/// So many browsers are told of what is new at the same time.
const LISTENERS: usize = 32;

/// What all requests share.
pub(crate) struct App {
    /// The project that is shown.
    pub(crate) project: Arc<dyn Project>,
    /// Its name, for people.
    pub(crate) name: String,
    /// Who may come in.
    pub(crate) door: Door,
    /// Nothing may be changed from here.
    pub(crate) read_only: bool,
    /// What was begun from here.
    pub(crate) acts: Acts,
    /// The newest event, as soon as it is known.
    pub(crate) news: watch::Receiver<Seq>,
    /// Set by whoever ends the page; what is being done stops at its next step.
    pub(crate) interrupted: Arc<AtomicBool>,
    /// Becomes true when the page ends.
    pub(crate) ending: watch::Receiver<bool>,
    turns: Arc<Semaphore>,
    /// The places of those who listen.
    pub(crate) listeners: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(
        project: Arc<dyn Project>,
        (name, door, read_only): (String, Door, bool),
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

    /// Does on a thread of its own what may block, when its turn comes.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let ended = |why: String| Diagnosis::new(Code::Internal, format!("The request ended early: {why}."));
        let turn = self.turns.clone().acquire_owned().await.map_err(|error| ended(error.to_string()))?;
        let app = self.clone();
        // The turn is the thread's: a browser that goes away ends neither.
        let done = tokio::task::spawn_blocking(move || {
            let made = work(&app);
            drop(turn);
            made
        });
        done.await.map_err(|error| ended(error.to_string()))
    }
}
