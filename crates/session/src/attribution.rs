//! Whose a change of the tree is: a difference between two checkpoints belongs to the work that ran between them.
//!
//! Work whose client reports each call changes the tree only in its calls. Where several ran, a path belongs to those that name it. The best
//! name decides: the input of a tool, a recorded path, a commit of a call, a line for a shell, in this order. A path that
//! none of them names may belong to each.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use ic_base::{CallId, DispatchId, Result, RunId, Seq, Timestamp};
use ic_checkpoint::record::{self, CheckpointKind, CheckpointRecord};
use ic_dispatch::status::DispatchStatus;
use ic_dispatch::{Dispatch, code, dispatch};
use ic_ledger::{Snapshot, path_bytes};
use ic_phase::run;

use crate::call::{self, ToolCall};
use crate::shell_targets;

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
    /// The paths that a person says are the work's.
    sure: BTreeSet<Vec<u8>>,
    /// Whether a person says that of all paths.
    is_all_sure: bool,
    named: Named,
}

/// The paths that work named as its own, by work.
#[derive(Debug, Default)]
struct Named {
    /// Paths that a person or a script recorded.
    recorded: HashMap<DispatchId, HashSet<Vec<u8>>>,
    /// Paths in commits that its calls made.
    committed: HashMap<DispatchId, HashSet<Vec<u8>>>,
    /// Paths that a call's line for a shell writes, by call.
    written: HashMap<CallId, Vec<String>>,
}

impl Named {
    fn of(
        snapshot: &Snapshot<'_>,
        workers: &[Dispatch],
        calls: &[ToolCall],
        (told, cut_off): (&HashSet<DispatchId>, &HashSet<CallId>),
    ) -> Result<Self> {
        let mut named = Self::default();
        // Work that was alone needs no name, unless a person may have changed something at the same time.
        if workers.len() < 2 && cut_off.is_empty() {
            return Ok(named);
        }
        for file in code::named_by(snapshot, workers.iter().map(|worker| &worker.id))? {
            // Of work that tells no calls, a commit on record is as good a name as a recorded path.
            let is_of_call = file.is_of_commit && told.contains(&file.dispatch_id);
            let by = if is_of_call { &mut named.committed } else { &mut named.recorded };
            by.entry(file.dispatch_id).or_default().insert(path_bytes(&file.path).to_vec());
        }
        // A call that names paths needs no line: its paths are the better name.
        for call in calls.iter().filter(|call| call.paths.is_empty()) {
            let written = call.line.as_deref().map(shell_targets::written).unwrap_or_default();
            if !written.is_empty() {
                named.written.insert(call.id.clone(), written);
            }
        }
        Ok(named)
    }
}

fn has(named: &HashMap<DispatchId, HashSet<Vec<u8>>>, work: &DispatchId, path: &[u8]) -> bool {
    named.get(work).is_some_and(|paths| paths.iter().any(|name| is_named(name, path)))
}

/// The last call of each agent whose work did not end by itself, if the call's own end was not reported: a person stopped it, or it still
/// runs. Work that ended by itself has no running calls.
fn cut_off_of(workers: &[Dispatch], calls: &[ToolCall]) -> HashSet<CallId> {
    let came_to_its_end = |call: &ToolCall| {
        let mut all = workers.iter().filter(|worker| worker.id == call.dispatch_id);
        all.any(|worker| worker.status == DispatchStatus::Completed)
    };
    let has_next = |call: &ToolCall| {
        let is_next =
            |one: &ToolCall| one.began_seq > call.began_seq && one.created_at >= call.created_at && one.id != call.id;
        let is_same = |one: &ToolCall| one.dispatch_id == call.dispatch_id && one.agent_id == call.agent_id;
        calls.iter().any(|one| is_same(one) && is_next(one))
    };
    let cut_off = calls.iter().filter(|call| call.finished_at.is_none());
    cut_off.filter(|call| !came_to_its_end(call) && !has_next(call)).map(|call| call.id.clone()).collect()
}

