//! Rewinds of an application's database.

use std::path::Path;

use ic_rewind::journal::{Entry, Status};
use ic_rewind::{InspectedTable, Inspection, Scalar, Task};
use ic_rows::{Configured, GitPlan, NOTE, Preview, Undone, restore_command, resume_command, stages_left};
use ic_worktree::Warning;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{WarningJson, exact};

/// A rewind: what it deleted, how far it came, and what is left.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RewindJson {
    /// Null where there was nothing to do.
    id: Option<String>,
    short_id: Option<String>,
    task_id: Option<String>,
    /// The task's order, as it is stored: a number or a text; a BLOB as its bytes.
    #[cfg_attr(test, schemars(with = "super::ScalarJson"))]
    snapshot_created_at: Value,
    /// The rows that were deleted, by table in the order in which it was done; null until they are.
    #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, u64>>"))]
    deleted_row_counts: Option<Map<String, Value>>,
    /// By an undo: the rows that are back, or with `dry_run` would be, by table.
    #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, u64>>"))]
    restored_row_counts: Option<Map<String, Value>>,
    /// planned, `git_done`, `db_done` or `vector_done`: what is done; null where there was nothing to do.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&ic_rewind::journal::Stage::WORDS))))]
    stage: Option<&'static str>,
    /// Null: the tree stays as it is.
    git: Option<RewindGitJson>,
    /// done, stopped, `in_progress`, undone or `nothing_to_do`.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::and(&ic_rewind::journal::Status::WORDS, "nothing_to_do"))))]
    status: &'static str,
    /// By `undo --dry-run`: nothing was changed.
    dry_run: bool,
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_b64: Option<String>,
    /// Where the deleted rows are; null when they are not kept any more: it cannot be undone then.
    archive: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive_b64: Option<String>,
    /// Why it stopped.
    failure: Option<FailureJson>,
    /// The stages that are still to be done, in their order: git, sqlite, vectors.
    stages_left: Vec<&'static str>,
    /// The command that resumes with the rest.
    resume: Option<String>,
    created_at: Option<String>,
    seq: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

/// Why a stage failed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailureJson {
    code: String,
    message: String,
}

/// What git did in a rewind.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RewindGitJson {
    /// The commit that the tree goes to.
    commit: String,
    /// The branch that was left; null: HEAD was detached, or did not move.
    left_branch: Option<String>,
    /// The commit that was left.
    left_head: Option<String>,
    /// The ref that keeps that commit reachable.
    kept_ref: Option<String>,
    /// The checkpoint that has the tree as it was; null if it was not moved.
    safety_checkpoint_id: Option<String>,
    /// The command that restores the tree.
    restore: Option<String>,
}

impl From<&Entry> for RewindJson {
    fn from(entry: &Entry) -> Self {
        let lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let git = entry.git_commit.as_ref().map(|commit| RewindGitJson {
            commit: commit.clone(),
            left_branch: entry.left.branch.as_ref().map(lossy),
            left_head: entry.left.head.clone(),
            kept_ref: entry.left.kept_ref.as_ref().map(lossy),
            safety_checkpoint_id: entry.safety_id.as_ref().map(ToString::to_string),
            restore: restore_command(entry),
        });
        let archive = entry.deleted.rows.as_ref().and_then(|_| entry.kept_archive());
        Self {
            id: Some(entry.id.to_string()),
            short_id: Some(entry.id.short().to_owned()),
            task_id: Some(entry.task_id.clone()),
            snapshot_created_at: scalar(&entry.deleted.snapshot_created_at),
            deleted_row_counts: entry.deleted.rows.as_deref().map(counts),
            restored_row_counts: None,
            stage: Some(entry.stage.as_str()),
            git,
            status: entry.status.as_str(),
            dry_run: false,
            database: lossy_path(&entry.database),
            database_b64: exact(&entry.database),
            archive: archive.map(lossy_path),
            archive_b64: archive.and_then(exact),
            failure: entry
                .error
                .as_ref()
                .filter(|_| entry.status == Status::Stopped)
                .map(|error| FailureJson { code: error.code.clone(), message: error.message.clone() }),
            stages_left: stages_left(entry),
            resume: resume_command(entry),
            created_at: Some(entry.created_at.to_string()),
            seq: Some(entry.seq),
            warnings: Vec::new(),
        }
    }
}

