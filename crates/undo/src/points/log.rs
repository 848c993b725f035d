//! What a run can go back to and how it went back before, as one list.

use std::cell::OnceCell;

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result, RollbackId, Seq, Timestamp};
use ic_checkpoint::diff::{self, Difference, TreeChange};
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::code;
use ic_kernel::Kernel;
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_ledger::{OpenOptions, Snapshot};
use ic_phase::Run;
use ic_worktree::look_into_store;

use super::change_bounds::{self, ChangesEnd};
use super::list::{self, ListPart, ListedPoint};
use super::prompt_changes;

/// The part of a log that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPage {
    /// Whether to include what was rolled back, and rollbacks that were undone or aborted.
    pub all: bool,
    /// The event before which entries must lie; `None`: the newest are wanted.
    pub before: Option<Seq>,
    /// The most entries that are returned; those that share an event with the last one are added.
    pub at_most: usize,
}

impl LogPage {
    fn part(self) -> (Seq, usize) {
        (self.before.unwrap_or(Seq::MAX), self.at_most)
    }
}

/// Points and rollbacks of a run, or of several with the run of each.
#[derive(Debug, Clone, PartialEq)]
pub struct PointLog<E = LogEntry> {
    /// The entries, newest first.
    pub entries: Vec<E>,
    /// Whether there are older entries.
    pub has_more: bool,
    /// Why content that shows what changed cannot be read: the message of the first failure; `None`: all was read.
    pub unread: Option<String>,
}

/// A point or a rollback.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// The event that recorded it.
    pub seq: Seq,
    /// When it was made.
    pub created_at: Timestamp,
    /// A point or a rollback, with what is known of it.
    pub what: What,
    /// The rollbacks that stand and took the run to before it, newest first; empty: it stands itself.
    pub taken_back_by: Vec<RollbackId>,
}

/// The two kinds of entries of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A place to which the run can go back.
    Point {
        /// The point itself, as in a list.
        point: Box<ListedPoint>,
        /// The changes of files from there to the next point, or to the newest checkpoint of the run; `None` where they are not known.
        files: Option<Files>,
        /// The checkpoint up to which they are counted; `None` where that is not known.
        until: Option<CheckpointId>,
        /// The number of commits that were recorded for the dispatch that it stands before; `None` if it stands before none.
        commits: Option<usize>,
    },
    /// The run went back, or work was undone.
    Rollback(Box<RollbackRecord>),
}

/// Numbers of files and links that changed, and of directories by themselves: where a directory comes or goes with files in it, only the
/// files count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Files {
    /// Files and links that were not there before.
    pub created: usize,
    /// Files and links that were there before and are now.
    pub modified: usize,
    /// Files and links that are not there any longer.
    pub deleted: usize,
    /// Files that other work may have changed, because it ran at the same time; they are in no other number.
    pub shared: usize,
    /// Empty directories that came or went, and directories with other permission bits or attributes: no files.
    pub directories: usize,
}

impl Files {
    pub(super) fn add(&mut self, difference: &Difference, change: TreeChange) {
        match change {
            _ if difference.is_of_directory() => self.directories += 1,
            TreeChange::Added => self.created += 1,
            TreeChange::Deleted => self.deleted += 1,
            TreeChange::Modified | TreeChange::Mode | TreeChange::Attributes | TreeChange::Type => self.modified += 1,
        }
    }
}

/// The newest points and rollbacks of a run, newest first. Changes of files stay unknown where the content store is missing, damaged, or
/// that of another ledger, and [`PointLog::unread`] says why. A list must not fail for what `ic health` reports.
pub fn log(kernel: &Kernel, options: OpenOptions, run: &Run, page: LogPage) -> Result<PointLog> {
    let mut log = counted(kernel, &LazyStore::new(options), run, page.all, page.part())?;
    count_own(kernel, options, log.entries.iter_mut())?;
    Ok(log)
}

