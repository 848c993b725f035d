//! What a prompt or dispatch changed itself, where others worked in the same tree at the same time: its tool calls show that, and what it
//! recorded.
//!
//! A log must be shown within milliseconds, so nothing is computed for work that was alone. A prompt with its subagents counts as one.

use std::collections::HashSet;

use ic_base::{CheckpointId, DispatchId, Result, Seq};
use ic_checkpoint::diff::{self, Difference, TreeChange};
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::Snapshot;
use ic_session::attribution::{Attribution, Window};

use super::list::ListedPoint;
use super::log::{Files, LogEntry, What};

/// A prompt during which other work ran.
pub(super) struct SharedPrompt {
    /// The index of its entry in the log.
    at: usize,
    family: Family,
}

/// The prompts among these entries that changed something while other work ran.
pub(super) fn beside(snapshot: &Snapshot<'_>, entries: &[&mut LogEntry]) -> Result<Vec<SharedPrompt>> {
    let is_counted = |what: &What| match what {
        What::Point { point, files: Some(files), .. } => {
            matches!(point.kind, "prompt" | "dispatch") && *files != Files::default()
        }
        _ => false,
    };
    let counted = || entries.iter().enumerate().filter(|(_, entry)| is_counted(&entry.what));
    let Some(since) = counted().map(|(_, entry)| entry.created_at).min() else { return Ok(Vec::new()) };
    let from = counted().map(|(_, entry)| entry.seq).min().unwrap_or(0);
    let workers = dispatch::at_work_between(snapshot, from, Seq::MAX, since)?;
    let mut found = Vec::new();
    for (at, entry) in counted() {
        let What::Point { point, .. } = &entry.what else { continue };
        let work = workers.iter().find(|work| Some(work.id.as_str()) == point.before.as_deref());
        let Some(work) = work else { continue };
        let family = Family::of(work, &workers);
        if workers.iter().any(|other| !family.own.contains(&other.id) && overlaps(work, other)) {
            found.push(SharedPrompt { at, family });
        }
    }
    Ok(found)
}

/// Counts again what such prompts changed, without what others did. Prompts that ran at the same time are computed together, so that each
/// difference between two checkpoints is read once.
pub(super) fn count(
    snapshot: &Snapshot<'_>,
    objects: &Objects,
    entries: &mut [&mut LogEntry],
    beside: &[SharedPrompt],
) -> Result<()> {
    let mut spans: Vec<Span<'_>> = Vec::new();
    for one in beside {
        if let Some(What::Point { point, until, .. }) = entries.get(one.at).map(|entry| &entry.what) {
            spans.extend(Span::of(snapshot, (point, until.as_ref()), one)?);
        }
    }
    spans.sort_by_key(|span| span.before.seq);
    let mut rest = spans.as_mut_slice();
    while let Some(first) = rest.first() {
        // The spans are sorted by their beginning: the group ends at the first that begins when all before it have
        // ended.
        let mut until = first.after.seq;
        let is_near = |span: &Span<'_>| {
            let is_near = span.before.seq < until && span.before.root == first.before.root;
            until = if is_near { until.max(span.after.seq) } else { until };
            is_near
        };
        let count = rest.iter().map(is_near).take_while(|is_near| *is_near).count();
        let (together, others) = rest.split_at_mut(count);
        attribute(snapshot, objects, together)?;
        rest = others;
    }
    for span in spans.iter().filter(|span| span.is_whole) {
        if let Some(What::Point { files, .. }) = entries.get_mut(span.of.at).map(|entry| &mut entry.what) {
            // Where content is missing, the number of all changes stays.
            *files = span.counted(objects).or(*files);
        }
    }
    Ok(())
}

fn overlaps(work: &Dispatch, other: &Dispatch) -> bool {
    let is_after = |one: &Dispatch, other: &Dispatch| other.finished_seq.is_some_and(|end| end <= one.place());
    !is_after(work, other) && !is_after(other, work)
}

/// A piece of work with what it began.
struct Family {
    own: HashSet<DispatchId>,
}

