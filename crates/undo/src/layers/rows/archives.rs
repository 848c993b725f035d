//! Removes rows and restores them, with an archive for each scope beside the ledger.
//!
//! Each scope is one transaction of the engine. What a predecessor did is recognised by its archives, whose names are counted up and whose
//! manifest names the scope. Scopes come and go with their rows, so their order says nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::app_rewind::{lock, open_remembered};
use ic_base::{Code, Diagnose, Diagnosis, Result, RollbackId};
use ic_kernel::Kernel;
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::steps::{self, StepKind};
use ic_kernel::journal::table::RollbackRecord;
use ic_ledger::Snapshot;
use ic_rewind::{
    Archive, ArchiveManifest, ArchiveState, EngineOptions, RelationalRollbackEngine, Rewind, RewindTarget, UndoError,
    UndoReport, UndoResult,
};

use super::{Rewinder, Scope, Site, prepare, refuse_others};
use crate::outcome::Data;

/// The newest archive of a scope that a rollback made, and whether its rows are gone.
struct Kept {
    at: usize,
    archive: Archive,
    manifest: ArchiveManifest,
    state: ArchiveState,
}

impl Kept {
    fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.manifest.tables.iter().map(|table| (table.name.as_str(), table.rows))
    }
}

/// Removes the rows, or says which would go. What is gone already is not removed again, but is reported. Returns the rows and the detail
/// that the journal keeps.
pub(super) fn take(site: &Site<'_, '_>) -> Result<(Data, StepDetail)> {
    let target = site.covered.database(site.settings)?;
    // It is taken after the owner's lock, which the saga holds, in the order of `ic_checkpoint::lock`. A preview has no
    // saga and takes no lock.
    let held = site.saga.map(|saga| lock::database(saga.kernel.store(), &target.database, site.settings.busy_timeout));
    // Held until the last scope is done: two rewinds of one database must not take turns.
    let _lock = held.transpose()?;
    let (mut rewinder, kept, mut data) = look(site, &target)?;
    let is_left = |scope: &&Scope| !is_gone(scope, &kept);
    let Some(remembered) = site.covered.remembered().filter(|_| !site.is_dry()) else {
        for scope in rewinder.scopes.iter().filter(is_left) {
            data.add(rewinder.engine.get_mark_snapshot(&rewinder.mark, scope)?.affected_row_counts.iter());
        }
        return Ok((data, StepDetail::default()));
    };
    // The next number is one more than the greatest: the archive of an earlier attempt has the only copy of its rows.
    let mut next = files(site.kernel, &remembered.id)?.last().map_or(0, |(at, _)| at + 1);
    for scope in rewinder.scopes.iter().filter(is_left) {
        // An archive by which no row was removed is replaced by the engine.
        let unused = kept.iter().find(|kept| kept.state == ArchiveState::Unused && kept.manifest.scope == *scope);
        let at = unused.map_or(next, |kept| kept.at);
        next += usize::from(unused.is_none());
        let id = name(&remembered.id, at);
        let rewind = Rewind { id: &id, now: site.kernel.context.now() };
        let mut archive = Archive::at(path(site.kernel, &remembered.id, at)?);
        let result = rewinder.engine.rollback_to_mark(&rewinder.mark, scope, &rewind, &mut archive)?;
        data.add(result.deleted_row_counts.iter());
    }
    let rows = data.rows.iter().map(|(table, rows)| (table.clone(), *rows)).collect();
    Ok((data, StepDetail { rows: Some(rows), ..StepDetail::default() }))
}

/// All rows that are newer than the mark now, also those that another check refuses to remove.
pub(super) fn newer(site: &Site<'_, '_>) -> Result<Data> {
    let target = site.covered.database(site.settings)?;
    let rewinder = prepare(site, &target)?;
    let mut data = Data::of(&target);
    for scope in &rewinder.scopes {
        data.add(rewinder.engine.get_mark_snapshot(&rewinder.mark, scope)?.affected_row_counts.iter());
    }
    Ok(data)
}

/// The rows that are to be removed, the archives of those that were, and the counts of rows that are gone already.
///
/// Errors: those of [`prepare`] and, unless some rows are gone, [`refuse_others`]: a removal that was begun is finished.
fn look(site: &Site<'_, '_>, target: &RewindTarget) -> Result<(Rewinder, Vec<Kept>, Data)> {
    let rewinder = prepare(site, target)?;
    let kept = match site.covered.remembered() {
        Some(remembered) => archives(site.kernel, &rewinder.engine, &remembered.id)?,
        None => Vec::new(),
    };
    let mut data = Data::of(target);
    let mut is_begun = false;
    for gone in kept.iter().filter(|kept| kept.state == ArchiveState::Applied) {
        data.add(gone.counts());
        is_begun = true;
    }
    if !is_begun && !site.covered.force(site.force)?.files {
        refuse_others(site, target)?;
    }
    Ok((rewinder, kept, data))
}

fn is_gone(scope: &Scope, kept: &[Kept]) -> bool {
    kept.iter().any(|kept| kept.state == ArchiveState::Applied && kept.manifest.scope == *scope)
}

/// The rows that were restored, and why the others were not.
#[derive(Default)]
pub(super) struct PutBack {
    /// The rows that are back; `None`: none had been removed.
    pub(super) data: Option<Data>,
    /// Why some are not back: the rows of one scope are back wholly or not at all.
    pub(super) error: Option<Diagnosis>,
    /// Whether this call or an earlier one restored any.
    pub(super) is_begun: bool,
}

