//! The code layer: which commits and files came from where. Read-only; git is never run.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use ic_base::{DispatchId, Result, Seq};
use ic_dispatch::dispatch;
use ic_dispatch::{Dispatch, code, revert};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_runtrack::Artifact;
use ic_runtrack::artifact;

use super::cut;

/// Which part of a run's code is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeScope<'a> {
    /// Everything that its dispatches recorded.
    WholeRun,
    /// What dispatches of one phase left, without what was rolled back before the run reached the phase again.
    Phase(&'a str),
    /// What was recorded after the cut of a rollback to this phase.
    After {
        /// The phase to which the run went.
        to_phase: &'a str,
        /// Whether what was recorded in that phase counts too.
        include_target: bool,
    },
}

/// What one dispatch left in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeEntry {
    /// The work, also where it was rolled back.
    pub dispatch: Dispatch,
    /// Whether any of it was reported after the dispatch was rolled back.
    pub late: bool,
    /// Its commits, oldest first.
    pub commits: Vec<String>,
    /// Its files, in the order of recording, each once.
    pub files: Vec<PathBuf>,
    last: Seq,
}

/// The commits and files of a run, and which dispatch recorded each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeReport {
    /// The phases that were asked for, in chain order.
    pub phases: Vec<String>,
    /// What each dispatch left, newest first; dispatches that left nothing are not listed.
    pub entries: Vec<CodeEntry>,
    /// The commits to revert, newest first, each once.
    pub revert_order: Vec<String>,
    /// The artifacts in the same scope, oldest first.
    pub artifacts: Vec<Artifact>,
}

/// Reports the code of a run. Errors: `unknown_phase`.
pub fn report(snapshot: &Snapshot<'_>, run: &Run, scope: CodeScope<'_>) -> Result<CodeReport> {
    let (phases, since) = bounds(snapshot, run, scope)?;
    // What was rolled back before the run reached the phase again was to be reverted at that time.
    let again = match scope {
        CodeScope::Phase(phase) => cut::find(snapshot, run, phase, true)?.unwrap_or(0),
        CodeScope::WholeRun | CodeScope::After { .. } => 0,
    };
    let is_over = |dispatch: &Dispatch, seq: Seq| {
        // A record is undone if it, or all of its work, came after the cut of the rollback that marked the work.
        seq <= again && dispatch.undone_from.is_some_and(|cut| seq > cut || dispatch.place() > cut)
    };
    let in_scope = |phase: &str| match scope {
        CodeScope::Phase(wanted) => phase == wanted,
        CodeScope::WholeRun | CodeScope::After { .. } => true,
    };
    let mut entries: HashMap<DispatchId, CodeEntry> = dispatch::of_run(snapshot, &run.id)?
        .into_iter()
        .filter(|d| in_scope(&d.phase))
        .map(|d| (d.id.clone(), CodeEntry { dispatch: d, late: false, commits: vec![], files: vec![], last: 0 }))
        .collect();
    let mut recorded = Vec::new();
    for commit in code::commits_of_run(snapshot, &run.id, since)? {
        if let Some(entry) = entries.get_mut(&commit.dispatch_id).filter(|entry| !is_over(&entry.dispatch, commit.seq))
        {
            entry.late |= commit.late;
            entry.last = entry.last.max(commit.seq);
            recorded.push(commit.sha.clone());
            entry.commits.push(commit.sha);
        }
    }
    let mut listed = HashSet::new();
    for file in code::files_of_run(snapshot, &run.id, since)? {
        if let Some(entry) = entries.get_mut(&file.dispatch_id).filter(|entry| !is_over(&entry.dispatch, file.seq)) {
            entry.late |= file.late;
            entry.last = entry.last.max(file.seq);
            if listed.insert((file.dispatch_id, file.path.clone())) {
                entry.files.push(file.path);
            }
        }
    }
    let mut entries: Vec<CodeEntry> = entries.into_values().filter(|e| e.last > 0).collect();
    entries.sort_by_key(|e| std::cmp::Reverse((e.last, e.dispatch.seq)));
    let mut artifacts = artifact::list(snapshot, &run.id, artifact::ArtifactFilter::default())?;
    artifacts.retain(|a| a.seq > since && in_scope(&a.phase));
    // As with commits: what was rolled back since the run reached the phase again is still to be reverted.
    artifacts.retain(|a| a.rolled_back_by.is_none() || a.seq > again);
    Ok(CodeReport {
        phases,
        entries,
        revert_order: revert::revert_order(recorded.iter().map(String::as_str)),
        artifacts,
    })
}

/// The phases that are asked for, and the event after which what is wanted was recorded.
fn bounds(snapshot: &Snapshot<'_>, run: &Run, scope: CodeScope<'_>) -> Result<(Vec<String>, Seq)> {
    match scope {
        CodeScope::WholeRun => Ok((run.chain.names().into_iter().map(str::to_owned).collect(), 0)),
        CodeScope::Phase(phase) => {
            run.chain.require(phase)?;
            Ok((vec![phase.to_owned()], 0))
        }
        CodeScope::After { to_phase, include_target } => {
            run.chain.require(to_phase)?;
            let mut phases = run.chain.phases_after(to_phase, run.chain.last());
            if include_target {
                phases.insert(0, to_phase.to_owned());
            }
            // A phase that was never crossed has nothing after it.
            let since = cut::find(snapshot, run, to_phase, include_target)?.unwrap_or(Seq::MAX);
            Ok((phases, since))
        }
    }
}
