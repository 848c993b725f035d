//! A store that is damaged or lost: what is gone is marked as gone, and everything else stays and works.
//!
//! Nothing is thrown away that may hold something: a file that cannot be opened is set aside, one that is damaged is copied as far
//! as it can be read. What the working tree still has is kept again before anything is called lost.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnose, Diagnosis, RestoreId, Result, Timestamp};
use ic_checkpoint::capture::{self, CaptureProgress};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal;
use ic_checkpoint::retention::{self, Damage};
use ic_kernel::Kernel;
use ic_ledger::events::{EventType, Hash, NewEvent, hex};
use ic_ledger::{OpenOptions, SideDatabase, is_ledger, sibling};
use serde_json::{Value, json};

use super::retention::{Verified, verify};
use super::verified_store::SoundState;
use super::workspace::{CaptureSettings, Workspace};
use super::{store_location, store_requirements};

/// What a repair found and did.
#[derive(Debug)]
pub struct Repaired {
    /// What can be read now; nothing is damaged any more.
    pub verified: Verified,
    /// Checkpoints whose content is gone.
    pub lost: Vec<CheckpointId>,
    /// Checkpoints that stay without some of their files.
    pub partly: Vec<CheckpointId>,
    /// Objects that are gone.
    pub objects: Vec<Hash>,
    /// Objects that were damaged or lost and are kept again, from the working tree.
    pub kept_again: usize,
    /// Restores that nothing waits for any more.
    pub restores: Vec<RestoreId>,
    /// Where the damaged file lies now, if there was one.
    pub set_aside: Option<PathBuf>,
    /// Paths that were purged, as the ledger has them, where the store may have lost the marks that keep their content out.
    pub purge_again: Vec<String>,
}

/// Marks what is lost as lost, so that everything else works again. Errors: `foreign_store`, `busy`; `io_error` if something cannot
/// be read now and may be later: nothing is marked then.
pub fn repair(kernel: &Kernel, settings: &CaptureSettings) -> Result<Repaired> {
    let options = OpenOptions { busy_timeout: settings.busy_timeout, ..OpenOptions::default() };
    //   file readable ─▶ look ─▶ capture the tree anew ─▶ look again, alone ─▶ mark in the ledger ─▶ mark in the store
    //
    // The file comes before all else, because a workspace opens the store.
    let set_aside = make_readable(kernel, options)?;
    let workspace = Workspace::here(kernel, settings)?;
    // All that the checkpoints hold is looked at.
    workspace.objects.set_places(None);
    let before = workspace.damaged()?;
    if !before.is_empty() {
        keep_again(&workspace, &before)?;
    }
    // Alone: a capture in between could store again what is about to be marked as lost.
    let lock = lock::store(workspace.objects.path(), LockMode::Exclusive, settings.busy_timeout)?;
    // Once more: what the working tree still had is kept by now.
    let after = workspace.lost_for_certain()?;
    let mut found = Findings::of(&workspace, &after)?;
    found.restores = workspace.lost_restores(&found.lost)?;
    // The ledger first: killed in between, the next repair finds the same damage and records it again. What the store has marked is no
    // damage any more.
    workspace.mark_lost(&found)?;
    workspace.objects.mark_gone(&found.contents)?;
    // `verify` takes the same lock shared: it would wait for this process until the timeout.
    drop(lock);
    let still: BTreeSet<Hash> = after.iter().map(|damage| damage.object).collect();
    Ok(Repaired {
        verified: verify(&workspace, false)?,
        lost: found.lost.into_iter().map(|checkpoint| checkpoint.id).collect(),
        partly: found.partly,
        kept_again: before.iter().filter(|damage| !still.contains(&damage.object)).count(),
        objects: still.into_iter().collect(),
        restores: found.restores,
        purge_again: purge_again(&workspace, set_aside.is_some())?,
        set_aside,
    })
}

