//! What a run can go back to and how it went back before, as one list.

use ic_base::{DispatchId, Result, RollbackId, Seq, Timestamp};
use ic_checkpoint::diff::{self, Change};
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record::{self, Checkpoint, Link};
use ic_dispatch::{code, dispatch};
use ic_journal::table::{self, RollbackRecord};
use ic_kernel::Kernel;
use ic_phase::{Run, run};
use ic_store::{OpenOptions, Snapshot};
use ic_worktree::look_into_store;

use super::list::{self, Listed};
use super::own;

/// Which part of a log is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Whether what was rolled back is wanted too, and rollbacks that were undone or aborted.
    pub all: bool,
    /// Only what was recorded before this event.
    pub before: Option<Seq>,
    /// The most entries.
    pub at_most: usize,
}

impl Page {
    fn holds(&self, entry: &Entry) -> bool {
        self.before.is_none_or(|before| entry.seq < before)
    }
}

/// Points and rollbacks of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// The newest first.
    pub entries: Vec<Entry>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A point or a rollback.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its event.
    pub seq: Seq,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it is.
    pub what: What,
    /// The rollbacks that stand and took the run back to before it, the newest first; empty: it stands itself.
    pub taken_back_by: Vec<RollbackId>,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A place to which the run can go back.
    Point {
        /// The point.
        point: Box<Listed>,
        /// What happened to files from there to the next point, or to the newest checkpoint of the run; `None` where that is not known.
        files: Option<Files>,
        /// How many commits were recorded for the dispatch that it stands before; `None` if it stands before none.
        commits: Option<usize>,
    },
    /// It went back.
    Rollback(Box<RollbackRecord>),
}

/// How many files, links and empty directories changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Files {
    /// There was nothing before.
    pub created: usize,
    /// They were there before.
    pub modified: usize,
    /// There is nothing any more.
    pub deleted: usize,
    /// Others were at work at the same time, and may have changed them: they are in no other count.
    pub shared: usize,
}

impl Files {
    pub(super) fn add(&mut self, change: Change) {
        match change {
            Change::Added => self.created += 1,
            Change::Deleted => self.deleted += 1,
            Change::Modified | Change::Mode | Change::Attributes | Change::Type => self.modified += 1,
        }
    }
}

/// The newest points and rollbacks of a run, newest first. What files changed is left unknown where the content store is missing, another ledger's or damaged: a list must not fail for
/// what `ic health` says.
pub fn log(kernel: &Kernel, options: OpenOptions, run: &Run, page: Page) -> Result<Log> {
    let mut log = counted(kernel, options, run, page)?;
    count_own(kernel, options, log.entries.iter_mut())?;
    Ok(log)
}

/// As [`log`], with all that changed at each point, whoever did it.
fn counted(kernel: &Kernel, options: OpenOptions, run: &Run, page: Page) -> Result<Log> {
    let mut log = kernel.read(|snapshot| entries(snapshot, run, page))?;
    let is_captured =
        |entry: &Entry| matches!(&entry.what, What::Point { point, .. } if point.checkpoint_id.is_some());
    if log.entries.iter().any(is_captured)
        && let Ok(Some(objects)) = look_into_store(kernel, options)
    {
        objects.at_one_moment(|| {
            kernel.read(|snapshot| count_files(snapshot, &objects, run, page, &mut log.entries))
        })?;
    }
    // What is newer was only looked at for where its neighbours end.
    log.entries.retain(|entry| page.holds(entry));
    Ok(log)
}

