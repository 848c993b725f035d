//! The tables `dispatch_commits` and `dispatch_files`: what dispatches left in the repository.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use ic_base::{DispatchId, Result, RunId, Seq, Timestamp};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{LedgerRow, Snapshot, Transaction, containing, path_bytes};
use serde_json::json;

use crate::dispatch::Dispatch;
use crate::report::DispatchReport;

/// What recording a report did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedCode {
    /// Commits that were not known of this dispatch.
    pub commits: usize,
    /// Files that were not known of this dispatch (and commit).
    pub files: usize,
    /// Whether the dispatch had been rolled back: the report counts for no gate, but the revert plan knows it.
    pub late: bool,
    /// The event; `None` if everything was known already.
    pub seq: Option<Seq>,
}

/// A commit as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCommit {
    /// The event that recorded it.
    pub seq: Seq,
    /// The dispatch that reported it.
    pub dispatch_id: DispatchId,
    /// The commit's hash, or its first digits, as it was reported.
    pub sha: String,
    /// A commit of the same dispatch, recorded earlier, that came after this one.
    pub before_sha: Option<String>,
    /// Whether it was reported after the dispatch was rolled back.
    pub late: bool,
}

/// A file as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// The event that recorded it.
    pub seq: Seq,
    /// The dispatch that reported it.
    pub dispatch_id: DispatchId,
    /// From the repository's top, as it was reported.
    pub path: PathBuf,
    /// Whether it was reported after the dispatch was rolled back.
    pub late: bool,
}

