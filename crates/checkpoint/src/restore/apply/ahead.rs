//! Opening the packs of what is written next, while the last is written: each of the two takes about half of a restore.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use ic_events::Hash;

use super::super::plan::{Node, Plan, Step};
use crate::objects::Objects;

/// So many contents are opened before they are asked for: what is remembered of packs has room for theirs.
const AHEAD: usize = 8;

/// What is opened ahead of the steps of a plan, in their order.
pub(super) struct Ahead(Option<Receiver<()>>);

impl Ahead {
    /// Waits until what this step writes is open. To be asked in order; a step that is left out only makes those after it wait for less.
    pub(super) fn wait_for(&self, step: &Step) {
        if let (Some(opened), Some(_)) = (&self.0, content(step)) {
            // Whoever opened them is done, or has failed: then each step opens its own.
            let _ = opened.recv();
        }
    }
}

/// Does `work` while the contents that the plan writes are opened by a thread of their own.
pub(super) fn reading(objects: &Objects, plan: &Plan, work: impl FnOnce(&Ahead)) {
    let contents: Vec<&Hash> = plan.steps.iter().filter_map(content).collect();
    if contents.len() < 2 {
        return work(&Ahead(None));
    }
    thread::scope(|scope| {
        let (tell, opened) = sync_channel(AHEAD);
        let reader = thread::Builder::new().spawn_scoped(scope, move || {
            for hash in contents {
                objects.open_ahead(hash);
                // Nobody waits any more.
                if tell.send(()).is_err() {
                    return;
                }
            }
        });
        // Without a thread to spare, each step opens its own.
        work(&Ahead(reader.is_ok().then_some(opened)));
    });
}

/// The content that a step writes, where it changes.
fn content(step: &Step) -> Option<&Hash> {
    match (&step.before, &step.after) {
        (Some(Node::File { hash: before, .. }), Some(Node::File { hash, .. })) if before == hash => None,
        (_, Some(Node::File { hash, .. })) => Some(hash),
        _ => None,
    }
}