/// The paths of purges whose marks may be lost with a store: content that stands in the tree or in git would be kept again.
///
/// A mark names content and not its purge, so the marks that are left do not tell which purge lacks one. If the file was replaced, every
/// purge is named; otherwise only if no mark is left at all.
fn purge_again(workspace: &Workspace<'_>, was_replaced: bool) -> Result<Vec<String>> {
    if !was_replaced && workspace.objects.has_marks()? {
        return Ok(Vec::new());
    }
    let mut paths = BTreeSet::new();
    workspace.kernel.read(|snapshot| {
        ic_ledger::events::each_since(snapshot, None, 0, i64::MAX, |event| {
            if event.event_type == EventType::ContentPurged.as_str() {
                let payload = event.payload.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
                // A purge that found nothing left no mark; a payload that was redacted names no path.
                let payload = payload.filter(|payload| {
                    payload["objects"].as_u64().is_some_and(|count| count > 0)
                        || payload["git_objects"].as_array().is_some_and(|names| !names.is_empty())
                });
                paths.extend(payload.as_ref().and_then(|payload| payload["path"].as_str()).map(str::to_owned));
            }
            Ok(ControlFlow::Continue(()))
        })
    })?;
    Ok(paths.into_iter().collect())
}

/// What is to be marked.
struct Findings {
    lost: Vec<CheckpointRecord>,
    partly: Vec<CheckpointId>,
    contents: Vec<Hash>,
    restores: Vec<RestoreId>,
}

impl Findings {
    /// A checkpoint is lost without one of its directories, or with all of its files; without some of them it stays.
    fn of(workspace: &Workspace<'_>, damaged: &[Damage]) -> Result<Self> {
        let structure = damaged.iter().filter(|damage| damage.is_structure);
        let mut lost: HashSet<&CheckpointId> = structure.flat_map(|damage| &damage.checkpoints).collect();
        let contents: HashSet<Hash> =
            damaged.iter().filter(|damage| !damage.is_structure).map(|damage| damage.object).collect();
        let touched: BTreeSet<&CheckpointId> =
            damaged.iter().flat_map(|damage| &damage.checkpoints).filter(|id| !lost.contains(id)).collect();
        let all = workspace.kernel.read(record::all_kept)?;
        for checkpoint in all.iter().filter(|checkpoint| touched.contains(&checkpoint.id)) {
            let mut has_any = false;
            ic_checkpoint::diff::diff(&workspace.objects, None, Some(&checkpoint.tree), &mut |difference| {
                if let Some(ic_checkpoint::diff::DiffState::File { hash, .. }) = difference.after {
                    has_any |= !contents.contains(&hash);
                }
                Ok(())
            })?;
            if !has_any {
                lost.insert(&checkpoint.id);
            }
        }
        let partly = touched.into_iter().filter(|id| !lost.contains(id)).cloned().collect();
        let lost = all.iter().filter(|checkpoint| lost.contains(&checkpoint.id)).cloned().collect();
        Ok(Self { lost, partly, contents: contents.into_iter().collect(), restores: Vec::new() })
    }
}

/// Makes sure that the store can be opened and read as a file; returns where a damaged one lies now.
fn make_readable(kernel: &Kernel, options: OpenOptions) -> Result<Option<PathBuf>> {
    let path = super::store_location::objects_path(kernel.ledger.path());
    // Without a file all content is missing, which the look that follows finds.
    if !SideDatabase::exists(&path) {
        return Ok(None);
    }
    let _lock = lock::store(&path, LockMode::Exclusive, options.busy_timeout)?;
    let is_damage = |error: &Diagnosis| matches!(error.code(), Code::Corrupt | Code::ForeignDatabase);
    let objects = match store_location::look(kernel, options) {
        Ok(Some(objects)) => objects,
        Ok(None) => return Ok(None),
        // What may be a ledger is never set aside.
        Err(error) if is_damage(&error) && !is_ledger(&path).unwrap_or(true) => {
            return set_aside(&path, None).map(Some);
        }
        Err(error) => return Err(error),
    };
    match objects.file_damage() {
        Ok(lines) if lines.is_empty() => return Ok(None),
        Err(error) if !is_damage(&error) => return Err(error),
        // SQLite names damage, or it is so great that the file cannot be read through.
        _ => {}
    }
    // What can still be read is copied into a new file.
    let rebuilt = path.with_extension("rebuilt");
    let id = kernel.ledger.identity()?.id;
    // A repair that was killed may have left one.
    ic_ledger::remove_side(&rebuilt)?;
    let copied =
        store_requirements::readable(kernel, &objects).and_then(|live| objects.copy_to(&rebuilt, &live, &id, options));
    // Closed before its file gets another name.
    objects.leave();
    match copied {
        Ok(()) => set_aside(&path, Some(&rebuilt)).map(Some),
        // Not even a copy can be made of it: the next opening makes an empty store.
        Err(error) if is_damage(&error) => set_aside(&path, None).map(Some),
        Err(error) => Err(error),
    }
}