/// Cuts entries, newest first, to a page of this length. Returns whether there are older ones.
pub fn cut_page<E>(entries: &mut Vec<E>, at_most: usize, seq: impl Fn(&E) -> Seq) -> bool {
    let Some(last) = at_most.checked_sub(1).and_then(|at| entries.get(at)).map(&seq) else { return false };
    // The next page begins before an event, so all entries of one event are on one page: steps that begin together share one, and what a
    // person changed after a checkpoint has the event of that checkpoint.
    let end = entries.partition_point(|one| seq(one) >= last);
    let has_more = end < entries.len();
    entries.truncate(end);
    has_more
}

/// The newest points and rollbacks of a run, including those that were rolled back, without what changed at each: for a drawing.
pub fn drawn(snapshot: &Snapshot<'_>, run: &Run, at_most: usize) -> Result<PointLog> {
    entries(snapshot, run, true, (Seq::MAX, at_most))
}

/// One point of a run, by its event and its reference, with what changed up to the next one, and the point before it on its branch.
///
/// Errors: `point_not_found`.
pub fn at(
    kernel: &Kernel,
    options: OpenOptions,
    run: &Run,
    (seq, reference): (Seq, &str),
) -> Result<(LogEntry, Option<ListedPoint>)> {
    let is_it = |entry: &LogEntry| matches!(&entry.what, What::Point { point, .. } if point.seq == seq && point.reference == reference);
    let (mut entries, before) = kernel.read(|snapshot| {
        let rollbacks = table::of_run(snapshot, &run.id)?;
        let entries = following(snapshot, run, &rollbacks, seq)?;
        let part = ListPart { all: true, before: seq, at_most: NEIGHBOURS };
        let older = list::list_among(snapshot, run, &rollbacks, part)?;
        let branch = entries.iter().find(|entry| is_it(entry)).map(|entry| entry.taken_back_by.clone());
        let is_before = |one: &ListedPoint| {
            let taken_back_by = covering(&rollbacks, one.seq, one.kind == "phase");
            one.checkpoint_id.is_some()
                && branch.as_ref().is_some_and(|branch| taken_back_by.iter().all(|by| branch.contains(by)))
        };
        Ok((entries, older.into_iter().find(is_before)))
    })?;
    // A store that cannot be read leaves the changes unknown; `ic health` says why.
    if let Ok(Some(objects)) = look_into_store(kernel, options) {
        // With fewer points than were asked for, the newest one of all is among them.
        let is_whole = entries.len() < NEIGHBOURS;
        objects.at_one_moment(|| {
            kernel.read(|snapshot| count_files(snapshot, &objects, run, &mut entries, is_whole).map(|_| ()))
        })?;
    }
    entries.retain(is_it);
    count_own(kernel, options, entries.iter_mut())?;
    let missing = || {
        Diagnosis::new(
            Code::PointNotFound,
            format!("The run {} has no point {reference:?} at event {seq}.", run.id.short()),
        )
        .hint(format!("see its points: ic log {} --all", run.id.short()))
        .detail("point", reference)
    };
    Ok((entries.into_iter().next().ok_or_else(missing)?, before))
}

/// The number of points next to one among which the next of its branch is searched.
const NEIGHBOURS: usize = 64;

/// The points from an event on, newest first, at most [`NEIGHBOURS`].
fn following(snapshot: &Snapshot<'_>, run: &Run, rollbacks: &[RollbackRecord], from: Seq) -> Result<Vec<LogEntry>> {
    let points = list::list_from(snapshot, run, rollbacks, from, NEIGHBOURS)?;
    points.into_iter().map(|point| of_point(snapshot, rollbacks, point)).collect()
}

/// The content store, opened when it is first needed: a log over many runs opens it once.
pub(super) struct LazyStore {
    options: OpenOptions,
    opened: OnceCell<std::result::Result<Option<Objects>, String>>,
}

impl LazyStore {
    pub(super) fn new(options: OpenOptions) -> Self {
        Self { options, opened: OnceCell::new() }
    }

    pub(super) fn objects(&self, kernel: &Kernel) -> &std::result::Result<Option<Objects>, String> {
        let open = || look_into_store(kernel, self.options).map_err(|error| error.message().to_owned());
        self.opened.get_or_init(open)
    }
}

