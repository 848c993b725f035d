//! What changed in a place without work: restores, and what a person changed between the works.

use std::ops::ControlFlow;

use ic_base::{CheckpointId, DispatchId, Result, Seq, title};
use ic_checkpoint::diff;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal::RestoreKind;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::{OpenOptions, Snapshot};
use ic_phase::{Run, point};
use ic_session::attribution::Attribution;
use ic_session::own_changes::{self, OwnChange};

use super::change_reference::{ChangeReference, nothing};
use super::list::ListedPoint;
use super::log::{Files, LazyStore, LogEntry, What};
use super::point_reference::reference;
use crate::manual_restores::{self, ManualRestore};
use crate::unsure_changes::first_named;

/// An entry of a place.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceEntry {
    /// The run that it is of; `None` for a restore, what a person changed, and a checkpoint without a run.
    pub run: Option<Run>,
    /// What is known of it.
    pub entry: LogEntry,
    /// For a restore, the work that was in a call as it was made; empty: a person or a script made it.
    pub makers: Vec<DispatchId>,
}

impl PlaceEntry {
    pub(super) fn is_of(&self, run: &Run) -> bool {
        self.run.as_ref().is_some_and(|own| own.id == run.id)
    }
}

impl LogEntry {
    /// The checkpoints before and after a change that no work made: a restore, or what a person changed.
    pub fn looks(&self) -> Option<(&CheckpointId, &CheckpointId)> {
        match &self.what {
            What::Point { point, until, .. } if point.is_without_work() => {
                point.checkpoint_id.as_ref().zip(until.as_ref())
            }
            _ => None,
        }
    }
}

impl ListedPoint {
    /// Whether it is a change that no work made: a restore, or what a person changed.
    pub fn is_without_work(&self) -> bool {
        matches!(self.kind, "restore" | "own")
    }

    /// The name that commands take: the end of an id, or the whole reference where that alone would name something else. What a person
    /// changed is named by the checkpoint before it, which alone would mean that checkpoint.
    pub fn name(&self) -> &str {
        match (self.kind, self.reference.split_once(':')) {
            ("prompt" | "dispatch" | "step" | "checkpoint" | "restore", Some((_, bare))) => bare,
            _ => &self.reference,
        }
    }

    /// Who did it: the client of the session, if it is of one; a dispatch or step, you. `is_in_calls`: it was made while work was in calls.
    /// `other`: the name of another person, or of the same one in another clone.
    pub fn who(&self, client: Option<&str>, is_in_calls: bool, other: Option<&str>) -> String {
        let what = match (client, self.kind) {
            (Some(client), _) => client,
            (None, "phase" | "created") => "run",
            // Work of several sessions was in a call.
            (None, "restore") if is_in_calls => "restore",
            (None, "checkpoint" | "restore" | "own") => other.unwrap_or("you"),
            (None, kind) => kind,
        };
        match other.filter(|other| *other != what) {
            Some(other) => format!("{what} of {other}"),
            None => what.to_owned(),
        }
    }
}

/// Which changes are looked for.
pub(super) struct ChangeSearch<'s> {
    pub(super) kernel: &'s Kernel,
    pub(super) store: &'s LazyStore,
    /// The events between which they lie.
    pub(super) range: (Seq, Seq),
    /// Only changes of these paths, or below them; empty: all.
    pub(super) paths: &'s [Vec<u8>],
    pub(super) at_most: usize,
}

/// The restore, or what a person changed, that an entry of a log names.
///
/// Errors: `point_not_found` where there is none.
pub fn change_at(kernel: &Kernel, options: OpenOptions, named: &ChangeReference) -> Result<PlaceEntry> {
    let (root, store) = (&kernel.project.root, LazyStore::new(options));
    let search = ChangeSearch { kernel, store: &store, range: (0, Seq::MAX), paths: &[], at_most: 1 };
    search.open_store();
    kernel.read(|snapshot| match named {
        ChangeReference::Restore(safety) => {
            let found = manual_restores::with_safety(snapshot, root, safety)?;
            let found = found.map_or(Ok(None), |one| search.restore(snapshot, &one))?;
            found.ok_or_else(|| nothing(&format!("restore:{}", safety.short())))
        }
        ChangeReference::Own(from) => {
            let look = record::get(snapshot, from)?;
            let own = if look.root == *root { own_changes::since(snapshot, &look)? } else { None };
            let own = own.ok_or_else(|| nothing(&format!("own:{}", from.short())))?;
            Ok(of_own(&own, &search.count(&own.from, &own.to)))
        }
    })
}