/// Gives a damaged file another name, and its own to another one.
fn set_aside(path: &Path, instead: Option<&Path>) -> Result<PathBuf> {
    let mut aside = path.with_extension("damaged");
    let mut others = 1_u32;
    while aside.exists() {
        others += 1;
        aside = path.with_extension(format!("damaged.{others}"));
    }
    let doing = || format!("setting {} aside as {}", path.display(), aside.display());
    // A link first, and the rename last: at every moment there is the old store or the new one under its name.
    fs::hard_link(path, &aside).while_doing(doing)?;
    // Its log goes along: beside the new store it would be the log of another file.
    for suffix in ["-wal", "-shm"] {
        match fs::rename(sibling(path, suffix), sibling(&aside, suffix)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).while_doing(doing),
            _ => {}
        }
    }
    match instead {
        Some(instead) => fs::rename(instead, path),
        None => fs::remove_file(path),
    }
    .while_doing(doing)?;
    Ok(aside)
}

/// Damaged files that were set aside, whatever is in them.
pub(super) fn set_aside_files(store: &Path) -> Vec<PathBuf> {
    let stem = store.with_extension("damaged");
    let name = stem.file_name().unwrap_or_default().as_encoded_bytes();
    let entries = fs::read_dir(store.parent().unwrap_or(Path::new("/"))).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| path.file_name().is_some_and(|found| found.as_encoded_bytes().starts_with(name));
    entries.map(|entry| entry.path()).filter(is_one).collect()
}

/// Takes what is damaged out of the index and captures the working tree anew: what it still holds is kept again.
fn keep_again(workspace: &Workspace<'_>, damaged: &[Damage]) -> Result<()> {
    {
        let timeout = workspace.settings.busy_timeout;
        let _lock = lock::store(workspace.objects.path(), LockMode::Exclusive, timeout)?;
        let gone: Vec<Hash> = damaged.iter().filter(|damage| damage.is_lost).map(|d| d.object).collect();
        workspace.objects.forget_damaged(&gone)?;
        // The caches go too: they name objects without reading them, so the capture would take lost ones for kept.
        capture::forget_caches(&workspace.objects)?;
    }
    // The lock above is gone by now: this one needs the store shared.
    let _held = workspace.lock(LockMode::Shared)?;
    let now = workspace.kernel.context.now();
    let root = workspace.root.as_path();
    let captured = workspace.check_root().and_then(|()| {
        capture::capture(&workspace.objects, root, now, &workspace.options(), &CaptureProgress::default())
    });
    match captured {
        // A tree that cannot be captured has nothing to keep again. On a full disk or a busy store, nothing may be declared lost yet.
        Err(error) if matches!(error.code(), Code::DiskFull | Code::Busy) => Err(error),
        _ => Ok(()),
    }
}

impl Workspace<'_> {
    fn damaged(&self) -> Result<Vec<Damage>> {
        let all = self.kernel.read(record::all_kept)?;
        Ok(retention::verify(&self.objects, &all, true)?.0)
    }

    /// Errors: `io_error` if something may be lost or not: a disk that does not answer is not taken at its word.
    fn lost_for_certain(&self) -> Result<Vec<Damage>> {
        let damaged = self.damaged()?;
        match damaged.iter().find(|damage| !damage.is_lost) {
            None => Ok(damaged),
            Some(damage) => Err(Diagnosis::new(Code::Io, format!("{} Nothing was marked as lost.", damage.problem))
                .hint("check the disk first, then run it again")),
        }
    }

    /// Restores that cannot be finished, or undone: their plan or a checkpoint of theirs is gone.
    fn lost_restores(&self, lost: &[CheckpointRecord]) -> Result<Vec<RestoreId>> {
        let mut gone = Vec::new();
        for restore in self.kernel.read(journal::all)? {
            let is_finished = restore.progress == journal::RestoreProgress::Applied;
            // A finished restore needs what undoes it. One that was interrupted also needs what it restores.
            let needed = [Some(&restore.safety_id), (!is_finished).then_some(&restore.target_id)];
            let has_lost = lost.iter().any(|checkpoint| needed.contains(&Some(&checkpoint.id)));
            if has_lost || retention::readable(self.objects.read(&restore.plan))?.is_none() {
                gone.push(restore.id);
            }
        }
        Ok(gone)
    }

    /// Says so in the ledger, in one transaction.
    fn mark_lost(&self, found: &Findings) -> Result<()> {
        let Findings { lost, partly, contents, restores } = found;
        if lost.is_empty() && partly.is_empty() && contents.is_empty() && restores.is_empty() {
            return Ok(());
        }
        let ids = |ids: &[CheckpointId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        self.kernel.write(|tx, now| {
            for checkpoint in lost {
                // Read again: pruning an earlier one of this list may have changed this one's parent.
                let checkpoint = record::get(tx, &checkpoint.id)?;
                record::prune(tx, now, &checkpoint, "lost")?;
            }
            partly.iter().try_for_each(|id| record::lose_some(tx, id))?;
            restores.iter().try_for_each(|id| journal::lose(tx, now, id))?;
            let event = NewEvent {
                payload: Some(json!({
                    "objects": contents.iter().map(hex).collect::<Vec<_>>(),
                    "checkpoints": ids(partly),
                    "restores": restores.iter().map(ToString::to_string).collect::<Vec<_>>(),
                })),
                ..NewEvent::without_run(EventType::ContentLost)
            };
            ic_ledger::events::append(tx, now, &event).map(|_| ())
        })
    }
}

