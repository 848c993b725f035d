//! Lists of runs: newest first, in pages.

use std::path::Path;

use ic_base::{Result, RunId, Seq};
use ic_store::{Snapshot, containing, path_bytes};

use super::row::{Run, get};

/// Which runs are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// Only runs that have not ended.
    pub open: bool,
    /// Only runs of this project.
    pub project: Option<&'a Path>,
    /// At most so many.
    pub limit: i64,
    /// Only runs older than this one: the last of a page that was listed.
    pub before: Option<&'a RunId>,
}

/// The wanted runs, newest first. Errors: `run_not_found` if `before` does not exist.
pub fn list(snapshot: &Snapshot<'_>, filter: &Filter<'_>) -> Result<Vec<Run>> {
    let before: Seq = match filter.before {
        Some(id) => get(snapshot, id)?.seq,
        None => Seq::MAX,
    };
    let open = if filter.open { "status IN ('active', 'rolling_back') AND" } else { "" };
    let columns = Run::COLUMNS;
    match filter.project {
        Some(project) => snapshot.query_all(
            &format!(
                "SELECT {columns} FROM runs WHERE {open} project_dir = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"
            ),
            &[&path_bytes(project), &before, &filter.limit],
            Run::from_row,
        ),
        None => snapshot.query_all(
            &format!("SELECT {columns} FROM runs WHERE {open} seq < $1 ORDER BY seq DESC LIMIT $2"),
            &[&before, &filter.limit],
            Run::from_row,
        ),
    }
}

/// The newest runs whose goal contains this text, newest first; the case of ASCII letters does not count.
pub fn search(snapshot: &Snapshot<'_>, text: &str, limit: i64) -> Result<Vec<Run>> {
    let sql = format!(
        "SELECT {} FROM runs WHERE seq > 0 AND lower(goal) LIKE $1 ESCAPE '\\' ORDER BY seq DESC LIMIT $2",
        Run::COLUMNS
    );
    snapshot.query_all(&sql, &[&containing(text), &limit], Run::from_row)
}
