//! The order of a checkpointer's rows by their parents.
//!
//! Ids of `LangGraph` sort by time. As long as they sort as the parents do, they tell which rows are newer, in every namespace of a thread.
//! Ids that are given by hand need not: a child whose id sorts before its parent's would survive a rewind to that parent. Then parents
//! decide: within a namespace by `parent_checkpoint_id`, between the namespace of a subgraph and that of its graph by `parents` in the
//! metadata. What these leave open is refused.

use std::collections::{HashMap, HashSet};

use ic_base::{Code, Diagnosis, Result};

use crate::config::{Profile, RewindTarget};
use crate::session::DatabaseSession;
use crate::value::SqlScalar;

mod checkpoint_description;
mod namespace;

pub use checkpoint_description::CheckpointDescription;

use namespace::Namespace;

/// The most rows that a refusal names.
const NAMED: usize = 5;

/// The rows to be deleted where ids do not tell it, by their rowids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineageRows {
    /// The rows after the target.
    pub(crate) doomed: Vec<i64>,
    /// The last row of each namespace that stays.
    pub(crate) last: Vec<i64>,
}

impl LineageRows {
    /// The value from which statements read both lists.
    pub(crate) fn parameter(&self) -> SqlScalar {
        SqlScalar::Text(serde_json::json!({ "doomed": self.doomed, "last": self.last }).to_string())
    }
}

/// A checkpoint: a row of a thread.
#[derive(Debug, Clone)]
struct Checkpoint {
    rowid: i64,
    namespace: String,
    id: String,
    /// The checkpoint of the same namespace that it was made from.
    parent: Option<String>,
    metadata: Vec<u8>,
}

impl Checkpoint {
    fn name(&self) -> String {
        if self.namespace.is_empty() { self.id.clone() } else { format!("{} ({})", self.id, self.namespace) }
    }

    /// The checkpoint of another namespace in whose step it was made: for a subgraph, that of its graph.
    fn parent_in(&self, namespace: &str) -> Option<String> {
        let metadata: serde_json::Value = serde_json::from_slice(&self.metadata).ok()?;
        metadata.get("parents")?.get(namespace)?.as_str().map(str::to_owned)
    }
}

/// The checkpoints of one thread, by namespace.
pub(crate) struct Lineage {
    namespaces: HashMap<String, Namespace>,
}

impl Lineage {
    /// The checkpoints of a thread; `None` for a database that is not a checkpointer's.
    ///
    /// Errors: `no_order` when the parents of a namespace do not lead to one first checkpoint.
    pub(crate) fn of(session: &DatabaseSession, target: &RewindTarget, scope: &[SqlScalar]) -> Result<Option<Self>> {
        // The anchor of a checkpointer has one scope column, the thread.
        let [thread] = scope else { return Ok(None) };
        if !is_checkpointer(target) {
            return Ok(None);
        }
        // Rows come in the order of ids: where those sort by time, `Namespace::last_but` takes the last index for the newest row.
        let sql = "SELECT c.rowid, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.metadata \
                   FROM main.checkpoints AS c WHERE c.thread_id IS ?1 ORDER BY c.checkpoint_id";
        let rows = session.query_all(sql, std::slice::from_ref(thread), |row| {
            let text = |n: usize| Ok::<_, rusqlite::Error>(SqlScalar::shown(row.get_ref(n)?));
            let parent = match row.get::<_, SqlScalar>(3)? {
                SqlScalar::Null => None,
                value => Some(value.to_string()).filter(|id| !id.is_empty()),
            };
            let metadata = match row.get_ref(4)? {
                rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => bytes.to_vec(),
                _ => Vec::new(),
            };
            Ok(Checkpoint { rowid: row.get(0)?, namespace: text(1)?, id: text(2)?, parent, metadata })
        })?;
        let mut namespaces: HashMap<String, Vec<Checkpoint>> = HashMap::new();
        for row in rows {
            namespaces.entry(row.namespace.clone()).or_default().push(row);
        }
        let namespaces = namespaces.into_iter().map(|(name, rows)| Ok((name, Namespace::new(rows)?)));
        let lineage = Self { namespaces: namespaces.collect::<Result<_>>()? };
        if !lineage.sorts_by_id() && target.tables != Profile::Langgraph.tables() {
            let what = "The ids of this thread do not sort as their parents do, and tables that the configuration adds are compared by ids";
            return Err(refused(what, &[]));
        }
        Ok(Some(lineage))
    }

