//! Taking rows away and putting them back, with an archive for each scope beside the ledger.
//!
//! Each scope is one transaction of the engine. What a predecessor did is recognised by its archives, whose names are counted up
//! and which say themselves whose rows they hold: scopes come and go with their rows, so that their order says nothing.

use std::path::PathBuf;

use ic_base::{Code, Diagnose, Diagnosis, Result, RollbackId, Timestamp};
use ic_journal::steps::{self, StepKind};
use ic_journal::table::Remembered;
use ic_kernel::Kernel;
use ic_phase::Run;
use ic_rewind::{
    Archive, ArchiveState, Manifest, Options, RelationalRollbackEngine, Rewind, Target, UndoError,
    UndoReport, UndoResult,
};
use ic_rows::{lock, open_remembered};
use ic_store::Snapshot;
use ic_worktree::Settings;
use serde_json::{Value, json};

use super::{Data, Scope, Work, prepare, refuse_others, target_of};

/// An archive of a rollback, the newest of its scope, and whether its rows are gone.
struct Kept {
    at: usize,
    archive: Archive,
    manifest: Manifest,
    state: ArchiveState,
}

impl Kept {
    fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.manifest.tables.iter().map(|table| (table.name.as_str(), table.rows))
    }
}

/// Takes the rows away; what is gone already is not taken again, and is told of all the same.
pub(crate) fn take_back(
    kernel: &Kernel,
    settings: &Settings,
    run: &Run,
    (remembered, force): (&Remembered, bool),
) -> Result<(Data, Value)> {
    let target = target_of(settings, remembered)?;
    let _lock = lock::database(kernel.store(), &target.database, settings.busy_timeout)?;
    let (mut work, kept, mut data) = look(kernel, settings, &target, run, (remembered, force))?;
    let mut next = files(kernel, &remembered.id)?.last().map_or(0, |(at, _)| at + 1);
    for scope in work.scopes.iter().filter(|scope| !is_gone(scope, &kept)) {
        // One that nothing was taken away by is the engine's to replace.
        let unused =
            kept.iter().find(|kept| kept.state == ArchiveState::Unused && kept.manifest.scope == *scope);
        let at = unused.map_or(next, |kept| kept.at);
        next += usize::from(unused.is_none());
        let id = name(&remembered.id, at);
        let rewind = Rewind { id: &id, now: kernel.context.now() };
        let mut archive = Archive::at(path(kernel, &remembered.id, at)?);
        let result = work.engine.rollback_to_mark(&work.mark, scope, &rewind, &mut archive)?;
        data.add(result.deleted_row_counts.iter());
    }
    let rows: serde_json::Map<String, Value> =
        data.rows.iter().map(|(table, rows)| (table.clone(), (*rows).into())).collect();
    let detail = json!({ "database": data.database.to_string_lossy(), "rows": rows });
    Ok((data, detail))
}

/// The rows that [`take_back`] would take now, and those that are gone already. Nothing is locked or changed.
///
/// Errors: those of `take_back`.
pub(crate) fn would_take_back(
    kernel: &Kernel,
    settings: &Settings,
    run: &Run,
    (remembered, force): (&Remembered, bool),
) -> Result<Data> {
    let target = target_of(settings, remembered)?;
    let (work, kept, mut data) = look(kernel, settings, &target, run, (remembered, force))?;
    for scope in work.scopes.iter().filter(|scope| !is_gone(scope, &kept)) {
        data.add(work.engine.get_mark_snapshot(&work.mark, scope)?.affected_row_counts.iter());
    }
    Ok(data)
}

/// What there is to be taken, the archives of what was, and the rows that are gone already.
///
/// Errors: those of [`prepare`] and, unless some rows are gone, [`refuse_others`]: what is half taken is taken wholly.
fn look(
    kernel: &Kernel,
    settings: &Settings,
    target: &Target,
    run: &Run,
    (remembered, force): (&Remembered, bool),
) -> Result<(Work, Vec<Kept>, Data)> {
    let work = prepare(kernel, settings, target, run, remembered.cut_seq, None)?;
    let kept = archives(kernel, &work.engine, &remembered.id)?;
    let mut data = Data::of(target);
    let mut is_begun = false;
    for gone in kept.iter().filter(|kept| kept.state == ArchiveState::Applied) {
        data.add(gone.counts());
        is_begun = true;
    }
    if !force && !is_begun {
        refuse_others(kernel, target, run, remembered.cut_seq, None)?;
    }
    Ok((work, kept, data))
}

fn is_gone(scope: &Scope, kept: &[Kept]) -> bool {
    kept.iter().any(|kept| kept.state == ArchiveState::Applied && kept.manifest.scope == *scope)
}

/// Rows that were put back, and why the rest was not.
pub(crate) struct PutBack {
    /// `None`: nothing had been taken away.
    pub(crate) data: Option<Data>,
    /// Why some are not back: those of a scope are back wholly or not at all.
    pub(crate) error: Option<Diagnosis>,
    /// Whether any are back by this call, or by one before it.
    pub(crate) is_begun: bool,
}

