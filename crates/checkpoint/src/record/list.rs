//! Finding checkpoints. Each statement has an index; a test reads the plans.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Result, RunId, Seq};
use ic_ledger::{Param, Snapshot, path_bytes, path_from_bytes};

use super::{CheckpointLink, CheckpointRecord};

/// Which checkpoints are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckpointFilter<'a> {
    /// Only those of this root.
    pub root: Option<&'a Path>,
    /// Only those of this run.
    pub run_id: Option<&'a RunId>,
    /// Only those of this conversation.
    pub conversation: Option<&'a str>,
    /// Only those of this workflow.
    pub workflow: Option<&'a str>,
    /// Those that were pruned too.
    pub pruned: bool,
    /// Those of tool calls too.
    pub calls: bool,
}

/// Gives the wanted checkpoints to `visit`, oldest first, until it breaks.
pub fn list(
    snapshot: &Snapshot<'_>,
    filter: CheckpointFilter<'_>,
    mut visit: impl FnMut(CheckpointRecord) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let pruned = if filter.pruned { "" } else { "AND pruned_at IS NULL" };
    let calls = if filter.calls { "" } else { "AND of_call = 0" };
    let columns = CheckpointRecord::COLUMNS;
    let root = filter.root.map(path_bytes);
    let run_id = filter.run_id.map(RunId::as_str);
    // The narrowest column leads, so that its index is used; the rest are looked at row by row.
    let (column, key): (&str, Param<'_>) = match (&run_id, &filter.conversation, &filter.workflow) {
        (Some(id), ..) => ("run_id", id),
        (None, Some(conversation), _) => ("conversation", conversation),
        (None, None, Some(workflow)) => ("workflow", workflow),
        // Without a root, this finds nothing: `root = NULL` is true of no row.
        (None, None, None) => ("root", &root),
    };
    // A filter that was not given is NULL, and excludes no row.
    let sql = format!(
        "SELECT {columns} FROM checkpoints WHERE {column} = $1 AND ($2 IS NULL OR root = $2) \
         AND ($3 IS NULL OR conversation = $3) AND ($4 IS NULL OR workflow = $4) {pruned} {calls} ORDER BY seq"
    );
    snapshot.each(&sql, &[key, &root, &filter.conversation, &filter.workflow], |row| {
        visit(CheckpointRecord::from_row(row)?)
    })
}

fn first(snapshot: &Snapshot<'_>, condition: &str, params: &[Param<'_>]) -> Result<Option<CheckpointRecord>> {
    let sql =
        format!("SELECT {} FROM checkpoints WHERE {condition} ORDER BY seq DESC LIMIT 1", CheckpointRecord::COLUMNS);
    snapshot.query_opt(&sql, params, CheckpointRecord::from_row)
}

/// All checkpoints that satisfy a condition, which ends with their order.
fn all(snapshot: &Snapshot<'_>, condition: &str, params: &[Param<'_>]) -> Result<Vec<CheckpointRecord>> {
    let sql = format!("SELECT {} FROM checkpoints WHERE {condition}", CheckpointRecord::COLUMNS);
    snapshot.query_all(&sql, params, CheckpointRecord::from_row)
}

