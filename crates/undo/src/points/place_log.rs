//! The log of a place: the entries of all its runs and sessions, as one list, with restores and what a person changed between them.

use ic_base::{Result, Seq, SessionId, title};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::OpenOptions;
use ic_phase::{Run, run};

use super::list::ListedPoint;
use super::log::{LazyStore, LogEntry, LogPage, PointLog, What, count_own, counted, cut_page, entries};
use super::place_changes::{ChangeSearch, PlaceEntry};
use super::place_works::{WORK, runs};

/// Which entries of a place are wanted: all where nothing is chosen.
#[derive(Default)]
pub struct PlaceChoice<'c> {
    /// Only those of this session.
    pub session: Option<&'c SessionId>,
    /// Only those that changed these paths, or what is below them.
    pub paths: &'c [Vec<u8>],
    /// Decides about each entry of a run that is left: it knows what the work changed.
    pub is_wanted: Option<&'c mut EntryFilter<'c>>,
}

/// Decides whether an entry of a run is wanted.
pub type EntryFilter<'f> = dyn FnMut(&Run, &LogEntry) -> Result<bool> + 'f;

/// The newest entries of this place over all its runs, newest first, each with its run. Work that was undone is among them; other points
/// that a rollback covers only where the page asks for all. Where a run that was made for a session begins and ends is left out. Checkpoints
/// without a run are there where nothing is chosen; restores and what a person changed are of no session.
pub fn of_place(
    kernel: &Kernel,
    options: OpenOptions,
    page: LogPage,
    choice: PlaceChoice<'_>,
) -> Result<PointLog<PlaceEntry>> {
    let before = page.before.unwrap_or(Seq::MAX);
    let PlaceChoice { session, paths, mut is_wanted } = choice;
    // One entry more than wanted shows whether there are more.
    let wanted = page.at_most.saturating_add(1);
    let mut found: Vec<(PlaceEntry, usize)> = Vec::new();
    for (id, newest) in kernel.read(|snapshot| runs(snapshot, &kernel.project.root))? {
        // The runs come by their newest event: all that is left is older than the entries that were found.
        if found.len() >= wanted && found.last().is_some_and(|(one, _)| one.entry.seq > newest) {
            break;
        }
        let run = kernel.read(|snapshot| run::get(snapshot, &id))?;
        let mut chooses = |run: &Run, entry: &LogEntry| -> Result<bool> {
            Ok(is_shown(kernel, run, entry, page.all)?
                && session.map_or(Ok(true), |session| is_of(kernel, run, entry, session))?
                && is_wanted.as_mut().map_or(Ok(true), |is_wanted| is_wanted(run, entry))?)
        };
        found.extend(of_run(kernel, &run, true, (before, wanted), &mut chooses)?);
        newest_first(&mut found, wanted);
    }
    // Nothing is too old until as many are found as are wanted.
    let oldest = |found: &[(PlaceEntry, usize)]| found.get(wanted - 1).map_or(0, |(one, _)| one.entry.seq);
    if session.is_none() && is_wanted.is_none() {
        // Only those that are newer than the last entry: a root has a checkpoint for each tool call, and all of them would be read.
        let after = oldest(&found);
        let by_hand =
            kernel.read(|snapshot| record::by_hand_between(snapshot, &kernel.project.root, (after, before), wanted))?;
        found.extend(by_hand.into_iter().map(|checkpoint| (of_checkpoint(checkpoint), 0)));
        newest_first(&mut found, wanted);
    }
    if session.is_none() {
        let store = LazyStore::new(options);
        let range = (oldest(&found), before);
        let search = ChangeSearch { kernel, store: &store, range, paths, at_most: wanted };
        // What a person changed after a checkpoint has its event, and is the newer one of the two: the sort is stable.
        found.splice(0..0, search.entries()?.into_iter().map(|one| (one, 0)));
        newest_first(&mut found, wanted);
    }
    counted_page(kernel, options, LogPage { all: true, ..page }, found)
}

/// The newest points and rollbacks of a run that are wanted, newest first.
pub fn of_one_run(
    kernel: &Kernel,
    options: OpenOptions,
    run: &Run,
    page: LogPage,
    is_wanted: &mut EntryFilter<'_>,
) -> Result<PointLog<PlaceEntry>> {
    let part = (page.before.unwrap_or(Seq::MAX), page.at_most.saturating_add(1));
    let found = of_run(kernel, run, page.all, part, is_wanted)?;
    counted_page(kernel, options, page, found)
}

/// The entries cut to a page, with what changed at each.
fn counted_page(
    kernel: &Kernel,
    options: OpenOptions,
    page: LogPage,
    mut found: Vec<(PlaceEntry, usize)>,
) -> Result<PointLog<PlaceEntry>> {
    let has_more = cut_page(&mut found, page.at_most, seq_of);
    let unread = count(kernel, &LazyStore::new(options), page, &mut found)?;
    let mut entries: Vec<PlaceEntry> = found.into_iter().map(|(entry, _)| entry).collect();
    count_own(kernel, options, entries.iter_mut().map(|one| &mut one.entry))?;
    Ok(PointLog { entries, has_more, unread })
}

fn newest_first(found: &mut Vec<(PlaceEntry, usize)>, wanted: usize) {
    // A stable sort, so that points of one event keep their order.
    found.sort_by_key(|(one, _)| std::cmp::Reverse(one.entry.seq));
    cut_page(found, wanted, seq_of);
}