impl RewindJson {
    /// A rewind that was undone by this call.
    pub(crate) fn undone(undone: &Undone) -> Self {
        Self {
            restored_row_counts: Some(counts(&undone.restored)),
            dry_run: undone.is_dry_run,
            ..Self::from(&undone.entry)
        }
    }

    /// The same with what went less well than it should have.
    pub(crate) fn with_warnings(mut self, warnings: &[Warning]) -> Self {
        self.warnings = warnings.iter().map(WarningJson::from).collect();
        self
    }

    /// A rewind that was not begun, because everything was at its target already.
    pub(crate) fn nothing_to_do(preview: &Preview, warning: Option<&Warning>) -> Self {
        let rows: Vec<(String, u64)> =
            preview.snapshot.affected_row_counts.iter().map(|(t, n)| (t.to_owned(), n)).collect();
        let git = preview.git.as_ref().map(|git| RewindGitJson {
            commit: git.commit.clone(),
            left_branch: None,
            left_head: None,
            kept_ref: None,
            safety_checkpoint_id: None,
            restore: None,
        });
        Self {
            id: None,
            short_id: None,
            task_id: preview.snapshot.task_id.clone(),
            snapshot_created_at: scalar(&preview.snapshot.snapshot_created_at),
            deleted_row_counts: Some(counts(&rows)),
            restored_row_counts: None,
            stage: None,
            git,
            status: "nothing_to_do",
            dry_run: false,
            database: lossy_path(&preview.database),
            database_b64: exact(&preview.database),
            archive: None,
            archive_b64: None,
            failure: None,
            stages_left: Vec::new(),
            resume: None,
            created_at: None,
            seq: None,
            warnings: warning.map(WarningJson::from).into_iter().collect(),
        }
    }
}

/// A task that a rewind can go to.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RewindTargetJson {
    /// What `ic rewind to` takes.
    task_id: String,
    /// Its order, as it is stored: a number or a text.
    #[cfg_attr(test, schemars(with = "super::ScalarJson"))]
    snapshot_created_at: Value,
    /// Its git commit; null: it has none, or the configuration names no column for it.
    commit: Option<String>,
    /// The values of the scope columns, by column: what `ic rewind to --scope K=V` takes. Empty where tasks have no scopes.
    scope: Map<String, Value>,
}

impl From<&Task> for RewindTargetJson {
    fn from(task: &Task) -> Self {
        Self {
            task_id: task.task_id.clone(),
            snapshot_created_at: scalar(&task.created_at),
            commit: task.commit.clone(),
            scope: task.scope.iter().map(|(column, value)| (column.clone(), scalar(value))).collect(),
        }
    }
}

/// What a rewind would do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RewindPreviewJson {
    task_id: Option<String>,
    /// The task's order, as it is stored: a number or a text; a BLOB as its bytes.
    #[cfg_attr(test, schemars(with = "super::ScalarJson"))]
    snapshot_created_at: Value,
    /// The rows that would be deleted, by table in the order in which it is done.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
    affected_row_counts: Map<String, Value>,
    /// Null: the tree stays as it is.
    git: Option<GitPreviewJson>,
    /// What a rewind does not do.
    note: &'static str,
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_b64: Option<String>,
    /// The command that prunes vectors.
    vectors: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

/// What git would do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GitPreviewJson {
    /// The commit that the tree would go to.
    commit: String,
    /// The branch that is checked out; null: HEAD is detached.
    branch: Option<String>,
    /// The commit that is checked out.
    head: Option<String>,
    /// Whether anything of the tree would change.
    moves: bool,
    /// Local changes that only the safety checkpoint would have afterwards.
    losses: Vec<String>,
}

impl From<&GitPlan> for GitPreviewJson {
    fn from(git: &GitPlan) -> Self {
        let lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Self {
            commit: git.commit.clone(),
            branch: git.standing.branch.as_ref().map(lossy),
            head: git.standing.head.clone(),
            moves: git.moves(),
            losses: git.losses.paths().map(lossy).collect(),
        }
    }
}

impl RewindPreviewJson {
    pub(crate) fn new(preview: &Preview, warning: Option<&Warning>) -> Self {
        let rows: Vec<(String, u64)> =
            preview.snapshot.affected_row_counts.iter().map(|(t, n)| (t.to_owned(), n)).collect();
        Self {
            task_id: preview.snapshot.task_id.clone(),
            snapshot_created_at: scalar(&preview.snapshot.snapshot_created_at),
            affected_row_counts: counts(&rows),
            git: preview.git.as_ref().map(GitPreviewJson::from),
            note: NOTE,
            database: lossy_path(&preview.database),
            database_b64: exact(&preview.database),
            vectors: preview.vectors.clone(),
            warnings: warning.map(WarningJson::from).into_iter().collect(),
        }
    }
}