/// Records what a dispatch reports; what is known of it already is not recorded again. Rolled-back work is recorded anyway, and marked
/// late.
pub fn record(
    tx: &Transaction<'_>,
    now: Timestamp,
    dispatch: &Dispatch,
    report: &DispatchReport,
) -> Result<RecordedCode> {
    let late = dispatch.rolled_back_by.is_some();
    let (commits, files) = news(tx, dispatch, report)?;
    // A hook may report the same log each time: without news there is no event.
    if commits.is_empty() && files.is_empty() {
        return Ok(RecordedCode { commits: 0, files: 0, late, seq: None });
    }
    let event = NewEvent {
        subject_id: Some(dispatch.id.as_str()),
        payload: Some(json!({ "commits": commits.len(), "files": files.len(), "late": late })),
        ..NewEvent::of(&dispatch.run_id, dispatch.epoch, EventType::DispatchRecorded)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    let (run_id, dispatch_id) = (dispatch.run_id.as_str(), dispatch.id.as_str());
    for (ord, (sha, before)) in (0_i64..).zip(&commits) {
        tx.execute_one(
            "INSERT INTO dispatch_commits (seq, ord, run_id, dispatch_id, sha, before_sha, late) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[&seq, &ord, &run_id, &dispatch_id, sha, before, &late],
        )?;
    }
    for (ord, (path, sha)) in (0_i64..).zip(&files) {
        tx.execute_one(
            "INSERT INTO dispatch_files (seq, ord, run_id, dispatch_id, path, commit_sha, late) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[&seq, &ord, &run_id, &dispatch_id, path, sha, &late],
        )?;
    }
    Ok(RecordedCode { commits: commits.len(), files: files.len(), late, seq: Some(seq) })
}

type FileKey<'a> = (&'a [u8], &'a str);
/// A commit, and the next one in its report that was known already.
type NewCommit<'a> = (&'a str, Option<&'a str>);

/// The commits and files of a report that are not known of the dispatch, each once, in the report's order.
fn news<'r>(
    snapshot: &Snapshot<'_>,
    dispatch: &Dispatch,
    report: &'r DispatchReport,
) -> Result<(Vec<NewCommit<'r>>, Vec<FileKey<'r>>)> {
    let id = dispatch.id.as_str();
    let known_commits: HashSet<String> = snapshot
        .query_all("SELECT sha FROM dispatch_commits WHERE dispatch_id = $1", &[&id], |row| row.get(0))?
        .into_iter()
        .collect();
    let known_files: HashSet<(Vec<u8>, String)> = snapshot
        .query_all("SELECT path, commit_sha FROM dispatch_files WHERE dispatch_id = $1", &[&id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .into_iter()
        .collect();
    let mut seen = HashSet::new();
    let mut commits = Vec::new();
    // Known: A C. Reported now: A B C. B is new, and came before C.
    let mut before = None;
    // Newest first: each commit that is new learns the known one that came after it.
    for sha in report.commits.iter().rev().map(|c| c.sha.as_str()) {
        if known_commits.contains(sha) {
            before = Some(sha);
        } else if seen.insert(sha) {
            commits.push((sha, before));
        }
    }
    commits.reverse();
    let mut seen = HashSet::new();
    let of_commits = report.commits.iter().flat_map(|c| c.files.iter().map(|f| (path_bytes(f), c.sha.as_str())));
    let files = of_commits
        .chain(report.files.iter().map(|f| (path_bytes(f), "")))
        .filter(|(path, sha)| !known_files.contains(&(path.to_vec(), (*sha).to_owned())) && seen.insert((*path, *sha)))
        .collect();
    Ok((commits, files))
}

/// The commits of a run that were recorded after `since`, oldest first.
pub fn commits_of_run(snapshot: &Snapshot<'_>, run_id: &RunId, since: Seq) -> Result<Vec<RecordedCommit>> {
    let recorded = snapshot.query_all(
        "SELECT seq, dispatch_id, sha, before_sha, late FROM dispatch_commits \
         WHERE run_id = $1 AND seq > $2 ORDER BY seq, ord",
        &[&run_id.as_str(), &since],
        commit_from_row,
    )?;
    Ok(close_gaps(recorded))
}

/// Puts a commit that a later report found missing before the one that it came before; linear.
fn close_gaps(recorded: Vec<RecordedCommit>) -> Vec<RecordedCommit> {
    type Key = (DispatchId, String);
    // The key is the dispatch and the hash: two dispatches may record the same commit, each in an order of its own.
    let known: HashSet<Key> = recorded.iter().map(|c| (c.dispatch_id.clone(), c.sha.clone())).collect();
    let mut waiting: HashMap<Key, Vec<RecordedCommit>> = HashMap::new();
    let mut in_place = Vec::new();
    for commit in recorded {
        let before = commit.before_sha.clone().map(|sha| (commit.dispatch_id.clone(), sha));
        // The commit that it came before may lie outside of what was asked for.
        match before.filter(|before| known.contains(before)) {
            Some(before) => waiting.entry(before).or_default().push(commit),
            None => in_place.push(commit),
        }
    }
    let mut ordered = Vec::with_capacity(known.len());
    // Depth first, without recursion: a commit stands once those that wait for it do.
    let mut stack: Vec<RecordedCommit> = in_place.into_iter().rev().collect();
    // This ends: `before_sha` names a commit that an earlier event recorded, so there is no circle.
    while let Some(commit) = stack.pop() {
        match waiting.remove(&(commit.dispatch_id.clone(), commit.sha.clone())) {
            Some(earlier) => {
                stack.push(commit);
                stack.extend(earlier.into_iter().rev());
            }
            None => ordered.push(commit),
        }
    }
    ordered
}

/// Takes the paths out of the files that event `seq` of a run recorded.
pub fn redact(tx: &Transaction<'_>, run_id: &RunId, seq: Seq) -> Result<()> {
    // Row by row: each database has its own way to turn text into bytes.
    let ords = tx.query_all(
        "SELECT DISTINCT ord FROM dispatch_files WHERE run_id = $1 AND seq = $2",
        &[&run_id.as_str(), &seq],
        |row| row.get::<i64>(0),
    )?;
    for ord in ords {
        // The paths are numbered: the path is part of the primary key, and two files of one commit must not become the
        // same.
        let path = format!("[redacted] {seq}-{ord}").into_bytes();
        tx.execute(
            "UPDATE dispatch_files SET path = $1 WHERE run_id = $2 AND seq = $3 AND ord = $4",
            &[&path, &run_id.as_str(), &seq, &ord],
        )?;
    }
    Ok(())
}

/// The files of a run that were recorded after `since`, in the order of recording.
pub fn files_of_run(snapshot: &Snapshot<'_>, run_id: &RunId, since: Seq) -> Result<Vec<RecordedFile>> {
    snapshot.query_all(
        "SELECT seq, dispatch_id, path, late FROM dispatch_files WHERE run_id = $1 AND seq > $2 ORDER BY seq, ord",
        &[&run_id.as_str(), &since],
        file_from_row,
    )
}

/// The dispatches of a run that stand and recorded a commit or a file after `since`.
pub fn recorders_since(snapshot: &Snapshot<'_>, run_id: &RunId, since: Seq) -> Result<Vec<DispatchId>> {
    snapshot.query_all(
        "SELECT id FROM dispatches WHERE run_id = $1 AND rolled_back_by IS NULL AND id IN (\
         SELECT dispatch_id FROM dispatch_commits WHERE run_id = $1 AND seq > $2 \
         UNION ALL SELECT dispatch_id FROM dispatch_files WHERE run_id = $1 AND seq > $2)",
        &[&run_id.as_str(), &since],
        |row| Ok(DispatchId::from_ledger(row.get(0)?)),
    )
}

/// The paths that runs other than these recorded after `since`, each with its run and that run's project. What rolled-back work recorded
/// belongs to no run, unless it was recorded before the cut of that rollback.
pub fn files_of_others(snapshot: &Snapshot<'_>, own: &[RunId], since: Seq) -> Result<Vec<(PathBuf, RunId, PathBuf)>> {
    let mut files = snapshot.query_all(
        "SELECT f.path, f.run_id, r.project_dir FROM dispatch_files f JOIN runs r ON r.id = f.run_id \
         JOIN dispatches d ON d.id = f.dispatch_id LEFT JOIN rollbacks b ON b.id = d.rolled_back_by \
         WHERE f.seq > $1 AND (b.id IS NULL OR f.seq <= b.cut_seq) ORDER BY f.seq, f.ord",
        &[&since],
        |row| Ok((row.path(0)?, RunId::from_ledger(row.get(1)?), row.path(2)?)),
    )?;
    files.retain(|(_, run, _)| !own.contains(run));
    Ok(files)
}

/// Those of these commits (full hashes) that other runs than these recorded, each with its run.
///
/// What rolled-back work recorded belongs to no run, unless it was recorded before the cut of that rollback: the same commit, made again,
/// belongs only to the run that made it again. An undo of that rollback unmarks the work, and the commit is the first run's again.
pub fn commits_of_others(snapshot: &Snapshot<'_>, own: &[RunId], commits: &[String]) -> Result<Vec<(String, RunId)>> {
    let mut found = Vec::new();
    for commit in commits {
        let mut recorded = recorders_of(snapshot, commit)?.into_iter();
        let foreign = recorded.find(|(_, run, is_undone)| !is_undone && !own.contains(run));
        found.extend(foreign.map(|(_, run, _)| (commit.clone(), run)));
    }
    Ok(found)
}

/// The commits of one dispatch, oldest first.
pub fn commits_of(snapshot: &Snapshot<'_>, id: &DispatchId) -> Result<Vec<RecordedCommit>> {
    let mut commits = snapshot.query_all(
        "SELECT seq, dispatch_id, sha, before_sha, late, ord FROM dispatch_commits WHERE dispatch_id = $1",
        &[&id.as_str()],
        |row| Ok((row.get::<i64>(5)?, commit_from_row(row)?)),
    )?;
    // The primary key has them by hash; the order of recording is made here.
    commits.sort_by_key(|(ord, commit)| (commit.seq, *ord));
    Ok(close_gaps(commits.into_iter().map(|(_, commit)| commit).collect()))
}

/// The files of one dispatch, in the order of recording, each once.
pub fn files_of(snapshot: &Snapshot<'_>, id: &DispatchId) -> Result<Vec<RecordedFile>> {
    let mut files = snapshot.query_all(
        "SELECT seq, dispatch_id, path, late, ord FROM dispatch_files WHERE dispatch_id = $1",
        &[&id.as_str()],
        |row| Ok((row.get::<i64>(4)?, file_from_row(row)?)),
    )?;
    files.sort_by_key(|(ord, file)| (file.seq, *ord));
    let mut seen = HashSet::new();
    Ok(files.into_iter().map(|(_, file)| file).filter(|file| seen.insert(file.path.clone())).collect())
}

/// A path that a dispatch named as its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The dispatch that recorded it.
    pub dispatch_id: DispatchId,
    /// From the repository's top.
    pub path: PathBuf,
    /// Whether a commit has it; else it was named by itself.
    pub is_of_commit: bool,
}

/// What each of these dispatches named as its own before it was rolled back.
pub fn named_by<'d>(
    snapshot: &Snapshot<'_>,
    dispatches: impl Iterator<Item = &'d DispatchId>,
) -> Result<Vec<NamedFile>> {
    let sql = "SELECT path, commit_sha FROM dispatch_files WHERE dispatch_id = $1 AND late = $2 AND seq > 0";
    let mut named = Vec::new();
    for id in dispatches {
        named.extend(snapshot.query_all(sql, &[&id.as_str(), &false], |row| {
            Ok(NamedFile {
                dispatch_id: id.clone(),
                path: row.path(0)?,
                is_of_commit: !row.get::<String>(1)?.is_empty(),
            })
        })?);
    }
    Ok(named)
}