/// Puts the rows back that a rollback took; what is back already is left alone, and is told of all the same.
pub(crate) fn put_back(
    kernel: &Kernel,
    settings: &Settings,
    remembered: &Remembered,
    now: Timestamp,
) -> Result<PutBack> {
    if files(kernel, &remembered.id)?.is_empty() {
        return Ok(PutBack { data: None, error: None, is_begun: false });
    }
    let target: Target = target_of(settings, remembered)?;
    let _lock = lock::database(kernel.store(), &target.database, settings.busy_timeout)?;
    each_back(kernel, settings, (remembered, &target), |engine, archive| engine.undo(archive, now))
}

/// The rows that [`put_back`] would put back now; `None`: nothing had been taken away. Nothing is locked or changed.
///
/// Errors: what stands in their way.
pub(crate) fn would_put_back(
    kernel: &Kernel,
    settings: &Settings,
    remembered: &Remembered,
) -> Result<Option<Data>> {
    if files(kernel, &remembered.id)?.is_empty() {
        return Ok(None);
    }
    let target = target_of(settings, remembered)?;
    let found =
        each_back(kernel, settings, (remembered, &target), |engine, archive| engine.preview_undo(archive))?;
    found.error.map_or(Ok(found.data), Err)
}

/// Has `act` put each archive of a rollback back, newest first, or say what that would do.
fn each_back(
    kernel: &Kernel,
    settings: &Settings,
    (remembered, target): (&Remembered, &Target),
    mut act: impl FnMut(&mut RelationalRollbackEngine, &Archive) -> UndoResult<UndoReport>,
) -> Result<PutBack> {
    let mut put_back = PutBack { data: None, error: None, is_begun: false };
    let mut engine = open_remembered(target, Options { busy_timeout: settings.busy_timeout })?;
    let mut data = Data::of(target);
    // The journal knows better than a database whose application may have cleared its log.
    let were_taken = kernel.read(|snapshot| were_taken(snapshot, &remembered.id))?;
    for kept in archives(kernel, &engine, &remembered.id)?.iter().rev() {
        match kept.state {
            ArchiveState::Unused if !were_taken => continue,
            ArchiveState::Undone => data.add(kept.counts()),
            ArchiveState::Applied | ArchiveState::Unused => match act(&mut engine, &kept.archive) {
                Ok(report) => data.add(report.restored_row_counts.iter()),
                Err(UndoError::AllThere { .. }) => data.add(kept.counts()),
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

/// Whether a rollback once took all of its rows.
fn were_taken(snapshot: &Snapshot<'_>, id: &RollbackId) -> Result<bool> {
    let all = steps::of_rollback(snapshot, id)?;
    Ok(all.iter().any(|step| step.kind == StepKind::Data && step.detail["rows"].is_object()))
}

/// Errors: `corrupt` if the archives that are there do not hold all the rows that the journal says were taken.
pub(crate) fn require_archives(kernel: &Kernel, remembered: &Remembered, taken: &Value) -> Result<()> {
    let mut held = Vec::new();
    for (_, path) in files(kernel, &remembered.id)? {
        held.extend(Archive::at(path).manifest()?.tables);
    }
    for (table, rows) in taken.as_object().into_iter().flatten() {
        let rows = rows.as_u64().unwrap_or_default();
        let kept: u64 = held.iter().filter(|one| one.name == *table).map(|one| one.rows).sum();
        if kept < rows {
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
                "put the archive back there; or put files back alone, their checkpoint is named by: ic rollback show {id}"
            )));
        }
    }
    Ok(())
}

/// The newest archive of each scope of a rollback, oldest first.
fn archives(kernel: &Kernel, engine: &RelationalRollbackEngine, id: &RollbackId) -> Result<Vec<Kept>> {
    let mut newest: Vec<(usize, Archive, Manifest)> = Vec::new();
    for (at, path) in files(kernel, id)? {
        let archive = Archive::at(path);
        let manifest = archive.manifest()?;
        newest.retain(|(_, _, older)| older.scope != manifest.scope);
        newest.push((at, archive, manifest));
    }
    let with_state = newest.into_iter().map(|(at, archive, manifest)| {
        let state = engine.archive_state(&archive)?;
        Ok(Kept { at, archive, manifest, state })
    });
    with_state.collect()
}

/// The archives of a rollback that are there, with their numbers, ascending.
fn files(kernel: &Kernel, id: &RollbackId) -> Result<Vec<(usize, PathBuf)>> {
    let directory = lock::directory(kernel.store())?;
    let doing = || format!("listing {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&directory).while_doing(doing)? {
        let entry = entry.while_doing(doing)?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(id.as_str())?.strip_prefix('-')?.strip_suffix(".db"));
        if let Some(at) = number.and_then(|number| number.parse().ok()) {
            files.push((at, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// What the application's audit knows an archive by: each is a rewind of its own.
fn name(id: &RollbackId, at: usize) -> String {
    format!("{id}-{at}")
}

fn path(kernel: &Kernel, id: &RollbackId, at: usize) -> Result<PathBuf> {
    Ok(lock::directory(kernel.store())?.join(format!("{}.db", name(id, at))))
}
