//! Whose a change of the tree is: what differs between two looks at it belongs to whoever was at work between them.
//!
//! Work whose client tells of each call is at work in its calls alone. Where several were, a path is of those that name it, and the best name
//! decides: the input of a tool, then what was recorded, then a commit that a call made, then a line for a shell. What nobody names may be of each.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ic_base::{CallId, DispatchId, Result, RunId, Seq, Timestamp};
use ic_checkpoint::record::{self, Checkpoint, Kind};
use ic_dispatch::status::DispatchStatus;
use ic_dispatch::{Dispatch, code, dispatch};
use ic_phase::run;
use ic_store::{Snapshot, path_bytes};

use crate::call::{self, Call};
use crate::shell_targets;

/// A call whose end was never told may run for so long, in milliseconds: a build, or a question to a person who is at lunch. Beyond that it
/// was cut off with its client.
const LONGEST_CALL: i64 = 24 * 60 * 60 * 1000;

/// The looks at a tree between two events, and who was at work.
#[derive(Debug)]
pub struct Attribution {
    /// The looks, oldest first.
    pub looks: Vec<Checkpoint>,
    /// Who was at work in the root at any time between them, in the order in which it was created.
    pub workers: Vec<Dispatch>,
    told: HashSet<DispatchId>,
    /// Of work that was interrupted: the event after which it changed nothing.
    interrupted: HashMap<DispatchId, Seq>,
    calls: Vec<Call>,
    /// Calls that were cut off: nobody knows when they ended, nor who changed the tree from then until the next look.
    cut_off: HashSet<CallId>,
    named: Named,
}

/// The paths that work named as its own, by work.
#[derive(Debug, Default)]
struct Named {
    /// A person or a script recorded them.
    recorded: HashMap<DispatchId, HashSet<Vec<u8>>>,
    /// Commits that its calls made have them.
    committed: HashMap<DispatchId, HashSet<Vec<u8>>>,
    /// Calls whose line for a shell writes them, by call.
    written: HashMap<CallId, Vec<String>>,
}

impl Named {
    fn of(
        snapshot: &Snapshot<'_>,
        workers: &[Dispatch],
        calls: &[Call],
        (told, cut_off): (&HashSet<DispatchId>, &HashSet<CallId>),
    ) -> Result<Self> {
        let mut named = Self::default();
        // Who was alone needs no name, unless a person may have changed something meanwhile.
        if workers.len() < 2 && cut_off.is_empty() {
            return Ok(named);
        }
        for file in code::named_by(snapshot, workers.iter().map(|worker| &worker.id))? {
            let is_of_call = file.is_of_commit && told.contains(&file.dispatch_id);
            let by = if is_of_call { &mut named.committed } else { &mut named.recorded };
            by.entry(file.dispatch_id).or_default().insert(path_bytes(&file.path).to_vec());
        }
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

/// The last call of each agent whose work did not come to its end, where its own end was not told: a person stopped it, or it runs. Of
/// work that came to its end every call has ended by then.
fn cut_off_of(workers: &[Dispatch], calls: &[Call]) -> HashSet<CallId> {
    let came_to_its_end = |call: &Call| {
        let mut all = workers.iter().filter(|worker| worker.id == call.dispatch_id);
        all.any(|worker| !matches!(worker.status, DispatchStatus::Running | DispatchStatus::Cancelled))
    };
    let has_next = |call: &Call| {
        let is_next = |one: &Call| {
            one.began_seq > call.began_seq && one.created_at >= call.created_at && one.id != call.id
        };
        let is_same = |one: &Call| one.dispatch_id == call.dispatch_id && one.agent_id == call.agent_id;
        calls.iter().any(|one| is_same(one) && is_next(one))
    };
    let cut_off = calls.iter().filter(|call| call.finished_at.is_none());
    cut_off.filter(|call| !came_to_its_end(call) && !has_next(call)).map(|call| call.id.clone()).collect()
}

/// Whether a name means a path: the path itself, or what lies in it, whose directory may be new.
fn is_named(name: &[u8], path: &[u8]) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The time between two looks at a tree.
#[derive(Debug)]
pub struct Window<'a> {
    /// The earlier look.
    pub from: &'a Checkpoint,
    /// The later one.
    pub to: &'a Checkpoint,
    at_work: Vec<&'a Dispatch>,
    in_calls: Vec<&'a Dispatch>,
    /// As `in_calls`, by the clock: with calls that changed no file.
    meanwhile: Vec<&'a Dispatch>,
    calls: Vec<&'a Call>,
    /// Every call in it was cut off.
    is_unsure: bool,
    named: &'a Named,
}

impl Attribution {
    /// What is known of a root from one event to another, both included. `since`: when the first one was.
    pub fn between(snapshot: &Snapshot<'_>, root: &Path, span: (Seq, Seq), since: Timestamp) -> Result<Self> {
        Self::of_roots(snapshot, &[root], span, since)
    }