/// The files recorded last whose path contains this text, newest first, each time that one was recorded. The case of ASCII letters does not
/// count; a path that is not UTF-8 is looked at up to where it is not.
pub fn search_files(snapshot: &Snapshot<'_>, text: &str, limit: i64) -> Result<Vec<RecordedFile>> {
    snapshot.query_all(
        "SELECT seq, dispatch_id, path, late FROM dispatch_files WHERE seq > 0 \
         AND lower(CAST(path AS TEXT)) LIKE $1 ESCAPE '\\' ORDER BY seq DESC, ord LIMIT $2",
        &[&containing(text), &limit],
        file_from_row,
    )
}

fn commit_from_row(row: &LedgerRow<'_>) -> Result<RecordedCommit> {
    Ok(RecordedCommit {
        seq: row.get(0)?,
        dispatch_id: DispatchId::from_ledger(row.get(1)?),
        sha: row.get(2)?,
        before_sha: row.get(3)?,
        late: row.get(4)?,
    })
}

fn file_from_row(row: &LedgerRow<'_>) -> Result<RecordedFile> {
    Ok(RecordedFile {
        seq: row.get(0)?,
        dispatch_id: DispatchId::from_ledger(row.get(1)?),
        path: row.path(2)?,
        late: row.get(3)?,
    })
}

