//! The commits that a tool call made, as git's log of HEAD has them. If the log does not show it, the call's commit is the one checked out
//! at its end, where that differs from its beginning.
//!
//! A call's commits are recorded as it ends, so that each of several agents in one repository has its own. What a switch of branches or a
//! pull brought was made by others: if there is no log, the branches are known from the checkpoint before the prompt. What was committed
//! outside of calls, by a person or by a process left running, is recorded for no work, and an undo asks before it takes such a commit off
//! its branch.

use std::path::Path;

use ic_base::{Result, Timestamp};
use ic_checkpoint::git;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record;
use ic_dispatch::code;
use ic_dispatch::dispatch::{self, Dispatch};
use ic_dispatch::report::{self, DispatchReport};
use ic_kernel::Kernel;
use ic_ledger::{OpenOptions, Snapshot, Transaction};
use ic_phase::{point, run};
use ic_session::{Prompt, ToolCall, call};
use ic_worktree::{look_into_store, root_of};

/// From where on commits belong to a piece of work.
pub(crate) struct Since {
    /// The commit that was checked out then; `None`: there was none.
    pub(crate) head: Option<String>,
    /// When the commit was looked up.
    pub(crate) at: Timestamp,
    /// How long git's log of HEAD was then, in bytes.
    log_start: Option<u64>,
}

impl Since {
    /// From the beginning of a call on.
    pub(crate) fn call(call: &ToolCall) -> Self {
        Self { head: call.head.clone(), at: call.created_at, log_start: call.head_log_start }
    }
}

/// Where the commits begin that work may have made and that are not recorded yet: at the first of its calls whose end was not told. Work
/// whose calls found no commit checked out has all since its prompt. Work that was undone ended with that: what was committed since is none
/// of its.
pub(crate) fn unrecorded(snapshot: &Snapshot<'_>, work: &Dispatch, prompt: &Prompt) -> Result<Option<Since>> {
    if work.rolled_back_by.is_some() {
        return Ok(None);
    }
    let calls = call::of_dispatch(snapshot, &work.id)?;
    if !calls.is_empty() && calls.iter().all(|call| call.head.is_none()) {
        return Ok(Some(Since { head: prompt.head.clone(), at: prompt.created_at, log_start: None }));
    }
    Ok(calls.iter().find(|call| call.finished_at.is_none()).map(Since::call))
}

/// Whether a call may make commits, as far as it says what it does. A tool that names files makes none, and a redacted line says nothing.
fn may_commit(call: &ToolCall) -> bool {
    call.paths.is_empty() && call.line.as_deref().is_none_or(|line| line.contains("git"))
}

/// Whether what was committed during a call belongs to another that still runs in this root: that one speaks of git, and this one does not.
/// The other one records it as it ends.
pub(crate) fn may_be_of_another(snapshot: &Snapshot<'_>, call: &ToolCall, root: &Path) -> Result<bool> {
    /// No call that is older still runs: its client was killed.
    const LONGEST: i64 = 24 * 60 * 60 * 1000;
    if may_commit(call) {
        return Ok(false);
    }
    let since = Timestamp(call.created_at.millis().saturating_sub(LONGEST));
    for other in call::not_told_of_end(snapshot, since)? {
        if other.ended_seq.is_none() && other.dispatch_id != call.dispatch_id && may_commit(&other) {
            let work = dispatch::get(snapshot, &other.dispatch_id)?;
            if root_of(&run::get(snapshot, &work.run_id)?.project_dir) == root {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// As [`unrecorded`], of work that a person stopped: what was committed since is its own only where the call that was cut off speaks of
/// git.
pub(crate) fn unrecorded_by_interrupted(
    snapshot: &Snapshot<'_>,
    work: &Dispatch,
    prompt: &Prompt,
) -> Result<Option<Since>> {
    let calls = call::of_dispatch(snapshot, &work.id)?;
    // A call without a line may have committed as well as any other.
    let speaks_of_git = |call: &ToolCall| call.line.as_deref().is_none_or(|line| line.contains("git"));
    let cut_off = calls.iter().filter(|call| call.finished_at.is_none());
    if cut_off.clone().count() > 0 && !cut_off.clone().any(speaks_of_git) {
        return Ok(None);
    }
    unrecorded(snapshot, work, prompt)
}

/// What was committed in a project since then, and is not from elsewhere. What git does not say is not known.
pub(crate) fn made(kernel: &Kernel, root: &Path, prompt: &Prompt, since: &Since) -> DispatchReport {
    // The log of HEAD names exactly what was committed here. It is preferred to the graph, which also shows what was fetched.
    if let Some(shas) = since.log_start.and_then(|start| git::committed_since(root, start)) {
        let log = git::log_of(root, &shas).unwrap_or_default();
        return report::parse(&log).unwrap_or_default();
    }
    // Without a log: HEAD has not moved, so nothing can have been committed on it.
    if git::head(root) == since.head {
        return DispatchReport::default();
    }
    // Where the look is lost, what a switch brought may count as the work's: the record has more rather than less.
    let known = branches_before(kernel, prompt).unwrap_or_default();
    let log = git::log_since(root, since.head.as_deref(), &known).unwrap_or_default();
    let mut found = report::parse(&log).unwrap_or_default();
    // Without the log, a commit that came with a fetch looks like one that was made here.
    if !found.commits.is_empty() {
        let fetched = git::fetched_before(root, since.at.millis() / 1000, &known).unwrap_or_default();
        found.commits.retain(|commit| !fetched.contains(&commit.sha));
    }
    found
}

/// Records commits for work, but for those that are on record as the work of others.
pub(crate) fn record(tx: &Transaction<'_>, now: Timestamp, work: &Dispatch, made: &DispatchReport) -> Result<()> {
    let mut own = made.clone();
    let mut others = Vec::new();
    for commit in &own.commits {
        // If several agents work in one repository, calls overlap, and the log of HEAD has the commits of all of them.
        // The first call that recorded a commit keeps it.
        if code::maker_of(tx, &commit.sha)?.is_some_and(|maker| maker != work.id) {
            others.push(commit.sha.clone());
        }
    }
    own.commits.retain(|commit| !others.contains(&commit.sha));
    code::record(tx, now, work, &own).map(drop)
}

/// Where branches, tags and remotes were as a prompt was given.
fn branches_before(kernel: &Kernel, prompt: &Prompt) -> Result<Vec<String>> {
    let before = kernel.read(|snapshot| {
        let points = point::named(snapshot, point::PointKind::Prompt, prompt.dispatch_id.as_str())?;
        let id = points.into_iter().find_map(|point| point.checkpoint_id);
        id.map(|id| record::get(snapshot, &id)).transpose()
    })?;
    let (Some(before), Some(objects)) = (before, look_into_store(kernel, OpenOptions::default())?) else {
        return Ok(Vec::new());
    };
    let state = CheckpointManifest::read(&objects, &before.manifest)?.git;
    Ok(state.map(|state| state.refs.into_iter().map(|(_, oid)| oid).collect()).unwrap_or_default())
}
