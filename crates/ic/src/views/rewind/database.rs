//! The layout of a database, its setup, and the tasks that a rewind can go to.

use std::path::Path;

use ic_rewind::{AnchorTask, Column, ForeignKey, InspectedTable, Inspection, Profile};
use ic_undo::app_rewind::RewindSetup;
use serde_json::{Map, Value, json};

use crate::text::{Cell, TextTable, path_text, style};
use crate::views::exact;
use crate::views::rewind::{lossy_path, scalar};

shape! {
    /// A task that a rewind can go to.
    pub(crate) struct RewindTargetJson from task: &AnchorTask {
        /// The key of the task, as `ic rewind to` takes it.
        task_id: String = task.task_id.clone(),
        /// Its order, as the database stores it: a number or a text.
        #[cfg_attr(test, schemars(with = "crate::views::tests::ScalarJson"))]
        snapshot_created_at: Value = scalar(&task.created_at),
        /// Its git commit; null if it has none, or the configuration names no column for it.
        commit: Option<String> = task.commit.clone(),
        /// The values of its scope columns, by column, as `ic rewind to --scope K=V` takes them. Empty if tasks have no scopes.
        scope: Map<String, Value> =
            task.scope.iter().map(|(column, value)| (column.clone(), scalar(value))).collect(),
        /// When a checkpoint was made, as its checkpointer wrote it; absent elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        time: Option<String> = task.described.as_ref().and_then(|said| said.time.clone()),
        /// The step of a checkpoint; absent elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        step_number: Option<i64> = task.described.as_ref().and_then(|said| said.step),
        /// What made a checkpoint: input, loop, update or fork; absent elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String> = task.described.as_ref().and_then(|said| said.source.clone()),
        /// The namespace of a checkpoint, empty for the graph's own; absent elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String> = task.described.as_ref().map(|said| said.namespace.clone()),
    }

    /// The setup of a database (`rewind init`).
    pub(crate) struct RewindInitJson from configured: &RewindSetup {
        /// The layout of the database: devs or langgraph.
        #[cfg_attr(test, schemars(extend("enum" = ["devs", "langgraph"])))]
        profile: Value = json!(configured.profile),
        database: String = lossy_path(&configured.database),
        #[serde(skip_serializing_if = "Option::is_none")]
        database_b64: Option<String> = exact(&configured.database),
        /// The configuration file, which now has the section `rewind`.
        config_file: String = lossy_path(&configured.file),
        #[serde(skip_serializing_if = "Option::is_none")]
        config_file_b64: Option<String> = exact(&configured.file),
        /// Whether the tables were created; false if they existed.
        created: bool = configured.has_made_tables,
        /// Whether the database exists; a checkpointer creates its own.
        exists: bool = configured.is_there,
    }

    /// The layout of a database, and a proposal how to rewind it (`rewind inspect`).
    pub(crate) struct RewindInspectJson from (
        database: &Path,
        inspection: &Inspection,
        written: Option<&Path>,
    ) where
        keys = inspection.foreign_keys.iter().map(ForeignKeyJson::from);
    {
        database: String = lossy_path(database),
        #[serde(skip_serializing_if = "Option::is_none")]
        database_b64: Option<String> = exact(database),
        tables: Vec<InspectedTableJson> = inspection.tables.iter().map(InspectedTableJson::from).collect(),
        foreign_keys: Vec<ForeignKeyJson> = keys.collect(),
        /// The proposed section `rewind` of a configuration; null if no table has a column that orders its rows.
        #[cfg_attr(test, schemars(with = "Option<Map<String, Value>>"))]
        // JSON cannot hold a path that is not UTF-8; `database_b64` has its exact bytes.
        proposal: Value = inspection
            .target
            .as_ref()
            .map_or(Value::Null, |target| serde_json::to_value(target).unwrap_or(Value::Null)),
        /// Remarks about the proposal, for people.
        notes: Vec<String> = inspection.notes.clone(),
        /// The configuration file, if the proposal was added to it.
        config_file: Option<String> = written.map(lossy_path),
        #[serde(skip_serializing_if = "Option::is_none")]
        config_file_b64: Option<String> = written.and_then(exact),
    }

    /// A table of the inspected database.
    struct InspectedTableJson from table: &InspectedTable where
        column = ColumnJson::from;
    {
        name: String = table.info.name.clone(),
        /// table, shadow or view; of a virtual table its module.
        #[cfg_attr(test, schemars(with = "String"))]
        kind: Value = json!(table.info.kind),
        without_rowid: bool = table.info.without_rowid,
        columns: Vec<ColumnJson> = table.info.columns.iter().map(column).collect(),
        /// The names of its triggers.
        triggers: Vec<String> = table.info.triggers.iter().map(|trigger| trigger.name.clone()).collect(),
        /// Columns that together are unique.
        unique: Vec<Vec<String>> = table.info.unique.clone(),
        /// Columns that may order the rows by time, the likeliest first.
        order_candidates: Vec<String> = table.order_candidates.clone(),
    }

    /// A column of a table.
    struct ColumnJson from column: &Column {
        name: String = column.name.clone(),
        /// Its declared type; empty if there is none.
        declared: String = column.declared.clone(),
        not_null: bool = column.not_null,
        generated: bool = column.generated,
        /// Its position in the primary key, from 1; 0 if the key does not include it.
        key_place: i64 = column.key_place,
    }

    /// A foreign key, from a child table to its parent.
    struct ForeignKeyJson from key: &ForeignKey {
        child: String = key.child.clone(),
        parent: String = key.parent.clone(),
        /// Pairs of a column of the child and a column of the parent.
        columns: Vec<(String, String)> = key.columns.clone(),
    }
}