/// The dispatch that recorded a commit (a full hash), and is not rolled back; the newest of several.
pub fn maker_of(snapshot: &Snapshot<'_>, commit: &str) -> Result<Option<DispatchId>> {
    let recorded = recorders_of(snapshot, commit)?;
    Ok(recorded.into_iter().rev().find(|(.., is_undone)| !is_undone).map(|(id, ..)| id))
}

/// Whether a dispatch recorded a commit (a full hash), whatever became of it since.
pub fn is_recorded(snapshot: &Snapshot<'_>, commit: &str) -> Result<bool> {
    Ok(!recorders_of(snapshot, commit)?.is_empty())
}

/// The dispatches that recorded a commit, oldest first, with their runs, and whether each was rolled back.
fn recorders_of(snapshot: &Snapshot<'_>, commit: &str) -> Result<Vec<(DispatchId, RunId, bool)>> {
    // A commit may have been recorded by its first digits alone: at least seven, which `parse_sha` demands.
    let shortest = commit.get(..7).unwrap_or(commit);
    // The range goes from the shortest form to the whole hash: it has all abbreviations of the hash, and little else.
    let mut recorded = snapshot.query_all(
        "SELECT c.sha, c.dispatch_id, c.run_id, b.id IS NOT NULL AND c.seq > b.cut_seq FROM dispatch_commits c \
         JOIN dispatches d ON d.id = c.dispatch_id LEFT JOIN rollbacks b ON b.id = d.rolled_back_by \
         WHERE c.sha >= $1 AND c.sha <= $2 ORDER BY c.seq, c.ord",
        &[&shortest, &commit],
        |row| {
            let maker = (DispatchId::from_ledger(row.get(1)?), RunId::from_ledger(row.get(2)?), row.get(3)?);
            Ok((row.get::<String>(0)?, maker))
        },
    )?;
    recorded.retain(|(sha, _)| commit.starts_with(sha.as_str()));
    Ok(recorded.into_iter().map(|(_, maker)| maker).collect())
}

#[cfg(test)]
mod tests {
    use ic_base::DispatchId;

    use super::{RecordedCommit, close_gaps};

    #[test]
    fn a_gap_that_a_later_report_closes_is_closed_in_place() {
        let commit = |seq, sha: &str, before: Option<&str>| RecordedCommit {
            seq,
            dispatch_id: DispatchId::from_ledger("d".to_owned()),
            sha: sha.to_owned(),
            before_sha: before.map(str::to_owned),
            late: false,
        };
        // First b alone; then the whole story: x a b c.
        let recorded =
            vec![commit(1, "b", None), commit(2, "x", Some("b")), commit(2, "a", Some("b")), commit(2, "c", None)];
        let shas: Vec<String> = close_gaps(recorded).into_iter().map(|c| c.sha).collect();
        assert_eq!(shas, ["x", "a", "b", "c"]);
        // What it came before was recorded before the cut: the order of recording stands.
        let recorded = vec![commit(2, "a", Some("gone")), commit(2, "c", None)];
        let shas: Vec<String> = close_gaps(recorded).into_iter().map(|c| c.sha).collect();
        assert_eq!(shas, ["a", "c"]);
    }
}
