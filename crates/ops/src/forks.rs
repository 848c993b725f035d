//! Forks of a work tree: making one, comparing them, adopting one as a piece of work, removing one.

use std::ffi::OsString;

use ic_base::{Code, Diagnose, Diagnosis, DispatchId, Result};
use ic_checkpoint::diff::TreeChange;
use ic_checkpoint::restore::reverse::LineDecision;
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchWork, TokenCounts};
use ic_dispatch::{DispatchStatus, code};
use ic_effects::child::supervision::GroupGuard;
use ic_kernel::Kernel;
use ic_ledger::lock::{FileLock, LockMode, Rank};
use ic_ledger::{Snapshot, private};
use ic_phase::run::{self, RunFilter};
use ic_worktree::forks::{self, Adoption, DroppedFork, Fork};
use ic_worktree::{CaptureSettings, Warning, Which, Workspace};

use crate::direct_work::{self, DirectWork};
use crate::exec::environment;

/// Makes a fork of the work tree here, with its files of now or of a point; returns what does not come along, too.
///
/// Errors: those of a point; `file_conflict`, `git_failed`: nothing was made.
pub fn make(
    kernel: &Kernel,
    settings: &CaptureSettings,
    point: Option<&str>,
    name: Option<&str>,
) -> Result<(Fork, Vec<Warning>)> {
    let workspace = Workspace::here(kernel, settings)?;
    let from = match point {
        Some(point) => {
            let id = ic_undo::points::checkpoint_meant(kernel, None, point)?;
            kernel.read(|snapshot| ic_worktree::find(snapshot, &workspace.root, Which::Id(id.as_str())))?
        }
        // It is recorded, so that retention and sweeps keep the content with which the fork begins.
        None => workspace.record_look(None)?,
    };
    let name = name.map_or_else(|| forks::free_name(&workspace.root), str::to_owned);
    forks::make(&workspace, &from, &name)
}

/// A fork with what is known of its work.
#[derive(Debug)]
pub struct ComparedFork {
    /// The fork that was meant.
    pub fork: Fork,
    /// The files that differ from those with which it began, and how.
    pub files: Vec<(Vec<u8>, TreeChange)>,
    /// The newest work in it.
    pub newest: Option<Dispatch>,
    /// The tokens of all work in it.
    pub tokens: TokenCounts,
    /// How many commits its work recorded.
    pub commits: usize,
}

/// The forks with these names or directories, or all of the work tree here. Nothing is written.
///
/// Errors: `fork_not_found`; those of a capture.
pub fn compare(kernel: &Kernel, settings: &CaptureSettings, names: &[String]) -> Result<Vec<ComparedFork>> {
    let meant: Vec<Fork> = match names {
        [] => forks::of_here(kernel)?,
        names => names.iter().map(|name| forks::find(kernel, name)).collect::<Result<_>>()?,
    };
    meant.iter().map(|fork| compared(kernel, settings, fork)).collect()
}

fn compared(kernel: &Kernel, settings: &CaptureSettings, fork: &Fork) -> Result<ComparedFork> {
    let files = Workspace::open(kernel, fork.root.clone(), settings)?.changed_in_fork(fork)?;
    kernel.read(|snapshot| {
        let works = works_of(snapshot, fork)?;
        let tokens = works.iter().fold(TokenCounts::default(), |all, work| all.plus(work.tokens));
        let mut commits = 0;
        for work in &works {
            commits += code::commits_of(snapshot, &work.id)?.len();
        }
        Ok(ComparedFork { newest: works.into_iter().next_back(), fork: fork.clone(), files, tokens, commits })
    })
}

/// All work in a fork, oldest first; not that of an earlier one of its name.
fn works_of(snapshot: &Snapshot<'_>, fork: &Fork) -> Result<Vec<Dispatch>> {
    const MOST: i64 = 1_000;
    let begin = fork.base.as_ref().map_or(0, |base| base.seq);
    let filter = RunFilter { open: false, project: Some(&fork.root), limit: MOST, before: None };
    let mut works = Vec::new();
    for run in run::list(snapshot, &filter)? {
        works.extend(dispatch::of_run(snapshot, &run.id)?.into_iter().filter(|work| work.seq >= begin));
    }
    works.sort_by_key(|work| work.seq);
    Ok(works)
}

/// How a fork is adopted.
pub struct AdoptRequest<'a> {
    /// The fork: its name or its directory.
    pub fork: &'a str,
    /// The run that the work belongs to; `None`: that of the calling dispatch, else one of its own.
    pub run: Option<&'a str>,
    /// What is done about lines that both changed; `None`: they are refused.
    pub decision: Option<LineDecision>,
    /// Say what would be done, and change nothing.
    pub dry_run: bool,
    /// The command that records the death of this process, for the work with this id: its program, then its arguments.
    pub if_killed: &'a dyn Fn(&DispatchId) -> Vec<OsString>,
}

