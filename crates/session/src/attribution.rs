//! Whose a change of the tree is: a difference between two checkpoints belongs to the work that ran between them.
//!
//! Work whose client reports each call changes the tree only in its calls. Where several ran, a path belongs to those that name it. The best
//! name decides: the input of a tool, a recorded path, a commit of a call, a line for a shell, in this order. A path that
//! none of them names may belong to each.

mod named_paths;
mod window;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use ic_base::{CallId, DispatchId, Result, RunId, Seq, Timestamp};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::status::DispatchStatus;
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::Snapshot;
use ic_phase::run;

use crate::call::{self, ToolCall};

use named_paths::NamedPaths;
pub use window::Window;

/// How long a call without a reported end may run, in milliseconds: a build, or a question to a person who is at lunch. An older one was
/// cut off with its client.
const LONGEST_CALL: i64 = 24 * 60 * 60 * 1000;

/// The checkpoints of a tree between two events, and the work that ran.
#[derive(Debug)]
pub struct Attribution {
    /// The checkpoints, oldest first.
    pub looks: Vec<CheckpointRecord>,
    /// The work that ran in the root at any time between them, in the order in which it was created.
    pub workers: Vec<Dispatch>,
    told: HashSet<DispatchId>,
    /// For work that was interrupted: the event after which it changed nothing.
    interrupted: HashMap<DispatchId, Seq>,
    calls: Vec<ToolCall>,
    /// Calls that were cut off. It is not known when they ended, nor who changed the tree from then until the next checkpoint.
    cut_off: HashSet<CallId>,
    decided: OwnerDecisions,
    named: NamedPaths,
}

/// What a person says about changes whose owner is not known.
#[derive(Debug, Clone, Default)]
pub struct OwnerDecisions {
    /// All are the work's but those that are left.
    pub take_all: bool,
    /// The paths at which they are the work's.
    pub take: BTreeSet<Vec<u8>>,
    /// The paths at which they are the person's.
    pub leave: BTreeSet<Vec<u8>>,
}

impl OwnerDecisions {
    fn takes(&self, path: &[u8]) -> bool {
        (self.take_all || self.take.contains(path)) && !self.leave.contains(path)
    }
}

/// The last call of each agent whose work did not end by itself, if the call's own end was not reported: a person stopped it, or it still
/// runs. Work that ended by itself has no running calls.
fn cut_off_of(workers: &[Dispatch], calls: &[ToolCall]) -> HashSet<CallId> {
    // Of a process it is known whether it runs, and a look at the tree is taken once it is seen to have ended.
    let is_told = |call: &ToolCall| {
        let mut all = workers.iter().filter(|worker| worker.id == call.dispatch_id);
        all.any(|worker| worker.status == DispatchStatus::Completed || worker.pid().is_some())
    };
    let has_next = |call: &ToolCall| {
        let is_next =
            |one: &ToolCall| one.began_seq > call.began_seq && one.created_at >= call.created_at && one.id != call.id;
        let is_same = |one: &ToolCall| one.dispatch_id == call.dispatch_id && one.agent_id == call.agent_id;
        calls.iter().any(|one| is_same(one) && is_next(one))
    };
    let cut_off = calls.iter().filter(|call| call.finished_at.is_none());
    cut_off.filter(|call| !is_told(call) && !has_next(call)).map(|call| call.id.clone()).collect()
}

impl Attribution {
    /// What is known of a root from one event to another, both included. `since`: the time of the first one.
    pub fn between(snapshot: &Snapshot<'_>, root: &Path, span: (Seq, Seq), since: Timestamp) -> Result<Self> {
        Self::of_roots(snapshot, &[root], span, since)
    }