/// Tasks that a rewind can go to, one a line.
pub(crate) fn targets(tasks: &[AnchorTask]) -> String {
    if tasks.iter().any(|task| task.described.is_some()) {
        return checkpoints(tasks);
    }
    let mut table = TextTable::new(&["TASK", "ORDER", "COMMIT", "SCOPE"]);
    for task in tasks {
        let scope = scope_of(task);
        table.row(vec![
            Cell::new(style::STRONG, &task.task_id),
            task.created_at.to_string().into(),
            task.commit.as_deref().unwrap_or_default().into(),
            scope.into(),
        ]);
    }
    table.render("No tasks to rewind to.")
}

/// Checkpoints of a checkpointer: their ids are their order, and say nothing to a person.
fn checkpoints(tasks: &[AnchorTask]) -> String {
    let mut table = TextTable::new(&["TASK", "TIME", "STEP", "SOURCE", "SUBGRAPH", "SCOPE"]);
    for task in tasks {
        let said = task.described.clone().unwrap_or_default();
        table.row(vec![
            Cell::new(style::STRONG, &task.task_id),
            said.time.unwrap_or_default().into(),
            said.step.map(|step| step.to_string()).unwrap_or_default().into(),
            said.source.unwrap_or_default().into(),
            said.namespace.into(),
            scope_of(task).into(),
        ]);
    }
    table.render("No tasks to rewind to.")
}

fn scope_of(task: &AnchorTask) -> String {
    let scope: Vec<String> = task.scope.iter().map(|(column, value)| format!("{column}={value}")).collect();
    scope.join(" ")
}

/// What was set up.
pub(crate) fn configured(configured: &RewindSetup) -> String {
    let database = path_text(&configured.database);
    let mut out = match (configured.profile, configured.has_made_tables, configured.is_there) {
        (Profile::Devs, true, _) => format!("Made the tables of the profile devs in {database}\n"),
        (Profile::Devs, false, _) => format!("The tables of the profile devs are in {database}\n"),
        (Profile::Langgraph, _, true) => format!("{database} is the database of a LangGraph checkpointer\n"),
        (Profile::Langgraph, _, false) => format!("{database} is not there yet; the checkpointer makes it\n"),
    };
    out += &format!("Added the section `rewind` to {}\n", path_text(&configured.file));
    out
}