    /// As [`Attribution::between`], of several roots that have something in common: the work trees of a repository its branches.
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
        looks.sort_by_key(|look| look.seq);
        let calls = call::between(snapshot, from, to)?;
        let mut found = dispatch::at_work_between(snapshot, from, to, since)?;
        // A subagent that was left in the background goes on after the agent has stopped.
        for call in &calls {
            if !found.iter().any(|worker| worker.id == call.dispatch_id) {
                found.push(dispatch::get(snapshot, &call.dispatch_id)?);
            }
        }
        let mut workers = Vec::new();
        for worker in found {
            let root = ic_store::project_root(&run::get(snapshot, &worker.run_id)?.project_dir);
            if roots.iter().any(|known| root == *known) {
                workers.push(worker);
            }
        }
        let told = call::told_by_calls(snapshot, workers.iter().map(|worker| &worker.id))?;
        let mut interrupted = HashMap::new();
        for worker in workers.iter().filter(|worker| told.contains(&worker.id)) {
            if let Some(last) = call::last_change(snapshot, worker)? {
                interrupted.insert(worker.id.clone(), last);
            }
        }
        let cut_off = cut_off_of(&workers, &calls);
        let named = Named::of(snapshot, &workers, &calls, (&told, &cut_off))?;
        Ok(Self { looks, workers, told, interrupted, calls, cut_off, named })
    }

    /// As it was before a rollback called off this work, which ran until then: the deed decides as its preview did.
    #[must_use]
    pub fn with_running(mut self, called_off: &[DispatchId]) -> Self {
        for worker in self.workers.iter_mut().filter(|worker| called_off.contains(&worker.id)) {
            worker.finished_seq = None;
            self.interrupted.remove(&worker.id);
        }
        self
    }

    /// With all that changed in calls that were cut off as the work's: who asks for that says that nobody else changed it.
    #[must_use]
    pub fn with_unsure(mut self) -> Self {
        self.cut_off.clear();
        self
    }

    /// The last look, if no work was under way from it on until now: no later look shows what changed since.
    pub fn at_rest_since(&self, now: Timestamp) -> Option<&Checkpoint> {
        let (last, to) = self.until_now(now)?;
        self.window(last, &to).is_idle().then_some(last)
    }

    /// The last look, and the look that somebody would take now, with the tree of the last one.
    pub fn until_now(&self, now: Timestamp) -> Option<(&Checkpoint, Checkpoint)> {
        let last = self.looks.last()?;
        Some((last, Checkpoint { seq: Seq::MAX, created_at: now, ..last.clone() }))
    }

    /// Whether the clients of all work of a run told of each call.
    pub fn is_told(&self, run: &RunId) -> bool {
        self.workers
            .iter()
            .filter(|worker| worker.run_id == *run)
            .all(|worker| self.told.contains(&worker.id))
    }

    /// Whether the client of a piece of work told of each call.
    pub fn is_told_by_calls(&self, work: &DispatchId) -> bool {
        self.told.contains(work)
    }

    /// How long git's log of what is checked out was as the first call of this work began, in bytes.
    pub fn first_log_size(&self, work: &[DispatchId]) -> Option<u64> {
        self.first_call(work).and_then(|first| first.head_log_start)
    }

    /// What was checked out as the first call of this work began.
    pub fn first_head(&self, work: &[DispatchId]) -> Option<&str> {
        self.first_call(work).and_then(|first| first.head.as_deref())
    }

    fn first_call(&self, work: &[DispatchId]) -> Option<&Call> {
        self.calls.iter().find(|call| work.contains(&call.dispatch_id))
    }

    /// Whether a call of a run has begun whose end is not known.
    pub fn runs_now(&self, run: &RunId) -> bool {
        let is_of_run = |call: &&Call| {
            self.workers.iter().any(|worker| worker.id == call.dispatch_id && worker.run_id == *run)
        };
        self.calls.iter().filter(|call| call.ended_seq.is_none()).any(|call| is_of_run(&call))
    }

