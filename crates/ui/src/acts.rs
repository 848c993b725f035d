//! Undos and redos that the page begins: one at a time, each on a thread of its own, to its end, even if no browser waits for it.
//!
//! The journal of rollbacks is the only lasting record. This module only tells a browser the outcome of its own click, as long as the page
//! runs. If the page is killed, `ic rollback resume` finishes the rollback.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ic_base::{Code, Diagnosis, Result, RollbackId};
use ic_undo::compensation::Unwatched;
use ic_undo::{ResumeRequest, UndoRequest};
use ic_worktree::RestoreWatch;
use tokio::sync::watch;

use crate::app::PageApp;
use crate::flags::WantedUndo;

/// The most acts whose outcome is remembered; older ones are forgotten.
const REMEMBERED: usize = 32;

/// What an act does.
#[derive(Debug, Clone)]
pub(crate) enum PageDeed {
    /// An undo, exactly by the plan with this hash.
    Undo(WantedUndo, String),
    /// The undo of a rollback, exactly by the plan with this hash.
    Redo {
        /// The id of the rollback that is undone.
        rollback: RollbackId,
        /// Whether it is done even though undone effects are not made again.
        without_effects: bool,
        /// The hash of the plan that the person saw.
        seen: String,
    },
    /// The resumption of an unfinished rollback.
    Resume(RollbackId),
}

/// An undo, redo or resumption that the page began.
pub(crate) struct PageAct {
    /// Its number, which its address contains.
    pub(crate) number: u64,
    /// What it does, with the plan that the person saw.
    pub(crate) deed: PageDeed,
    end: OnceLock<Result<RollbackId>>,
    is_over: watch::Sender<bool>,
}

/// The newest acts of this page.
#[derive(Default)]
pub(crate) struct Acts {
    all: Mutex<VecDeque<Arc<PageAct>>>,
    next: AtomicU64,
}

impl PageAct {
    /// Its outcome: the rollback, or the error. `None` while it runs.
    pub(crate) fn end(&self) -> Option<&Result<RollbackId>> {
        self.end.get()
    }

    fn ends(&self, became: Result<RollbackId>) {
        // The outcome is set before the waiting tasks are woken: they read it at once.
        let _ = self.end.set(became);
        self.is_over.send_replace(true);
    }

    /// Waits for its end, at most for `patience`.
    pub(crate) async fn wait(&self, patience: Duration) {
        let mut is_over = self.is_over.subscribe();
        // The caller looks at the state afterwards, whether or not the wait was long enough.
        let _ = tokio::time::timeout(patience, is_over.wait_for(|is_over| *is_over)).await;
    }
}

impl Acts {
    /// The act with this number; `None` if it is forgotten.
    pub(crate) fn find(&self, number: u64) -> Option<Arc<PageAct>> {
        self.lock().iter().find(|act| act.number == number).cloned()
    }

    /// Waits until no act runs.
    pub(crate) async fn idle(&self) {
        // The acts are copied out of the lock, which pages need while this waits.
        let running: Vec<_> = self.lock().iter().filter(|act| act.end().is_none()).cloned().collect();
        for act in running {
            let mut is_over = act.is_over.subscribe();
            let _ = is_over.wait_for(|is_over| *is_over).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<PageAct>>> {
        // A panic under the lock leaves the list intact: every change of it is a single call.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins an act. `Err`: the act that runs already, and has to end first.
pub(crate) fn begin(app: &Arc<PageApp>, deed: PageDeed) -> std::result::Result<Arc<PageAct>, Arc<PageAct>> {
    let mut all = app.acts.lock();
    // Under one lock with the push, so that of two clicks at the same moment one is refused.
    if let Some(running) = all.iter().find(|act| act.end().is_none()) {
        return Err(running.clone());
    }
    let number = app.acts.next.fetch_add(1, Ordering::Relaxed) + 1;
    let act = Arc::new(PageAct { number, deed, end: OnceLock::new(), is_over: watch::Sender::new(false) });
    all.push_back(act.clone());
    // The running act is the newest, so it is never among those that are forgotten.
    while all.len() > REMEMBERED {
        all.pop_front();
    }
    // Released before the thread starts: `carry_out` may take minutes, and pages ask for acts in the meantime.
    drop(all);
    let (app, done) = (app.clone(), act.clone());
    // The thread belongs to no request. `idle` waits for it before the page ends.
    let begun = std::thread::Builder::new().name("act".to_owned()).spawn(move || {
        done.ends(carry_out(&app, &done.deed));
    });
    // Without a thread the act would never end, and every later one would be refused as busy.
    if let Err(error) = begun {
        act.ends(Err(Diagnosis::new(Code::Io, format!("No thread could be started: {error}. Nothing was changed."))));
    }
    Ok(act)
}

fn carry_out(app: &PageApp, deed: &PageDeed) -> Result<RollbackId> {
    // The ledger is opened here, and not by the request that began the act: the act outlives it.
    let kernel = app.project.kernel()?;
    let watch = RestoreWatch { interrupted: app.interrupted.clone(), ..RestoreWatch::default() };
    // The settings are those of the run's project, which may be another directory than the one that the page was started in.
    let of_rollback = |id: &RollbackId| {
        let run = ic_undo::run_of(&kernel, id.as_str())?;
        app.project.settings(&kernel, &run.project_dir)
    };
    match deed {
        // The hash of the plan that the person saw goes along, so that a plan that changed since is refused.
        PageDeed::Undo(wanted, plan) => {
            let run = kernel.read(|snapshot| kernel.run(snapshot, &wanted.run))?;
            let settings = app.project.settings(&kernel, &run.project_dir)?;
            let request = wanted.request(Some(plan));
            let whole = ic_undo::roll_back(&kernel, &settings, &request, &mut Unwatched, &watch)?;
            whole.rollback.done.map(|(id, _)| id).ok_or_else(unrecorded)
        }
        PageDeed::Redo { rollback, without_effects, seen } => {
            let settings = of_rollback(rollback)?;
            let request = redo_of(rollback, *without_effects, Some(seen));
            ic_undo::undo(&kernel, &settings, &request, &watch).map(|undone| undone.remembered.id)
        }
        PageDeed::Resume(rollback) => {
            let settings = of_rollback(rollback)?;
            let request = ResumeRequest { rollback: rollback.as_str(), ..ResumeRequest::default() };
            ic_undo::resume(&kernel, &settings, &request, &mut Unwatched, &watch).map(|outcome| outcome.remembered.id)
        }
    }
}

/// The request for the redo of a rollback. `expect_plan`: the hash of the plan that was seen; `None`: only plan.
pub(crate) fn redo_of<'a>(
    rollback: &'a RollbackId,
    without_effects: bool,
    expect_plan: Option<&'a str>,
) -> UndoRequest<'a> {
    UndoRequest { rollback: rollback.as_str(), without_effects, reason: None, expect_plan }
}

fn unrecorded() -> Diagnosis {
    Diagnosis::new(Code::Internal, "The rollback was not recorded.")
}