/// The first of them, at most `at_most`.
fn some(
    snapshot: &Snapshot<'_>,
    condition: &str,
    params: &[Param<'_>],
    at_most: usize,
) -> Result<Vec<CheckpointRecord>> {
    let condition = format!("{condition} LIMIT ${}", params.len() + 1);
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    all(snapshot, &condition, &[params, &[&at_most]].concat())
}

/// The newest checkpoint of the same conversation, else of the same run, else among those of the root that have neither:
/// the parent of the next one. Those of tool calls lie beside the line: what a step changed is told by its whole.
pub fn latest_of_lineage(
    snapshot: &Snapshot<'_>,
    root: &Path,
    link: &CheckpointLink,
) -> Result<Option<CheckpointRecord>> {
    let root = path_bytes(root);
    match (&link.conversation, &link.run_id) {
        (Some(conversation), _) => {
            first(snapshot, "conversation = $1 AND root = $2 AND pruned_at IS NULL", &[conversation, &root])
        }
        // A checkpoint that also has a conversation is in the lineage of the conversation.
        (None, Some(run)) => first(
            snapshot,
            "run_id = $1 AND root = $2 AND conversation IS NULL AND pruned_at IS NULL AND of_call = 0",
            &[&run.as_str(), &root],
        ),
        (None, None) => {
            first(snapshot, "root = $1 AND conversation IS NULL AND run_id IS NULL AND pruned_at IS NULL", &[&root])
        }
    }
}

/// The newest checkpoint of a root, of whatever line, that is of no tool call: it has git's state, too.
pub fn newest_of_root(snapshot: &Snapshot<'_>, root: &Path) -> Result<Option<CheckpointRecord>> {
    first(snapshot, "root = $1 AND pruned_at IS NULL AND of_call = 0", &[&path_bytes(root)])
}

/// The newest look at the tree of a root, those of tool calls too.
pub fn newest_look(snapshot: &Snapshot<'_>, root: &Path) -> Result<Option<CheckpointRecord>> {
    first(snapshot, "root = $1 AND pruned_at IS NULL", &[&path_bytes(root)])
}

/// The newest checkpoint of a root that was taken before the event `until`.
pub fn newest_of_root_until(snapshot: &Snapshot<'_>, root: &Path, until: Seq) -> Result<Option<CheckpointRecord>> {
    first(snapshot, "root = $1 AND seq < $2 AND pruned_at IS NULL", &[&path_bytes(root), &until])
}

/// The newest checkpoint of a root that work left, rather than a restore, and that is of no tool call.
pub fn newest_of_work(snapshot: &Snapshot<'_>, root: &Path) -> Result<Option<CheckpointRecord>> {
    let which = "root = $1 AND kind IN ('manual', 'auto') AND pruned_at IS NULL AND of_call = 0";
    first(snapshot, which, &[&path_bytes(root)])
}

/// The newest checkpoint of a root that work left, rather than a restore, before the event `until`. Those of tool calls count, too.
pub fn newest_of_work_until(snapshot: &Snapshot<'_>, root: &Path, until: Seq) -> Result<Option<CheckpointRecord>> {
    let which = "root = $1 AND kind IN ('manual', 'auto') AND seq < $2 AND pruned_at IS NULL";
    first(snapshot, which, &[&path_bytes(root), &until])
}

/// The newest checkpoint of a root with this name.
pub fn named(snapshot: &Snapshot<'_>, root: &Path, name: &str) -> Result<Option<CheckpointRecord>> {
    first(snapshot, "root = $1 AND name = $2 AND pruned_at IS NULL", &[&path_bytes(root), &name])
}

/// The checkpoint that the event `seq` took.
pub fn of_advance(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<CheckpointRecord>> {
    let sql = format!("SELECT {} FROM checkpoints WHERE advance_seq = $1 LIMIT 1", CheckpointRecord::COLUMNS);
    snapshot.query_opt(&sql, &[&seq], CheckpointRecord::from_row)
}

/// The checkpoint that the event `seq` recorded.
pub fn of_event(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<CheckpointRecord>> {
    let sql = format!("SELECT {} FROM checkpoints WHERE seq = $1", CheckpointRecord::COLUMNS);
    snapshot.query_opt(&sql, &[&seq], CheckpointRecord::from_row)
}

/// The newest checkpoint of a run with this name.
pub fn of_run_named(snapshot: &Snapshot<'_>, run: &RunId, name: &str) -> Result<Option<CheckpointRecord>> {
    first(snapshot, "run_id = $1 AND name = $2", &[&run.as_str(), &name])
}

/// The newest kept checkpoint of a root after an event that was made by hand and belongs to no run.
pub fn newest_by_hand(snapshot: &Snapshot<'_>, root: &Path, since: Seq) -> Result<Option<CheckpointRecord>> {
    let condition = "root = $1 AND seq > $2 AND run_id IS NULL AND kind = 'manual' AND pruned_at IS NULL";
    first(snapshot, condition, &[&path_bytes(root), &since])
}

/// The newest kept checkpoints of a root between two events that were made by hand and belong to no run, newest first.
pub fn by_hand_between(
    snapshot: &Snapshot<'_>,
    root: &Path,
    (after, before): (Seq, Seq),
    at_most: usize,
) -> Result<Vec<CheckpointRecord>> {
    let condition = "root = $1 AND seq > $2 AND seq < $3 AND run_id IS NULL AND kind = 'manual' \
                     AND pruned_at IS NULL ORDER BY seq DESC";
    some(snapshot, condition, &[&path_bytes(root), &after, &before], at_most)
}

/// The newest checkpoints of a run that a person asked for, from before the event `before`, newest first, pruned ones too.
pub fn manual_of_run(
    snapshot: &Snapshot<'_>,
    run: &RunId,
    before: Seq,
    at_most: usize,
) -> Result<Vec<CheckpointRecord>> {
    let condition = "run_id = $1 AND kind = 'manual' AND seq < $2 ORDER BY seq DESC";
    some(snapshot, condition, &[&run.as_str(), &before], at_most)
}

/// The oldest of them at the event `from` or after it, oldest first.
pub fn manual_of_run_since(
    snapshot: &Snapshot<'_>,
    run: &RunId,
    from: Seq,
    at_most: usize,
) -> Result<Vec<CheckpointRecord>> {
    let condition = "run_id = $1 AND kind = 'manual' AND seq >= $2 ORDER BY seq";
    some(snapshot, condition, &[&run.as_str(), &from], at_most)
}

/// The kept checkpoints of a root from one event to another, both included, oldest first.
pub fn of_root_between(snapshot: &Snapshot<'_>, root: &Path, from: Seq, to: Seq) -> Result<Vec<CheckpointRecord>> {
    let condition = "root = $1 AND seq >= $2 AND seq <= $3 AND pruned_at IS NULL ORDER BY seq";
    all(snapshot, condition, &[&path_bytes(root), &from, &to])
}

/// The newest kept checkpoints of a root between two events that show another tree than the one before them, newest first: those of tool
/// calls, and what restores left, are not among them.
pub fn changed_between(
    snapshot: &Snapshot<'_>,
    root: &Path,
    (after, before): (Seq, Seq),
    at_most: usize,
) -> Result<Vec<CheckpointRecord>> {
    // The tree before each is one search by the index, so rows that show no change are not read into memory.
    let condition = "root = $1 AND seq > $2 AND seq < $3 AND of_call = 0 AND kind <> 'restored' \
                     AND pruned_at IS NULL AND tree <> (SELECT earlier.tree FROM checkpoints AS earlier \
                     WHERE earlier.root = $1 AND earlier.seq < checkpoints.seq AND earlier.pruned_at IS NULL \
                     ORDER BY earlier.seq DESC LIMIT 1) ORDER BY seq DESC";
    some(snapshot, condition, &[&path_bytes(root), &after, &before], at_most)
}

/// The first kept checkpoint of a root at an event or after it.
pub fn look_since(snapshot: &Snapshot<'_>, root: &Path, since: Seq) -> Result<Option<CheckpointRecord>> {
    let sql = format!(
        "SELECT {} FROM checkpoints WHERE root = $1 AND seq >= $2 AND pruned_at IS NULL ORDER BY seq LIMIT 1",
        CheckpointRecord::COLUMNS
    );
    snapshot.query_opt(&sql, &[&path_bytes(root), &since], CheckpointRecord::from_row)
}

/// Every checkpoint whose content is kept, of every root, oldest first.
pub fn all_kept(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointRecord>> {
    all(snapshot, "pruned_at IS NULL ORDER BY seq", &[])
}

/// Every root that has kept checkpoints, and how many.
pub fn roots(snapshot: &Snapshot<'_>) -> Result<Vec<(PathBuf, usize)>> {
    // One search by the index for each root: counting all rows at once would read all of the table.
    let mut found = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    let next = "SELECT root FROM checkpoints WHERE root > $1 ORDER BY root LIMIT 1";
    while let Some(root) = snapshot.query_opt(next, &[&last.as_slice()], |row| row.get::<Vec<u8>>(0))? {
        let counted = "SELECT COUNT(*) FROM checkpoints WHERE root = $1 AND pruned_at IS NULL";
        let count = snapshot.query_opt(counted, &[&root.as_slice()], |row| row.get::<i64>(0))?;
        // If all checkpoints of a root are pruned, it has rows, but none to count.
        if let Some(count) = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0) {
            found.push((path_from_bytes(&root), count));
        }
        last = root;
    }
    Ok(found)
}

/// The kept ones of all roots, oldest first, at most `at_most`.
pub fn oldest_kept(snapshot: &Snapshot<'_>, at_most: usize) -> Result<Vec<CheckpointRecord>> {
    // From the first seq on: a search by the index, which ends at the limit.
    some(snapshot, "pruned_at IS NULL AND seq > 0 ORDER BY seq", &[], at_most)
}

/// The checkpoints that unfinished runs took when they moved or began.
pub fn of_unfinished_runs(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointId>> {
    snapshot.query_all(
        "SELECT c.id FROM runs r JOIN checkpoints c ON c.run_id = r.id \
         WHERE r.status IN ('active', 'rolling_back') AND c.advance_seq IS NOT NULL AND c.pruned_at IS NULL",
        &[],
        |row| row.get(0).map(CheckpointId::from_ledger),
    )
}

/// The checkpoints that follow this one, oldest first.
pub fn children(snapshot: &Snapshot<'_>, id: &CheckpointId) -> Result<Vec<CheckpointRecord>> {
    all(snapshot, "parent_id = $1 AND pruned_at IS NULL ORDER BY seq", &[&id.as_str()])
}