/// Whether a name means a path: the path itself, or a path in it, because its directory may be new.
fn is_named(name: &[u8], path: &[u8]) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The time between two checkpoints of a tree.
#[derive(Debug)]
pub struct Window<'a> {
    /// The checkpoint at its beginning.
    pub from: &'a CheckpointRecord,
    /// The checkpoint at its end.
    pub to: &'a CheckpointRecord,
    at_work: Vec<&'a Dispatch>,
    in_calls: Vec<&'a Dispatch>,
    /// As `in_calls`, but by the clock: with calls that changed no file.
    by_clock: Vec<&'a Dispatch>,
    calls: Vec<&'a ToolCall>,
    /// Whether every call in it was cut off.
    is_unsure: bool,
    sure: &'a BTreeSet<Vec<u8>>,
    named: &'a Named,
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
        let named = Named::of(snapshot, &workers, &calls, (&told, &cut_off))?;
        Ok(Self { looks, workers, told, interrupted, calls, cut_off, sure: BTreeSet::new(), is_all_sure: false, named })
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

    /// Counts all of which it is not known whose it is as the work's. A person says so.
    #[must_use]
    pub fn with_unsure(mut self) -> Self {
        self.cut_off.clear();
        self.is_all_sure = true;
        self
    }

    /// Whether nothing tells that a piece of work made a change at a path: it tells no calls and has no process, was not completed, and
    /// recorded other paths or none.
    pub fn is_untold_of(&self, work: &Dispatch, recorded: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
        let is_open = !matches!(work.status, DispatchStatus::Completed | DispatchStatus::Failed);
        let is_told = self.told.contains(&work.id) || recorded.contains(path);
        is_open && work.pid().is_none() && !is_told && !self.is_sure(path)
    }

    /// Whether a person says that what changed at a path is the work's.
    pub fn is_sure(&self, path: &[u8]) -> bool {
        self.is_all_sure || self.sure.contains(path)
    }

    /// As [`Attribution::with_unsure`], at these paths alone.
    #[must_use]
    pub fn with_unsure_paths(self, sure: BTreeSet<Vec<u8>>) -> Self {
        Self { sure, ..self }
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
        // Work that tells no calls counts as in one from its start to its end.
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
        Window { from, to, at_work, in_calls, by_clock, calls, is_unsure, sure: &self.sure, named: &self.named }
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

impl<'a> Window<'a> {
    /// The work that may have made a change at a path. If it is one, it made the change; if several, it is not known which; if none, a
    /// person or another program did.
    pub fn owners(&self, path: &[u8]) -> Vec<&'a Dispatch> {
        // Work that was alone has made every change, also what a process did that one of its calls left behind. A prompt and its subagents
        // count as one then.
        if self.at_work.len() < 2 || self.in_calls.is_empty() {
            let began =
                |one: &Dispatch| self.at_work.iter().any(|other| one.work.parent_id.as_ref() == Some(&other.id));
            return self.at_work.iter().copied().filter(|one| !began(one)).collect();
        }
        self.makers(path)
    }

    /// As [`Window::owners`], only for changes in tool calls, or by work whose client reports none. A change while no call ran was made by
    /// none of them: a person made it, or a program that a call left behind. So was one in a call that edits other files alone.
    pub fn makers(&self, path: &[u8]) -> Vec<&'a Dispatch> {
        let may_have = |worker: &&Dispatch| {
            let mut own = self.calls.iter().filter(|call| call.dispatch_id == worker.id).peekable();
            let names = |call: &ToolCall| call.paths.iter().any(|name| is_named(name.as_bytes(), path));
            // Work without a call here tells none: it may have changed any path.
            own.peek().is_none() || own.any(|call| !call.is_confined() || names(call))
        };
        let in_calls: Vec<&Dispatch> = self.in_calls.iter().copied().filter(may_have).collect();
        if in_calls.len() < 2 {
            return in_calls;
        }
        let calls = |worker: &Dispatch| {
            let mut all = self.calls.iter().filter(|call| call.dispatch_id == worker.id);
            all.any(|call| call.paths.iter().any(|name| is_named(name.as_bytes(), path)))
        };
        let recorded = |worker: &Dispatch| has(&self.named.recorded, &worker.id, path);
        let committed = |worker: &Dispatch| has(&self.named.committed, &worker.id, path);
        let written = |worker: &Dispatch| {
            let own = self.calls.iter().filter(|call| call.dispatch_id == worker.id);
            let mut names = own.filter_map(|call| self.named.written.get(&call.id)).flatten();
            names.any(|name| is_named(name.as_bytes(), path))
        };
        let ranks: [&dyn Fn(&Dispatch) -> bool; 4] = [&calls, &recorded, &committed, &written];
        // All are asked in one rank before the next: works that are named equally well share the path.
        for names in ranks {
            let own: Vec<&Dispatch> = in_calls.iter().copied().filter(|worker| names(worker)).collect();
            if !own.is_empty() {
                return own;
            }
        }
        in_calls
    }

    /// Whether it is not known that the agent changed a path: each call that may have done it was cut off, and none names the path. A
    /// person may have changed it after that.
    pub fn is_unsure(&self, path: &[u8]) -> bool {
        let names = |call: &&ToolCall| {
            let written = self.named.written.get(&call.id).into_iter().flatten();
            call.paths.iter().chain(written).any(|name| is_named(name.as_bytes(), path))
        };
        self.is_unsure && !self.sure.contains(path) && !self.calls.iter().any(names)
    }

    /// Whether it is later than the cut of a rollback.
    pub fn is_after(&self, cut: Seq) -> bool {
        // The checkpoint of an advance is the event before the advance; that of a point is the event after the point.
        self.from.seq >= cut || self.from.advance_seq == Some(cut)
    }

    /// Whether a restore changed the tree, and no work did.
    pub fn is_restore(&self) -> bool {
        self.to.kind == CheckpointKind::Restored
    }

    /// Whether a change to something other than a file, such as a branch, may have been made by this run. As [`Window::owners`],
    /// but a call that changed no file may have made it.
    pub fn may_be_of(&self, run: &RunId) -> bool {
        let owners = if self.at_work.len() < 2 || self.by_clock.is_empty() { &self.at_work } else { &self.by_clock };
        owners.iter().any(|worker| worker.run_id == *run)
    }

    /// Whether what changed in it is a person's own: no work was under way, not even between two calls, and nothing that changes the tree
    /// itself had just looked at it. Effects of an undo, for instance, run after such a look.
    pub fn is_own(&self) -> bool {
        self.is_idle() && !self.is_restore() && self.from.kind != CheckpointKind::Safety
    }

    /// Whether no work was under way.
    pub fn is_idle(&self) -> bool {
        self.at_work.is_empty()
    }

    /// The work that was in a call, or whose client reports none.
    pub fn in_calls(&self) -> &[&'a Dispatch] {
        &self.in_calls
    }

    /// The calls that may have made a change at a path: those that name it, else all that ran.
    pub fn calls(&self, path: &[u8]) -> Vec<&'a ToolCall> {
        let named: Vec<&ToolCall> = self.calls.iter().filter(|call| call.names(path)).copied().collect();
        if named.is_empty() { self.calls.clone() } else { named }
    }
}
