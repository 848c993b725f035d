//! The tree of one namespace's checkpoints.

use std::collections::{HashMap, HashSet};

use ic_base::Result;

use super::{Checkpoint, refused};

/// The checkpoints of one namespace: a tree from the first one, with branches where a thread was forked.
pub(super) struct Namespace {
    /// The checkpoints, in the order of their ids.
    pub(super) rows: Vec<Checkpoint>,
    by_id: HashMap<String, usize>,
    children: HashMap<usize, Vec<usize>>,
    /// Whether every id sorts after that of its parent.
    pub(super) sorts_by_id: bool,
}

impl Namespace {
    /// A namespace in which no parent is recorded counts as sorted by its ids, because nothing contradicts that.
    ///
    /// Errors: `no_order` for two first checkpoints, for a missing parent beside a first checkpoint, and for parents in a circle.
    pub(super) fn new(rows: Vec<Checkpoint>) -> Result<Self> {
        let by_id: HashMap<String, usize> = rows.iter().enumerate().map(|(at, row)| (row.id.clone(), at)).collect();
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        let (mut first, mut orphans, mut sorts_by_id) = (Vec::new(), Vec::new(), true);
        for (at, row) in rows.iter().enumerate() {
            match row.parent.as_ref().map(|parent| by_id.get(parent)) {
                None => first.push(at),
                Some(None) => orphans.push(at),
                Some(Some(&parent)) => {
                    children.entry(parent).or_default().push(at);
                    sorts_by_id &= rows[parent].id < row.id;
                }
            }
        }
        let this = Self { rows, by_id, children, sorts_by_id };
        let names = |at: &[usize]| at.iter().map(|at| this.rows[*at].name()).collect::<Vec<_>>();
        if this.rows.iter().all(|row| row.parent.is_none()) {
            return Ok(this);
        }
        // Where older checkpoints were pruned, the oldest that is left has lost its parent, and is the first.
        let starts: Vec<usize> = first.iter().chain(&orphans).copied().collect();
        if starts.len() > 1 {
            let (what, rows) = if orphans.is_empty() {
                ("Several checkpoints have no parent, and only the first one of a thread may have none", &first)
            } else {
                ("The parents of these checkpoints are missing, which leaves open what came before them", &orphans)
            };
            return Err(refused(what, &names(rows)));
        }
        // Each row leads to its one parent. What is not reached from a start leads into a circle.
        let reached: HashSet<usize> =
            starts.iter().flat_map(|start| this.descendants(*start).into_iter().chain([*start])).collect();
        let circle: Vec<usize> = (0..this.rows.len()).filter(|at| !reached.contains(at)).collect();
        if circle.is_empty() {
            Ok(this)
        } else {
            Err(refused("The parents of these checkpoints go in a circle", &names(&circle)))
        }
    }

    /// The index of the checkpoint with this id.
    pub(super) fn at(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The indexes of all that came from a checkpoint, without its own.
    fn descendants(&self, of: usize) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut left = vec![of];
        while let Some(at) = left.pop() {
            for child in self.children.get(&at).into_iter().flatten() {
                // This is called before circles are refused, so one may lead back to the start.
                if *child != of && found.insert(*child) {
                    left.push(*child);
                }
            }
        }
        found
    }

    /// The indexes of all that came after a checkpoint. Other branches are compared by their ids; where ids do not sort by time, they are
    /// added to `open`.
    pub(super) fn after(&self, id: &str, open: &mut Vec<String>) -> HashSet<usize> {
        let Some(target) = self.at(id) else { return HashSet::new() };
        let mut doomed = self.descendants(target);
        let mut before = HashSet::from([target]);
        let mut at = target;
        while let Some(parent) = self.rows[at].parent.as_ref().and_then(|parent| self.at(parent)) {
            // This never happens after `new`, which refuses circles.
            if !before.insert(parent) {
                break;
            }
            at = parent;
        }
        //   a1 ──── a2 ──── a3        a rewind to a2: a1 is before, a3 came from it and goes
        //    └───── b1                a branch: its parents do not tell whether b1 was made before a2
        for (at, row) in self.rows.iter().enumerate() {
            if before.contains(&at) || doomed.contains(&at) {
                continue;
            }
            if !self.sorts_by_id {
                open.push(row.name());
            } else if row.id.as_str() > id {
                doomed.insert(at);
            }
        }
        doomed
    }

    /// The last checkpoint that is not in `doomed`; `None`: all are.
    pub(super) fn last_but(&self, doomed: &HashSet<usize>, open: &mut Vec<String>) -> Option<usize> {
        let stays = (0..self.rows.len()).filter(|at| !doomed.contains(at));
        if self.sorts_by_id {
            return stays.max();
        }
        let has_child = |at: &usize| self.children.get(at).into_iter().flatten().any(|child| !doomed.contains(child));
        let tips: Vec<usize> = stays.filter(|at| !has_child(at)).collect();
        if tips.len() > 1 {
            // Without an order of ids, each of them may be what the thread did last.
            open.extend(tips.iter().map(|at| self.rows[*at].name()));
        }
        tips.first().copied()
    }
}
