//! Layouts of state databases that are built in.

use serde::{Deserialize, Serialize};

use super::{Anchor, Audit, Follow, TableConfig, Triggers};

/// A known layout of a state database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The four tables of seed 002; [`DEVS_SQL`] makes them.
    Devs,
    /// A `LangGraph` checkpointer (`langgraph-checkpoint-sqlite`): its ids sort by time, its threads are scopes. The namespaces of a thread
    /// are its subgraphs, which advance together with it. Every row in `writes` was written after its checkpoint:
    /// <https://github.com/langchain-ai/langgraph/blob/main/libs/langgraph/langgraph/pregel/_loop.py>, `put_writes`.
    Langgraph,
}

/// Makes the tables of the profile `devs`. Times are Unix milliseconds.
pub const DEVS_SQL: &str = "\
CREATE TABLE IF NOT EXISTS tasks (
    task_id TEXT PRIMARY KEY,
    title TEXT,
    status TEXT,
    git_commit_hash TEXT,
    created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS requirements (
    req_id TEXT PRIMARY KEY,
    task_id TEXT REFERENCES tasks(task_id),
    body TEXT,
    created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS agent_logs (
    log_id INTEGER PRIMARY KEY,
    task_id TEXT REFERENCES tasks(task_id),
    event_type TEXT,
    payload TEXT,
    created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS langgraph_checkpoints (
    checkpoint_id TEXT PRIMARY KEY,
    task_id TEXT REFERENCES tasks(task_id),
    payload BLOB,
    created_at INTEGER NOT NULL
);
";

impl Profile {
    pub(crate) fn anchor(self) -> Anchor {
        let own = |text: &str| text.to_owned();
        match self {
            Self::Devs => Anchor {
                table: own("tasks"),
                key: own("task_id"),
                order: own("created_at"),
                commit: Some(own("git_commit_hash")),
                scope: Vec::new(),
            },
            Self::Langgraph => Anchor {
                table: own("checkpoints"),
                key: own("checkpoint_id"),
                order: own("checkpoint_id"),
                commit: None,
                scope: vec![own("thread_id")],
            },
        }
    }

    pub(crate) fn tables(self) -> Vec<TableConfig> {
        match self {
            Self::Devs => ["agent_logs", "langgraph_checkpoints", "requirements", "tasks"]
                .map(|name| TableConfig::by_column(name, "created_at"))
                .to_vec(),
            Self::Langgraph => {
                let on = ["thread_id", "checkpoint_ns", "checkpoint_id"];
                let follow = Follow::Columns {
                    table: "checkpoints".to_owned(),
                    on: on.map(|c| (c.to_owned(), c.to_owned())).to_vec(),
                };
                let writes = TableConfig::following("writes", follow).inclusive();
                vec![writes, TableConfig::by_column("checkpoints", "checkpoint_id")]
            }
        }
    }

    pub(super) fn audit(self) -> Option<Audit> {
        match self {
            Self::Devs => Some(Audit {
                table: "agent_logs".to_owned(),
                event: "event_type".to_owned(),
                payload: "payload".to_owned(),
                order: Some("created_at".to_owned()),
                task: Some("task_id".to_owned()),
                id: None,
                triggers: Triggers::Refuse,
            }),
            Self::Langgraph => None,
        }
    }
}