    /// Whether ids sort as the parents do, in every namespace.
    pub(crate) fn sorts_by_id(&self) -> bool {
        self.namespaces.values().all(|namespace| namespace.sorts_by_id)
    }

    /// The rows that a rewind to this checkpoint deletes, by the parents.
    ///
    /// Errors: `no_order`, which names rows that are neither before nor after it.
    pub(crate) fn after(&self, id: &str) -> Result<LineageRows> {
        let mut homes = self.namespaces.iter().filter(|(_, namespace)| namespace.at(id).is_some());
        let (Some((home, own)), None) = (homes.next(), homes.next()) else {
            return Err(refused(&format!("Several checkpoints of this thread are called {id}"), &[]));
        };
        let mut open = Vec::new();
        let doomed_at_home = own.after(id, &mut open);
        let mut rows = LineageRows::default();
        rows.doomed.extend(doomed_at_home.iter().map(|at| own.rows[*at].rowid));
        rows.last.extend(own.at(id).map(|at| own.rows[at].rowid));
        for (name, other) in self.namespaces.iter().filter(|(name, _)| *name != home) {
            let doomed = match own.at(id).and_then(|at| own.rows[at].parent_in(name)) {
                // The target is in a subgraph of this namespace, in the step after that checkpoint.
                Some(outer) if other.at(&outer).is_some() => other.after(&outer, &mut open),
                _ => Self::after_in(other, (home, own, id), &doomed_at_home, &mut open),
            };
            rows.doomed.extend(doomed.iter().map(|at| other.rows[*at].rowid));
            rows.last.extend(other.last_but(&doomed, &mut open).map(|at| other.rows[at].rowid));
        }
        if open.is_empty() {
            rows.doomed.sort_unstable();
            return Ok(rows);
        }
        open.sort_unstable();
        open.dedup();
        let what = format!(
            "The ids of this thread do not sort as their parents do, and these checkpoints are neither before nor after {id}"
        );
        Err(refused(&what, &open))
    }

    /// The rows of another namespace that were made in a step after the target, or in the step that followed it.
    fn after_in(
        other: &Namespace,
        (home, own, id): (&String, &Namespace, &str),
        doomed_at_home: &HashSet<usize>,
        open: &mut Vec<String>,
    ) -> HashSet<usize> {
        //   graph        c1 ───── c2 ───── c3        a rewind to c2 keeps c1 and c2
        //   subgraph         s1       s2             s1 has the parent c1, s2 the parent c2
        // The step that begins at c2 is what is undone. So s2, which was made in it, goes together with c3, and s1 stays.
        let mut doomed = HashSet::new();
        for (at, row) in other.rows.iter().enumerate() {
            let step = row.parent_in(home).and_then(|outer| own.at(&outer));
            let is_after = match step {
                Some(step) => doomed_at_home.contains(&step) || own.rows[step].id == id,
                // Two subgraphs side by side: only ids can tell, if they sort by time.
                None if other.sorts_by_id && own.sorts_by_id => row.id.as_str() > id,
                None => {
                    open.push(row.name());
                    false
                }
            };
            if is_after {
                doomed.insert(at);
            }
        }
        doomed
    }
}

/// Whether the anchor is the table of a `LangGraph` checkpointer.
pub(crate) fn is_checkpointer(target: &RewindTarget) -> bool {
    target.profile == Some(Profile::Langgraph) && target.anchor == Profile::Langgraph.anchor()
}

/// The error `no_order`, naming these rows.
fn refused(what: &str, rows: &[String]) -> Diagnosis {
    let mut named = rows.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if rows.len() > NAMED {
        named.push_str(&format!(" and {} more", rows.len() - NAMED));
    }
    let message = if rows.is_empty() { format!("{what}.") } else { format!("{what}: {named}.") };
    Diagnosis::new(Code::NoOrder, message)
        .hint("nothing was changed; look at parent_checkpoint_id in the table checkpoints, or rewind to a checkpoint of another thread")
        .detail("rows", rows.to_vec())
}
