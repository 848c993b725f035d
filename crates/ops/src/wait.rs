//! Waiting for the end of work and runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::{Code, DispatchId, Result};
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch};
use ic_dispatch::worker::{Life, life};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, events};
use ic_phase::{Run, RunStatus, run, run_reference};
use ic_session::{self as session, OF_COMMANDS};

use crate::run::is_executed;

/// How often the ledger and the processes are looked at: short beside any agent's work, and neither costs a millisecond.
const POLL: Duration = Duration::from_millis(50);

/// What is waited for, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct WaitRequest<'a> {
    /// Dispatches and runs; none: all work of commands and scripts that is under way.
    pub references: &'a [String],
    /// Whether the first end is enough.
    pub any: bool,
    /// How long at most; `None`: without a limit.
    pub timeout: Option<Duration>,
}

/// A dispatch or a run, as it was looked at last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwaitedSubject {
    /// A piece of work.
    Work(Box<Dispatch>),
    /// A run as a whole.
    Run(Box<Run>),
}

/// Why nothing more is to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedEnd {
    /// Its end is on record, or it was rolled back.
    Recorded,
    /// The process of the work is gone, and no end is on record.
    ProcessGone,
    /// The work has been silent for longer than it may be.
    Lost,
    /// The workflow of the run has stopped before its end.
    Stopped,
}

/// What was waited for, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// As it was looked at last.
    pub subject: AwaitedSubject,
    /// `None`: the wait ended first.
    pub end: Option<AwaitedEnd>,
    /// Since when the process is known to be gone of work whose guard records its end.
    gone_since: Option<Instant>,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStop {
    /// All have ended, or the first has.
    Ended,
    /// The time is over.
    TimedOut,
    /// The wait was interrupted.
    Interrupted,
}

/// Waits for each of them to end, or for the first; returns them as they then are, in the order of their references. `left` hears how many
/// have not ended. Nothing is written, and no lock is kept.
///
/// Errors: `dispatch_not_found` and the other errors of a reference.
pub fn wait(
    kernel: &Kernel,
    request: &WaitRequest<'_>,
    interrupted: &AtomicBool,
    left: &dyn Fn(usize),
) -> Result<(Vec<Awaited>, WaitStop)> {
    let started = Instant::now();
    // The version is read before the records: a change that is committed in between changes it again, and is not missed.
    let mut version = kernel.ledger.data_version()?;
    let mut awaited = kernel.read(|snapshot| found(kernel, snapshot, request.references))?;
    loop {
        for one in awaited.iter_mut().filter(|one| one.end.is_none()) {
            // This looks in each round, even if the ledger has nothing new: a process that dies records no event.
            one.look(kernel)?;
        }
        let open = awaited.iter().filter(|one| one.end.is_none()).count();
        left(open);
        // Asked before the time: with a timeout of zero, what has ended already is told.
        if open == 0 || (request.any && open < awaited.len()) {
            return Ok((awaited, WaitStop::Ended));
        }
        if interrupted.load(Ordering::SeqCst) {
            return Ok((awaited, WaitStop::Interrupted));
        }
        let rest = request.timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        if rest.is_some_and(|rest| rest.is_zero()) {
            return Ok((awaited, WaitStop::TimedOut));
        }
        thread::sleep(rest.map_or(POLL, |rest| rest.min(POLL)));
        let now = kernel.ledger.data_version()?;
        if now != version {
            version = now;
            for one in awaited.iter_mut().filter(|one| one.end.is_none()) {
                one.subject = kernel.read(|snapshot| one.subject.again(snapshot))?;
            }
        }
    }
}

/// What the references name, each once.
fn found(kernel: &Kernel, snapshot: &Snapshot<'_>, references: &[String]) -> Result<Vec<Awaited>> {
    let mut subjects: Vec<AwaitedSubject> = Vec::new();
    if references.is_empty() {
        subjects.extend(under_way(kernel, snapshot)?.into_iter().map(|work| AwaitedSubject::Work(Box::new(work))));
    }
    for reference in references {
        let subject = named(kernel, snapshot, reference)?;
        if !subjects.iter().any(|known| known.is_also(&subject)) {
            subjects.push(subject);
        }
    }
    Ok(subjects.into_iter().map(|subject| Awaited { subject, end: None, gone_since: None }).collect())
}

/// The dispatch or the run that a reference names.
fn named(kernel: &Kernel, snapshot: &Snapshot<'_>, reference: &str) -> Result<AwaitedSubject> {
    if reference == "@" || reference.starts_with("scope:") {
        return Ok(AwaitedSubject::Run(Box::new(kernel.run(snapshot, reference)?)));
    }
    // Ids are random, so one that names both a dispatch and a run is as good as none: the dispatch is meant.
    match dispatch::resolve(snapshot, reference) {
        Err(error) if error.code() == Code::DispatchNotFound => match run_reference::by_id(snapshot, reference) {
            Err(other) if other.code() == Code::RunNotFound => Err(error),
            found => of_run(snapshot, found?),
        },
        found => Ok(AwaitedSubject::Work(Box::new(found?))),
    }
}

/// A run, or where that was made for one command, the command's work: the run is completed however that ends.
fn of_run(snapshot: &Snapshot<'_>, run: Run) -> Result<AwaitedSubject> {
    let owner = session::of_own_run(snapshot, &run.id)?;
    if let Some(owner) = owner.filter(|owner| owner.client == OF_COMMANDS) {
        // Such a session is named after its only work.
        return dispatch::resolve(snapshot, &owner.client_id).map(|work| AwaitedSubject::Work(Box::new(work)));
    }
    Ok(AwaitedSubject::Run(Box::new(run)))
}

