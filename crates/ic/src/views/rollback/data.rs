//! The rows that a rollback deletes or restores.

use ic_undo::Data;

use crate::text::{path_text, plain};
use crate::views::exact;

shape! {
    /// The rows that a rollback deletes.
    pub(crate) struct DataJson from data: &Data {
        /// The file of the application's database.
        database: String = data.database.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        database_b64: Option<String> = exact(&data.database),
        /// The number of rows that are deleted, by table.
        #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
        affected_row_counts: serde_json::Map<String, serde_json::Value> =
            data.rows.iter().map(|(table, rows)| (table.clone(), (*rows).into())).collect(),
    }

    /// The rows that were restored.
    pub(crate) struct RestoredDataJson from data: &Data where
        DataJson { database, database_b64, affected_row_counts } = data.into();
    {
        /// The file of the application's database.
        database: String = database,
        #[serde(skip_serializing_if = "Option::is_none")]
        database_b64: Option<String> = database_b64,
        /// The number of rows that were restored, by table.
        #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
        restored_row_counts: serde_json::Map<String, serde_json::Value> = affected_row_counts,
    }
}

/// Tables with the number of their rows, then `note`.
pub(crate) fn rows(data: &Data, note: &str) -> String {
    let database = path_text(&data.database);
    let all: u64 = data.rows.iter().map(|(_, rows)| rows).sum();
    if all == 0 {
        return format!(" of {database}: none\n");
    }
    let mut out = format!(" of {database}: {all}\n");
    for (table, rows) in data.rows.iter().filter(|(_, rows)| *rows > 0) {
        out += &format!("  {rows:>7}  {}\n", plain(table));
    }
    if !note.is_empty() {
        out += &format!("  {note}\n");
    }
    out
}
