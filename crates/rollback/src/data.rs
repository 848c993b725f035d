//! The layer `data`: the application's own tables, back to where they were when the run left the phase.
//!
//! An advance of a run with a configured state database records its mark. Whose rows are whose is said by the anchor's scope
//! columns; without any, all rows are the run's, unless another run worked beside it.

mod rows;

use std::path::PathBuf;

use ic_base::{Code, Diagnosis, Result, Seq};
use ic_phase::Run;
use ic_rewind::{Mark, RelationalRollbackEngine, Scalar, Target, marks};
use ic_store::Snapshot;
use serde_json::Value;

use ic_journal::choices::Choices;
use ic_journal::layer::{Layer, without_data};
use ic_journal::steps::{BY_FORCE, Step, StepKind};
use ic_journal::table::Remembered;
use ic_kernel::Kernel;
use ic_rows::refuse_unfinished;
use ic_worktree::{Settings, Warning, open_database};

pub(super) use rows::{put_back, require_archives, take_back, would_put_back, would_take_back};

/// What the layer takes back, or puts back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The application's database.
    pub database: PathBuf,
    /// The rows that go, or went, by table.
    pub rows: Vec<(String, u64)>,
}

impl Data {
    fn of(target: &Target) -> Self {
        Self { database: target.database.clone(), rows: Vec::new() }
    }

    fn add<'t>(&mut self, counts: impl IntoIterator<Item = (&'t str, u64)>) {
        for (table, count) in counts {
            match self.rows.iter_mut().find(|(known, _)| known == table) {
                Some((_, sum)) => *sum += count,
                None => self.rows.push((table.to_owned(), count)),
            }
        }
    }
}

/// What to say where everything was meant to go back and rows do not: nothing tells any more where the database is that was looked at
/// when the event `cut` moved the run. `None` where rows go back, or nobody looked.
pub fn rows_that_stay(kernel: &Kernel, layers: &[Layer], cut: Seq) -> Result<Option<Warning>> {
    if layers.contains(&Layer::Data) {
        return Ok(None);
    }
    let marked = kernel.read(|snapshot| marks::of_event(snapshot, cut))?;
    Ok(marked.map(|(database, _)| Warning {
        code: "rows_stay",
        message: format!(
            "no state database is configured any more: the rows of {} stay as they are",
            database.display()
        ),
    }))
}

/// The state database of a rollback that was begun. The tree that goes back may hold another configuration, so the journal has its own; only
/// a database that the journal could not name is that of the configuration. Errors: `corrupt` if the journal cannot be read.
pub(super) fn target_of(settings: &Settings, remembered: &Remembered) -> Result<Target> {
    match Choices::of(remembered)?.state(remembered)? {
        Some(kept) => Ok(kept),
        None => configured(settings, None),
    }
}

/// The state database that the configuration names. Errors: `invalid_config` if it names none.
fn configured(settings: &Settings, layers: Option<&[Layer]>) -> Result<Target> {
    settings.state.clone().ok_or_else(|| {
        Diagnosis::new(
            Code::InvalidConfig,
            "The configuration has no part `rewind`: there is no state database.",
        )
        .hint(format!("ic rewind init --profile devs, or {}", without_data(layers)))
    })
}

type Scope = Vec<(String, Scalar)>;

/// Whether it was recorded where the state database was at the event `seq`: else no rows can go back to there.
pub fn has_mark(snapshot: &Snapshot<'_>, seq: Seq) -> Result<bool> {
    marks::of_event(snapshot, seq).map(|found| found.is_some())
}

/// The engine, the mark of the cut, and the run's own scopes.
struct Work {
    engine: RelationalRollbackEngine,
    mark: Mark,
    scopes: Vec<Scope>,
}

/// Errors: `no_checkpoint` without a mark of this database at the cut; `conflict` while a rewind of it is not finished, or when
/// nobody can tell which rows are the run's. `layers`: as [`without_data`] takes them.
fn prepare(
    kernel: &Kernel,
    settings: &Settings,
    target: &Target,
    run: &Run,
    cut: Seq,
    layers: Option<&[Layer]>,
) -> Result<Work> {
    let without = without_data(layers);
    let by_hand = format!("roll the rows back by themselves: ic rewind to TASK --yes; or {without}");
    let found = kernel.read(|snapshot| marks::of_event(snapshot, cut))?;
    let Some((database, mark)) = found else {
        return Err(Diagnosis::new(
            Code::NoCheckpoint,
            format!(
                "Nobody recorded where the state database was when the run left that phase (event {cut})."
            ),
        )
        .hint(format!(
            "advances record it from when `rewind` is configured, and warn where they cannot; {by_hand}"
        ))
        .detail("cut_seq", cut));
    };
    if database != target.database {
        let (then, now) = (database.display(), target.database.display());
        return Err(Diagnosis::new(
            Code::NoCheckpoint,
            format!("When the run left that phase (event {cut}), the state database was {then}, not {now}."),
        )
        .hint(format!("call from the project of the run, with its configuration; {by_hand}"))
        .detail("cut_seq", cut));
    }
    refuse_unfinished(kernel, target)?;
    let engine = open_database(target, settings)?;
    let scopes = scopes(&engine, run, target, &without)?;
    Ok(Work { engine, mark, scopes })
}

