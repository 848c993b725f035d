//! The layer `data`: the application's own tables, back to where they were when the run left the phase.
//!
//! An advance of a run with a configured state database records its mark. Each scope is one transaction of the engine, with an
//! archive of its own beside the ledger; one whose rows are gone already is recognised by its archive.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result, RollbackId, RunId, Seq, Timestamp};
use ic_phase::Run;
use ic_rewind::{
    Archive, ArchiveState, Mark, Options, RelationalRollbackEngine, Rewind, RowCounts, Scalar, Target, marks,
};
use ic_store::Transaction;
use serde_json::{Value, json};

use crate::Kernel;
use crate::checkpoint::{Settings, Warning};

/// What the layer takes back.
#[derive(Debug, Clone)]
pub struct Data {
    /// The application's database.
    pub database: PathBuf,
    /// The rows that go, or went, by table.
    pub rows: Vec<(String, u64)>,
}

/// Where a state database is now, to be recorded with a move.
pub(crate) struct Marked {
    found: Option<(PathBuf, Mark)>,
    pub(crate) warning: Option<Warning>,
}

impl Marked {
    /// Nothing, because there is no state database.
    pub(crate) fn nothing() -> Self {
        Self { found: None, warning: None }
    }

    /// Looks at the configured state database. One that cannot be read does not hold the run up.
    pub(crate) fn look(settings: &Settings) -> Self {
        let Some(target) = &settings.state else { return Self::nothing() };
        match open(target, settings).and_then(|engine| engine.mark()) {
            Ok(mark) => Self { found: Some((target.database.clone(), mark)), warning: None },
            Err(error) => {
                let message = format!("no mark of the state database was taken: {}", error.message());
                Self { found: None, warning: Some(Warning { code: "mark_failed", message }) }
            }
        }
    }

    /// Records it with the event that moved the run.
    pub(crate) fn record(&self, tx: &Transaction<'_>, seq: Seq, run: &RunId) -> Result<()> {
        match &self.found {
            Some((database, mark)) => marks::insert(tx, seq, run, database, mark),
            None => Ok(()),
        }
    }
}

fn open(target: &Target, settings: &Settings) -> Result<RelationalRollbackEngine> {
    RelationalRollbackEngine::open(target, Options { busy_timeout: settings.busy_timeout })
}

type Scope = Vec<(String, Scalar)>;

/// The engine, the mark of the cut, and the run's own scopes.
struct Work {
    engine: RelationalRollbackEngine,
    mark: Mark,
    scopes: Vec<Scope>,
}

fn prepare(kernel: &Kernel, settings: &Settings, run: &Run, cut: Seq) -> Result<Work> {
    let Some(target) = &settings.state else {
        return Err(Diagnosis::new(
            Code::InvalidConfig,
            "The configuration has no part `rewind`: there is no state database.",
        )
        .hint("ic rewind init, or leave the layer data out"));
    };
    let found = kernel.read(|snapshot| marks::of_event(snapshot, cut))?;
    let Some((database, mark)) = found.filter(|(database, _)| *database == target.database) else {
        return Err(Diagnosis::new(
            Code::NoCheckpoint,
            format!("Nobody recorded where the state database was when the run left that phase (event {cut})."),
        )
        .hint("advances record it from when `rewind` is configured; take the rows back by themselves: ic rewind to TASK")
        .detail("cut_seq", cut));
    };
    let engine = open(&Target { database, ..target.clone() }, settings)?;
    let scopes = scopes(&engine, run, target)?;
    Ok(Work { engine, mark, scopes })
}

/// The scopes that belong to the run: all there is where the tables are not divided, else those that its scope id names.
///
/// Errors: `conflict` when nobody can tell which rows are the run's.
fn scopes(engine: &RelationalRollbackEngine, run: &Run, target: &Target) -> Result<Vec<Scope>> {
    let Some(first) = target.anchor.scope.first() else { return Ok(vec![Vec::new()]) };
    let Some(own) = &run.scope_id else {
        return Err(Diagnosis::new(
            Code::Conflict,
            format!("Whose rows are whose is said by the column {first}, and the run has no scope id: nobody can tell its own."),
        )
        .hint("create runs with --scope-id, or leave the layer data out"));
    };
    let now = engine.mark()?;
    let is_own =
        |scope: &Scope| scope.iter().any(|(column, value)| column == first && value.to_string() == *own);
    Ok(now.scopes.into_iter().map(|mark| mark.scope).filter(is_own).collect())
}

/// What would go now.
pub(super) fn plan(kernel: &Kernel, settings: &Settings, run: &Run, cut: Seq) -> Result<Data> {
    let work = prepare(kernel, settings, run, cut)?;
    let mut data = Data { database: work.engine.target().database.clone(), rows: Vec::new() };
    for scope in &work.scopes {
        add(&mut data.rows, &work.engine.get_mark_snapshot(&work.mark, scope)?.affected_row_counts);
    }
    Ok(data)
}

fn add(rows: &mut Vec<(String, u64)>, counts: &RowCounts) {
    for (table, count) in counts.iter() {
        match rows.iter_mut().find(|(known, _)| known == table) {
            Some((_, sum)) => *sum += count,
            None => rows.push((table.to_owned(), count)),
        }
    }
}

/// Takes the rows away; what is gone already is not looked for again.
pub(super) fn take_back(
    kernel: &Kernel,
    settings: &Settings,
    run: &Run,
    (id, cut): (&RollbackId, Seq),
) -> Result<(Data, Value)> {
    let mut work = prepare(kernel, settings, run, cut)?;
    let mut data = Data { database: work.engine.target().database.clone(), rows: Vec::new() };
    let mut archives = Vec::new();
    for (at, scope) in work.scopes.iter().enumerate() {
        let path = archive(kernel, id, at)?;
        let mut archive = Archive::at(&path);
        let is_gone = archive.exists()? && work.engine.archive_state(&archive)? == ArchiveState::Applied;
        if !is_gone {
            let rewind = Rewind { id: id.as_str(), now: kernel.context.now() };
            let result = work.engine.rollback_to_mark(&work.mark, scope, &rewind, &mut archive)?;
            add(&mut data.rows, &result.deleted_row_counts);
        }
        archives.push(path.to_string_lossy().into_owned());
    }
    let detail =
        json!({ "database": data.database.to_string_lossy(), "archives": archives, "rows": data.rows });
    Ok((data, detail))
}

/// Puts the rows back that a rollback took.
pub(super) fn put_back(kernel: &Kernel, settings: &Settings, id: &RollbackId, now: Timestamp) -> Result<()> {
    let Some(target) = &settings.state else { return Ok(()) };
    let mut engine = open(target, settings)?;
    for at in 0.. {
        let archive = Archive::at(archive(kernel, id, at)?);
        if !archive.exists()? {
            return Ok(());
        }
        if engine.archive_state(&archive)? == ArchiveState::Applied {
            engine.undo(&archive, now)?;
        }
    }
    Ok(())
}

fn archive(kernel: &Kernel, id: &RollbackId, at: usize) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let store = kernel.ledger.path().parent().unwrap_or(Path::new("/"));
    let directory = store.join("rewinds");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .while_doing(|| format!("making {}", directory.display()))?;
    Ok(directory.join(format!("{id}-{at}.db")))
}