/// As [`log`], with all that changed at each point, by any work.
pub(super) fn counted(
    kernel: &Kernel,
    store: &LazyStore,
    run: &Run,
    all: bool,
    part: (Seq, usize),
) -> Result<PointLog> {
    let mut log = kernel.read(|snapshot| entries(snapshot, run, all, part))?;
    let is_captured =
        |entry: &LogEntry| matches!(&entry.what, What::Point { point, .. } if point.checkpoint_id.is_some());
    if !log.entries.iter().any(is_captured) {
        return Ok(log);
    }
    let objects = store.objects(kernel);
    match objects {
        Ok(Some(_)) => {}
        Ok(None) => log.unread = Some("The object store is missing.".to_owned()),
        Err(why) => log.unread = Some(why.clone()),
    }
    if let Ok(Some(objects)) = objects {
        objects.at_one_moment(|| {
            kernel.read(|snapshot| {
                // The changes after the newest point of a page end at a point of the page before it.
                let rollbacks = table::of_run(snapshot, &run.id)?;
                let newer = if part.0 == Seq::MAX { Vec::new() } else { following(snapshot, run, &rollbacks, part.0)? };
                let (is_whole, others) = (newer.len() < NEIGHBOURS, newer.len());
                let mut together = newer;
                together.append(&mut log.entries);
                log.unread = count_files(snapshot, objects, run, &mut together, is_whole)?;
                log.entries = together.split_off(others);
                Ok(())
            })
        })?;
    }
    Ok(log)
}

/// Removes from the numbers what others changed during a prompt.
pub(super) fn count_own<'e>(
    kernel: &Kernel,
    options: OpenOptions,
    entries: impl Iterator<Item = &'e mut LogEntry>,
) -> Result<()> {
    let mut entries: Vec<&mut LogEntry> = entries.collect();
    let beside = kernel.read(|snapshot| prompt_changes::beside(snapshot, &entries))?;
    if !beside.is_empty()
        && let Ok(Some(objects)) = look_into_store(kernel, options)
    {
        objects.at_one_moment(|| {
            kernel.read(|snapshot| prompt_changes::count(snapshot, &objects, &mut entries, &beside))
        })?;
    }
    Ok(())
}

/// The newest points and rollbacks of a run from before an event, of which nothing is counted yet.
pub(super) fn entries(
    snapshot: &Snapshot<'_>,
    run: &Run,
    all: bool,
    (before, at_most): (Seq, usize),
) -> Result<PointLog> {
    let rollbacks = table::of_run(snapshot, &run.id)?;
    // One entry more than wanted shows whether there are more.
    let mut wanted = at_most.saturating_add(1);
    let points = loop {
        let points = list::list_among(snapshot, run, &rollbacks, ListPart { all, before, at_most: wanted })?;
        let [end, oldest] = [at_most.saturating_sub(1), wanted - 1].map(|at| points.get(at).map(|point| point.seq));
        // The event at the end of the page is whole if an older one was read, too.
        if oldest.is_none() || end != oldest {
            break points;
        }
        wanted = wanted.saturating_mul(4);
    };
    let mut entries = Vec::new();
    for point in points {
        entries.push(of_point(snapshot, &rollbacks, point)?);
    }
    // A person undoes the prompts of a session one after another, and each undo is an entry.
    let of_session = ic_session::is_own_run(snapshot, &run.id)?;
    for rollback in rollbacks.iter().filter(|rollback| rollback.seq < before) {
        let taken_back_by = covering(&rollbacks, rollback.seq, false);
        if all || rollback.status.stands() && (of_session || taken_back_by.is_empty()) {
            let what = What::Rollback(Box::new(rollback.clone()));
            entries.push(LogEntry { seq: rollback.seq, created_at: rollback.created_at, what, taken_back_by });
        }
    }
    // A stable sort, so that points of one event keep their order.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
    let has_more = cut_page(&mut entries, at_most, |entry: &LogEntry| entry.seq);
    Ok(PointLog { entries, has_more, unread: None })
}

fn of_point(snapshot: &Snapshot<'_>, rollbacks: &[RollbackRecord], point: ListedPoint) -> Result<LogEntry> {
    let commits = match &point.before {
        Some(id) if matches!(point.kind, "dispatch" | "prompt") => {
            Some(code::commits_of(snapshot, &DispatchId::from_ledger(id.clone()))?.len())
        }
        _ => None,
    };
    let taken_back_by = covering(rollbacks, point.seq, point.kind == "phase");
    let (seq, created_at) = (point.seq, point.created_at);
    let what = What::Point { point: Box::new(point), files: None, until: None, commits };
    Ok(LogEntry { seq, created_at, what, taken_back_by })
}

