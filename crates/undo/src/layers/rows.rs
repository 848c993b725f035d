//! The layer `data`: the application's own tables, back to where they were when the run left the phase.
//!
//! An advance of a run with a configured state database records its mark. Whose rows are whose is said by the anchor's scope
//! columns; without any, all rows are the run's, unless another run worked beside it.

mod archives;

use crate::app_rewind::refuse_unfinished;
use ic_base::{Code, Diagnosis, Result, Seq};
use ic_kernel::journal::LayerName as Name;
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::steps::{RollbackStep, StepKind};
use ic_kernel::{Kernel, require_own_project};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_rewind::{RelationalRollbackEngine, RewindTarget, SqlScalar, StateMark, state_marks};
use ic_worktree::{Warning, open_database};

use super::layer::{LayerDriver, LayerWork, Site};
use crate::plan_approval;

/// Rows of the application's tables: archived and deleted forward, restored from the archive by an undo or abort.
pub(super) struct RowsLayer;

impl LayerDriver for RowsLayer {
    fn go(&self, site: &mut Site<'_, '_>, step: &RollbackStep, work: &mut LayerWork) -> Result<StepDetail> {
        if site.course.is_back() {
            // Both are checked before the first row is restored, so that a lost archive does not leave half of them.
            require_own_project(site.kernel, &site.covered.run)?;
            archives::require_archives(site, step.detail.rows.as_ref())?;
            let put_back = archives::put_back(site)?;
            work.has_changed |= put_back.is_begun && !site.is_dry();
            work.data = put_back.data;
            return put_back.error.map_or(Ok(StepDetail::default()), Err);
        }
        // Only rows that the preview showed are deleted. What came since stops the step.
        if let Some(seen) = site.seen.and_then(|seen| seen.data.as_ref()) {
            plan_approval::require_rows(seen, &archives::newer(site)?)?;
        }
        let (data, detail) = archives::take(site)?;
        work.data = Some(data);
        Ok(detail)
    }
}

/// A warning for a rollback of everything that leaves rows: a database was marked when the event `cut` moved the run, and no configuration
/// names it any longer. `None` where rows go back, or no mark was recorded.
pub(crate) fn rows_that_stay(kernel: &Kernel, layers: &[Name], cut: Seq) -> Result<Option<Warning>> {
    if layers.contains(&Name::Data) {
        return Ok(None);
    }
    let marked = kernel.read(|snapshot| state_marks::of_event(snapshot, cut))?;
    Ok(marked.map(|(database, _)| Warning {
        code: "rows_stay",
        message: format!(
            "no state database is configured any more: the rows of {} stay as they are",
            database.display()
        ),
    }))
}

type Scope = Vec<(String, SqlScalar)>;

/// Whether the position of the state database was recorded at the event `seq`; without that no rows can go back to it.
pub fn has_mark(snapshot: &Snapshot<'_>, seq: Seq) -> Result<bool> {
    state_marks::of_event(snapshot, seq).map(|found| found.is_some())
}

/// The engine, the mark of the cut, and the run's own scopes.
struct Rewinder {
    engine: RelationalRollbackEngine,
    mark: StateMark,
    scopes: Vec<Scope>,
}

/// Errors: `no_checkpoint` without a mark of this database, by these scope columns, at the cut; `not_finished` while a rewind of it is not finished;
/// `row_conflict` when nothing tells which rows are the run's.
fn prepare(site: &Site<'_, '_>, target: &RewindTarget) -> Result<Rewinder> {
    let (kernel, covered, cut) = (site.kernel, site.covered, site.covered.cut.seq);
    let without = covered.without_data();
    let by_hand = format!("roll the rows back by themselves: ic rewind to TASK --yes; or {without}");
    let found = kernel.read(|snapshot| state_marks::of_event(snapshot, cut))?;
    let Some((database, mark)) = found else {
        return Err(Diagnosis::new(
            Code::NoCheckpoint,
            format!("The position of the state database was not recorded when the run left that phase (event {cut})."),
        )
        .hint(format!("advances record it once `rewind` is configured, and warn when they cannot; {by_hand}"))
        .detail("cut_seq", cut));
    };
    // A mark is a position in one database. In another file the rows after it would be the wrong ones.
    if database != target.database {
        let (then, now) = (database.display(), target.database.display());
        return Err(Diagnosis::new(
            Code::NoCheckpoint,
            format!("When the run left that phase (event {cut}), the state database was {then}, not {now}."),
        )
        .hint(format!("call from the project of the run, with its configuration; {by_hand}"))
        .detail("cut_seq", cut));
    }
    // Before the scopes of the run: by other columns none may be its own, and the newer rows would stay without a word.
    mark.require_columns(&target.anchor.scope)?;
    refuse_unfinished(kernel, target)?;
    let engine = open_database(target, site.settings)?;
    let scopes = scopes(&engine, &covered.run, target, &without)?;
    Ok(Rewinder { engine, mark, scopes })
}

/// The scopes that belong to the run: every scope where the tables are not divided, else those that its scope id names.
///
/// Errors: `row_conflict` when it cannot be told which rows are the run's.
fn scopes(engine: &RelationalRollbackEngine, run: &Run, target: &RewindTarget, without: &str) -> Result<Vec<Scope>> {
    let Some(first) = target.anchor.scope.first() else { return Ok(vec![Vec::new()]) };
    let Some(own) = &run.scope_id else {
        return Err(Diagnosis::new(
            Code::RowConflict,
            format!("The rows of this run cannot be told from those of others: rows are scoped by the column {first}, and the run has no scope id."),
        )
        .hint(format!("create runs with --scope-id, or {without}")));
    };
    let now = engine.mark()?;
    // A scope id is text, and the column may hold numbers: both are compared as text.
    let is_own = |scope: &Scope| {
        scope.iter().any(|(column, value)| column.eq_ignore_ascii_case(first) && value.to_string() == *own)
    };
    Ok(now.scopes.into_iter().map(|mark| mark.scope).filter(is_own).collect())
}

/// The detail of a step that failed because of [`refuse_others`]: `--force-files` passes that. Other conflicts of rows stay, whatever is
/// forced.
pub(crate) fn decided_by_force(step: &RollbackStep, error: &Diagnosis) -> Option<StepDetail> {
    if step.kind != StepKind::Data {
        return None;
    }
    // Among the conflicts of rows, only that of `refuse_others` names runs.
    Some(StepDetail { by_force: error.details().contains_key("runs"), ..step.detail.clone() })
}

/// Errors: `row_conflict` when another run worked beside this one since the cut and nothing tells their rows apart.
fn refuse_others(site: &Site<'_, '_>, target: &RewindTarget) -> Result<()> {
    let (run, cut) = (&site.covered.run, site.covered.cut.seq);
    // Without a scope column the run's scope id tells no rows apart.
    let scope = run.scope_id.as_deref().filter(|_| !target.anchor.scope.is_empty());
    let others =
        site.kernel.read(|snapshot| state_marks::runs_beside(snapshot, &run.id, &target.database, scope, cut))?;
    let Some(first) = others.first() else { return Ok(()) };
    let more = match others.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Err(Diagnosis::new(
        Code::RowConflict,
        format!(
            "The run {}{more} uses the same state database, or used it since, and no scope column tells their rows apart. \
             Nothing was changed.",
            first.short()
        ),
    )
    .hint(format!(
        "{}; or remove all newer rows, those of others too: --force-files; a column for `anchor: scope` tells runs apart",
        site.covered.without_data()
    ))
    .detail("runs", others.iter().map(ToString::to_string).collect::<Vec<_>>())
    .detail("database", target.database.to_string_lossy().into_owned()))
}
