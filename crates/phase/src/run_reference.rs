//! Which run a caller means: an id, the end of one, `@`, or `scope:NAME`.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_ledger::{Snapshot, reference};

use crate::run::{self, Run, RunFilter};

/// Where the caller stands: what `@` is looked for in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectScope {
    /// The working directory, absolute and without links.
    pub directory: PathBuf,
    /// The project's root; `directory` is in it.
    pub root: PathBuf,
}

/// How an open run stands to a caller who names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStanding {
    /// It is at work, or waits for a decision.
    Busy,
    /// No agent or executor works in it, and it is open only so that it can be resumed.
    Idle,
    /// It was created in another clone, whose directory has the same path.
    OfAnotherSeat,
}

/// How an open run stands to the caller; of the only one of its directory it does not matter whether it is idle (`is_only`).
pub type StandingOf<'i> = &'i dyn Fn(&Snapshot<'_>, &Run, bool) -> Result<RunStanding>;

/// The run that `text` names. Errors: `run_not_found`, `ambiguous_run`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str, project: &ProjectScope, standing: StandingOf<'_>) -> Result<Run> {
    if text == "@" {
        if let Some(run) = current(snapshot, project, standing)? {
            return Ok(run);
        }
        let other = "create one: ic run create --goal TEXT, or name one: ic run list";
        let hint = moved_from(snapshot)?.unwrap_or_else(|| other.to_owned());
        let message = format!("{} has no active run.", project.root.display());
        return Err(Diagnosis::new(Code::RunNotFound, message).hint(hint));
    }
    match text.strip_prefix("scope:") {
        Some(scope) => of_scope(snapshot, scope),
        None => by_id(snapshot, text),
    }
}

/// The run with this id, or with an id that ends so. Errors: `run_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn by_id(snapshot: &Snapshot<'_>, text: &str) -> Result<Run> {
    reference::find(snapshot, run::REFERENT, Run::COLUMNS, text, Run::from_row)
}

/// The only open run of the nearest directory that has one, from the working directory up to the project's root. Idle ones make it
/// ambiguous only where no other is open.
///
/// `None` if there is none. Errors: `ambiguous_run`, listing them.
pub fn current(snapshot: &Snapshot<'_>, project: &ProjectScope, standing: StandingOf<'_>) -> Result<Option<Run>> {
    for level in project.directory.ancestors() {
        if let Some(run) = only_open_run_of(snapshot, level, standing)? {
            return Ok(Some(run));
        }
        // Runs above the root belong to other projects.
        if level == project.root {
            break;
        }
    }
    Ok(None)
}

/// As [`current`], of exactly this project directory. Errors: `ambiguous_run`, listing them.
pub fn only_open_run_of(snapshot: &Snapshot<'_>, directory: &Path, standing: StandingOf<'_>) -> Result<Option<Run>> {
    const PAGE: u8 = 10;
    let filter = RunFilter { open: true, project: Some(directory), limit: PAGE.into(), before: None };
    // A page at a time: a project may have hundreds of idle runs, and two that are busy are enough to be ambiguous.
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    let mut page = run::list(snapshot, &filter)?;
    // The first page alone tells: before a run of a later page there are at least ten others.
    let is_only = page.len() == 1;
    while busy.len() < 2 {
        for run in &page {
            match standing(snapshot, run, is_only)? {
                RunStanding::Busy => busy.push(run.clone()),
                RunStanding::Idle => idle.push(run.clone()),
                RunStanding::OfAnotherSeat => {}
            }
        }
        // A page that is not full is the last one.
        let Some(last) = page.last().map(|run| run.id.clone()).filter(|_| page.len() == usize::from(PAGE)) else {
            break;
        };
        page = run::list(snapshot, &RunFilter { before: Some(&last), ..filter })?;
    }
    // All are idle: then the caller has to choose among them.
    let runs = if busy.is_empty() { idle } else { busy };
    at_most_one(runs, || format!("{} has several active runs", directory.display()))
}

/// A hint for a project without a run, where the newest run of the ledger belongs to a directory that is gone. Runs name their project by
/// its path, so the runs of a project that was moved are not found. `None`: that directory exists.
pub fn moved_from(snapshot: &Snapshot<'_>) -> Result<Option<String>> {
    let filter = RunFilter { open: false, project: None, limit: 1, before: None };
    let newest = run::list(snapshot, &filter)?.pop();
    let gone = newest.map(|run| run.project_dir).filter(|directory| !directory.exists());
    Ok(gone.map(|directory| {
        let directory = shell_word(&directory.to_string_lossy());
        format!(
            "the newest run of this ledger is of {directory}, which is not there: if the project was moved, move it back to undo runs \
             (ic run list --project {directory}), or restore files here: ic checkpoint list --root {directory}, then \
             ic checkpoint restore ID --into --yes"
        )
    }))
}

/// The newest open run of a project under a scope.
pub fn open_of_scope(snapshot: &Snapshot<'_>, scope: &str, project: &Path) -> Result<Option<Run>> {
    let sql = format!(
        "SELECT {} FROM runs WHERE scope_id = $1 AND status IN ('active', 'rolling_back') ORDER BY seq DESC",
        Run::COLUMNS
    );
    let open = snapshot.query_all(&sql, &[&scope], Run::from_row)?;
    // Paths are compared here and not in the statement, which searches by scope.
    Ok(open.into_iter().find(|run| run.project_dir == project))
}

/// The only open run of a scope; if none is open, the newest that ended.
fn of_scope(snapshot: &Snapshot<'_>, scope: &str) -> Result<Run> {
    let columns = Run::COLUMNS;
    // Ten are enough to show that the scope is ambiguous; all that are read are listed in the error.
    let open = snapshot.query_all(
        &format!(
            "SELECT {columns} FROM runs WHERE scope_id = $1 AND status IN ('active', 'rolling_back') \
             ORDER BY seq DESC LIMIT 10"
        ),
        &[&scope],
        Run::from_row,
    )?;
    if let Some(run) = at_most_one(open, || format!("The scope {scope:?} has several active runs"))? {
        return Ok(run);
    }
    snapshot
        .query_opt(
            &format!("SELECT {columns} FROM runs WHERE scope_id = $1 ORDER BY seq DESC LIMIT 1"),
            &[&scope],
            Run::from_row,
        )?
        .ok_or_else(|| {
            Diagnosis::new(Code::RunNotFound, format!("No run has the scope {scope:?}."))
                .hint("see: ic run list")
                .detail("scope_id", scope)
        })
}

fn at_most_one(mut runs: Vec<Run>, what: impl FnOnce() -> String) -> Result<Option<Run>> {
    if runs.len() <= 1 {
        return Ok(runs.pop());
    }
    let listed: Vec<String> = runs.iter().map(|r| format!("{} ({}, {})", r.id.short(), r.phase, r.goal)).collect();
    let ids: Vec<&str> = runs.iter().map(|r| r.id.as_str()).collect();
    Err(Diagnosis::new(Code::AmbiguousRun, format!("{}: {}.", what(), listed.join(", ")))
        .hint("name one by the last digits of its id")
        .detail("run_ids", ids))
}