    /// As [`Attribution::between`], of several roots that share something: the work trees of a repository share its branches.
    pub fn of_roots(
        snapshot: &Snapshot<'_>,
        roots: &[&Path],
        (from, to): (Seq, Seq),
        since: Timestamp,
    ) -> Result<Self> {
        let mut looks = Vec::new();
        for root in roots {
            looks.extend(record::of_root_between(snapshot, root, from, to)?);
        }
        // Each root has them in order; of several roots they alternate.
        looks.sort_by_key(|look| look.seq);
        let calls = call::between(snapshot, from, to)?;
        let mut found = dispatch::at_work_between(snapshot, from, to, since)?;
        // A subagent that was left in the background continues after the agent has stopped.
        for call in &calls {
            if !found.iter().any(|worker| worker.id == call.dispatch_id) {
                found.push(dispatch::get(snapshot, &call.dispatch_id)?);
            }
        }
        // Calls and dispatches are those of all places; what runs elsewhere changes nothing here.
        let mut workers = Vec::new();
        for worker in found {
            let root = ic_ledger::project_root(&run::get(snapshot, &worker.run_id)?.project_dir);
            if roots.iter().any(|known| root == *known) {
                workers.push(worker);
            }
        }
        let told = call::told_by_calls(snapshot, workers.iter().map(|worker| &worker.id))?;
        let mut interrupted = HashMap::new();
        // Only work that tells its calls is known to change nothing after the last of them.
        for worker in workers.iter().filter(|worker| told.contains(&worker.id)) {
            if let Some(last) = call::last_change(snapshot, worker)? {
                interrupted.insert(worker.id.clone(), last);
            }
        }
        let cut_off = cut_off_of(&workers, &calls);
        let named = NamedPaths::of(snapshot, &workers, &calls, &told)?;
        Ok(Self { looks, workers, told, interrupted, calls, cut_off, decided: OwnerDecisions::default(), named })
    }

    /// The attribution from before a rollback cancelled this work, which ran until then: so the rollback decides as its preview did.
    #[must_use]
    pub fn with_running(mut self, called_off: &[DispatchId]) -> Self {
        for worker in self.workers.iter_mut().filter(|worker| called_off.contains(&worker.id)) {
            // The rollback recorded this end itself, so the work did not end with it.
            worker.finished_seq = None;
            self.interrupted.remove(&worker.id);
        }
        self
    }

    /// The attribution with what a person decided about changes whose owner is not known.
    #[must_use]
    pub fn as_decided(mut self, decided: OwnerDecisions) -> Self {
        self.decided = decided;
        self
    }

    /// Whether a person says that a change whose owner is not known is theirs.
    pub fn is_left(&self, path: &[u8]) -> bool {
        self.decided.leave.contains(path)
    }

    /// Whether nothing tells that a piece of work made a change at a path: it tells no calls and has no process, was not completed, and
    /// recorded other paths or none.
    pub fn is_untold_of(&self, work: &Dispatch, recorded: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
        let is_open = !matches!(work.status, DispatchStatus::Completed | DispatchStatus::Failed);
        let is_told = self.told.contains(&work.id) || recorded.contains(path);
        is_open && work.pid().is_none() && !is_told && !self.is_sure(path)
    }

    /// Whether a tool call was cut off: its end was not told.
    pub fn has_cut_off(&self) -> bool {
        !self.cut_off.is_empty()
    }

    /// Whether a person says that what changed at a path is the work's.
    pub fn is_sure(&self, path: &[u8]) -> bool {
        self.decided.takes(path)
    }

    /// The last checkpoint, and a checkpoint as it would be taken now, with the tree of the last one.
    pub fn until_now(&self, now: Timestamp) -> Option<(&CheckpointRecord, CheckpointRecord)> {
        let last = self.looks.last()?;
        Some((last, CheckpointRecord { seq: Seq::MAX, created_at: now, ..last.clone() }))
    }

    /// Whether some work of a run that was under way in a window told no call at all, not even before or after it: it may have done nothing,
    /// or its hooks were not called. What another run may have done so is no reason to take what changed.
    pub fn has_untold_work(&self, run: Option<&RunId>, window: &Window<'_>) -> bool {
        let is_told = |worker: &&Dispatch| self.calls.iter().any(|call| call.dispatch_id == worker.id);
        window.at_work.iter().any(|worker| run == Some(&worker.run_id) && !is_told(worker))
    }

    /// Whether the client of a piece of work reported each call.
    pub fn is_told_by_calls(&self, work: &DispatchId) -> bool {
        self.told.contains(work)
    }

    /// As [`Attribution::is_told_by_calls`], for all of this work. What some of it began is told by the same client.
    pub fn are_told_by_calls(&self, works: &[DispatchId]) -> bool {
        let is_begun = |one: &&Dispatch| one.work.parent_id.as_ref().is_some_and(|parent| works.contains(parent));
        let chosen = self.workers.iter().filter(|one| works.contains(&one.id) && !is_begun(one));
        let chosen: Vec<&Dispatch> = chosen.collect();
        !chosen.is_empty() && chosen.iter().all(|one| self.told.contains(&one.id))
    }