/// The work of commands and scripts that is at work, oldest first: not the prompts of agents' sessions, which a person leads, nor the work
/// in which this call is made.
fn under_way(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Vec<Dispatch>> {
    // A command of `ic exec` that waits for everything must not wait for itself.
    let own = kernel.calling_dispatch(snapshot)?.map(|caller| dispatch::kin(snapshot, &caller)).transpose()?;
    let own: Vec<DispatchId> = own.unwrap_or_default();
    let mut under_way = Vec::new();
    for work in dispatch::running(snapshot)? {
        let is_of_agent = session::of_work(snapshot, &work)?.is_some_and(|session| session.client != OF_COMMANDS);
        // A ledger on a server has the work of other clones, too, which this caller did not begin.
        let is_here = kernel.ledger.is_of_one_host()
            || events::author(snapshot, work.seq)?.is_some_and(|author| author.seat == kernel.own_actor().seat);
        if is_here && !is_of_agent && !own.contains(&work.id) && work.rolled_back_by.is_none() {
            under_way.push(work);
        }
    }
    under_way.reverse();
    Ok(under_way)
}

impl AwaitedSubject {
    fn is_also(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Work(one), Self::Work(other)) => one.id == other.id,
            (Self::Run(one), Self::Run(other)) => one.id == other.id,
            (Self::Work(_), Self::Run(_)) | (Self::Run(_), Self::Work(_)) => false,
        }
    }

    fn again(&self, snapshot: &Snapshot<'_>) -> Result<Self> {
        match self {
            Self::Work(work) => dispatch::get(snapshot, &work.id).map(|work| Self::Work(Box::new(work))),
            Self::Run(run) => run::get(snapshot, &run.id).map(|run| Self::Run(Box::new(run))),
        }
    }

    /// Whether its end is on record.
    fn has_ended(&self) -> bool {
        match self {
            Self::Work(work) => work.status.is_finished() || work.rolled_back_by.is_some(),
            Self::Run(run) => matches!(run.status, RunStatus::Completed | RunStatus::Cancelled | RunStatus::Failed),
        }
    }

    /// Why it will not end by itself, although no end is on record.
    fn is_abandoned(&self, kernel: &Kernel) -> Result<Option<AwaitedEnd>> {
        Ok(match self {
            // The executor of a run records the end of a step after the step's process has ended.
            Self::Work(work) => match life(work) {
                Some(Life::Gone) if !is_executed(kernel, &work.run_id) => Some(AwaitedEnd::ProcessGone),
                Some(Life::Lost) => Some(AwaitedEnd::Lost),
                Some(Life::Gone | Life::Alive | Life::Unknown) | None => None,
            },
            // Only a workflow moves a run by itself: any other waits for its next caller.
            Self::Run(run) => {
                let has_workflow = kernel.read(|snapshot| (kernel.above.has_workflow)(snapshot, &run.id))?;
                (has_workflow && !is_executed(kernel, &run.id)).then_some(AwaitedEnd::Stopped)
            }
        })
    }

    /// Whether a last look may change the answer of [`Self::is_abandoned`]: the same process, or the same beat, is on record.
    fn is_as(&self, last: &Self) -> bool {
        match (self, last) {
            (Self::Work(one), Self::Work(last)) => one.process == last.process && one.heartbeat == last.heartbeat,
            _ => true,
        }
    }
}

impl Awaited {
    /// Whether it ended well: completed, and not rolled back.
    pub fn is_success(&self) -> bool {
        self.end == Some(AwaitedEnd::Recorded)
            && match &self.subject {
                AwaitedSubject::Work(work) => work.status == DispatchStatus::Completed && work.rolled_back_by.is_none(),
                AwaitedSubject::Run(run) => run.status == RunStatus::Completed,
            }
    }

    /// Whether the guard of a command may yet record its end: it first ends what the command left running.
    fn is_guarded(&mut self, kernel: &Kernel, abandoned: AwaitedEnd) -> Result<bool> {
        let (AwaitedEnd::ProcessGone, AwaitedSubject::Work(work)) = (abandoned, &self.subject) else {
            return Ok(false);
        };
        let session = kernel.read(|snapshot| session::of_work(snapshot, work))?;
        // The time is counted from the first look that missed the process, and not from the beginning of the wait.
        let since = *self.gone_since.get_or_insert_with(Instant::now);
        Ok(session.is_some_and(|session| session.client == OF_COMMANDS)
            && since.elapsed() < crate::direct_work::GUARDED)
    }

    fn look(&mut self, kernel: &Kernel) -> Result<()> {
        if self.subject.has_ended() {
            self.end = Some(AwaitedEnd::Recorded);
        } else if let Some(abandoned) = self.subject.is_abandoned(kernel)? {
            // A worker may record its end and exit between the two looks. Its work has ended then, and was not abandoned.
            let last = kernel.read(|snapshot| self.subject.again(snapshot))?;
            if last.has_ended() {
                self.end = Some(AwaitedEnd::Recorded);
            } else if self.subject.is_as(&last) && !self.is_guarded(kernel, abandoned)? {
                self.end = Some(abandoned);
            }
            self.subject = last;
        }
        Ok(())
    }
}