/// The rollbacks that stand and took the run to before this event, newest first.
fn covering(rollbacks: &[RollbackRecord], seq: Seq, is_move: bool) -> Vec<RollbackId> {
    let is_one = |one: &&RollbackRecord| one.status.stands() && list::covers(one, seq, is_move);
    rollbacks.iter().rev().filter(is_one).map(|one| one.id.clone()).collect()
}

/// Counts what changed from each captured point to the next one of its own branch. `is_whole`: the newest entry is the newest of all.
/// Returns why content could not be read; `None`: all was read.
fn count_files(
    snapshot: &Snapshot<'_>,
    objects: &Objects,
    run: &Run,
    entries: &mut [LogEntry],
    is_whole: bool,
) -> Result<Option<String>> {
    let mut unread = None;
    let mut changes = |before: &CheckpointRecord, after: &CheckpointRecord| {
        changes(objects, before, after).unwrap_or_else(|error| {
            unread.get_or_insert_with(|| error.message().to_owned());
            None
        })
    };
    // The nearest newer points of each branch, by the rollbacks that ended the branch. What a subagent did is a part of what its prompt
    // did.
    //   P1 ── P2 ── P3, rolled back to P2 by R ── P4      P3 is on the branch [R], the others are on []
    let mut newer: Vec<(Vec<RollbackId>, CheckpointRecord, bool)> = Vec::new();
    for entry in entries {
        let What::Point { point, files, until, .. } = &mut entry.what else { continue };
        let Some(id) = &point.checkpoint_id else { continue };
        let checkpoint = record::get(snapshot, id)?;
        let end = match change_bounds::end_of(snapshot, point, &checkpoint)? {
            ChangesEnd::At(end) => Some(Some(*end)),
            ChangesEnd::AsItWas => Some(None),
            ChangesEnd::Untold => None,
        };
        if let Some(end) = end {
            *files = end.as_ref().map_or(Some(Files::default()), |end| changes(&checkpoint, end));
            *until = end.filter(|_| files.is_some()).map(|end| end.id);
            newer.push((entry.taken_back_by.clone(), checkpoint, point.is_of_subagent()));
            continue;
        }
        let is_part = point.is_of_subagent();
        let is_next = |(branch, _, part): &&(Vec<RollbackId>, CheckpointRecord, bool)| {
            *branch == entry.taken_back_by && (is_part || !part)
        };
        let of_branch = newer.iter().rev().filter(is_next);
        // A session's run begins with its first prompt, from one checkpoint: nothing lies between. Steps that begin together share one
        // checkpoint, and the changes after it.
        let from = checkpoint.seq + Seq::from(point.kind != "created");
        let next = of_branch.map(|(_, next, _)| next).find(|next| next.seq >= from).cloned();
        let next = match next {
            // The newest checkpoint of all shows what the work at the newest point did.
            None if entry.taken_back_by.is_empty() && is_whole => change_bounds::newest_of(snapshot, run, &checkpoint)?,
            next => next,
        };
        *files = next.as_ref().and_then(|next| changes(&checkpoint, next));
        *until = next.filter(|_| files.is_some()).map(|next| next.id);
        newer.push((entry.taken_back_by.clone(), checkpoint, is_part));
    }
    Ok(unread)
}

/// The changes between two checkpoints; `None` where one is of another tree, or its content was removed.
fn changes(objects: &Objects, before: &CheckpointRecord, after: &CheckpointRecord) -> Result<Option<Files>> {
    if before.root != after.root || before.pruned_at.is_some() || after.pruned_at.is_some() {
        return Ok(None);
    }
    let mut files = Files::default();
    diff::diff(objects, Some(&before.tree), Some(&after.tree), &mut |difference| {
        if let Some(change) = difference.change() {
            files.add(&difference, change);
        }
        Ok(())
    })?;
    Ok(Some(files))
}