/// What was set up.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RewindInitJson {
    /// devs or langgraph.
    #[cfg_attr(test, schemars(extend("enum" = ["devs", "langgraph"])))]
    profile: Value,
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_b64: Option<String>,
    /// The configuration's file, which has the section now.
    config_file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_file_b64: Option<String>,
    /// Whether the tables were made, rather than there already.
    created: bool,
    /// Whether the database is there; a checkpointer makes its own.
    exists: bool,
}

impl From<&Configured> for RewindInitJson {
    fn from(configured: &Configured) -> Self {
        Self {
            profile: json!(configured.profile),
            database: lossy_path(&configured.database),
            database_b64: exact(&configured.database),
            config_file: lossy_path(&configured.file),
            config_file_b64: exact(&configured.file),
            created: configured.has_made_tables,
            exists: configured.is_there,
        }
    }
}

/// What a database has, and how it could be rewound.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RewindInspectJson {
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_b64: Option<String>,
    tables: Vec<InspectedTableJson>,
    foreign_keys: Vec<ForeignKeyJson>,
    /// The section `rewind` of a configuration; null if no table has a column that orders its rows.
    #[cfg_attr(test, schemars(with = "Option<Map<String, Value>>"))]
    proposal: Value,
    /// What a person should know about it.
    notes: Vec<String>,
    /// The configuration's file, if the proposal was added to it.
    config_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_file_b64: Option<String>,
}

/// A table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InspectedTableJson {
    name: String,
    /// table, shadow or view; of a virtual table its module.
    #[cfg_attr(test, schemars(with = "String"))]
    kind: Value,
    without_rowid: bool,
    columns: Vec<ColumnJson>,
    /// The names of its triggers.
    triggers: Vec<String>,
    /// Columns that together are unique.
    unique: Vec<Vec<String>>,
    /// Columns that say when a row was made, likeliest first.
    order_candidates: Vec<String>,
}

/// A column.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ColumnJson {
    name: String,
    /// Its declared type; empty if there is none.
    declared: String,
    not_null: bool,
    generated: bool,
    /// Its place in the primary key, from 1; 0 if it is not part of it.
    key_place: i64,
}

/// A foreign key.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ForeignKeyJson {
    child: String,
    parent: String,
    /// Pairs of a column of the child and a column of the parent.
    columns: Vec<(String, String)>,
}

impl RewindInspectJson {
    pub(crate) fn new(database: &Path, inspection: &Inspection, written: Option<&Path>) -> Self {
        let keys = inspection.foreign_keys.iter().map(|key| ForeignKeyJson {
            child: key.child.clone(),
            parent: key.parent.clone(),
            columns: key.columns.clone(),
        });
        Self {
            database: lossy_path(database),
            database_b64: exact(database),
            tables: inspection.tables.iter().map(InspectedTableJson::from).collect(),
            foreign_keys: keys.collect(),
            // A path that is not UTF-8 has no JSON; the database stands above with its exact bytes.
            proposal: inspection
                .target
                .as_ref()
                .map_or(Value::Null, |target| serde_json::to_value(target).unwrap_or(Value::Null)),
            notes: inspection.notes.clone(),
            config_file: written.map(lossy_path),
            config_file_b64: written.and_then(exact),
        }
    }
}

impl From<&InspectedTable> for InspectedTableJson {
    fn from(table: &InspectedTable) -> Self {
        let column = |column: &ic_rewind::Column| ColumnJson {
            name: column.name.clone(),
            declared: column.declared.clone(),
            not_null: column.not_null,
            generated: column.generated,
            key_place: column.key_place,
        };
        Self {
            name: table.info.name.clone(),
            kind: json!(table.info.kind),
            without_rowid: table.info.without_rowid,
            columns: table.info.columns.iter().map(column).collect(),
            triggers: table.info.triggers.iter().map(|trigger| trigger.name.clone()).collect(),
            unique: table.info.unique.clone(),
            order_candidates: table.order_candidates.clone(),
        }
    }
}

fn lossy_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn counts(rows: &[(String, u64)]) -> Map<String, Value> {
    rows.iter().map(|(table, rows)| (table.clone(), json!(rows))).collect()
}

fn scalar(value: &Scalar) -> Value {
    json!(value)
}
