//! Tables and columns, by the names with which they were declared.

use crate::config::Triggers;
use crate::error::misfit;
use crate::schema::{Catalog, Column, TableInfo};
use crate::session::quote;
use ic_base::Result;

/// The audit's table and columns, by the names with which they were declared.
pub(crate) struct AuditPlan {
    pub(crate) table: TableInfo,
    pub(crate) event: String,
    pub(crate) payload: String,
    pub(crate) order: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) id: Option<String>,
}

/// A column's name in SQL; `rowid` stays the rowid.
pub(crate) fn column_or_rowid(name: &str) -> String {
    if name == "rowid" { name.to_owned() } else { quote(name) }
}

/// The column of `table` with this name, with its declared spelling. Errors: `invalid_config`.
pub(crate) fn column<'a>(table: &'a TableInfo, name: &str) -> Result<&'a Column> {
    table.column(name).ok_or_else(|| {
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        misfit(format!("The table {} has no column {name}; it has {}.", table.name, names.join(", ")))
            .detail("table", table.name.as_str())
            .detail("column", name)
    })
}

/// The table with this name. Errors: `invalid_config`.
pub(crate) fn table<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a TableInfo> {
    catalog.table(name).ok_or_else(|| misfit(format!("The state database has no table {name}.")).detail("table", name))
}

/// Errors: `invalid_config` when the table has triggers and they are not declared to fire.
pub(crate) fn refuse_triggers(info: &TableInfo, declared: Triggers) -> Result<()> {
    if info.triggers.is_empty() || declared == Triggers::Fire {
        return Ok(());
    }
    let names: Vec<&str> = info.triggers.iter().map(|t| t.name.as_str()).collect();
    Err(misfit(format!("The table {} has triggers, which would run with a rewind: {}.", info.name, names.join(", ")))
        .hint("if they may, give the table `triggers: fire`")
        .detail("triggers", names))
}