/// What changed between two checkpoints. Unknown content has no paths and no counts.
#[derive(Default)]
struct Counted {
    files: Option<Files>,
    paths: Vec<Vec<u8>>,
}

impl ChangeSearch<'_> {
    /// The newest restores and changes of a person, in no order.
    pub(super) fn entries(&self) -> Result<Vec<PlaceEntry>> {
        self.open_store();
        let mut found = self.restores()?;
        found.extend(self.own()?);
        Ok(found)
    }

    /// Opens the store before the ledger is read: the opening reads it too.
    fn open_store(&self) {
        // A store that cannot be opened leaves the counts out, and the log says why.
        let _ = self.store.objects(self.kernel);
    }

    fn own(&self) -> Result<Vec<PlaceEntry>> {
        let mut found = Vec::new();
        self.kernel.read(|snapshot| {
            own_changes::each_between(snapshot, &self.kernel.project.root, self.range, |own| {
                let counted = self.count(&own.from, &own.to);
                // Two trees may differ only in what was left out.
                let is_one = counted.files != Some(Files::default());
                if is_one && self.is_among(&counted) {
                    found.push(of_own(&own, &counted));
                }
                let is_full = found.len() >= self.at_most;
                Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
        })?;
        Ok(found)
    }

    fn restores(&self) -> Result<Vec<PlaceEntry>> {
        self.kernel.read(|snapshot| {
            let mut found = Vec::new();
            let all = manual_restores::between(snapshot, &self.kernel.project.root, self.range)?;
            for one in all.into_iter().rev() {
                found.extend(self.restore(snapshot, &one)?);
                if found.len() >= self.at_most {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// `None`: it changed none of the paths.
    fn restore(&self, snapshot: &Snapshot<'_>, one: &ManualRestore) -> Result<Option<PlaceEntry>> {
        let Some(left) = &one.restore.restored_id else { return Ok(None) };
        let (before, left) = (record::get(snapshot, &one.restore.safety_id)?, record::get(snapshot, left)?);
        let counted = self.count(&before, &left);
        if !self.is_among(&counted) {
            return Ok(None);
        }
        of_restore(snapshot, one, (&before, &left), &counted).map(Some)
    }

    fn is_among(&self, counted: &Counted) -> bool {
        self.paths.is_empty() || counted.paths.iter().any(|path| ic_worktree::is_among(path, self.paths))
    }

    fn count(&self, from: &CheckpointRecord, to: &CheckpointRecord) -> Counted {
        let is_kept = from.pruned_at.is_none() && to.pruned_at.is_none();
        let Some(objects) = self.store.objects(self.kernel).as_ref().ok().and_then(Option::as_ref).filter(|_| is_kept)
        else {
            return Counted::default();
        };
        let (mut files, mut paths) = (Files::default(), Vec::new());
        // All reads of one comparison are one transaction: it sees one moment of the store, and costs less.
        let done = objects.at_one_moment(|| {
            diff::diff(objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
                if let Some(change) = difference.change() {
                    files.add(&difference, change);
                    paths.push(difference.path);
                }
                Ok(())
            })
        });
        // As at every entry: where content is missing, a log leaves the numbers out, and `ic health` says why.
        if done.is_ok() { Counted { files: Some(files), paths } } else { Counted::default() }
    }
}

/// What a person changed, as an entry: by its first checkpoint, to which `ic restore --before` goes back.
fn of_own(own: &OwnChange, counted: &Counted) -> PlaceEntry {
    let names = first_named(counted.paths.iter().map(Vec::as_slice)).unwrap_or_else(|| "the tree".to_owned());
    // It lies before the next work, whose event comes before that of the checkpoint that shows it.
    let seq = own.from.advance_seq.map_or(own.from.seq, |advance| advance.max(own.from.seq));
    let entry = entry("own", seq, (&own.from, &own.to), format!("changed {names}"), counted);
    PlaceEntry { run: None, entry, makers: Vec::new() }
}

fn of_restore(
    snapshot: &Snapshot<'_>,
    one: &ManualRestore,
    (before, left): (&CheckpointRecord, &CheckpointRecord),
    counted: &Counted,
) -> Result<PlaceEntry> {
    let target = record::get(snapshot, &one.restore.target_id)?;
    let names = first_named(counted.paths.iter().map(Vec::as_slice));
    let said = match one.restore.kind {
        RestoreKind::Restore => restored(snapshot, (&target, target.tree == left.tree), names)?,
        RestoreKind::Undo => format!("undid the restore of {}", names.unwrap_or_else(|| "git's state".to_owned())),
        RestoreKind::Redo => format!("redid the restore of {}", names.unwrap_or_else(|| "git's state".to_owned())),
    };
    let mut entry = entry("restore", one.restore.seq, (before, left), said, counted);
    if let What::Point { point, .. } = &mut entry.what {
        point.is_undone = one.is_undone;
    }
    Ok(PlaceEntry { run: None, entry, makers: makers(snapshot, before, left)? })
}

/// The work in a call as a restore was made: an agent may have made it in its shell.
fn makers(snapshot: &Snapshot<'_>, before: &CheckpointRecord, left: &CheckpointRecord) -> Result<Vec<DispatchId>> {
    let attribution = Attribution::between(snapshot, &before.root, (before.seq, left.seq), before.created_at)?;
    Ok(attribution.window(before, left).in_calls().iter().map(|work| work.id.clone()).collect())
}

/// `restored a.txt as before 3f9a12c4: add a login`, `restored a.txt as in checkpoint good`, or `restored checkpoint good` where the tree is
/// all of it.
fn restored(
    snapshot: &Snapshot<'_>,
    (target, is_whole): (&CheckpointRecord, bool),
    names: Option<String>,
) -> Result<String> {
    if let Some(work) = work_after(snapshot, target)? {
        return Ok(format!("restored {} as before {work}", names.unwrap_or_else(|| "git's state".to_owned())));
    }
    let checkpoint = target.link.name.as_deref().unwrap_or_else(|| target.id.short());
    Ok(match names.filter(|_| !is_whole) {
        Some(names) => format!("restored {names} as in checkpoint {checkpoint}"),
        None => format!("restored checkpoint {checkpoint}"),
    })
}

/// The work before which a checkpoint was taken, by its reference and its title.
fn work_after(snapshot: &Snapshot<'_>, look: &CheckpointRecord) -> Result<Option<String>> {
    let Some(run) = &look.link.run_id else { return Ok(None) };
    let Some(seq) = point::of_checkpoint(snapshot, run, &look.id)? else { return Ok(None) };
    // Several points may have begun from this look: the first of them names it.
    let Some(found) = point::oldest_of_run(snapshot, run, seq, 1)?.pop() else { return Ok(None) };
    let reference = reference(&found);
    let name = reference.split_once(':').map_or(reference.as_str(), |(_, name)| name).to_owned();
    let work = dispatch::find(snapshot, &DispatchId::from_ledger(found.name))?;
    let said = work.and_then(|work| work.work.name).or(found.title);
    Ok(Some(said.map_or(name.clone(), |said| format!("{name}: {}", title(&said)))))
}

fn entry(
    kind: &'static str,
    seq: Seq,
    (before, after): (&CheckpointRecord, &CheckpointRecord),
    said: String,
    counted: &Counted,
) -> LogEntry {
    let point = ListedPoint {
        reference: format!("{kind}:{}", before.id.short()),
        kind,
        before: None,
        parent_id: None,
        seq,
        phase: String::new(),
        title: said,
        is_pruned: before.pruned_at.is_some(),
        checkpoint_id: Some(before.id.clone()),
        taken_back_by: None,
        is_at_end: false,
        is_undone: false,
        is_under_way: false,
        is_in_part: false,
        created_at: after.created_at,
    };
    let what =
        What::Point { point: Box::new(point), files: counted.files, until: Some(after.id.clone()), commits: None };
    LogEntry { seq, created_at: after.created_at, what, taken_back_by: Vec::new() }
}