/// Accepts the current content of the ledger at `db`: a log beside it that is not its own is set aside. Returns that log's new name.
pub fn accept(db: &Path, options: OpenOptions, now: Timestamp) -> Result<Option<PathBuf>> {
    ic_checkpoint::objects::accept(&store_location::objects_path(db), options, now)
}

/// More content than this is not read through by [`examine`], which is asked often.
const LITTLE: u64 = 64 << 20;

/// Looks whether the ledger's store is there, its own and sound; nothing is written but a note that it was. Returns what was found, and
/// whether that is as it should be.
pub fn examine(kernel: &Kernel, options: OpenOptions) -> Result<(bool, String)> {
    const WAY_OUT: &str = "restore it from a backup FILE.objects.db if there is one; if it is lost for good, remove what is lost: \
                           ic checkpoint verify --repair";
    let kept = kernel.read(record::all_kept)?;
    let objects_path = store_location::objects_path(kernel.ledger.path());
    let objects: Objects = match store_location::look(kernel, options) {
        Ok(Some(objects)) => objects,
        Ok(None) if kept.is_empty() => return Ok((true, "no content yet".to_owned())),
        Ok(None) => {
            let text =
                format!("{} is missing, and {} checkpoints need it; {WAY_OUT}", objects_path.display(), kept.len());
            // One that another name of the ledger left is taken along by the next capture.
            return Ok(if store_location::is_elsewhere(kernel, options)? {
                (true, "to be moved".to_owned())
            } else {
                (false, text)
            });
        }
        Err(error) => {
            let way_out = if matches!(error.code(), Code::ForeignStore | Code::ForeignLog) {
                error.get_hint().unwrap_or_default()
            } else {
                WAY_OUT
            };
            return Ok((false, format!("{} {way_out}", error.message())));
        }
    };
    let state = SoundState::of(&objects_path, &kept);
    if state.is_known() {
        objects.leave();
        return Ok((true, "ok".to_owned()));
    }
    let reads_all = objects.file_size() <= LITTLE;
    let looked = objects.file_damage().and_then(|file| Ok((file, retention::verify(&objects, &kept, reads_all)?.0)));
    objects.leave();
    // Noted only if the store is still as it was before the reading: what was written in between was not read.
    if looked.as_ref().is_ok_and(|(file, damaged)| file.is_empty() && damaged.is_empty()) {
        state.keep_if_still(&SoundState::of(&objects_path, &kept));
    }
    Ok(match looked {
        Err(error) => (false, format!("{} {WAY_OUT}", error.message())),
        Ok((file, damaged)) if file.is_empty() && damaged.is_empty() => (true, "ok".to_owned()),
        Ok((file, damaged)) => {
            let hurt: BTreeSet<&CheckpointId> = damaged.iter().flat_map(|damage| &damage.checkpoints).collect();
            let first = file.first().map(String::as_str).or(damaged.first().map(|d| d.problem.as_str()));
            let first = first.unwrap_or_default();
            let path = objects_path.display();
            (false, format!("{} of {} checkpoints are damaged in {path}: {first} {WAY_OUT}", hurt.len(), kept.len()))
        }
    })
}