    /// The times between the looks, oldest first. What a restore changed is nobody's work, and is in none of them.
    pub fn windows(&self) -> impl DoubleEndedIterator<Item = Window<'_>> {
        self.all().filter(|window| !window.is_restore())
    }

    /// The times between the looks, those of restores too, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Window<'_>> {
        self.looks.windows(2).map(|pair| self.window(&pair[0], &pair[1]))
    }

    /// The looks between which a restore changed the tree, oldest first.
    pub fn restores(&self) -> impl Iterator<Item = (&Checkpoint, &Checkpoint)> {
        let pairs = self.looks.windows(2).filter(|pair| pair[1].kind == Kind::Restored);
        pairs.map(|pair| (&pair[0], &pair[1]))
    }

    /// The time between two looks.
    pub fn window<'a>(&'a self, from: &'a Checkpoint, to: &'a Checkpoint) -> Window<'a> {
        // One whose end was never told, and which is older than any tool runs, was cut off with its client.
        let is_cut_off = |call: &&Call| {
            call.ended_seq.is_none() && from.created_at.millis() - call.created_at.millis() > LONGEST_CALL
        };
        let calls = self.calls.iter().filter(|call| call.ran_between(from.seq, to.seq));
        let calls: Vec<&Call> = calls.filter(|call| !is_cut_off(call)).collect();
        let called = |worker: &Dispatch| calls.iter().any(|call| call.dispatch_id == worker.id);
        let at_work: Vec<&Dispatch> = {
            let all = self.workers.iter();
            all.filter(|worker| called(worker) || self.was_at_work(worker, from, to)).collect()
        };
        let is_in_call = |worker: &&Dispatch| !self.told.contains(&worker.id) || called(worker);
        let in_calls: Vec<&Dispatch> = at_work.iter().copied().filter(is_in_call).collect();
        let ran = |call: &&Call| call.ran_in_time(from.created_at, to.created_at) && !is_cut_off(call);
        let ran: Vec<&Call> = self.calls.iter().filter(ran).collect();
        let made_one =
            |worker: &&Dispatch| is_in_call(worker) || ran.iter().any(|call| call.dispatch_id == worker.id);
        let meanwhile = at_work.iter().copied().filter(made_one).collect();
        let is_unsure = !calls.is_empty()
            && in_calls.iter().all(|worker: &&Dispatch| self.told.contains(&worker.id))
            && calls.iter().all(|call| self.cut_off.contains(&call.id));
        Window { from, to, at_work, in_calls, meanwhile, calls, is_unsure, named: &self.named }
    }

    /// Whether work was under way at any time between two looks at the tree.
    fn was_at_work(&self, worker: &Dispatch, from: &Checkpoint, to: &Checkpoint) -> bool {
        // The look with which one ended comes right before the event of its end.
        let has_ended = |end: Seq| {
            end <= from.seq || (end == from.seq + 1 && from.link.dispatch_id.as_ref() == Some(&worker.id))
        };
        // What a person did from the last call on until they typed again is none of its.
        let end = self.interrupted.get(&worker.id).copied().or(worker.finished_seq);
        worker.place() < to.seq && !end.is_some_and(has_ended)
    }
}

impl<'a> Window<'a> {
    /// Whose a change at a path may be: of one, it is; of several, nobody knows; of none, somebody else made it.
    pub fn owners(&self, path: &[u8]) -> Vec<&'a Dispatch> {
        // Who is alone has it all, also what a process did that one of its calls left behind; a prompt and its subagents are one then.
        if self.at_work.len() < 2 || self.in_calls.is_empty() {
            let began = |one: &Dispatch| {
                self.at_work.iter().any(|other| one.work.parent_id.as_ref() == Some(&other.id))
            };
            return self.at_work.iter().copied().filter(|one| !began(one)).collect();
        }
        self.makers(path)
    }

    /// As [`Window::owners`], of what was made in tool calls, or by work whose client tells of none. What changed while no call ran nobody of
    /// them made: a person did, or a program that a call left behind.
    pub fn makers(&self, path: &[u8]) -> Vec<&'a Dispatch> {
        if self.in_calls.len() < 2 {
            return self.in_calls.clone();
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
        for names in ranks {
            let own: Vec<&Dispatch> = self.in_calls.iter().copied().filter(|worker| names(worker)).collect();
            if !own.is_empty() {
                return own;
            }
        }
        self.in_calls.clone()
    }

    /// Whether nobody knows that the agent changed a path: each call that may have done it was cut off, and none names the path. A person may
    /// have changed it after that.
    pub fn is_unsure(&self, path: &[u8]) -> bool {
        let names = |call: &&Call| {
            let written = self.named.written.get(&call.id).into_iter().flatten();
            call.paths.iter().chain(written).any(|name| is_named(name.as_bytes(), path))
        };
        self.is_unsure && !self.calls.iter().any(names)
    }

    /// Whether it lies after the cut of a rollback.
    pub fn is_after(&self, cut: Seq) -> bool {
        // The look of an advance is the event before it, and that of a point the one after it.
        self.from.seq >= cut || self.from.advance_seq == Some(cut)
    }

    /// Whether a restore changed the tree, and nobody's work.
    pub fn is_restore(&self) -> bool {
        self.to.kind == Kind::Restored
    }

    /// Whether a change of what is no file of the tree, like a branch, may be of this run: as [`Window::owners`] has it, but that a call
    /// which changed no file may have changed that.
    pub fn may_be_of(&self, run: &RunId) -> bool {
        let owners =
            if self.at_work.len() < 2 || self.meanwhile.is_empty() { &self.at_work } else { &self.meanwhile };
        owners.iter().any(|worker| worker.run_id == *run)
    }

    /// Whether no work was under way.
    pub fn is_idle(&self) -> bool {
        self.at_work.is_empty()
    }

    /// Whether a change may be of a tool call, or of work whose client tells of none. What changed between two calls may be a person's.
    pub fn is_in_call(&self) -> bool {
        !self.in_calls.is_empty()
    }

    /// The calls that may have made a change at a path: those that name it, else all that ran.
    pub fn calls(&self, path: &[u8]) -> Vec<&'a Call> {
        let named: Vec<&Call> = self.calls.iter().filter(|call| call.names(path)).copied().collect();
        if named.is_empty() { self.calls.clone() } else { named }
    }
}