fn seq_of((one, _): &(PlaceEntry, usize)) -> Seq {
    one.entry.seq
}

/// A checkpoint that was made by hand and belongs to no run, as an entry.
fn of_checkpoint(checkpoint: CheckpointRecord) -> PlaceEntry {
    let link = &checkpoint.link;
    let text = link.name.as_deref().or(link.message.as_deref()).unwrap_or_default();
    let point = ListedPoint {
        reference: format!("checkpoint:{}", checkpoint.id.short()),
        kind: "checkpoint",
        before: None,
        parent_id: None,
        seq: checkpoint.seq,
        phase: String::new(),
        title: title(text),
        is_pruned: false,
        checkpoint_id: Some(checkpoint.id),
        taken_back_by: None,
        is_at_end: false,
        is_undone: false,
        is_under_way: false,
        is_in_part: false,
        created_at: checkpoint.created_at,
    };
    let (seq, created_at) = (checkpoint.seq, checkpoint.created_at);
    let what = What::Point { point: Box::new(point), files: None, until: None, commits: None };
    PlaceEntry { run: None, entry: LogEntry { seq, created_at, what, taken_back_by: Vec::new() }, makers: Vec::new() }
}

/// The newest entries of a run that are chosen, each with its place in the list. `all`: the list has also what was rolled back.
fn of_run(
    kernel: &Kernel,
    run: &Run,
    all: bool,
    (before, wanted): (Seq, usize),
    is_chosen: &mut EntryFilter<'_>,
) -> Result<Vec<(PlaceEntry, usize)>> {
    let (mut chosen, mut seen, mut most) = (Vec::<(PlaceEntry, usize)>::new(), 0, wanted);
    loop {
        let log = kernel.read(|snapshot| entries(snapshot, run, all, (before, most)))?;
        // An earlier round has decided about the first ones: each decision may read the store.
        for (at, entry) in log.entries.into_iter().enumerate().skip(seen) {
            seen = at + 1;
            // All entries of an event come together.
            if chosen.get(wanted - 1).is_some_and(|last| seq_of(last) > entry.seq) {
                return Ok(chosen);
            }
            if is_chosen(run, &entry)? {
                chosen.push((PlaceEntry { run: Some(run.clone()), entry, makers: Vec::new() }, at));
            }
        }
        if !log.has_more {
            return Ok(chosen);
        }
        most = most.saturating_mul(4);
    }
}

/// Whether an entry is shown at all.
fn is_shown(kernel: &Kernel, run: &Run, entry: &LogEntry, all: bool) -> Result<bool> {
    let What::Point { point, .. } = &entry.what else {
        let What::Rollback(rollback) = &entry.what else { return Ok(false) };
        return Ok(all || rollback.status.stands());
    };
    // A run that was made for a session has no phases that a person knows.
    if matches!(point.kind, "created" | "phase") && kernel.read(|snapshot| ic_session::is_own_run(snapshot, &run.id))? {
        return Ok(false);
    }
    let stands = entry.taken_back_by.is_empty() && !point.is_at_end;
    Ok(all || stands || WORK.contains(&point.kind))
}

/// Whether an entry is of a session: its prompts, what they began, and rollbacks of its own runs.
fn is_of(kernel: &Kernel, run: &Run, entry: &LogEntry, session: &SessionId) -> Result<bool> {
    kernel.read(|snapshot| match &entry.what {
        What::Point { point, .. } => {
            let Some(id) = point.before.clone().filter(|_| matches!(point.kind, "prompt" | "dispatch")) else {
                return Ok(false);
            };
            let work = dispatch::find(snapshot, &ic_base::DispatchId::from_ledger(id))?;
            let of = work.map_or(Ok(None), |work| ic_session::of_work(snapshot, &work))?;
            Ok(of.is_some_and(|of| of.id == *session))
        }
        What::Rollback(_) => Ok(ic_session::own_runs_of(snapshot, session)?.contains(&run.id)),
    })
}

/// Counts what changed at the entries, run by run: what a point changed ends at the next one of its run. Returns why content could not be
/// read; `None`: all was read.
fn count(
    kernel: &Kernel,
    store: &LazyStore,
    page: LogPage,
    found: &mut [(PlaceEntry, usize)],
) -> Result<Option<String>> {
    let before = page.before.unwrap_or(Seq::MAX);
    let mut unread = None;
    // A run is read once, as far as its oldest entry here.
    let mut done: Vec<ic_base::RunId> = Vec::new();
    for at in 0..found.len() {
        let Some(run) = found[at].0.run.clone().filter(|run| !done.contains(&run.id)) else { continue };
        let of_run = found.iter().filter(|(one, _)| one.is_of(&run));
        let most = of_run.map(|(_, at)| at + 1).max().unwrap_or(0);
        let log = counted(kernel, store, &run, page.all, (before, most))?;
        unread = unread.or(log.unread);
        let mut all: Vec<Option<LogEntry>> = log.entries.into_iter().map(Some).collect();
        for (one, place) in found.iter_mut().filter(|(one, _)| one.is_of(&run)) {
            // The same list was read before; an entry that came since has shifted it, and keeps its numbers for the next call.
            if let Some(counted) = all.get_mut(*place).and_then(Option::take)
                && counted.seq == one.entry.seq
            {
                one.entry = counted;
            }
        }
        done.push(run.id);
    }
    Ok(unread)
}
