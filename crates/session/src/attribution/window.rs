//! The time between two checkpoints of a tree, and who may have changed a path in it.

use ic_base::{RunId, Seq};
use ic_checkpoint::record::{CheckpointKind, CheckpointRecord};
use ic_dispatch::Dispatch;

use super::OwnerDecisions;
use super::named_paths::{NamedPaths, has, is_named};
use crate::call::ToolCall;

/// The time between two checkpoints of a tree.
#[derive(Debug)]
pub struct Window<'a> {
    /// The checkpoint at its beginning.
    pub from: &'a CheckpointRecord,
    /// The checkpoint at its end.
    pub to: &'a CheckpointRecord,
    pub(super) at_work: Vec<&'a Dispatch>,
    pub(super) in_calls: Vec<&'a Dispatch>,
    /// As `in_calls`, but by the clock: with calls that changed no file.
    pub(super) by_clock: Vec<&'a Dispatch>,
    pub(super) calls: Vec<&'a ToolCall>,
    /// Whether every call in it was cut off.
    pub(super) is_unsure: bool,
    pub(super) decided: &'a OwnerDecisions,
    pub(super) named: &'a NamedPaths,
}

impl<'a> Window<'a> {
    /// The work that may have made a change at a path. If it is one, it made the change; if several, it is not known which; if none, a
    /// person or another program did.
    pub fn owners(&self, path: &[u8]) -> Vec<&'a Dispatch> {
        // Work that was alone made every change, including those of a process that one of its calls left behind. A
        // prompt and its subagents count as one then.
        if self.at_work.len() < 2 || self.in_calls.is_empty() {
            let began =
                |one: &Dispatch| self.at_work.iter().any(|other| one.work.parent_id.as_ref() == Some(&other.id));
            return self.at_work.iter().copied().filter(|one| !began(one)).collect();
        }
        self.makers(path)
    }

    /// As [`Window::owners`], only for changes in tool calls, or by work whose client reports none. A change while no
    /// call ran was made by none of them: a person made it, or a program that a call left behind. The same holds for a
    /// change in a call that edits other files alone.
    pub fn makers(&self, path: &[u8]) -> Vec<&'a Dispatch> {
        if self.is_left(path) {
            return Vec::new();
        }
        let may_have = |worker: &&Dispatch| {
            let mut own = self.calls.iter().filter(|call| call.dispatch_id == worker.id).peekable();
            let names = |call: &ToolCall| call.paths.iter().any(|name| is_named(name.as_bytes(), path));
            // Work without a call here tells none, so it may have changed any path.
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
        // All work is asked in one rank before the next: work that is named equally well shares the path.
        for names in ranks {
            let own: Vec<&Dispatch> = in_calls.iter().copied().filter(|worker| names(worker)).collect();
            if !own.is_empty() {
                return own;
            }
        }
        in_calls
    }

    /// Whether it is not known that the agent changed a path: each call that may have done it was cut off, and a person may have changed the
    /// path after that, also one that the call names.
    pub fn is_unsure(&self, path: &[u8]) -> bool {
        self.is_unsure && !self.decided.takes(path)
    }

    /// Whether a change in a call that was cut off is a person's, who says so.
    pub fn is_left(&self, path: &[u8]) -> bool {
        self.is_unsure && self.decided.leave.contains(path)
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
