//! Lists of runs: newest first, in pages.

use std::path::{Path, PathBuf};

use ic_base::{Result, RunId, Seq, Timestamp};
use ic_ledger::{LedgerRow, Snapshot, containing, path_bytes, path_from_bytes, project_root};

use super::row::{Run, get};

/// Which runs are wanted.
#[derive(Debug, Clone, Copy)]
pub struct RunFilter<'a> {
    /// Only runs that have not ended.
    pub open: bool,
    /// Only runs of this project.
    pub project: Option<&'a Path>,
    /// The most runs that are returned.
    pub limit: i64,
    /// Only runs older than this one: the last of a page that was listed.
    pub before: Option<&'a RunId>,
}

/// The wanted runs, newest first. Errors: `run_not_found` if `before` does not exist.
pub fn list(snapshot: &Snapshot<'_>, filter: &RunFilter<'_>) -> Result<Vec<Run>> {
    let before: Seq = match filter.before {
        Some(id) => get(snapshot, id)?.seq,
        None => Seq::MAX,
    };
    // These are literals and not parameters: SQLite uses the partial indexes of open runs only if the statement itself
    // names their statuses.
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

/// The projects that runs are of, those of the newest runs first.
pub fn projects(snapshot: &Snapshot<'_>) -> Result<Vec<PathBuf>> {
    // One search by the index for each project: to group all rows at once would read all of the index.
    let mut found: Vec<(Seq, PathBuf)> = Vec::new();
    let next = "SELECT project_dir FROM runs WHERE project_dir > $1 ORDER BY project_dir LIMIT 1";
    let mut last: Vec<u8> = Vec::new();
    while let Some(project) = snapshot.query_opt(next, &[&last.as_slice()], |row| row.get::<Vec<u8>>(0))? {
        let newest = "SELECT MAX(seq) FROM runs WHERE project_dir = $1";
        let newest = snapshot.query_opt(newest, &[&project.as_slice()], |row| row.get::<Option<i64>>(0))?;
        found.push((newest.flatten().unwrap_or_default(), path_from_bytes(&project)));
        last = project;
    }
    found.sort_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, project)| project).collect())
}

/// A run of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceRun {
    /// Names the run in commands and events.
    pub id: RunId,
    /// The event that created it.
    pub seq: Seq,
    /// The event of it that was recorded last.
    pub newest: Seq,
    /// When it ended; `None`: it is open.
    pub ended_at: Option<Timestamp>,
}

/// The runs of a root, the one with the newest event first. A work tree below the root is a place of its own. `condition` is SQL of the
/// caller about the run `r`, for what its own tables know of a run: asked run by run, it would be a query each.
pub fn of_place(snapshot: &Snapshot<'_>, root: &Path, condition: &str) -> Result<Vec<PlaceRun>> {
    let sql = |range: &str| {
        format!(
            "SELECT r.project_dir, r.id, r.seq, (SELECT MAX(e.seq) FROM events e WHERE e.run_id = r.id), \
             CASE WHEN r.status NOT IN ('active', 'rolling_back') THEN COALESCE(r.completed_at, r.updated_at) END \
             FROM runs r WHERE {range} AND {condition}"
        )
    };
    let found = |row: &LedgerRow<'_>| {
        let (id, newest) = (RunId::from_ledger(row.get(1)?), row.get::<Option<i64>>(3)?.unwrap_or_default());
        let ended_at = row.get::<Option<i64>>(4)?.map(Timestamp);
        Ok((row.path(0)?, PlaceRun { id, seq: row.get(2)?, newest, ended_at }))
    };
    let own = path_bytes(root);
    let mut runs = snapshot.query_all(&sql("r.project_dir = $1"), &[&own], found)?;
    // '0' is the byte after '/': the range holds whatever lies below the directory.
    // The path of the directory `/` ends with a slash already.
    let stem = own.strip_suffix(b"/").unwrap_or(own);
    let (from, to) = ([stem, b"/"].concat(), [stem, b"0"].concat());
    let below = sql("r.project_dir > $1 AND r.project_dir < $2");
    runs.extend(snapshot.query_all(&below, &[&from.as_slice(), &to.as_slice()], found)?);
    // A directory is looked up in the file system, so the root itself is not asked about.
    runs.retain(|(directory, _)| directory == root || project_root(directory) == root);
    runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.newest));
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

/// The newest runs whose goal contains this text, newest first; the case of ASCII letters does not count.
pub fn search(snapshot: &Snapshot<'_>, text: &str, limit: i64) -> Result<Vec<Run>> {
    // `seq > 0` holds for every row. With it SQLite plans a search by the index, and without it a scan.
    let sql = format!(
        "SELECT {} FROM runs WHERE seq > 0 AND lower(goal) LIKE $1 ESCAPE '\\' ORDER BY seq DESC LIMIT $2",
        Run::COLUMNS
    );
    snapshot.query_all(&sql, &[&containing(text), &limit], Run::from_row)
}