/// The scopes that belong to the run: all there is where the tables are not divided, else those that its scope id names.
///
/// Errors: `row_conflict` when nobody can tell which rows are the run's.
fn scopes(
    engine: &RelationalRollbackEngine,
    run: &Run,
    target: &Target,
    without: &str,
) -> Result<Vec<Scope>> {
    let Some(first) = target.anchor.scope.first() else { return Ok(vec![Vec::new()]) };
    let Some(own) = &run.scope_id else {
        return Err(Diagnosis::new(
            Code::RowConflict,
            format!("Whose rows are whose is said by the column {first}, and the run has no scope id: nobody can tell its own."),
        )
        .hint(format!("create runs with --scope-id, or {without}")));
    };
    let now = engine.mark()?;
    let is_own =
        |scope: &Scope| scope.iter().any(|(column, value)| column == first && value.to_string() == *own);
    Ok(now.scopes.into_iter().map(|mark| mark.scope).filter(is_own).collect())
}

/// What would go now.
pub(super) fn plan(
    kernel: &Kernel,
    settings: &Settings,
    run: &Run,
    layers: &[Layer],
    (cut, force): (Seq, bool),
) -> Result<Data> {
    let target = configured(settings, Some(layers))?;
    let work = prepare(kernel, settings, &target, run, cut, Some(layers))?;
    if !force {
        refuse_others(kernel, &target, run, cut, Some(layers))?;
    }
    let mut data = Data::of(&target);
    for scope in &work.scopes {
        data.add(work.engine.get_mark_snapshot(&work.mark, scope)?.affected_row_counts.iter());
    }
    Ok(data)
}

/// What a step that failed is remembered with, where it was because of [`refuse_others`]: other conflicts of rows stay, whatever is
/// forced.
pub(super) fn decided_by_force(step: &Step, error: &Diagnosis) -> Option<Value> {
    if step.kind != StepKind::Data {
        return None;
    }
    let mut detail = step.detail.as_object().cloned().unwrap_or_default();
    detail.insert(BY_FORCE.to_owned(), error.details().contains_key("runs").into());
    Some(Value::Object(detail))
}

/// What a rollback that was begun would take away now.
pub(super) fn left(kernel: &Kernel, settings: &Settings, run: &Run, remembered: &Remembered) -> Result<Data> {
    let target = target_of(settings, remembered)?;
    let work = prepare(kernel, settings, &target, run, remembered.cut_seq, None)?;
    let mut data = Data::of(&target);
    for scope in &work.scopes {
        data.add(work.engine.get_mark_snapshot(&work.mark, scope)?.affected_row_counts.iter());
    }
    Ok(data)
}

/// Errors: `row_conflict` when another run worked beside this one since the cut and nothing tells their rows apart.
fn refuse_others(
    kernel: &Kernel,
    target: &Target,
    run: &Run,
    cut: Seq,
    layers: Option<&[Layer]>,
) -> Result<()> {
    let scope = run.scope_id.as_deref().filter(|_| !target.anchor.scope.is_empty());
    let others =
        kernel.read(|snapshot| marks::runs_beside(snapshot, &run.id, &target.database, scope, cut))?;
    let Some(first) = others.first() else { return Ok(()) };
    let more = match others.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Err(Diagnosis::new(
        Code::RowConflict,
        format!(
            "The run {}{more} works with the same state database, or did since, and nothing says whose rows are whose. \
             Nothing was changed.",
            first.short()
        ),
    )
    .hint(format!(
        "{}; or take all newer rows, whoever wrote them: --force-files; a column for `anchor: scope` tells runs apart",
        without_data(layers)
    ))
    .detail("runs", others.iter().map(ToString::to_string).collect::<Vec<_>>())
    .detail("database", target.database.to_string_lossy().into_owned()))
}