    /// The size of git's log of HEAD when the first call of this work began, in bytes.
    pub fn first_log_size(&self, work: &[DispatchId]) -> Option<u64> {
        self.first_call(work).and_then(|first| first.head_log_start)
    }

    /// The commit that was checked out when the first call of this work began.
    pub fn first_head(&self, work: &[DispatchId]) -> Option<&str> {
        self.first_call(work).and_then(|first| first.head.as_deref())
    }

    /// The commits that were checked out as calls of this work began.
    pub fn heads(&self, work: &[DispatchId]) -> BTreeSet<&str> {
        self.calls
            .iter()
            .filter(|call| work.contains(&call.dispatch_id))
            .filter_map(|call| call.head.as_deref())
            .collect()
    }

    fn first_call(&self, work: &[DispatchId]) -> Option<&ToolCall> {
        self.calls.iter().find(|call| work.contains(&call.dispatch_id))
    }

    /// The times between the checkpoints, oldest first. What a restore changed belongs to no work, and is in none of them.
    pub fn windows(&self) -> impl DoubleEndedIterator<Item = Window<'_>> {
        self.all().filter(|window| !window.is_restore())
    }

    /// The times between the checkpoints, those of restores too, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Window<'_>> {
        self.looks.windows(2).map(|pair| self.window(&pair[0], &pair[1]))
    }

    /// The time between two checkpoints.
    pub fn window<'a>(&'a self, from: &'a CheckpointRecord, to: &'a CheckpointRecord) -> Window<'a> {
        // A call without a reported end that is older than any tool runs was cut off with its client.
        let is_cut_off = |call: &&ToolCall| {
            call.ended_seq.is_none() && from.created_at.millis() - call.created_at.millis() > LONGEST_CALL
        };
        let calls = self.calls.iter().filter(|call| call.ran_between(from.seq, to.seq));
        let calls: Vec<&ToolCall> = calls.filter(|call| !is_cut_off(call)).collect();
        let called = |worker: &Dispatch| calls.iter().any(|call| call.dispatch_id == worker.id);
        let at_work: Vec<&Dispatch> = {
            let all = self.workers.iter();
            all.filter(|worker| called(worker) || self.was_at_work(worker, from, to)).collect()
        };
        // Work that tells no calls counts as being in one from its start to its end.
        let is_in_call = |worker: &&Dispatch| !self.told.contains(&worker.id) || called(worker);
        let in_calls: Vec<&Dispatch> = at_work.iter().copied().filter(is_in_call).collect();
        // A call that changed no file has no look of its own, so by events it took no time. It may have moved a branch.
        let ran = |call: &&ToolCall| call.ran_in_time(from.created_at, to.created_at) && !is_cut_off(call);
        let ran: Vec<&ToolCall> = self.calls.iter().filter(ran).collect();
        let made_one = |worker: &&Dispatch| is_in_call(worker) || ran.iter().any(|call| call.dispatch_id == worker.id);
        let by_clock = at_work.iter().copied().filter(made_one).collect();
        // A call whose end is known, or work that tells no calls, would explain the change.
        let is_unsure = !calls.is_empty()
            && in_calls.iter().all(|worker: &&Dispatch| self.told.contains(&worker.id))
            && calls.iter().all(|call| self.cut_off.contains(&call.id));
        Window { from, to, at_work, in_calls, by_clock, calls, is_unsure, decided: &self.decided, named: &self.named }
    }

    /// Whether work ran at any time between two checkpoints of the tree.
    fn was_at_work(&self, worker: &Dispatch, from: &CheckpointRecord, to: &CheckpointRecord) -> bool {
        // The checkpoint with which work ended comes right before the event of its end.
        let has_ended =
            |end: Seq| end <= from.seq || (end == from.seq + 1 && from.link.dispatch_id.as_ref() == Some(&worker.id));
        // What a person did after the last call and before the next prompt is not the work's.
        let end = self.interrupted.get(&worker.id).copied().or(worker.finished_seq);
        worker.place() < to.seq && !end.is_some_and(has_ended)
    }
}
