//! Undoing a rewind: the rows of its archive return. The tree is not changed.

use std::time::Duration;

use ic_base::{Code, Diagnosis, Result};
use ic_kernel::Kernel;
use ic_rewind::journal::{self, RewindEntry, RewindStatus, Stage};
use ic_rewind::{Archive, EngineOptions, RelationalRollbackEngine, UndoError, UndoReport, UndoResult};

use super::rewind_records::{here, open_remembered};
use super::{lock, vectors};

/// A rewind that was undone.
#[derive(Debug)]
pub struct UndoneRewind {
    /// Its row, with the new status.
    pub entry: RewindEntry,
    /// The rows that are back, by table; empty if none were gone.
    pub restored: Vec<(String, u64)>,
    /// Whether this is only a preview: nothing was changed.
    pub is_dry_run: bool,
}

/// Restores the rows of a rewind exactly, and records that. A rewind that stopped is aborted by this.
///
/// The tree and vectors are not changed. The journal has everything that is needed, so the configuration of the tree is not read. Errors:
/// `rewind_not_found`; `nothing_to_undo` if it was undone, or its archive was removed; `row_conflict`, naming the rows that refuse it;
/// `busy`. Nothing is changed then.
pub fn undo(kernel: &Kernel, busy_timeout: Duration, reference: &str) -> Result<UndoneRewind> {
    kernel.ledger.require_one_host("A rewind")?;
    let found = here(kernel, kernel.read(|snapshot| journal::resolve(snapshot, reference))?);
    let _lock = lock::database(kernel.store(), &found.database, busy_timeout)?;
    // Read again under the lock: the process that had the lock may have resumed the rewind, or undone it.
    let entry = here(kernel, kernel.read(|snapshot| journal::get(snapshot, &found.id))?);
    require_undoable(kernel, &entry)?;
    // Before rows return: a command that a dead process left would prune vectors of rows that are there again.
    vectors::end_leftover(&entry)?;
    let now = kernel.context.now();
    let restored = put_back(busy_timeout, &entry, |engine, archive| engine.undo(archive, now))?;
    // After the application's commit: if the process dies in between, the undo is repeated and finds every row there.
    let entry = kernel.write_late_too(|tx, now| {
        journal::undone(tx, now, &entry)?;
        journal::get(tx, &entry.id)
    })?;
    Ok(UndoneRewind { entry: here(kernel, entry), restored, is_dry_run: false })
}

/// What [`undo`] would do now. Nothing is locked or changed.
///
/// Errors: those of `undo`, except for the application's triggers and its constraints over expressions.
pub fn preview_undo(kernel: &Kernel, busy_timeout: Duration, reference: &str) -> Result<UndoneRewind> {
    kernel.ledger.require_one_host("A rewind")?;
    let entry = here(kernel, kernel.read(|snapshot| journal::resolve(snapshot, reference))?);
    lock::require_free(kernel.store(), &entry.database, busy_timeout)?;
    require_undoable(kernel, &entry)?;
    let restored = put_back(busy_timeout, &entry, |engine, archive| engine.preview_undo(archive))?;
    Ok(UndoneRewind { entry, restored, is_dry_run: true })
}

/// Errors: `nothing_to_undo`; `stale_dispatch` for a caller whose work was rolled back.
fn require_undoable(kernel: &Kernel, entry: &RewindEntry) -> Result<()> {
    if entry.status == RewindStatus::Undone {
        return Err(Diagnosis::new(
            Code::NothingToUndo,
            format!("The rewind {} was undone already.", entry.id.short()),
        )
        .detail("rewind_id", entry.id.as_str()));
    }
    if entry.is_given_up() {
        return Err(Diagnosis::new(
            Code::NothingToUndo,
            format!(
                "The rows that the rewind {} took are no longer kept: there is no archive at {}.",
                entry.id.short(),
                entry.archive.display()
            ),
        )
        .hint("archives are kept as long as checkpoints: rollback: retention: max-age, and the last keep-last of a database")
        .detail("rewind_id", entry.id.as_str()));
    }
    kernel.read(|snapshot| kernel.calling_dispatch(snapshot).map(|_| ()))
}

/// The rows that are restored, by this call or by an earlier one that could not record it; `act` restores those of an archive, or says
/// which would return.
fn put_back(
    busy_timeout: Duration,
    entry: &RewindEntry,
    act: impl FnOnce(&mut RelationalRollbackEngine, &Archive) -> UndoResult<UndoReport>,
) -> Result<Vec<(String, u64)>> {
    let archive = Archive::at(&entry.archive);
    // It stopped before the rows: there is nothing to restore, and the undo only records that.
    if entry.stage < Stage::DbDone && !archive.exists()? {
        return Ok(Vec::new());
    }
    let owner = archive.manifest()?.rewind_id;
    // Archives can be moved by hand, and the rows of another one would be restored as this rewind's.
    if owner != entry.id.as_str() {
        return Err(Diagnosis::new(
            Code::Corrupt,
            format!("{} is the archive of another rewind, {owner}.", archive.path().display()),
        )
        .hint("put the archive of this rewind there; nothing was changed"));
    }
    let options = EngineOptions { busy_timeout: busy_timeout.max(Duration::from_millis(1)) };
    let mut engine = open_remembered(&entry.setup.target, options)?;
    match act(&mut engine, &archive) {
        Ok(report) => {
            let rows = report.restored_row_counts.iter();
            Ok(rows.map(|(table, rows)| (table.to_owned(), rows)).collect())
        }
        Err(UndoError::AllThere { .. }) => {
            let tables = archive.manifest()?.tables.into_iter().rev();
            Ok(tables.map(|table| (table.name, table.rows)).filter(|_| entry.stage >= Stage::DbDone).collect())
        }
        Err(UndoError::Failed(error)) => Err(error),
    }
}