impl Family {
    fn of(work: &Dispatch, workers: &[Dispatch]) -> Self {
        let mut own = HashSet::from([work.id.clone()]);
        // Work is older than what it began, so one pass finds all of it.
        for one in workers {
            if one.work.parent_id.as_ref().is_some_and(|parent| own.contains(parent)) {
                own.insert(one.id.clone());
            }
        }
        Self { own }
    }
}

/// What is found out about a prompt, between its point and its end.
struct Span<'b> {
    of: &'b SharedPrompt,
    before: CheckpointRecord,
    after: CheckpointRecord,
    own: HashSet<Vec<u8>>,
    shared: HashSet<Vec<u8>>,
    /// Whether all content could be read.
    is_whole: bool,
}

impl<'b> Span<'b> {
    /// `None` where a checkpoint is missing.
    fn of(
        snapshot: &Snapshot<'_>,
        (point, until): (&ListedPoint, Option<&CheckpointId>),
        of: &'b SharedPrompt,
    ) -> Result<Option<Self>> {
        let (Some(id), Some(until)) = (&point.checkpoint_id, until) else { return Ok(None) };
        let before = record::get(snapshot, id)?;
        let after = record::get(snapshot, until)?;
        let is_there = |look: &CheckpointRecord| look.root == before.root && look.pruned_at.is_none();
        let is_whole = is_there(&before) && is_there(&after);
        let (own, shared) = (HashSet::new(), HashSet::new());
        Ok(is_whole.then_some(Self { of, before, after, own, shared, is_whole: true }))
    }

    fn has(&self, window: &Window<'_>) -> bool {
        self.before.seq <= window.from.seq && window.to.seq <= self.after.seq
    }

    fn add(&mut self, path: &[u8], owners: &[&Dispatch]) {
        let family = &self.of.family;
        if owners.iter().any(|owner| family.own.contains(&owner.id)) {
            // A prompt and its subagents are one: a path is shared only with others.
            let is_alone = owners.iter().all(|owner| family.own.contains(&owner.id));
            let paths = if is_alone { &mut self.own } else { &mut self.shared };
            paths.insert(path.to_owned());
        }
    }

    fn counted(&self, objects: &Objects) -> Option<Files> {
        let mut files = Files::default();
        let is_seen = each_change(objects, &self.before, &self.after, |difference, change| {
            if self.shared.contains(&difference.path) {
                files.shared += 1;
            } else if self.own.contains(&difference.path) {
                files.add(&difference, change);
            }
        });
        is_seen.then_some(files)
    }
}

/// With more checkpoints than this a log would not be shown at once: then all that changed is counted.
const MOST_LOOKS: usize = 1_000;

/// Attributes to some prompts what changed while they ran at the same time in one root.
fn attribute(snapshot: &Snapshot<'_>, objects: &Objects, spans: &mut [Span<'_>]) -> Result<()> {
    let Some(first) = spans.first().map(|span| &span.before) else { return Ok(()) };
    let until = spans.iter().map(|span| span.after.seq).max().unwrap_or(first.seq);
    let attribution = Attribution::between(snapshot, &first.root, (first.seq, until), first.created_at)?;
    if attribution.looks.len() > MOST_LOOKS {
        for span in spans {
            span.is_whole = false;
        }
        return Ok(());
    }
    for window in attribution.windows().filter(|window| window.from.tree != window.to.tree) {
        let is_seen = each_change(objects, window.from, window.to, |difference, _| {
            let owners = window.owners(&difference.path);
            for span in spans.iter_mut().filter(|span| span.has(&window)) {
                span.add(&difference.path, &owners);
            }
        });
        // What cannot be read could be of any work, so the number of all changes stays.
        for span in spans.iter_mut().filter(|span| !is_seen && span.has(&window)) {
            span.is_whole = false;
        }
    }
    Ok(())
}

/// Passes on the differences between two checkpoints; `false` where content is missing.
fn each_change(
    objects: &Objects,
    from: &CheckpointRecord,
    to: &CheckpointRecord,
    mut hand_on: impl FnMut(Difference, TreeChange),
) -> bool {
    let done = diff::diff(objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
        if let Some(change) = difference.change() {
            hand_on(difference, change);
        }
        Ok(())
    });
    done.is_ok()
}