/// The newest points and rollbacks of the runs that were made for sessions of agents in this project, newest first, each with its run: what
/// the agents here did, whichever session that was in. Where such a run was made and ended is left out. As [`log`] otherwise.
pub fn of_sessions(kernel: &Kernel, options: OpenOptions, page: Page) -> Result<(Vec<(Run, Entry)>, bool)> {
    let runs = kernel.read(|snapshot| ic_session::own_runs(snapshot, &kernel.project.root, NEWEST_RUNS))?;
    let (mut found, mut has_more) = (Vec::new(), false);
    for run in runs {
        let run = kernel.read(|snapshot| run::get(snapshot, &run))?;
        let log = counted(kernel, options, &run, page)?;
        has_more |= log.has_more;
        let is_wanted = |entry: &Entry| match &entry.what {
            What::Point { point, .. } => !matches!(point.kind, "created" | "phase"),
            What::Rollback(_) => true,
        };
        found.extend(log.entries.into_iter().filter(is_wanted).map(|entry| (run.clone(), entry)));
    }
    // Stable: points of one event keep their order.
    found.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.seq));
    has_more |= found.len() > page.at_most;
    found.truncate(page.at_most);
    count_own(kernel, options, found.iter_mut().map(|(_, entry)| entry))?;
    Ok((found, has_more))
}

/// Leaves out what others changed beside a prompt.
fn count_own<'e>(
    kernel: &Kernel,
    options: OpenOptions,
    entries: impl Iterator<Item = &'e mut Entry>,
) -> Result<()> {
    let mut entries: Vec<&mut Entry> = entries.collect();
    let beside = kernel.read(|snapshot| own::beside(snapshot, &entries))?;
    if !beside.is_empty()
        && let Ok(Some(objects)) = look_into_store(kernel, options)
    {
        objects.at_one_moment(|| {
            kernel.read(|snapshot| own::count(snapshot, &objects, &mut entries, &beside))
        })?;
    }
    Ok(())
}

/// Of so many runs of sessions the newest entries are looked for: a session that is resumed has a run for each time.
const NEWEST_RUNS: i64 = 30;

/// The entries of a page, and those that are newer.
fn entries(snapshot: &Snapshot<'_>, run: &Run, page: Page) -> Result<Log> {
    let Page { all, before, at_most } = page;
    let rollbacks = table::of_run(snapshot, &run.id)?;
    let mut entries = Vec::new();
    for point in points(snapshot, run, &rollbacks, page)? {
        entries.push(of_point(snapshot, &rollbacks, point)?);
    }
    for rollback in &rollbacks {
        let taken_back_by = covering(&rollbacks, rollback.seq, false);
        let stands = rollback.status.stands() && taken_back_by.is_empty();
        if all || stands {
            let what = What::Rollback(Box::new(rollback.clone()));
            entries.push(Entry { seq: rollback.seq, created_at: rollback.created_at, what, taken_back_by });
        }
    }
    // Stable: points of one event keep their order.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
    let newer = before.map_or(0, |before| entries.partition_point(|entry| entry.seq >= before));
    let end = newer.saturating_add(at_most);
    let has_more = entries.len() > end;
    entries.truncate(end);
    Ok(Log { entries, has_more })
}

/// The points of a page with one more, which tells whether there are more, and those that are newer.
fn points(
    snapshot: &Snapshot<'_>,
    run: &Run,
    rollbacks: &[RollbackRecord],
    page: Page,
) -> Result<Vec<Listed>> {
    let wanted = page.at_most.saturating_add(1);
    let mut most = wanted;
    loop {
        let found = list::list_among(snapshot, run, rollbacks, page.all, most)?;
        let newer = page.before.map_or(0, |before| found.iter().filter(|one| one.seq >= before).count());
        if found.len() < most || found.len() - newer >= wanted {
            return Ok(found);
        }
        // However many are newer. Each round reads again what the one before it did, so it reads far more.
        most = most.saturating_mul(4);
    }
}

fn of_point(snapshot: &Snapshot<'_>, rollbacks: &[RollbackRecord], point: Listed) -> Result<Entry> {
    let commits = match &point.before {
        Some(id) if matches!(point.kind, "dispatch" | "prompt") => {
            Some(code::commits_of(snapshot, &DispatchId::from_ledger(id.clone()))?.len())
        }
        _ => None,
    };
    let taken_back_by = covering(rollbacks, point.seq, point.kind == "phase");
    let (seq, created_at) = (point.seq, point.created_at);
    let what = What::Point { point: Box::new(point), files: None, commits };
    Ok(Entry { seq, created_at, what, taken_back_by })
}