/// Restores the rows that a rollback removed, or says which would return. Rows that are back already are left alone, and reported.
pub(super) fn put_back(site: &Site<'_, '_>) -> Result<PutBack> {
    let Some(remembered) = site.covered.remembered() else { return Ok(PutBack::default()) };
    // This is asked before the database is looked for: if no row was removed, it need not exist any more.
    if files(site.kernel, &remembered.id)?.is_empty() {
        return Ok(PutBack::default());
    }
    let target = site.covered.database(site.settings)?;
    if site.is_dry() {
        return each_back(site, remembered, &target, |engine, archive| engine.preview_undo(archive));
    }
    let _lock = lock::database(site.kernel.store(), &target.database, site.settings.busy_timeout)?;
    let now = site.kernel.context.now();
    each_back(site, remembered, &target, |engine, archive| engine.undo(archive, now))
}

/// Calls `act` for each archive of a rollback, newest first, to restore it or to say what that would do.
fn each_back(
    site: &Site<'_, '_>,
    remembered: &RollbackRecord,
    target: &RewindTarget,
    mut act: impl FnMut(&mut RelationalRollbackEngine, &Archive) -> UndoResult<UndoReport>,
) -> Result<PutBack> {
    let mut put_back = PutBack::default();
    let mut engine = open_remembered(target, EngineOptions { busy_timeout: site.settings.busy_timeout })?;
    let mut data = Data::of(target);
    // The journal is believed rather than the database, whose application may have cleared its log.
    let were_taken = site.kernel.read(|snapshot| were_taken(snapshot, &remembered.id))?;
    for kept in archives(site.kernel, &engine, &remembered.id)?.iter().rev() {
        match kept.state {
            ArchiveState::Unused if !were_taken => continue,
            ArchiveState::Undone => data.add(kept.counts()),
            ArchiveState::Applied | ArchiveState::Unused => match act(&mut engine, &kept.archive) {
                Ok(report) => data.add(report.restored_row_counts.iter()),
                Err(UndoError::AllThere { .. }) => data.add(kept.counts()),
                // The other scopes are restored anyway; the first error is the one that is reported.
                Err(UndoError::Failed(error)) => {
                    put_back.error.get_or_insert(error);
                    continue;
                }
            },
        }
        put_back.is_begun = true;
    }
    put_back.data = Some(data);
    Ok(put_back)
}

/// Whether a rollback at one time had removed all of its rows.
fn were_taken(snapshot: &Snapshot<'_>, id: &RollbackId) -> Result<bool> {
    let all = steps::of_rollback(snapshot, id)?;
    Ok(all.iter().any(|step| step.kind == StepKind::Data && step.detail.rows.is_some()))
}

/// Errors: `corrupt` if the archives that exist do not hold all the rows that the journal says were removed.
pub(super) fn require_archives(site: &Site<'_, '_>, taken: Option<&BTreeMap<String, u64>>) -> Result<()> {
    let Some(remembered) = site.covered.remembered() else { return Ok(()) };
    let kernel = site.kernel;
    let mut held = Vec::new();
    for (_, path) in files(kernel, &remembered.id)? {
        held.extend(Archive::at(path).manifest()?.tables);
    }
    for (table, rows) in taken.into_iter().flatten() {
        // Only too few rows are damage: rows that were restored and removed again are in one archive for each time.
        let kept: u64 = held.iter().filter(|one| one.name == *table).map(|one| one.rows).sum();
        if kept < *rows {
            let archives = path(kernel, &remembered.id, 0)?;
            let id = remembered.id.short();
            return Err(Diagnosis::new(
                Code::Corrupt,
                format!(
                    "The rollback {id} took {rows} rows of {table}, and its archives hold {kept} of them: {} or one beside it is lost.",
                    archives.display()
                ),
            )
            .hint(format!(
                "move the archive back there; or restore the files alone, their checkpoint is named by: ic rollback show {id}"
            )));
        }
    }
    Ok(())
}

/// The newest archive of each scope of a rollback, oldest first.
fn archives(kernel: &Kernel, engine: &RelationalRollbackEngine, id: &RollbackId) -> Result<Vec<Kept>> {
    let mut newest: Vec<(usize, Archive, ArchiveManifest)> = Vec::new();
    for (at, path) in files(kernel, id)? {
        let archive = Archive::at(path);
        let manifest = archive.manifest()?;
        // A scope whose rows were restored and removed again has one archive for each time.
        newest.retain(|(_, _, older)| older.scope != manifest.scope);
        newest.push((at, archive, manifest));
    }
    let with_state = newest.into_iter().map(|(at, archive, manifest)| {
        let state = engine.archive_state(&archive)?;
        Ok(Kept { at, archive, manifest, state })
    });
    with_state.collect()
}

/// The archives of a rollback that exist, with their numbers, ascending.
fn files(kernel: &Kernel, id: &RollbackId) -> Result<Vec<(usize, PathBuf)>> {
    let directory = lock::directory(kernel.store())?;
    let doing = || format!("listing {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&directory).while_doing(doing)? {
        let entry = entry.while_doing(doing)?;
        let name = entry.file_name();
        // The directory also has the archives of rewinds, with logs and locks. Those of a rollback are
        // `<rollback>-<number>.db`.
        let number =
            name.to_str().and_then(|name| name.strip_prefix(id.as_str())?.strip_prefix('-')?.strip_suffix(".db"));
        if let Some(at) = number.and_then(|number| number.parse().ok()) {
            files.push((at, entry.path()));
        }
    }
    // They are sorted by number and not by name: `-10` comes after `-9`.
    files.sort_unstable();
    Ok(files)
}

/// The name by which the application's audit knows an archive: each is a rewind of its own.
fn name(id: &RollbackId, at: usize) -> String {
    format!("{id}-{at}")
}

fn path(kernel: &Kernel, id: &RollbackId, at: usize) -> Result<PathBuf> {
    Ok(lock::directory(kernel.store())?.join(format!("{}.db", name(id, at))))
}