/// An adoption, and the work that it is.
#[derive(Debug)]
pub struct AdoptedFork {
    /// The fork that was meant.
    pub fork: Fork,
    /// What became of the paths.
    pub adoption: Adoption,
    /// The work that has the changes; `None`: there was nothing to change, or it was a dry run.
    pub work: Option<Dispatch>,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Merges what a fork became into the work tree here, as one piece of work.
///
/// Errors: `fork_not_found`; `busy` if another adoption runs longer than the timeout; those of [`forks::adopt`] and of a run's reference:
/// nothing was written.
pub fn adopt(kernel: &Kernel, settings: &CaptureSettings, request: &AdoptRequest<'_>) -> Result<AdoptedFork> {
    // Adoptions run one at a time: the work of one that is refused would share what another writes at the same time.
    let _alone = if request.dry_run { None } else { Some(lock_adoptions(kernel, settings)?) };
    let fork = forks::find(kernel, request.fork)?;
    // An undo of the adoption needs both looks, whatever is captured along the way otherwise.
    let mut settings = settings.clone();
    settings.checkpointing.auto = true;
    let here = Workspace::here(kernel, &settings)?;
    let place = Workspace::open(kernel, fork.root.clone(), &settings)?;
    let adopted = |dry_run| forks::adopt(&here, &place, &fork, request.decision, dry_run);
    // First as a dry run: a refusal leaves no work on record, and neither does a fork that has nothing new.
    let planned = adopted(true)?;
    let there = of_work_there(kernel, &fork)?;
    if request.dry_run || planned.plan.steps.is_empty() {
        return Ok(AdoptedFork { adoption: planned, work: None, warnings: there.into_iter().collect(), fork });
    }
    let line = format!("{}{}", direct_work::ADOPT, fork.name);
    let work = DispatchWork { name: Some(line.clone()), ..DispatchWork::default() };
    let new = DirectWork { run: request.run, phase: None, work, line, kept: Some(&settings) };
    let id: DispatchId = kernel.context.new_id();
    // Killed in between, the half that is here is the work's, and an undo takes it out.
    let mut guard = GroupGuard::start(&(request.if_killed)(&id), &environment(kernel, None))?;
    let (_, mut warnings) = direct_work::begin(kernel, &id, &new)?;
    // The adoption is planned once more: both trees may have changed since the dry run.
    let done = adopted(false);
    let theirs = done.as_ref().ok().and_then(|adoption| adoption.theirs.as_ref());
    // The note comes before the end: the note of work that did not end counts for nothing, and work without its note would be adopted
    // again.
    let noted = theirs.map_or(Ok(()), |checkpoint| fork.note_adopted(&id, checkpoint));
    let ending = match &done {
        Ok(_) => DispatchEnding::Completed { summary: None, verdict: None },
        Err(error) => DispatchEnding::Failed { error: error.message() },
    };
    let (work, more) = direct_work::end(kernel, &id, &ending, Some(&settings))?;
    guard.dismiss();
    warnings.extend(more.into_iter().chain(there));
    warnings.extend(noted.err().map(|error| Warning { code: "not_noted", message: error.message().to_owned() }));
    // The error of an adoption that failed is returned only here, when its work has an end on record.
    Ok(AdoptedFork { adoption: done?, work: Some(work), warnings, fork })
}

fn lock_adoptions(kernel: &Kernel, settings: &CaptureSettings) -> Result<FileLock> {
    let directory = kernel.store().join("owners");
    let doing = || "locking the adoption of forks".to_owned();
    private::directory(&directory).while_doing(doing)?;
    let path = directory.join("adoption");
    let taken = FileLock::take(&path, Rank::Owner, LockMode::Exclusive, settings.busy_timeout).while_doing(doing)?;
    taken.ok_or_else(|| {
        Diagnosis::new(Code::Busy, "Another process adopts a fork, and did not end in time.")
            .hint("try again, or give --busy-timeout more time")
    })
}

/// What there is to say of the work in a fork that is adopted: some of it goes on, or did not end well.
fn of_work_there(kernel: &Kernel, fork: &Fork) -> Result<Option<Warning>> {
    let Some(newest) = kernel.read(|snapshot| works_of(snapshot, fork))?.pop() else { return Ok(None) };
    let (id, status) = (newest.id.short(), newest.status.as_str());
    Ok(match newest.status {
        DispatchStatus::Completed | DispatchStatus::Pending => None,
        DispatchStatus::Running => {
            let message = format!("work goes on in the fork ({id}): what it changes from here on is not adopted");
            Some(Warning { code: "work_running", message })
        }
        _ => {
            Some(Warning { code: "not_completed", message: format!("the newest work in the fork is {status} ({id})") })
        }
    })
}

/// Removes a fork; `force`: with files that no checkpoint holds.
///
/// Errors: `fork_not_found`; those of [`forks::remove`]: nothing was removed.
pub fn drop(kernel: &Kernel, settings: &CaptureSettings, name: &str, force: bool) -> Result<(String, DroppedFork)> {
    let fork = match forks::find(kernel, name) {
        // A removal that was killed leaves a directory that is no longer a fork. The same call finishes it.
        Err(error) if error.code() == Code::ForkNotFound => {
            let finished = forks::finish_removal(&kernel.project.root, name)?;
            return finished.map(|dropped| (name.to_owned(), dropped)).ok_or(error);
        }
        found => found?,
    };
    let place = Workspace::open(kernel, fork.root.clone(), settings)?;
    let dropped = forks::remove(&place, &kernel.project.root, &fork, force)?;
    Ok((fork.name, dropped))
}