/// The rollbacks that stand and took the run back to before what has this event, newest first.
fn covering(rollbacks: &[RollbackRecord], seq: Seq, is_move: bool) -> Vec<RollbackId> {
    let is_one = |one: &&RollbackRecord| one.status.stands() && list::covers(one, seq, is_move);
    rollbacks.iter().rev().filter(is_one).map(|one| one.id.clone()).collect()
}

/// Counts what changed from each point of a page that was captured to the next one of its own branch.
fn count_files(
    snapshot: &Snapshot<'_>,
    objects: &Objects,
    run: &Run,
    page: Page,
    entries: &mut [Entry],
) -> Result<()> {
    // The nearest newer points of each branch, by what took the branch back: two events, because points may share one. What a subagent did
    // is a part of what its prompt did.
    let mut newer: Vec<(Vec<RollbackId>, Checkpoint, bool)> = Vec::new();
    for entry in entries {
        let is_wanted = page.holds(entry);
        let What::Point { point, files, .. } = &mut entry.what else { continue };
        let Some(id) = &point.checkpoint_id else { continue };
        let checkpoint = record::get(snapshot, id)?;
        if !is_wanted {
            newer.push((entry.taken_back_by.clone(), checkpoint, point.is_of_subagent()));
            continue;
        }
        if let Some(end) = end_of(snapshot, point)? {
            *files = changes(objects, &checkpoint, &end);
            newer.push((entry.taken_back_by.clone(), checkpoint, point.is_of_subagent()));
            continue;
        }
        let is_part = point.is_of_subagent();
        let is_next = |(branch, _, part): &&(Vec<RollbackId>, Checkpoint, bool)| {
            *branch == entry.taken_back_by && (is_part || !part)
        };
        let of_branch = newer.iter().rev().filter(is_next);
        let next = of_branch.map(|(_, next, _)| next).find(|next| next.seq > checkpoint.seq).cloned();
        let next = match next {
            // What the newest point began is seen by whatever was captured last.
            None if entry.taken_back_by.is_empty() => newest_of(snapshot, run, &checkpoint)?,
            next => next,
        };
        *files = next.and_then(|next| changes(objects, &checkpoint, &next));
        newer.push((entry.taken_back_by.clone(), checkpoint, is_part));
    }
    Ok(())
}

/// The capture with which the work before which a point stands ended: what came later is not its work.
fn end_of(snapshot: &Snapshot<'_>, point: &Listed) -> Result<Option<Checkpoint>> {
    let Some(id) = point.before.as_ref().filter(|_| matches!(point.kind, "prompt" | "dispatch")) else {
        return Ok(None);
    };
    let work = dispatch::find(snapshot, &DispatchId::from_ledger(id.clone()))?;
    let end = work.and_then(|work| work.finished_seq);
    end.map_or(Ok(None), |end| record::of_event(snapshot, end - 1))
}

/// The newest checkpoint of the run, if it was taken after this one.
fn newest_of(snapshot: &Snapshot<'_>, run: &Run, after: &Checkpoint) -> Result<Option<Checkpoint>> {
    let link = Link { run_id: Some(run.id.clone()), ..Link::default() };
    let newest = record::latest_of_lineage(snapshot, &after.root, &link)?;
    Ok(newest.filter(|newest| newest.seq > after.seq))
}

/// What changed between two checkpoints; `None` where one is of another tree, or its content is gone.
fn changes(objects: &Objects, before: &Checkpoint, after: &Checkpoint) -> Option<Files> {
    if before.root != after.root || before.pruned_at.is_some() || after.pruned_at.is_some() {
        return None;
    }
    let mut files = Files::default();
    let counted = diff::diff(objects, Some(&before.tree), Some(&after.tree), &mut |difference| {
        if let Some(change) = difference.change() {
            files.add(change);
        }
        Ok(())
    });
    counted.ok().map(|()| files)
}
